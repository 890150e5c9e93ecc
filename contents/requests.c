/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that were asked for, until their fate is known. */
#include "contents/requests.h"

#include <stdlib.h>

#include "dest/file.h"
#include "dest/job.h"
#include "dest/task.h"
#include "flist/received.h"
#include "lib/exit.h"
#include "receiver/pool.h"
#include "receiver/run.h"

#define TRANSFER_MEMORY (sizeof(struct transfer) + 2 * sizeof(struct hashmap_slot))

struct transfer *requests_find(const struct requests *requests, int32_t ndx)
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

void requests_remove(struct requests *requests, struct transfer *transfer)
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

struct transfer *requests_take_oldest(struct pull *pull)
{
	struct transfer *transfer;

	pthread_mutex_lock(&pull->lock);
	transfer = pull->asked.first;
	if (transfer)
		requests_remove(&pull->asked, transfer);
	pthread_mutex_unlock(&pull->lock);
	return transfer;
}

void pull_note_owed(struct pull *pull)
{
	pthread_mutex_lock(&pull->lock);
	wire_set_owed(pull->session->wire, pull->asked.first != NULL);
	pthread_mutex_unlock(&pull->lock);
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
	bool has_parts = pull->receiver->dest.options->xattrs && (pull->replay || !pull->receiver->dest.options->dry_run);

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
		job_received(&transfer->job);
	else if (!transfer->is_directory)
		job_refused(&transfer->job);
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

/* Requests are answered in their order, so those of the first phase stand in front. */
bool requests_has_open(struct pull *pull, bool first_phase)
{
	pthread_mutex_lock(&pull->lock);
	bool open = pull->asked.first && !(first_phase && pull->asked.first->in_second_phase);

	pthread_mutex_unlock(&pull->lock);
	return open;
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
