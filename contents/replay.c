/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files that were asked for, until their fate is known.
 *
 * And a batch in the place of a peer: what it holds was asked for by another run. The reading thread, when it comes to a file's
 * content, waits until this run has decided whether it wants that; what this run wants and the batch does not hold fails
 * (doc/protocol/03-transfer.md section 12.3). A batch has its contents in the order of the list, and each phase again.
 */
#include "contents/replay.h"

#include <stdlib.h>

#include "contents/pull.h"
#include "dest/events.h"
#include "dest/file.h"
#include "dest/job.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "lib/exit.h"
#include "receiver/link.h"
#include "receiver/pool.h"
#include "receiver/run.h"

#define TRANSFER_MEMORY (sizeof(struct transfer) + 2 * sizeof(struct hashmap_slot))

/* Under the lock: the first request for an index, NULL if there is none; put one at the end; take it out. */
static struct transfer *requests_find(const struct requests *requests, int32_t ndx)
{
	const uint64_t *found = hashmap_get(&requests->by_ndx, (uint32_t)ndx, 0);

	return found ? (struct transfer *)(uintptr_t)*found : NULL;
}

void requests_add(struct requests *requests, struct transfer *transfer)
{
	bool inserted;
	uint64_t *found = hashmap_put(&requests->by_ndx, (uint32_t)transfer->ndx, 0, (uint64_t)(uintptr_t)transfer, &inserted);
	struct transfer *same = inserted ? NULL : (struct transfer *)(uintptr_t)*found;

	while (same && same->same)
		same = same->same;
	if (same)
		same->same = transfer;
	transfer->same = transfer->next = NULL;
	transfer->previous = requests->last;
	if (requests->last)
		requests->last->next = transfer;
	else
		requests->first = transfer;
	requests->last = transfer;
}

static void requests_remove(struct requests *requests, struct transfer *transfer)
{
	uint64_t *found = hashmap_get(&requests->by_ndx, (uint32_t)transfer->ndx, 0);
	struct transfer *same = (struct transfer *)(uintptr_t)*found;

	if (same == transfer && !transfer->same)
		hashmap_remove(&requests->by_ndx, (uint32_t)transfer->ndx, 0);
	else if (same == transfer)
		*found = (uint64_t)(uintptr_t)transfer->same;
	while (same != transfer && same->same != transfer)
		same = same->same;
	if (same != transfer)
		same->same = transfer->same;
	if (transfer->previous)
		transfer->previous->next = transfer->next;
	else
		requests->first = transfer->next;
	if (transfer->next)
		transfer->next->previous = transfer->previous;
	else
		requests->last = transfer->previous;
}

/* Its peer may leave all requests open. */
struct transfer *transfer_new(struct pull *pull)
{
	budget_take(session_budget(pull->session), TRANSFER_MEMORY, "requests");
	return xcalloc(1, sizeof(struct transfer));
}

/* --- what becomes of them --- */

void pull_announce(struct pull *pull, bool *fact)
{
	pthread_mutex_lock(&pull->lock);
	*fact = true;
	pthread_cond_broadcast(&pull->changed);
	pthread_mutex_unlock(&pull->lock);
}

/* Requests are answered in their order, so those of the first phase stand in front. */
struct transfer *requests_take_oldest(struct pull *pull, bool first_phase)
{
	pthread_mutex_lock(&pull->lock);
	struct transfer *transfer = pull->asked.first;

	if (transfer && first_phase && transfer->in_second_phase)
		transfer = NULL;
	if (transfer)
		requests_remove(&pull->asked, transfer);
	pthread_mutex_unlock(&pull->lock);
	return transfer;
}

bool pull_expects(struct pull *pull, int32_t ndx)
{
	pthread_mutex_lock(&pull->lock);
	bool expected = requests_find(&pull->asked, ndx) != NULL;

	pthread_mutex_unlock(&pull->lock);
	return expected;
}

bool pull_has_xattr_part(const struct pull *pull, uint32_t flags)
{
	const uint32_t link = ITEM_XNAME_FOLLOWS | ITEM_LOCAL_CHANGE;
	bool is_shortened = !pull->session->avoid_xattr_optim && (flags & link) == link;

	/* What is a batch's has been asked for by somebody who did not pretend. */
	bool has_parts =
		pull->receiver->dest.options->xattrs && (pull->contents.is_replay || !pull->receiver->dest.options->dry_run);

	return has_parts && flags & ITEM_REPORT_XATTR && !is_shortened;
}

