/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The walk: nodes become directories and tasks, tasks are finished in list order, directories when all below them is done. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dest/alternate.h"
#include "dest/events.h"
#include "dest/fuzzy.h"
#include "dest/install.h"
#include "dest/partial.h"
#include "dest/paths.h"
#include "dest/private.h"
#include "flist/receive.h"
#include "fs/chmod.h"
#include "lib/block_count.h"
#include "lib/exit.h"
#include "receiver/pool.h"
#include "receiver/stop.h"
#include "receiver/task.h"
#include "wire/request.h"

#define WINDOW 128      /* tasks between preparing and finishing; each holds two descriptors */
#define WINDOW_OLD 8192 /* below protocol 30 a missing reply is noticed only when everything has been asked for */
#define SLICE 1024      /* files of one task */

/* The tasks that are not finished yet, oldest first. */
struct queue {
	struct task **items;
	size_t capacity, head, count;
};

/* --- the premature end --- */

/* A worker gave up: say why, in list order, then end. */
static void end_after_failure(struct local *local, struct queue *queue)
{
	for (size_t i = 0; i < queue->count; i++) {
		struct task *task = queue->items[(queue->head + i) % queue->capacity];
		struct events events;

		if (i == 0 || pool_state(local->pool, task) == TASK_RUNNING)
			pool_wait(local->pool, task, 1000);
		task_take_last_events(task, &events);
		for (size_t e = 0; e < events.list.count; e++) {
			if (events.list.items[e].kind == EVENT_TEXT)
				log_text(&events.list.items[e]);
			free(events.list.items[e].text);
		}
		vec_free(&events.list);
	}
	local_stop_check(local);
}

/* Has the worker gone through everything that is left? */
static bool all_asked(struct local *local, const struct queue *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		if (!pool_has_run(local->pool, queue->items[(queue->head + i) % queue->capacity]))
			return false;
	return true;
}

static void look_up(struct local *local, struct queue *queue)
{
	struct contents *contents = local->contents;
	int stop = atomic_load(&local->stop);

	if (stop == STOP_SIGNAL || stop == STOP_SIGNAL1)
		local_stop_check(local);
	else if (stop != STOP_NONE)
		end_after_failure(local, queue);
	report_drain_if_old(local->report);
	if (!contents->is_remote)
		return;
	local_give_room(local);
	if (local->all_prepared && all_asked(local, queue))
		contents->calls->all_requested(contents);
	contents->calls->tick(contents);
}

/* --- preparing --- */

static void apply_chmod(struct local *local, struct entries *entries)
{
	for (uint32_t i = 0; local->options->chmod && i < entries->count; i++)
		if (entries->items[i].mode && !entry_is_symlink(&entries->items[i]))
			entries->items[i].mode = (uint16_t)chmod_apply(local->options->chmod, entries->items[i].mode);
}

static void submit(struct local *local, struct queue *queue, struct task *task)
{
	local_links_mark(local, task);
	local_task_open_sources(local, task);
	queue->items[(queue->head + queue->count++) % queue->capacity] = task;
	if (task->dir->skipped) {
		task->last = task->first;
		task->find_surplus = false;
	}
	/* Requests have the order of the list, so there is one worker. */
	if (local->contents->is_remote && !local->attrs_only && pool_run_here(local->pool, task))
		return;
	pool_submit(local->pool, task, false);
}

static void set_up_deletion(struct local *local, struct task *task)
{
	enum delete_when when = local->options->delete_when;

	if (!task->dir->may_delete || task->dir->skipped || when == DELETE_BEFORE || when == DELETE_AFTER)
		return;
	if (task->dir->absent && !task->dir->other_kind)
		return;
	if (!local_may_delete(local, task))
		return;
	task->find_surplus = !task->dir->other_kind;
	/* What a symlink leads to is not surplus here; and -x asks first which file system it is. */
	if (task->find_surplus || S_ISLNK(task->dir->other_kind) || local->options->one_file_system)
		return;
	task_complain(task, "generator", ENOTDIR, "", "opendir ", " failed");
	local->session.io_error |= IOERR_GENERAL;
}

