/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reading thread of a pull: lists, contents, messages, the goodbye (doc/protocol/03-transfer.md sections 1.3 and 1.5). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "contents/pull.h"
#include "contents/receive.h"
#include "contents/replay.h"
#include "delta/block_sums.h"
#include "dest/alternate.h"
#include "dest/apply.h"
#include "dest/basis.h"
#include "dest/contents.h"
#include "dest/events.h"
#include "dest/file.h"
#include "dest/task.h"
#include "dest/write.h"
#include "flist/receive.h"
#include "flist/receive_attributes.h"
#include "fs/copy.h"
#include "fs/file.h"
#include "lib/block_count.h"
#include "lib/exit.h"
#include "receiver/output.h"

#define CLONE_LEAST (1u << 20) /* bytes of a basis: of less, the blocks are not worth a call */

#define GROWTH_MAX (UINT64_C(1) << 30) /* of a file since it was listed, beyond twice its size */

/* --- replies --- */

/* The oldest request that names ndx, taken out; requests before it have no reply: they failed. NULL: nobody asked. */
static struct transfer *pull_take(struct pull *pull, int32_t ndx)
{
	struct transfer *transfer;

	if (pull->contents.is_replay)
		return replay_take(pull, ndx);
	while ((transfer = requests_take_oldest(pull, false)) && transfer->ndx != ndx)
		pull_settle(pull, transfer, false);
	return transfer;
}

/* Ask once more, for the whole file; the main thread does it soon. */
static void pull_came_wrong(struct pull *pull, struct transfer *transfer)
{
	if (pull->contents.is_replay) {
		transfer->job.is_redo = true;
		replay_request(pull, transfer);
		return;
	}
	pthread_mutex_lock(&pull->lock);
	transfer->next = pull->wrong;
	pull->wrong = transfer;
	pthread_mutex_unlock(&pull->lock);
}

/* --- one file --- */

static void incoming_set_temp(struct incoming *incoming, struct file_job *job, struct fs_temp *temp)
{
	struct pull *pull = pull_of(job->dest->contents);

	(void)incoming;
	/* Whoever ends the process keeps the lock, and nothing more is done here. */
	pthread_mutex_lock(&pull->keep_lock);
	job->temp = temp;
	pull->cut_off = temp ? job : NULL;
	pthread_mutex_unlock(&pull->keep_lock);
}

/*
 * How long the new file may be, 0: any length. A file may have grown since it was listed, also if the list is that of an attr
 * tree; but what a module takes of strangers is bounded (doc/protocol/08-security.md section 3.5), and what was not wanted when
 * it was listed is not wanted when it has grown.
 */
static uint64_t most_of(const struct file_job *job)
{
	const struct options *options = job->dest->options;
	const uint64_t size = job->entry->size;
	uint64_t most = 0;

	if (!entry_is_regular(job->entry) || options->copy_devices || options->write_devices)
		return 0;
	if (job->dest->module && size < UINT64_MAX / 2 - GROWTH_MAX)
		most = 2 * size + GROWTH_MAX;
	if (options->max_size > 0 && (!most || (uint64_t)options->max_size < most))
		most = (uint64_t)options->max_size;
	return most;
}

