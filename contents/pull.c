/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The writing side of a run whose contents come from a peer: requests, the ends of lists and phases, the goodbye. */
#include "contents/pull.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "contents/receive.h"
#include "contents/replay.h"
#include "delta/block_sums.h"
#include "dest/apply.h"
#include "dest/attributes.h"
#include "dest/basis.h"
#include "dest/events.h"
#include "dest/file.h"
#include "dest/task.h"
#include "dest/write.h"
#include "lib/charset.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "receiver/link.h"
#include "receiver/pool.h"
#include "receiver/report.h"

/* Ends of lists travel together: every piece of output wakes the sender. It is ahead by more entries than these. */
#define DONES_TOGETHER 16
#define ENTRIES_TOGETHER 256
#define LIST_MS 2 /* when no list has come for so long, the sender may be waiting for us */
#define TICK_NS INT64_C(10000000)
#define DIGEST_BUFFER (256 * 1024)

/* --- requests --- */

#define SUM_HEAD_BYTES 16
#define WEAK_BYTES 4

static void choose_head(struct pull *pull, struct transfer *transfer, const struct basis *basis)
{
	memset(&transfer->head, 0, sizeof transfer->head);
	if (basis->fd >= 0)
		sum_head_choose(&transfer->head, basis->size, pull->receiver->dest.options->block_size,
				pull->session->caps.block_length_max, digest_length(pull->session->xfer_sum),
				transfer->job.is_redo);
}

/*
 * Under out_lock: into the order of replies, and onto the wire. From the moment that it can be replied to, the transfer is the
 * reading thread's: a peer may answer, or skip it by answering something else, before all of the request has been written.
 */
static void write_request(struct pull *pull, struct transfer *transfer, const struct basis *basis,
			  const struct lacking *lacking)
{
	struct session *session = pull->session;
	struct item_attrs *item = xcalloc(1, sizeof *item);
	const struct sum_head head = transfer->head;
	const int32_t ndx = transfer->ndx;
	const bool has_sums = head.count && (transfer->job.is_redo || !pull_append_mode(pull));

	item->flags = transfer->job.decision.item_flags & 0xffff;
	item->basis = transfer->basis = BASIS_FILE;
	if (basis && basis->type != BASIS_FILE) {
		item->flags |= ITEM_BASIS_TYPE_FOLLOWS;
		item->basis = transfer->basis = basis->type;
	}
	if (basis && basis->xname) {
		item->flags |= ITEM_XNAME_FOLLOWS;
		item->xname_length = (size_t)snprintf(item->xname, sizeof item->xname, "%s", basis->xname);
	}
	transfer->job.sums = SUM_HEAD_BYTES;
	if (has_sums)
		transfer->job.sums += (uint64_t)head.count * (uint64_t)(WEAK_BYTES + head.strong_length);
	transfer->in_second_phase = pull->phase_zero_done;
	if (pull->contents.is_replay) {
		free(item);
		replay_request(pull, transfer);
		return;
	}
	pthread_mutex_lock(&pull->lock);
	requests_add(&pull->asked, transfer);
	wire_settings(session->wire)->owed = true;
	pthread_mutex_unlock(&pull->lock);
	atomic_store(&pull->has_requests, true);
	request_write_attrs(session, ndx, item);
	if (pull_has_xattr_part(pull, item->flags)) {
		/* Each value is asked for once in a session, by the first who lacks it; the others wait for their turn. */
		int32_t previous = 0;

		for (size_t i = 0; i < lacking->items.count; i++) {
			struct xattr_item *lacked = lacking->items.items[i];

			if (lacked->requested)
				continue;
			lacked->requested = true;
			wire_write_varint(session->wire, lacked->number - previous);
			previous = lacked->number;
		}
		wire_write_byte(session->wire, 0);
	}
	if (item->flags & ITEM_TRANSFER)
		sum_head_write(session, &head);
	if (has_sums)
		block_sums_write(session, basis->fd, &head);
	free(item);
}

