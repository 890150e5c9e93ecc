/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The walk, and the order in which it works a whole list off: nodes become directories and tasks, tasks are finished in list
 * order, directories when all below them is done.
 */
#include "receiver/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dest/contents.h"
#include "dest/events.h"
#include "dest/partial.h"
#include "dest/paths.h"
#include "dest/seen.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "fs/chmod.h"
#include "receiver/debug.h"
#include "receiver/delete.h"
#include "receiver/dir.h"
#include "receiver/link.h"
#include "receiver/pool.h"
#include "receiver/report.h"
#include "receiver/run.h"
#include "receiver/task.h"
#include "ui/progress.h"

#define SLICE 1024 /* files of one task */

/*
 * --- by path ---
 *
 * The order of protocol 27 and 28: files of a directory may stand between its directories (doc/protocol/02-file-list.md section
 * 5.2). What lies below a directory stands together nevertheless; the directory itself may stand further in front.
 */

/* Files of one directory that stand together in the list, in one task. */
struct slice {
	int32_t node;
	bool is_first, is_last; /* of the node */
	uint32_t first, last;   /* [first, last) of its entries */
	uint64_t position;      /* of entry 0 in the list, if all of them stood together */
};

struct plan {
	struct receiver *receiver;
	VEC(struct slice) slices;
	size_t *last; /* of a node: 1 + its last slice so far, 0: none */
};

bool receiver_goes_by_path(const struct receiver *receiver)
{
	return receiver->dest.contents->is_remote && receiver->session.caps.sorts_by_path && !receiver->dest.options->iconv
	       && !receiver->dest.seen && !receiver->dest.attrs_only;
}

static void add_slice(struct plan *plan, struct slice slice)
{
	vec_push(&plan->slices, slice);
	plan->last[slice.node] = plan->slices.count;
}

static void begin_node(struct plan *plan, int32_t node)
{
	if (plan->last[node])
		return;
	if (node)
		begin_node(plan, flist_dir(plan->receiver->dest.list, node)->parent);
	add_slice(plan, (struct slice){ .node = node, .is_first = true });
}

static void order_by_path(struct plan *plan)
{
	struct flist *list = plan->receiver->dest.list;
	uint32_t nodes = flist_dir_count(list);
	struct flist_pos pos;

	plan->last = xcalloc(nodes, sizeof *plan->last);
	begin_node(plan, 0);
	for (int32_t ndx = 0; flist_locate(list, ndx, &pos); ndx++) {
		int32_t node = (int32_t)pos.entry->dir;
		uint32_t index = (uint32_t)(pos.entry - pos.entries->items);
		const struct slice *last;
		struct slice *slice;

		if (entry_is_dir(pos.entry)) {
			if (node && !(pos.entry->flags & ENTRY_DUPLICATE) && !flist_dir(list, node)->entries->count)
				begin_node(plan, node);
			continue;
		}
		begin_node(plan, pos.dir);
		last = &plan->slices.items[plan->slices.count - 1];
		if (last->node != pos.dir
		    || (last->first < last->last && (last->last != index || index - last->first >= SLICE)))
			add_slice(plan, (struct slice){ .node = pos.dir, .first = index, .last = index });
		slice = &plan->slices.items[plan->slices.count - 1];
		if (slice->first == slice->last) {
			slice->first = index;
			slice->position = (uint64_t)ndx - index;
		}
		slice->last = index + 1;
	}
	for (uint32_t node = 0; node < nodes; node++)
		if (plan->last[node])
			plan->slices.items[plan->last[node] - 1].is_last = true;
	free(plan->last);
}

/*
 * --- without empty directories ---
 *
 * --prune-empty-dirs: directories without anything but directories below them are taken out of the list, unless a rule protects
 * them at the destination (doc/protocol/04-filters.md section 4.12.4). Like names that nobody ever listed they may be deleted
 * there.
 */

/* Does the entry make its directory one that stays? `stays`: of each node, those below this one are decided. */
static bool counts(struct receiver *receiver, int32_t node, const struct entry *entry, const bool *stays)
{
	if (entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN))
		return false;
	if (!entry_is_dir(entry))
		return true;
	if (entry->dir && stays[entry->dir])
		return true;
	if (entry_is_dot(flist_dir(receiver->dest.list, node)->entries, entry))
		return false;
	struct strbuf path = STRBUF_INIT;

	flist_entry_path(receiver->dest.list, node, entry, &path);
	bool is_protected = filter_excludes(receiver->receiver_rules, strbuf_text(&path), true);

	strbuf_free(&path);
	return is_protected;
}