/*
 * May no directory overtake one that waits for its deletions? The peer is told of items as they are decided on; a symlink that
 * is kept for what it leads to has to be looked at when that is gone; backups of its files would be surplus as well.
 */
static bool deletes_in_turn(const struct local *local)
{
	return local->tells_items || local->contents->is_replay || local_enters_links(local) || local->backups;
}

static void delete_found(struct local *local, struct task *task)
{
	/* The directory is named before what is deleted in it. */
	if (local->tells_steps)
		local_handle_events(local, task);
	/* A directory before this one may have failed since it was entered. */
	if (local_may_delete(local, NULL))
		local_delete_surplus(local, task);
	entries_free(&task->surplus);
	entries_init(&task->surplus);
}

static void delete_now(struct local *local, struct task *task)
{
	if (task->dir->skipped)
		return;
	local_find_surplus(task);
	if (task->surplus.count)
		delete_found(local, task);
	task->find_surplus = false;
}

/* The directory of a loaded node and its files. Needs room for all slices, so big directories come one at a time. */
static void finish_front(struct local *local, struct queue *queue);

/* A task that is the first one of its node. */
static void enter_node(struct local *local, struct task *task, bool has_more)
{
	struct local_dir *dir = local_dir_prepare(local, task->node, task);

	local->prepared_entries += task->entries->count;
	task->is_first = true;
	if (!dir->skipped)
		local_hide_entries(local, task->node);
	set_up_deletion(local, task);
	if (task->find_surplus && deletes_in_turn(local)) {
		delete_now(local, task);
	} else if (task->find_surplus && has_more) {
		/* Before the other slices' temp files are among them. */
		local_find_surplus(task);
		task->names_read = true;
	}
}

static void submit_in_turn(struct local *local, struct queue *queue, struct task *task)
{
	if (queue->count == queue->capacity)
		finish_front(local, queue);
	submit(local, queue, task);
}

static void prepare_node(struct local *local, struct queue *queue, int32_t node)
{
	struct flist_dir *listed = flist_dir(local->list, node);
	uint32_t count = listed->entries->count, slice = count < 2 * SLICE ? count : SLICE, first = 0;
	struct task *task = local_task_new(local, node, NULL, 0, slice);
	/* The place in the list of an entry: sub-lists one after the other, or the depth-first order of one list. */
	uint64_t position = local->session.inc_recurse ? local->prepared_entries : (uint64_t)listed->first_ndx;
	struct local_dir *dir;

	enter_node(local, task, slice < count);
	dir = task->dir;
	for (;;) {
		first += slice;
		task->is_last = first >= count;
		task->first_position = position;
		submit_in_turn(local, queue, task);
		if (first >= count)
			return;
		task = local_task_new(local, node, dir, first, count - first < slice ? count : first + slice);
	}
}

/* The same with one slice of protocol 27 and 28. */
static void prepare_slice(struct local *local, struct queue *queue, const struct local_slice *slice)
{
	struct local_dir *dir = slice->is_first ? NULL : local_dir_return(local, slice->node);
	struct task *task = local_task_new(local, slice->node, dir, slice->first, slice->last);

	if (slice->is_first)
		enter_node(local, task, !slice->is_last);
	task->is_last = slice->is_last;
	task->first_position = slice->position;
	submit_in_turn(local, queue, task);
}

static void note_loaded(struct local *local, int32_t node)
{
	struct entries *entries = flist_dir(local->list, node)->entries;

	apply_chmod(local, entries);
	local->loaded_entries += entries->count;
	if (local->loads_all || local->keeps_entries)
		vec_push(&local->order, node);
	if (local->loads_all)
		local_links_add(local, node);
	/* The first one has been spoken of, unless all are loaded before anything is done. */
	if (node || local->loads_all)
		local_debug_list(local, node);
}