static void pull_request(struct contents *contents, struct file_job *job)
{
	struct dest *dest = job->dest;
	struct pull *pull = pull_of(contents);
	struct transfer *transfer;
	const char *name;
	struct lacking lacking = { VEC_INIT };
	struct basis basis = { .fd = -1 };

	if (job->decision.action == ACTION_COPY && job_goes_in_place(job) && !job_back_up(job, BACKUP_COPY)) {
		task_event(job->task, (struct event){ .kind = EVENT_FAILED, .index = job->index });
		return;
	}
	transfer = transfer_new(pull);
	if (job->decision.action == ACTION_COPY)
		job_choose_basis(job, &basis);
	int dir_fd = job_compared_object(job, &name);

	wanted_find_lacking(&job->wanted, dir_fd, name, &lacking);
	transfer->ndx = flist_ndx_of(dest->list, job->task->node, job->entry);
	transfer->job = *job;
	job->fuzzy = NULL;
	transfer->job.is_known_to_peer = true;
	/* The caller's options may be those of this one call. */
	transfer->job.rules.options = dest->options;
	if (dest->wants_items)
		transfer->job.event_place = task_reserve_event(job->task);
	choose_head(pull, transfer, &basis);
	if (basis.fd >= 0)
		dest_debug_sums(job, transfer->ndx, &transfer->head, basis.size);
	pool_hold(pull->receiver->pool, job->task);
	pthread_mutex_lock(&pull->out_lock);
	write_request(pull, transfer, &basis, &lacking);
	pthread_mutex_unlock(&pull->out_lock);
	basis_close(&basis);
	vec_free(&lacking.items);
}

/* Only incremental lists have a number for the directory of the first one besides that of ".". */
static int32_t directory_ndx(const struct task *task)
{
	bool is_dot = !task->node && !task->dest->session->inc_recurse;

	return flist_ndx_of(task->dest->list, task->node,
			    is_dot ? &task->entries->items[entries_find(task->entries, ".", true)] : NULL);
}

static void pull_decided(struct contents *contents, const struct file_job *job)
{
	if (contents->is_replay)
		replay_decided(contents, flist_ndx_of(job->dest->list, job->task->node, job->entry));
}

static void pull_decided_task(struct contents *contents, const struct task *task)
{
	struct receiver *receiver = pull_of(contents)->receiver;
	const struct entries *entries = task->entries;

	for (uint32_t i = task->first; contents->is_replay && i < task->last; i++)
		if (!entry_is_dir(&entries->items[i]) && !receiver_link_is_open(receiver, entries, &entries->items[i]))
			replay_decided(contents, flist_ndx_of(receiver->dest.list, task->node, &entries->items[i]));
}

static int pull_stands_still(struct contents *contents, int32_t *awaited)
{
	struct pull *pull = pull_of(contents);

	pthread_mutex_lock(&pull->lock);
	int times = pull->awaited >= 0 ? ++pull->stood_still : 0;

	*awaited = pull->awaited;
	if (times >= STILL_GIVES_UP)
		pthread_cond_broadcast(&pull->changed);
	pthread_mutex_unlock(&pull->lock);
	return times;
}

static bool pull_await_end(struct contents *contents, int ms)
{
	struct pull *pull = pull_of(contents);
	const struct timespec until = clock_after(CLOCK_REALTIME, ms);

	pthread_mutex_lock(&pull->lock);
	if (!pull->last_done && pull->awaited < 0)
		pthread_cond_timedwait(&pull->changed, &pull->lock, &until);
	bool ended = pull->last_done;

	pthread_mutex_unlock(&pull->lock);
	return ended;
}

static void pull_decided_directory(struct contents *contents, const struct task *task)
{
	if (contents->is_replay && (task->node || entries_find(task->entries, ".", true) >= 0))
		replay_decided(contents, directory_ndx(task));
}

static void pull_request_directory(struct contents *contents, struct task *task)
{
	struct pull *pull = pull_of(contents);
	struct transfer *transfer = transfer_new(pull);
	struct lacking lacking = { VEC_INIT };

	wanted_find_lacking(&task->dir_wanted, task->dir->fd, ".", &lacking);
	transfer->ndx = directory_ndx(task);
	transfer->is_directory = true;
	transfer->job = (struct file_job){
		.task = task,
		.dest = task->dest,
		.dir = task->dir,
		.entry = &task->dir->entry,
		.name = ".",
		.wanted = task->dir_wanted,
		.is_known_to_peer = true,
		.decision = { .action = ACTION_ATTRS, .item_flags = task->dir_flags },
	};
	pool_hold(pull->receiver->pool, task);
	pthread_mutex_lock(&pull->out_lock);
	write_request(pull, transfer, NULL, &lacking);
	pthread_mutex_unlock(&pull->out_lock);
	vec_free(&lacking.items);
}

/* Under out_lock. A file that came out wrong is asked for once more, with sums that leave less to chance
 * (doc/protocol/03-transfer.md section 7.3). */