void receiver_prune(struct receiver *receiver)
{
	uint32_t nodes = flist_dir_count(receiver->dest.list);
	bool *stays = xcalloc(nodes, sizeof *stays), *gone = xcalloc(nodes, sizeof *gone);
	size_t kept = 0;

	/* What is below a directory comes behind it. Entries of equal names stand together, the one that counts in front. */
	for (size_t n = receiver->order.count; n-- > 0;) {
		int32_t node = receiver->order.items[n];
		struct entries *entries = flist_dir(receiver->dest.list, node)->entries;
		const char *pruned = NULL;

		for (uint32_t i = 0; i < entries->count; i++) {
			struct entry *entry = &entries->items[i];
			const char *name = entry_name(entries, entry);
			bool is_hole = entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN);

			if (counts(receiver, node, entry, stays)) {
				stays[node] = true;
			} else if (entry_is_dir(entry) && strcmp(name, ".") != 0
				   && (!is_hole || (pruned && !strcmp(name, pruned)))) {
				entry->flags |= ENTRY_DUPLICATE | ENTRY_PRUNED;
				pruned = name;
			}
		}
	}
	for (size_t i = 0; i < receiver->order.count; i++) {
		int32_t node = receiver->order.items[i];
		const struct flist_dir *dir = flist_dir(receiver->dest.list, node);

		gone[node] = node
			     && (gone[dir->parent]
				 || flist_dir(receiver->dest.list, dir->parent)->entries->items[dir->parent_entry].flags
					    & ENTRY_PRUNED);
		if (!gone[node])
			receiver->order.items[kept++] = node;
	}
	receiver->order.count = kept;
	free(stays);
	free(gone);
}

#define WINDOW 128      /* tasks between preparing and finishing; each holds two descriptors */
#define WINDOW_OLD 8192 /* below protocol 30 a missing reply is noticed only when everything has been asked for */

/* The tasks that are not finished yet, oldest first. */
struct queue {
	struct task **items;
	size_t capacity, head, count;
};

/* --- the premature end --- */

static void look_up(struct receiver *receiver, struct queue *queue)
{
	struct contents *contents = receiver->dest.contents;
	int stop = atomic_load(&receiver->dest.stop);
	bool is_failure = stop != STOP_NONE && stop != STOP_SIGNAL && stop != STOP_SIGNAL1, all_asked = receiver->all_prepared;

	/* A worker gave up: say why, in list order, then end. */
	for (size_t i = 0; is_failure && i < queue->count; i++) {
		struct task *task = queue->items[(queue->head + i) % queue->capacity];
		struct events events;

		if (i == 0 || pool_state(receiver->pool, task) == TASK_RUNNING)
			pool_wait(receiver->pool, task, 1000);
		task_take_events(task, true, &events);
		for (size_t e = 0; e < events.list.count; e++) {
			if (events.list.items[e].kind == EVENT_TEXT)
				log_text(&events.list.items[e]);
			free(events.list.items[e].text);
		}
		vec_free(&events.list);
	}
	if (stop != STOP_NONE)
		receiver_stop_check(receiver);
	report_drain_if_old(receiver->report);
	if (!contents->is_remote)
		return;
	receiver_give_room(receiver);
	/* Has the worker gone through everything that is left? */
	for (size_t i = 0; all_asked && i < queue->count; i++)
		all_asked = pool_has_run(receiver->pool, queue->items[(queue->head + i) % queue->capacity]);
	if (all_asked)
		contents->calls->all_requested(contents);
	contents->calls->tick(contents);
	receiver_await_leaders(receiver);
}

static void stand_by(struct receiver *receiver, struct queue *queue)
{
	look_up(receiver, queue);
	/* The reading thread of a replay may wait for a decision. */
	if (!receiver_must_decide(receiver))
		return;
	for (size_t i = 0; i < queue->count; i++)
		receiver_decide_rest(receiver, queue->items[(queue->head + i) % queue->capacity]);
}

/* --- preparing --- */