static bool incoming_fill(struct incoming *incoming, struct file_job *job, int to, bool in_place)
{
	struct pull *pull = pull_of(job->dest->contents);
	const struct options *options = job->dest->options;
	/*
	 * A long basis is shared with the new file where the file system knows how: only what differs is written then. Not
	 * where the file might be kept half made, since that would be longer than what has come, and --append would take it for
	 * whole.
	 */
	const bool is_clone = to >= 0 && incoming->basis_fd >= 0 && !in_place && !options->preallocate && !options->sparse
			      && !dest_keeps_partial(options) && sum_head_size(&incoming->head) >= CLONE_LEAST
			      && fs_clone(to, incoming->basis_fd);
	struct patch_outcome outcome;

	if (options->preallocate && to >= 0 && fs_preallocate(to, job->entry->size) < 0) {
		job_write_failed(job, errno);
		to = -1; /* what comes must be read all the same */
	}
	const struct patch_request request = {
		.session = pull->session,
		.tokens = pull->tokens,
		.digest = pull->digest,
		.buffer = &pull->buffer,
		.head = &incoming->head,
		.basis_fd = incoming->basis_fd,
		.basis_is_gone = incoming->basis_is_gone,
		.out_fd = to,
		.size = job->entry->size,
		.most = most_of(job),
		.in_place = in_place && incoming->basis_is_file,
		.is_clone = is_clone,
		.is_new = !in_place && !is_clone && !options->preallocate,
		.sparse = options->sparse,
		.keeps_tail = options->preallocate && !in_place,
		.append = job->is_redo ? 0 : pull_append_mode(pull),
		.is_eager = dest_keeps_partial(options) || options->inplace,
		.done = &job->task->live_done,
		.name = job->name,
	};

	dest_debug_basis(job, incoming->basis_fd);
	patch_file(&request, &outcome);
	if (options->levels.debug[DEBUG_DELTASUM] > 1)
		task_text(job->task, L_INFO, "got file_sum");
	incoming->read = true;
	/* Older digests are seeded, and not to be displayed. */
	job->digest_length = pull->session->caps.plain_digests ? outcome.digest_length : 0;
	digest_for_display(pull->session->xfer_sum, outcome.digest, job->digest_length, job->digest);
	job->copied = outcome.literal;
	job->matched = outcome.matched;
	job->counts->blocks = block_count_sum(job->counts->blocks, outcome.blocks);
	incoming->wrong_digest = outcome.result == PATCH_WRONG_DIGEST || outcome.result == PATCH_READ_FAILED;
	if (outcome.result == PATCH_WRITE_FAILED)
		job_write_failed(job, outcome.error);
	if (outcome.result == PATCH_TOO_LONG) {
		struct strbuf path = dest_path_of(job->dir->path, entry_name(job->task->entries, job->entry));

		task_text(job->task, L_ERROR_XFER,
			  "ERROR: %s was listed with %" PRIu64 " bytes, and more than %" PRIu64
			  " have come -- update discarded.",
			  strbuf_text(&path), job->entry->size, request.most);
		strbuf_free(&path);
	}
	return outcome.result == PATCH_OK && to >= 0;
}

/* The digest did not agree: once the file is asked for again (doc/protocol/03-transfer.md section 7.3). */
static void say_unverified(struct transfer *transfer, bool is_kept)
{
	struct file_job *job = &transfer->job;
	const struct options *options = job->dest->options;
	bool is_last = transfer->job.is_redo;
	const char *fate = is_kept ? options_partial_dir(options) ? "put into partial-dir" : "retained" : "discarded";
	const char *again = job->dest->contents->is_replay ? " (may try again)" : " (will try again)";

	if (!is_last && !options->levels.info[INFO_NAME] && !options->log_format_has_i)
		return;
	struct strbuf path = dest_path_of(job->dir->path, entry_name(job->task->entries, job->entry));

	task_text(job->task, is_last ? L_ERROR_XFER : L_WARNING, "%s: %s failed verification -- update %s%s.",
		  is_last ? "ERROR" : "WARNING", strbuf_text(&path), fate, is_last ? "" : again);
	strbuf_free(&path);
}