static void ask_again(struct pull *pull)
{
	const struct lacking nothing = { VEC_INIT };
	struct transfer *wrong, *next;
	struct basis basis;

	pthread_mutex_lock(&pull->lock);
	wrong = pull->wrong;
	pull->wrong = NULL;
	pthread_mutex_unlock(&pull->lock);
	for (; wrong; wrong = next) {
		struct file_job *job = &wrong->job;
		struct decide_dest dest = { .exists = false };
		uint32_t flags = job->decision.item_flags & (ITEM_REPORT_ACL | ITEM_REPORT_XATTR);

		next = wrong->next;
		job->is_redo = true;
		/* What there is by now, not what there was, is what the second attempt begins with. */
		dest.exists = dest_lstat_at(job->dest, job->dir->fd, job->name, &dest.st) == 0 && S_ISREG(dest.st.mode);
		/* A file that was written in place has been given them. */
		if (flags && dest.exists)
			flags &= wanted_compare(job->dest, &job->wanted, decide_mode(&job->rules, job->entry, &dest),
						job->dir->fd, job->name);
		job->decision.item_flags =
			flags | decide_item_flags(&job->rules, job->task->entries, job->entry, &dest, ITEM_TRANSFER);
		job_choose_basis(job, &basis);
		choose_head(pull, wrong, &basis);
		write_request(pull, wrong, &basis, &nothing);
		basis_close(&basis);
	}
}

/* --- --checksum --- */

static bool pull_is_same(struct contents *contents, struct file_job *job)
{
	struct pull *pull = pull_of(contents);
	const uint8_t *listed = flist_received_digest(job->dest->list, job->task->node, job->entry);
	uint8_t digest[DIGEST_MAX_LENGTH];
	int fd = listed ? fs_open_at(job->looked_at.dir_fd, job->name, O_RDONLY, 0) : -1;
	struct file_digest *running;
	ssize_t got;

	if (fd < 0)
		return false;
	char *buffer = xmalloc(DIGEST_BUFFER);

	running = file_digest_new();
	file_digest_start_plain(running, pull->session->file_sum);
	while ((got = read(fd, buffer, DIGEST_BUFFER)) > 0)
		file_digest_update(running, buffer, (size_t)got);
	int length = file_digest_finish(running, digest);

	file_digest_free(running);
	free(buffer);
	close(fd);
	return got == 0 && !memcmp(digest, listed, (size_t)length);
}

/* Under out_lock. */
static void send_successes(struct pull *pull)
{
	struct arrivals arrived;

	pthread_mutex_lock(&pull->lock);
	arrived = pull->arrived;
	pull->arrived = (struct arrivals){ VEC_INIT };
	pthread_mutex_unlock(&pull->lock);
	for (size_t i = 0; i < arrived.list.count; i++)
		wire_send_message_int(pull->session->wire, MSG_SUCCESS, arrived.list.items[i]);
	vec_free(&arrived.list);
}

/* --- lists and phases --- */

/* Under out_lock. */
static void flush(struct pull *pull)
{
	wire_flush(pull->session->wire);
	atomic_store(&pull->has_requests, false);
	pull->dones = pull->done_entries = 0;
}

/* Under out_lock. */
static void say_done(struct pull *pull)
{
	send_successes(pull);
	atomic_fetch_add(&pull->said_done, 1);
	wire_write_ndx(pull->session->wire, NDX_DONE);
}

static void write_done(struct pull *pull)
{
	pthread_mutex_lock(&pull->out_lock);
	say_done(pull);
	flush(pull);
	pthread_mutex_unlock(&pull->out_lock);
}

static void pull_node_done(struct contents *contents, int32_t node)
{
	struct pull *pull = pull_of(contents);

	if (contents->is_replay)
		replay_node_done(pull, node);
	/* Only of a list of its own the sender wants to know the end. */
	if (!pull->session->inc_recurse || !flist_dir(pull->receiver->dest.list, node)->loaded)
		return;
	pthread_mutex_lock(&pull->out_lock);
	say_done(pull);
	pull->done_entries += flist_dir(pull->receiver->dest.list, node)->count;
	if (++pull->dones >= DONES_TOGETHER || pull->done_entries >= ENTRIES_TOGETHER)
		flush(pull);
	pthread_mutex_unlock(&pull->out_lock);
}

static void flush_locked(struct pull *pull)
{
	pthread_mutex_lock(&pull->out_lock);
	flush(pull);
	pthread_mutex_unlock(&pull->out_lock);
}

static int32_t pull_next_list(struct contents *contents)
{
	struct pull *pull = pull_of(contents);
	struct flist *list = pull->receiver->dest.list;

	if (!flist_await_next(list, LIST_MS))
		flush_locked(pull);
	return flist_load_next(list);
}