/* --- finishing --- */

static void add_kinds(struct kind_counts *to, const struct kind_counts *from)
{
	to->total += from->total;
	to->dirs += from->dirs;
	to->links += from->links;
	to->devices += from->devices;
	to->specials += from->specials;
}

static void add_counts(struct run_stats *to, const struct run_stats *from)
{
	add_kinds(&to->created, &from->created);
	to->transferred_files += from->transferred_files;
	to->transferred_size += from->transferred_size;
	to->literal += from->literal;
	to->matched += from->matched;
	to->blocks = block_count_sum(to->blocks, from->blocks);
}

static void close_directory(struct local *local, struct local_dir *dir)
{
	int32_t node = dir->node;

	local_dir_finish(local, dir);
	/* The reading thread of a replay looks at entries whose fate has been decided. */
	if (!local->keeps_entries && !local->contents->is_replay)
		flist_drop_entries(local->list, node);
	local_dir_release(dir);
}

static struct local_dir *last_done(const struct local *local)
{
	return local->done_stack.count ? local->done_stack.items[local->done_stack.count - 1] : NULL;
}

/* Files of a directory are done; so are the directories that are not above it. */
static void files_done(struct local *local, struct local_dir *dir)
{
	while (last_done(local) && last_done(local) != dir && last_done(local) != dir->parent)
		close_directory(local, local->done_stack.items[--local->done_stack.count]);
	if (last_done(local) == dir)
		return;
	local_dir_hold(dir);
	vec_push(&local->done_stack, dir);
}

static void close_all_directories(struct local *local)
{
	while (local->open_stack.count)
		local_dir_release(local->open_stack.items[--local->open_stack.count]);
	while (local->done_stack.count)
		close_directory(local, local->done_stack.items[--local->done_stack.count]);
}

static void help_replay_with(struct local *local, struct queue *queue)
{
	if (!local_must_decide(local))
		return;
	for (size_t i = 0; i < queue->count; i++)
		local_decide_rest(local, queue->items[(queue->head + i) % queue->capacity]);
}

static enum task_state await(struct local *local, struct queue *queue, struct task *task)
{
	enum task_state state;

	local->contents->calls->flush(local->contents);
	while ((state = pool_wait(local->pool, task, local_poll_ms(local))) != TASK_WAITS && state != TASK_DONE) {
		look_up(local, queue);
		help_replay_with(local, queue);
		if (!local->wants_items && !progress_is_asked())
			continue;
		local_handle_events(local, task);
		report_live(local->report, task);
	}
	look_up(local, queue);
	return state;
}

/* Members of hard-link groups, once the fate of their leaders is known. */
static void link_late(struct local *local, struct task *task)
{
	for (size_t i = 0; i < task->links.count; i++)
		local_link_event(local, task, task->links.items[i]);
	task->links.count = 0;
}

static void finish_front(struct local *local, struct queue *queue)
{
	struct task *task = queue->items[queue->head];

	/* What the main thread does itself may make it wait for a peer once more. */
	do {
		while (await(local, queue, task) == TASK_WAITS) {
			delete_found(local, task);
			task->find_surplus = false;
			pool_submit(local->pool, task, true);
		}
		local_handle_events(local, task);
		link_late(local, task);
	} while (pool_state(local->pool, task) != TASK_DONE);
	local_seen_take(local, task);
	add_counts(&local->stats, &task->counts);
	add_counts(&local->stats, &task->received);
	queue->head = (queue->head + 1) % queue->capacity;
	queue->count--;
	if (task->is_last)
		local->contents->calls->node_done(local->contents, task->node);
	files_done(local, task->dir);
	if (task->is_last)
		report_section_end(local->report, task->first_position + task->last - (task->last > 0));
	local_task_free(task);
}

/* --- the walk --- */