int pull_append_mode(const struct pull *pull)
{
	int mode = pull->receiver->dest.options->append;

	/* Older ones know but the one. */
	return mode && !pull->session->caps.plain_append ? 2 : mode;
}

void pull_settle(struct pull *pull, struct transfer *transfer, bool good)
{
	if (good)
		job_note_item(&transfer->job, false, false);
	else if (!transfer->is_directory)
		job_event(&transfer->job, &(struct event){ .kind = EVENT_FAILED, .index = transfer->job.index });
	pull_forget(pull, transfer);
}

void pull_forget(struct pull *pull, struct transfer *transfer)
{
	struct task *task = transfer->job.task;

	free(transfer->job.fuzzy);
	free(transfer);
	budget_give_back(session_budget(pull->session), TRANSFER_MEMORY);
	pool_release(pull->receiver->pool, task);
}

void pull_refused(struct pull *pull, int32_t ndx)
{
	pthread_mutex_lock(&pull->lock);
	struct transfer *transfer = requests_find(&pull->asked, ndx);

	if (transfer)
		requests_remove(&pull->asked, transfer);
	pthread_mutex_unlock(&pull->lock);
	if (!transfer)
		die(EXIT_PROTOCOL, "rsync: the sender refuses what was not asked for: index %d [receiver]", ndx);
	pull_settle(pull, transfer, false);
}

/* --- --remove-source-files --- */

/* Nothing arrives in a run that changes nothing here, a batch that is only written included. */
static bool confirms_arrivals(const struct receiver *receiver)
{
	return receiver->dest.options->remove_source_files && !receiver->dest.dry_run;
}

/* The reading thread must not wait for those that write: it only leaves a note. */
void pull_note_success(struct contents *contents, int32_t node, const struct entry *entry, bool is_new)
{
	struct pull *pull = pull_of(contents);

	if (!confirms_arrivals(pull->receiver) || (pull->receiver->dest.options->remove_sent_files && !is_new))
		return;
	pull_note_arrival(contents, flist_ndx_of(pull->receiver->dest.list, node, entry));
}

void pull_note_arrival(struct contents *contents, int32_t ndx)
{
	struct pull *pull = pull_of(contents);

	if (!confirms_arrivals(pull->receiver))
		return;
	pthread_mutex_lock(&pull->lock);
	vec_push(&pull->arrived.list, ndx);
	pthread_mutex_unlock(&pull->lock);
}

/* --- a batch: what this run wants --- */

void replay_missing(struct pull *pull, struct transfer *transfer)
{
	struct file_job *job = &transfer->job;
	struct strbuf path = dest_path_of(job->dir->path,
					  transfer->is_directory ? "" : entry_name(job->task->entries, job->entry));

	task_text(job->task, L_ERROR_XFER, "(No batched update for \"%s\")", strbuf_text(&path));
	strbuf_free(&path);
	pull_settle(pull, transfer, false);
}

/* Under the lock. */
static void set_decided(struct pull *pull, int32_t ndx)
{
	struct replay *replay = &pull->replay;

	if (ndx < 0)
		return;
	while (replay->decided.count <= (size_t)ndx)
		vec_push(&replay->decided, 0);
	if (!replay->decided.items[ndx])
		pull->stood_still = 0;
	replay->decided.items[ndx] = 1;
}

void replay_decided(struct contents *contents, int32_t ndx)
{
	struct pull *pull = pull_of(contents);

	pthread_mutex_lock(&pull->lock);
	set_decided(pull, ndx);
	pthread_cond_broadcast(&pull->changed);
	pthread_mutex_unlock(&pull->lock);
}