/* If there are any: ends of lists may wait. */
static void pull_flush_requests(struct contents *contents)
{
	struct pull *pull = pull_of(contents);

	if (atomic_load(&pull->has_requests))
		flush_locked(pull);
}

static void pull_tick(struct contents *contents)
{
	struct pull *pull = pull_of(contents);
	int64_t now = clock_nanoseconds();

	if (now - pull->last_tick < TICK_NS)
		return;
	pull->last_tick = now;
	pthread_mutex_lock(&pull->out_lock);
	ask_again(pull);
	send_successes(pull);
	flush(pull);
	wire_keep_alive(pull->session->wire);
	pthread_mutex_unlock(&pull->out_lock);
}

static void pull_phase_zero(struct contents *contents)
{
	struct pull *pull = pull_of(contents);

	/* Below protocol 30 only the end of the phase shows that a file cannot be sent. */
	if (!pull->session->inc_recurse && !pull->phase_zero_done) {
		pull->phase_zero_done = true;
		write_done(pull);
	}
}

/* --- the beginning and the end --- */

/* Exit hook. The lock is not given back: nobody shall finish the file. */
static void keep_cut_off(void *pull_void, int code)
{
	struct pull *pull = pull_void;

	(void)code;
	pthread_mutex_lock(&pull->keep_lock);
	if (pull->cut_off && dest_keeps_partial(pull->receiver->dest.options))
		job_keep_interrupted(pull->cut_off, pull->cut_off->temp);
}

static void pull_start(struct contents *contents, struct flist_receiver *list_receiver)
{
	struct pull *pull = pull_of(contents);

	pull->list_receiver = list_receiver;
	exit_push_hook(keep_cut_off, pull);
	if (pthread_create(&pull->reader, NULL, pull_read, pull) != 0)
		die(EXIT_IPC, "rsync: cannot start the reading thread");
	pthread_mutex_lock(&pull->lock);
	while (!pull->reading)
		pthread_cond_wait(&pull->changed, &pull->lock);
	pthread_mutex_unlock(&pull->lock);
}

/* The reading thread waits for the sender, who waits for nothing but what has been written: keep both alive. */
static void await(struct pull *pull, const bool *fact)
{
	pthread_mutex_lock(&pull->lock);
	while (!*fact) {
		const struct timespec until = clock_after(CLOCK_REALTIME, 1000);

		pthread_cond_timedwait(&pull->changed, &pull->lock, &until);
		pthread_mutex_unlock(&pull->lock);
		pull_tick(&pull->contents);
		receiver_stop_check(pull->receiver);
		pthread_mutex_lock(&pull->lock);
	}
	pthread_mutex_unlock(&pull->lock);
}

static void pull_finish(struct contents *contents, struct peer_stats *stats)
{
	struct pull *pull = pull_of(contents);
	const struct session_caps *caps = &pull->session->caps;
	const struct receiver *receiver = pull->receiver;
	const struct kind_counts *counts = &receiver->stats.deleted;

	if (contents->is_replay)
		pull_announce(pull, &pull->replay.all_decided);
	pull_phase_zero(contents);
	write_done(pull);                       /* phase 1 */
	if (caps->third_phase)
		write_done(pull);               /* phase 2 */
	/* The client of a service shows what has been deleted (doc/protocol/01-session.md section 10.4). */
	if (caps->delete_stats && receiver->service && (receiver->deletes || receiver->dest.options->force)) {
		pull->session->deleted = (struct delete_stats){
			.files = (int32_t)(counts->total - counts->dirs - counts->links - counts->devices - counts->specials),
			.dirs = (int32_t)counts->dirs, .symlinks = (int32_t)counts->links,
			.devices = (int32_t)counts->devices, .specials = (int32_t)counts->specials,
		};
		pthread_mutex_lock(&pull->out_lock);
		delete_stats_write(pull->session);
		pthread_mutex_unlock(&pull->out_lock);
	}
	if (caps->delete_stats)
		write_done(pull);
	/* Tell the client of a service how much has been written, once the last content has come
	 * (doc/protocol/09-since-3.5.0.md section 2.2). */
	if (pull->receiver->service && caps->block_stats) {
		uint8_t blocks[sizeof(uint64_t)];

		await(pull, &pull->last_done);
		pthread_mutex_lock(&pull->out_lock);
		encode_int64(blocks, receiver->stats.blocks);
		wire_send_message(pull->session->wire, MSG_BLOCK_STATS, blocks, sizeof blocks);
		flush(pull);
		pthread_mutex_unlock(&pull->out_lock);
	}
	await(pull, caps->goodbye_reply ? &pull->goodbye_read : &pull->last_done);
	pthread_join(pull->reader, NULL);
	exit_remove_hook(keep_cut_off, pull);
	write_done(pull);
	*stats = pull->peer;
}