static void receive_file(struct pull *pull, struct transfer *transfer, const struct item_attrs *item)
{
	struct file_job *job = &transfer->job;
	struct incoming incoming = { .set_temp = incoming_set_temp, .fill = incoming_fill, .basis_fd = -1 };
	struct basis basis = { .fd = -1, .type = BASIS_FILE };
	const struct dest *dest = job->dest;
	int count = dest->alternates ? dest->alternates->count : 0;

	/* A peer that names what cannot have been chosen means harm (doc/protocol/03-transfer.md section 2.4). */
	if (item->basis >= BASIS_FUZZY && !dest->options->fuzzy)
		die(EXIT_PROTOCOL, "rsync: refusing malicious fuzzy operation for %s", job->name);
	if (item->basis > BASIS_FUZZY + count || (item->basis < BASIS_FILE && item->basis >= count))
		die(EXIT_PROTOCOL, "rsync: invalid basis_dir index: %d.", item->basis);
	if (dest->shows_receiver)
		pull->item_start = wire_stream_read(pull->session->wire);
	sum_head_read(pull->session, &incoming.head, digest_length(pull->session->xfer_sum));
	/* A batch goes by what its writer had. Old senders do not repeat what was chosen; others have to. */
	if (incoming.head.count && dest->contents->is_replay)
		transfer->basis = item->basis;
	if (incoming.head.count && (!pull->session->caps.item_flags || item->basis == transfer->basis))
		job_find_basis(job, transfer->basis, item->xname, &basis);
	incoming.basis_fd = basis.fd;
	/* It was there when its sums were written, and the peer answers to these. */
	incoming.basis_is_gone = basis.fd < 0 && transfer->head.count && item->basis < BASIS_FUZZY
				 && (!pull->session->caps.item_flags || item->basis == transfer->basis);
	incoming.in_partial = basis.type == BASIS_PARTIAL && basis.fd >= 0 && pull->session->inplace_partial;
	/* The backup of a file that is updated in place is its copy, until the first attempt has written to it. */
	incoming.basis_is_file = basis.type == BASIS_FILE || (basis.type == BASIS_BACKUP && !job->is_redo)
				 || incoming.in_partial;
	job->incoming = &incoming;
	job->counts = &job->task->received;
	job_show_live(job);
	bool good = true;

	/* For a batch only: read it, and that was it. */
	if (dest->dry_run)
		incoming_fill(&incoming, job, -1, false);
	else
		good = job_receive(job);

	atomic_store(&job->task->live_index, 0);
	if (!incoming.read)
		incoming_fill(&incoming, job, -1, false);
	job->moved = wire_stream_read(pull->session->wire) - pull->item_start;
	basis_close(&basis);
	job->incoming = NULL;
	if (!good && incoming.wrong_digest) {
		bool is_redo = job->is_redo;

		if (!is_redo)
			job_tried(job);
		say_unverified(transfer, incoming.is_kept || job_goes_in_place(job));
		if (!is_redo) {
			pull_came_wrong(pull, transfer);
			return;
		}
	}
	if (!good && !incoming.wrong_digest)
		job_lost(job);
	if (good && !dest->options->delay_updates && !dest->dry_run)
		pull_note_success(&pull->contents, job->task->node, job->entry, true);
	pull_settle(pull, transfer, good);
}

/* An object of which nothing but such values was asked for. */
static void set_attributes(struct pull *pull, struct transfer *transfer)
{
	struct file_job *job = &transfer->job;

	job->counts = &job->task->received;
	if (transfer->is_directory)
		job_touch_directory(job);
	else
		job_change(job);
	pull_forget(pull, transfer);
}