void replay_node_done(struct pull *pull, int32_t node)
{
	const struct entries *entries = flist_dir(pull->receiver->dest.list, node)->entries;

	pthread_mutex_lock(&pull->lock);
	for (uint32_t i = 0; entries && i < entries->count; i++)
		if (!entry_is_dir(&entries->items[i]) && !receiver_link_is_open(pull->receiver, entries, &entries->items[i]))
			set_decided(pull, flist_ndx_of(pull->receiver->dest.list, node, &entries->items[i]));
	set_decided(pull, flist_ndx_of(pull->receiver->dest.list, node, NULL));
	pthread_cond_broadcast(&pull->changed);
	pthread_mutex_unlock(&pull->lock);
}

void replay_request(struct pull *pull, struct transfer *transfer)
{
	pthread_mutex_lock(&pull->lock);
	bool too_late = pull->replay.ended;

	if (!too_late) {
		requests_add(&pull->asked, transfer);
		pull->stood_still = 0;
		pthread_cond_broadcast(&pull->changed);
	}
	pthread_mutex_unlock(&pull->lock);
	if (too_late)
		replay_missing(pull, transfer);
}

/* --- what the batch has --- */

/* The request for ndx. Under the lock. */
static struct transfer *take(struct pull *pull, int32_t ndx, bool is_redo)
{
	struct transfer *transfer = requests_find(&pull->asked, ndx);

	while (transfer && transfer->job.is_redo != is_redo)
		transfer = transfer->same;
	if (transfer)
		requests_remove(&pull->asked, transfer);
	return transfer;
}

/* The first one for an index below `limit`. Under the lock. */
static struct transfer *take_below(struct pull *pull, int64_t limit, bool is_redo)
{
	struct transfer *transfer = pull->asked.first;

	while (transfer && (transfer->job.is_redo != is_redo || transfer->ndx >= limit))
		transfer = transfer->next;
	if (transfer)
		requests_remove(&pull->asked, transfer);
	return transfer;
}

struct transfer *replay_take(struct pull *pull, int32_t ndx)
{
	bool is_redo = pull->replay.second_phase;
	struct transfer *transfer, *missing;

	pthread_mutex_lock(&pull->lock);
	pull->stood_still = 0;
	/* Incremental recursion repeats a file that came wrong before the first phase ends. */
	while (!(transfer = is_redo ? NULL : take(pull, ndx, false)) && !(transfer = take(pull, ndx, true))
	       && !(pull->replay.second_phase || pull->replay.all_decided
		    || ((size_t)ndx < pull->replay.decided.count && pull->replay.decided.items[ndx]))) {
		/* It may be the one that everybody waits for. */
		missing = take_below(pull, ndx, is_redo);
		if (!missing && pull->stood_still >= STILL_GIVES_UP) {
			/*
			 * What everybody waits for while nothing is decided on ndx: it comes too late, or not at all. The batch
			 * is not in the order of the list, or this file was to be sent again.
			 */
			missing = take_below(pull, INT64_MAX, true);
			if (!missing)
				missing = take_below(pull, INT64_MAX, false);
			if (!missing)
				set_decided(pull, ndx);
			pull->stood_still = 0;
		} else if (!missing) {
			pull->awaited = ndx;
			pthread_cond_broadcast(&pull->changed);
			pthread_cond_wait(&pull->changed, &pull->lock);
			pull->awaited = -1;
		}
		if (!missing)
			continue;
		pthread_mutex_unlock(&pull->lock);
		replay_missing(pull, missing);
		pthread_mutex_lock(&pull->lock);
		pull->stood_still = 0;
	}
	pthread_mutex_unlock(&pull->lock);
	return transfer;
}

void replay_skip(struct pull *pull, int32_t ndx)
{
	struct strbuf path = STRBUF_INIT;
	struct flist_pos pos;
	struct sum_head head;
	struct patch_outcome outcome;
	const struct patch_request request = {
		.session = pull->session, .tokens = pull->tokens, .digest = pull->digest, .buffer = &pull->buffer,
		.head = &head, .basis_fd = -1, .out_fd = -1,
	};

	if (!pull->receiver->dest.dry_run && flist_locate(pull->receiver->dest.list, ndx, &pos) && pos.entry) {
		flist_pos_path(pull->receiver->dest.list, &pos, &path);
		log_info("(Skipping batched update for \"%s\")", strbuf_text(&path));
	}
	strbuf_free(&path);
	sum_head_read(pull->session, &head, digest_length(pull->session->xfer_sum));
	patch_file(&request, &outcome);
}