static void set_up_deletion(struct receiver *receiver, struct task *task)
{
	enum delete_when when = receiver->dest.options->delete_when;

	if (!task->dir->may_delete || task->dir->skipped || when == DELETE_BEFORE || when == DELETE_AFTER
	    || (task->dir->absent && !task->dir->other_kind) || !receiver_may_delete(receiver, task))
		return;
	task->find_surplus = !task->dir->other_kind;
	/* What a symlink leads to is not surplus here; and -x asks first which file system it is. */
	if (task->find_surplus || S_ISLNK(task->dir->other_kind) || receiver->dest.options->one_file_system)
		return;
	task_complain(task, "generator", ENOTDIR, "", "opendir ", " failed");
	receiver->session.io_error |= IOERR_GENERAL;
}

static void delete_found(struct receiver *receiver, struct task *task)
{
	/* The directory is named before what is deleted in it. */
	if (receiver->dest.logs_steps)
		receiver_handle_events(receiver, task);
	/* A directory before this one may have failed since it was entered. */
	if (receiver_may_delete(receiver, NULL))
		receiver_delete_names(receiver, task->dir, &task->surplus);
	entries_free(&task->surplus);
	entries_init(&task->surplus);
}

/* The directory of a loaded node and its files. Needs room for all slices, so big directories come one at a time. */
static void finish_front(struct receiver *receiver, struct queue *queue);

/* A task that is the first one of its node. */
static void enter_node(struct receiver *receiver, struct task *task, bool has_more)
{
	struct dest_dir *dir = receiver_dir_prepare(receiver, task->node, task);

	receiver->prepared_entries += task->entries->count;
	task->is_first = true;
	if (!dir->skipped)
		dest_hide_entries(&receiver->dest, task->node);
	set_up_deletion(receiver, task);
	/*
	 * A directory may not overtake one that waits for its deletions, where the peer hears of items as they are decided
	 * on; where a symlink that is kept for what it leads to has to be looked at when that is gone; and where backups of its
	 * files would be surplus as well.
	 */
	if (task->find_surplus
	    && (receiver->dest.notifies_items || receiver->dest.contents->is_replay || dest_enters_links(&receiver->dest)
		|| receiver->dest.backups)) {
		if (!task->dir->skipped) {
			receiver_find_surplus(task);
			if (task->surplus.count)
				delete_found(receiver, task);
			task->find_surplus = false;
		}
	} else if (task->find_surplus && has_more) {
		/* Before the other slices' temp files are among them. */
		receiver_find_surplus(task);
		task->names_read = true;
	}
}

static void submit(struct receiver *receiver, struct queue *queue, struct task *task)
{
	if (queue->count == queue->capacity)
		finish_front(receiver, queue);
	receiver_links_mark(receiver, task);
	task_open_sources(receiver, task);
	queue->items[(queue->head + queue->count++) % queue->capacity] = task;
	if (task->dir->skipped) {
		task->last = task->first;
		task->find_surplus = false;
	}
	/* Requests have the order of the list, so there is one worker. */
	if (receiver->dest.contents->is_remote && !receiver->dest.attrs_only && pool_run_here(receiver->pool, task))
		return;
	pool_submit(receiver->pool, task, false);
}

static void prepare_node(struct receiver *receiver, struct queue *queue, int32_t node)
{
	struct flist_dir *listed = flist_dir(receiver->dest.list, node);
	uint32_t count = listed->entries->count, slice = count < 2 * SLICE ? count : SLICE, first = 0;
	struct task *task = task_new(receiver, node, NULL, 0, slice);
	/* The place in the list of an entry: sub-lists one after the other, or the depth-first order of one list. */
	uint64_t position = receiver->session.inc_recurse ? receiver->prepared_entries : (uint64_t)listed->first_ndx;
	struct dest_dir *dir;

	enter_node(receiver, task, slice < count);
	dir = task->dir;
	for (;;) {
		first += slice;
		task->is_last = first >= count;
		task->first_position = position;
		submit(receiver, queue, task);
		if (first >= count)
			return;
		task = task_new(receiver, node, dir, first, count - first < slice ? count : first + slice);
	}
}