/* What a batch has and what is wanted of it may differ. */
static void receive_replayed(struct pull *pull, int32_t ndx, const struct item_attrs *item)
{
	bool has_values = pull_has_xattr_part(pull, item->flags), has_data = item->flags & ITEM_TRANSFER;
	struct flist *list = pull->receiver->dest.list;
	struct transfer *transfer;
	struct flist_pos pos;
	bool copies;

	/* No list that is still to come could make up for it: they are read by this thread. */
	if (!flist_locate(list, ndx, &pos))
		die(EXIT_PROTOCOL, "rsync: Invalid file index: %d [receiver]", ndx);
	if (has_data && (pos.gap >= 0 || !entry_is_regular(pos.entry)))
		die(EXIT_PROTOCOL, "received request to transfer non-regular file: %d [receiver]", ndx);
	transfer = has_data || has_values ? pull_take(pull, ndx) : NULL;
	copies = transfer && transfer->job.decision.action == ACTION_COPY;

	/* Entries may be gone by now. */
	if (has_values && !flist_locate(list, ndx, &pos))
		die(EXIT_PROTOCOL, "rsync: Invalid file index: %d [receiver]", ndx);
	if (has_values && pos.gap > 0) {
		pos.dir = flist_dir(list, pos.gap)->parent;
		pos.entry = &flist_dir(list, pos.dir)->entries->items[flist_dir(list, pos.gap)->parent_entry];
	}
	/* Entries may share them: they are kept whoever wants them. */
	if (has_values)
		flist_receive_xattr_answer(pull->list_receiver, pos.dir, pos.entry);
	if (has_data && copies) {
		receive_file(pull, transfer, item);
		return;
	}
	if (has_data)
		replay_skip(pull, ndx);
	if (copies)
		replay_missing(pull, transfer);
	else if (transfer)
		set_attributes(pull, transfer);
}

static void receive_item(struct pull *pull, int32_t ndx)
{
	struct session *session = pull->session;
	struct item_attrs *item = xcalloc(1, sizeof *item);

	request_read_attrs(session, item);
	bool has_values = pull_has_xattr_part(pull, item->flags);
	/* A dry run asks for nothing; as a server it reports files as if it did. */
	bool has_data = item->flags & ITEM_TRANSFER && !pull->receiver->dest.options->dry_run;
	struct transfer *transfer = NULL;

	if (pull->contents.is_replay) {
		receive_replayed(pull, ndx, item);
		free(item);
		return;
	}
	if (has_data || (has_values && pull_expects(pull, ndx)))
		transfer = pull_take(pull, ndx);
	if (has_data ? !transfer || transfer->job.decision.action != ACTION_COPY
		     : transfer && transfer->job.decision.action == ACTION_COPY)
		die(EXIT_PROTOCOL, "rsync: received data of a file that was not asked for: index %d [receiver]", ndx);
	/* Values of extended attributes, which the file's list has lacked. */
	if (has_values) {
		const struct file_job *job = transfer ? &transfer->job : NULL;
		int32_t node = !job ? 0 : job->task->node;

		if (transfer && transfer->is_directory && node)
			node = flist_dir(pull->receiver->dest.list, node)->parent;
		flist_receive_xattr_answer(pull->list_receiver, node, job ? job->entry : NULL);
	}
	/* With --only-write-batch, a client does not give its server what is for the batch. */
	if (has_data && pull->receiver->service && pull->receiver->dest.options->only_write_batch)
		pull_settle(pull, transfer, true);
	else if (has_data)
		receive_file(pull, transfer, item);
	else if (transfer)
		set_attributes(pull, transfer);
	free(item);
}

/* --- messages --- */

void pull_message(void *pull_void, enum message_code code, const uint8_t *payload, size_t length)
{
	struct pull *pull = pull_void;
	int end;

	if (pull->receiver->service && code != MSG_IO_ERROR && code != MSG_NO_SEND) {
		pull->receiver->service->message(pull->receiver->service->context, code, payload, length);
		return;
	}
	if (receiver_say_message(pull->receiver->dest.options, pull->charset, code, payload, length))
		return;
	if (code == MSG_IO_ERROR)
		atomic_fetch_or(&pull->contents.io_error, (int32_t)decode_int(payload) & 7);
	else if (code == MSG_NO_SEND)
		pull_refused(pull, (int32_t)decode_int(payload));
	if (code != MSG_ERROR_EXIT)
		return;
	end = length == 4 ? payload[0] : EXIT_STREAMIO;
	exit_set_quiet(length == 4 && end);
	exit_with(end ? end : EXIT_STREAMIO);
}

/* --- the stream --- */