static void pull_free(struct contents *contents)
{
	struct pull *pull = pull_of(contents);

	pthread_mutex_destroy(&pull->out_lock);
	pthread_mutex_destroy(&pull->lock);
	pthread_mutex_destroy(&pull->keep_lock);
	pthread_cond_destroy(&pull->changed);
	vec_free(&pull->replay.decided);
	hashmap_free(&pull->asked.by_ndx);
	free(pull);
}

/* --- a server: items and deletions go to the client, who shows them (doc/protocol/03-transfer.md sections 2.7 and 10.3) --- */

/* As the client calls it. */
static void to_wire(const struct pull *pull, const char *name, struct strbuf *sent)
{
	struct charset *charset = pull->charset;

	if (!charset || !charset_to_wire(charset, name, strlen(name), PATH_MAX - 1, sent))
		strbuf_add_string(sent, name);
}

static void serve_item(struct contents *contents, int32_t node, const struct entry *entry, uint32_t flags, const char *link)
{
	struct pull *pull = pull_of(contents);
	struct receiver *receiver = pull->receiver;
	struct session *session = &receiver->session;

	if (!report_is_wanted(receiver->dest.options, flags, link) || (!session->caps.item_flags && !(flags & ITEM_TRANSFER)))
		return;
	struct item_attrs *item = xcalloc(1, sizeof *item);
	struct strbuf name = STRBUF_INIT;
	int32_t ndx = flist_ndx_of(receiver->dest.list, node, entry);

	item->flags = flags & 0xffff;
	item->basis = BASIS_FILE;
	if (link)
		to_wire(pull, link, &name);
	if (name.length < sizeof item->xname) {
		item->xname_length = name.length;
		memcpy(item->xname, strbuf_text(&name), name.length);
	}
	/* Without values of extended attributes: the client has them. */
	pthread_mutex_lock(&pull->out_lock);
	atomic_store(&pull->has_requests, true);
	request_write_attrs(pull->session, ndx, item);
	if (pull_has_xattr_part(pull, item->flags))
		wire_write_byte(pull->session->wire, 0);
	pthread_mutex_unlock(&pull->out_lock);
	strbuf_free(&name);
	free(item);
}

static void serve_deletion(struct contents *contents, const char *path, bool is_dir)
{
	struct pull *pull = pull_of(contents);
	struct strbuf name = STRBUF_INIT;

	to_wire(pull, path, &name);
	/* A directory's has its NUL. */
	wire_send_message(pull->session->wire, MSG_DELETED, strbuf_text(&name), name.length + is_dir);
	strbuf_free(&name);
}

struct contents *contents_of_peer(struct receiver *receiver, const struct receiver_peer *peer)
{
	static const struct contents_calls calls = {
		.start = pull_start, .request = pull_request, .request_directory = pull_request_directory,
		.is_same = pull_is_same, .decided = pull_decided, .decided_directory = pull_decided_directory,
		.decided_task = pull_decided_task, .stands_still = pull_stands_still,
		.unwanted = replay_decided, .await_end = pull_await_end,
		.in_place = pull_note_success, .arrived = pull_note_arrival, .notify_item = serve_item,
		.notify_deletion = serve_deletion, .next_list = pull_next_list, .node_done = pull_node_done,
		.flush = pull_flush_requests, .tick = pull_tick, .all_requested = pull_phase_zero, .finish = pull_finish,
		.free = pull_free,
	};
	struct pull *pull = xcalloc(1, sizeof *pull);
	pthread_mutexattr_t kind;

	pull->contents = (struct contents){ .calls = &calls, .is_remote = true, .is_replay = peer->is_batch };
	pull->receiver = receiver;
	pull->session = &receiver->session;
	pull->charset = peer->charset;
	pull->lists = 1;
	pull->awaited = -1;
	pthread_mutexattr_init(&kind);
	pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&pull->out_lock, &kind);
	pthread_mutexattr_destroy(&kind);
	pthread_mutex_init(&pull->lock, NULL);
	pthread_mutex_init(&pull->keep_lock, NULL);
	pthread_cond_init(&pull->changed, NULL);
	wire_set_message_handler(receiver->session.wire, pull_message, pull);
	wire_set_output_lock(receiver->session.wire, &pull->out_lock);
	return &pull->contents;
}