void local_load_everything(struct local *local)
{
	int32_t node;

	note_loaded(local, 0);
	while ((node = flist_load_next(local->list)) >= 0) {
		note_loaded(local, node);
		local_stop_check(local);
	}
}

/* The next node to prepare, or -1. */
static int32_t next_node(struct local *local, size_t *place)
{
	int32_t node;

	if (local->loads_all)
		return *place < local->order.count ? local->order.items[(*place)++] : -1;
	if ((*place)++ == 0)
		node = 0;
	else if (local->preloaded >= 0)
		node = local->preloaded;
	else
		node = local->contents->calls->next_list(local->contents);
	if (node == local->preloaded)
		local->preloaded = -1;
	if (node >= 0)
		note_loaded(local, node);
	return node;
}

/* The reading thread of a replay may wait for files of a list that is about to come: stand by without waiting for others. */
static bool has_finished_front(struct local *local, const struct queue *queue)
{
	enum task_state state;

	if (!local->contents->is_replay)
		return true;
	state = pool_wait(local->pool, queue->items[queue->head], local_poll_ms(local));
	return state == TASK_DONE;
}

static void stand_by(struct local *local, struct queue *queue)
{
	look_up(local, queue);
	help_replay_with(local, queue);
}

/* A peer sends further lists only as the first ones are done: while none is here, finish what can be finished. */
static void await_list(struct local *local, struct queue *queue)
{
	while (local->contents->is_remote && !flist_next_is_known(local->list) && queue->count) {
		if (has_finished_front(local, queue))
			finish_front(local, queue);
		else
			stand_by(local, queue);
	}
}

/* What has been prepared: finish what is done already, and some of the rest if there is no room. */
static void get_on(struct local *local, struct queue *queue)
{
	look_up(local, queue);
	while (queue->count && (queue->count == queue->capacity
				|| pool_state(local->pool, queue->items[queue->head]) == TASK_DONE))
		finish_front(local, queue);
}

static void walk_by_path(struct local *local, struct queue *queue)
{
	struct local_slices slices = { VEC_INIT };
	size_t place = 0;

	while (next_node(local, &place) >= 0)
		;
	local_order_by_path(local, &slices);
	local_links_order(local);
	for (size_t i = 0; i < slices.list.count; i++) {
		prepare_slice(local, queue, &slices.list.items[i]);
		get_on(local, queue);
	}
	vec_free(&slices.list);
}

static void walk_by_directory(struct local *local, struct queue *queue)
{
	size_t place = 0;
	int32_t node;

	for (;;) {
		await_list(local, queue);
		if ((node = next_node(local, &place)) < 0)
			return;
		prepare_node(local, queue, node);
		get_on(local, queue);
	}
}

static void walk(struct local *local)
{
	bool is_old = local->contents->is_replay || (local->contents->is_remote && local->session.protocol < 30);
	struct queue queue = { .capacity = is_old ? WINDOW_OLD : WINDOW };

	queue.items = xcalloc(queue.capacity, sizeof *queue.items);
	if (local_goes_by_path(local))
		walk_by_path(local, &queue);
	else
		walk_by_directory(local, &queue);
	local->all_prepared = true;
	while (queue.count)
		finish_front(local, &queue);
	free(queue.items);
	close_all_directories(local);
}

void local_run(struct local *local)
{
	enum delete_when when = local->deletes ? local->options->delete_when : DELETE_NEVER;

	if (when == DELETE_BEFORE)
		local_delete_pass(local);
	local_say_method(local);
	walk(local);
	report_drain(local->report);
	local_delayed_install(local, local_stop_check);
	local_links_finish(local);
	/* Where no member of a group could lead, single files have been made. */
	local_delayed_install(local, local_stop_check);
	report_drain(local->report);
	if (when == DELETE_DELAY)
		local_delete_delayed(local);
	else if (when == DELETE_AFTER)
		local_delete_pass(local);
	local_dir_finish_late(local);
	local_report_skipped_deletes(local);
}