static void note_loaded(struct receiver *receiver, int32_t node)
{
	struct entries *entries = flist_dir(receiver->dest.list, node)->entries;

	for (uint32_t i = 0; receiver->dest.options->chmod && i < entries->count; i++)
		if (entries->items[i].mode && !entry_is_symlink(&entries->items[i]))
			entries->items[i].mode = (uint16_t)chmod_apply(receiver->dest.options->chmod, entries->items[i].mode);
	receiver->loaded_entries += entries->count;
	if (receiver->loads_all || receiver->keeps_entries)
		vec_push(&receiver->order, node);
	if (receiver->loads_all || receiver_batch_leads(receiver))
		receiver_links_add(receiver, node);
	/* The first one has been spoken of, unless all are loaded before anything is done. */
	if (node || receiver->loads_all)
		receiver_debug_list(receiver, node);
}

/* --- finishing --- */

static void close_directory(struct receiver *receiver, struct dest_dir *dir)
{
	int32_t node = dir->node;

	receiver_dir_finish(receiver, dir);
	/* The reading thread of a replay looks at entries whose fate has been decided. */
	if (!receiver->keeps_entries && !receiver->dest.contents->is_replay)
		flist_drop_entries(receiver->dest.list, node);
	dest_dir_release(dir);
}

static struct dest_dir *last_done(const struct receiver *receiver)
{
	return receiver->done_stack.count ? receiver->done_stack.items[receiver->done_stack.count - 1] : NULL;
}

static enum task_state await(struct receiver *receiver, struct queue *queue, struct task *task)
{
	enum task_state state;

	if (receiver->dest.contents->is_remote)
		receiver->dest.contents->calls->flush(receiver->dest.contents);
	while ((state = pool_wait(receiver->pool, task, receiver_poll_ms(receiver))) != TASK_WAITS && state != TASK_DONE) {
		stand_by(receiver, queue);
		if (!receiver->dest.wants_items && !progress_is_asked())
			continue;
		receiver_handle_events(receiver, task);
		report_live(receiver->report, task);
	}
	look_up(receiver, queue);
	return state;
}

static void finish_front(struct receiver *receiver, struct queue *queue)
{
	struct task *task = queue->items[queue->head];

	/* What the main thread does itself may make it wait for a peer once more. */
	do {
		while (await(receiver, queue, task) == TASK_WAITS) {
			delete_found(receiver, task);
			task->find_surplus = false;
			pool_submit(receiver->pool, task, true);
		}
		receiver_handle_events(receiver, task);
		/* Members of hard-link groups, once the fate of their leaders is known. */
		for (size_t i = 0; i < task->links.count; i++)
			receiver_link_event(receiver, task, task->links.items[i]);
		task->links.count = 0;
	} while (pool_state(receiver->pool, task) != TASK_DONE);
	dest_seen_take(&receiver->dest, task);
	queue->head = (queue->head + 1) % queue->capacity;
	queue->count--;
	if (task->is_last && receiver->dest.contents->is_remote)
		receiver->dest.contents->calls->node_done(receiver->dest.contents, task->node);
	/* Files of a directory are done; so are the directories that are not above it. */
	while (last_done(receiver) && last_done(receiver) != task->dir && last_done(receiver) != task->dir->parent)
		close_directory(receiver, receiver->done_stack.items[--receiver->done_stack.count]);
	if (last_done(receiver) != task->dir) {
		task->dir->references++;
		vec_push(&receiver->done_stack, task->dir);
	}
	if (task->is_last)
		report_section_end(receiver->report, task->first_position + task->last - (task->last > 0));
	task_free(receiver, task);
}

/* --- the walk --- */

void receiver_load_everything(struct receiver *receiver)
{
	int32_t node;

	note_loaded(receiver, 0);
	while ((node = flist_load_next(receiver->dest.list)) >= 0) {
		note_loaded(receiver, node);
		receiver_stop_check(receiver);
	}
}

/* The next node to prepare, or -1. */
static int32_t next_node(struct receiver *receiver, size_t *place)
{
	int32_t node;

	if (receiver->loads_all)
		return *place < receiver->order.count ? receiver->order.items[(*place)++] : -1;
	if ((*place)++ == 0)
		node = 0;
	else if (receiver->preloaded >= 0)
		node = receiver->preloaded;
	else
		node = receiver->dest.contents->calls->next_list(receiver->dest.contents);
	if (node == receiver->preloaded)
		receiver->preloaded = -1;
	if (node >= 0)
		note_loaded(receiver, node);
	return node;
}

/* What has been prepared: finish what is done already, and some of the rest if there is no room. */
static void get_on(struct receiver *receiver, struct queue *queue)
{
	look_up(receiver, queue);
	while (queue->count
	       && (queue->count == queue->capacity || pool_state(receiver->pool, queue->items[queue->head]) == TASK_DONE))
		finish_front(receiver, queue);
}