/* Is this DONE the sender's last before the statistics? */
static bool is_last_done(struct pull *pull)
{
	const struct session *session = pull->session;
	int lists = session->inc_recurse ? pull->lists : 1, phases = session->caps.third_phase ? 2 : 1;
	struct transfer *open;

	pull->echoes++;
	/* Otherwise what is asked for afterwards would be waited for without anybody who reads. */
	if (!pull->contents.is_replay && pull->echoes > atomic_load(&pull->said_done))
		die(EXIT_PROTOCOL, "rsync: the sender has ended what is not at its end [receiver]");
	/* What comes now from a batch has been sent before, and had come out wrong. */
	pull->replay.second_phase |= pull->echoes >= lists;
	/* Without incremental recursion nothing but a DONE says that the rest of a phase will not come. */
	while (!session->inc_recurse && !pull->contents.is_replay && (open = requests_take_oldest(pull, pull->echoes == 1)))
		pull_settle(pull, open, false);
	return pull->echoes == lists + phases && (pull->lists_complete || !session->inc_recurse);
}

static int32_t read_index(struct pull *pull)
{
	struct session *session = pull->session;

	pull->item_start = wire_stream_read(session->wire);
	int32_t ndx = wire_read_ndx(session->wire);

	while (ndx == NDX_DEL_STATS && session->caps.delete_stats) {
		delete_stats_read(session);
		ndx = wire_read_ndx(session->wire);
	}
	return ndx;
}

void *pull_read(void *pull_void)
{
	struct pull *pull = pull_void;
	struct peer_stats *peer = &pull->peer;
	struct wire *wire = pull->session->wire;
	struct transfer *missing;

	wire_split(wire);
	pull->tokens = token_reader_new(pull->session);
	pull->digest = file_digest_new();
	pull_announce(pull, &pull->reading);
	for (;;) {
		/* Nothing of a reply has come yet: does the sender owe one? */
		pthread_mutex_lock(&pull->lock);
		wire_settings(wire)->owed = pull->asked.first != NULL;
		pthread_mutex_unlock(&pull->lock);
		int32_t ndx = read_index(pull);

		wire_settings(wire)->owed = true;
		if (ndx == NDX_DONE) {
			if (is_last_done(pull))
				break;
		} else if (ndx == NDX_FLIST_EOF || ndx <= NDX_FLIST_OFFSET) {
			uint64_t before = wire_bytes_read(wire);

			flist_receive_next(pull->list_receiver, ndx);
			pull->contents.list_bytes += wire_bytes_read(wire) - before;
			pull->lists_complete |= ndx == NDX_FLIST_EOF;
			pull->lists += ndx != NDX_FLIST_EOF;
		} else if (ndx < 0) {
			die(EXIT_PROTOCOL, "rsync: Invalid file index: %d [receiver]", ndx);
		} else {
			receive_item(pull, ndx);
		}
	}
	/* A batch has been read: there is nothing more to come. */
	if (pull->contents.is_replay) {
		pull_announce(pull, &pull->replay.ended);
		while ((missing = requests_take_oldest(pull, false)))
			replay_missing(pull, missing);
	}
	if (!pull->session->is_server) {
		peer->read = wire_read_vlong30(wire, 3);
		peer->written = wire_read_vlong30(wire, 3);
		peer->total_size = wire_read_vlong30(wire, 3);
	}
	if (!pull->session->is_server && pull->session->caps.list_times) {
		peer->build_ms = wire_read_vlong30(wire, 3);
		peer->transfer_ms = wire_read_vlong30(wire, 3);
	}
	pull_announce(pull, &pull->last_done);
	if (pull->session->caps.goodbye_reply) {
		if (read_index(pull) != NDX_DONE)
			die(EXIT_PROTOCOL, "rsync: Invalid packet at end of run [receiver]");
		pull_announce(pull, &pull->goodbye_read);
	}
	token_reader_free(pull->tokens);
	file_digest_free(pull->digest);
	free(pull->buffer.bytes);
	return NULL;
}