static void walk_by_directory(struct receiver *receiver, struct queue *queue)
{
	size_t place = 0;
	int32_t node;

	for (;;) {
		/* A peer sends further lists only as the first ones are done: while none is here, finish what can be done. */
		while (receiver->dest.contents->is_remote && !flist_await_next(receiver->dest.list, 0) && queue->count) {
			/* The reading thread of a replay may wait for files of a list that is about to come. */
			if (!receiver->dest.contents->is_replay
			    || pool_wait(receiver->pool, queue->items[queue->head], receiver_poll_ms(receiver)) == TASK_DONE)
				finish_front(receiver, queue);
			else
				stand_by(receiver, queue);
		}
		/* Before the next list the batch may have the content of a group of hard links that waits for it. */
		while (receiver_batch_leads(receiver) && !flist_await_next(receiver->dest.list, receiver_poll_ms(receiver)))
			stand_by(receiver, queue);
		if ((node = next_node(receiver, &place)) < 0)
			return;
		prepare_node(receiver, queue, node);
		get_on(receiver, queue);
	}
}

/* Slices of directories, as protocol 27 and 28 order them. */
static void walk_by_path(struct receiver *receiver, struct queue *queue)
{
	struct plan plan = { .receiver = receiver };
	size_t place = 0;

	while (next_node(receiver, &place) >= 0)
		;
	order_by_path(&plan);
	receiver_links_order(receiver);
	for (size_t i = 0; i < plan.slices.count; i++) {
		const struct slice *slice = &plan.slices.items[i];
		struct dest_dir *dir = slice->is_first ? NULL : receiver_dir_return(receiver, slice->node);
		struct task *task = task_new(receiver, slice->node, dir, slice->first, slice->last);

		if (slice->is_first)
			enter_node(receiver, task, !slice->is_last);
		task->is_last = slice->is_last;
		task->first_position = slice->position;
		submit(receiver, queue, task);
		get_on(receiver, queue);
	}
	vec_free(&plan.slices);
}

static void check_stop(void *receiver)
{
	receiver_stop_check(receiver);
}

void receiver_run(struct receiver *receiver)
{
	struct contents *contents = receiver->dest.contents;
	enum delete_when when = receiver->deletes ? receiver->dest.options->delete_when : DELETE_NEVER;
	bool is_old = contents->is_replay || (contents->is_remote && !receiver->session.caps.no_send_message);
	struct queue queue = { .capacity = is_old ? WINDOW_OLD : WINDOW };

	if (when == DELETE_BEFORE)
		receiver_delete_pass(receiver);
	receiver_debug_method(receiver);
	queue.items = xcalloc(queue.capacity, sizeof *queue.items);
	if (receiver_goes_by_path(receiver))
		walk_by_path(receiver, &queue);
	else
		walk_by_directory(receiver, &queue);
	receiver->all_prepared = true;
	while (queue.count)
		finish_front(receiver, &queue);
	/* The rest of a batch may have contents of groups of hard links that wait for them. */
	while (receiver_batch_leads(receiver)
	       && (!contents->calls->await_end(contents, receiver_poll_ms(receiver)) || receiver_await_leaders(receiver)))
		stand_by(receiver, &queue);
	free(queue.items);
	while (receiver->open_stack.count)
		dest_dir_release(receiver->open_stack.items[--receiver->open_stack.count]);
	while (receiver->done_stack.count)
		close_directory(receiver, receiver->done_stack.items[--receiver->done_stack.count]);
	report_drain(receiver->report);
	dest_delayed_install(&receiver->dest, check_stop, receiver);
	receiver_links_finish(receiver);
	/* Where no member of a group could lead, single files have been made. */
	dest_delayed_install(&receiver->dest, check_stop, receiver);
	report_drain(receiver->report);
	if (when == DELETE_DELAY)
		receiver_delete_delayed(receiver);
	else if (when == DELETE_AFTER)
		receiver_delete_pass(receiver);
	receiver_dir_finish_late(receiver);
	if (!receiver->delete_skipped)
		return;
	log_warning("Deletions stopped due to --max-delete limit (%llu skipped)", (unsigned long long)receiver->delete_skipped);
	receiver->session.io_error |= IOERR_DEL_LIMIT;
}
