/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tasks: some or all files of one directory; what a worker does with them, and what the main thread does about its events. */
#include "receiver/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dest/basis.h"
#include "dest/contents.h"
#include "dest/events.h"
#include "dest/file.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "lib/block_count.h"
#include "receiver/delete.h"
#include "receiver/dir.h"
#include "receiver/link.h"
#include "receiver/pool.h"
#include "receiver/report.h"
#include "receiver/run.h"
#include "wire/request.h"

#define POLL_MS 50       /* how often a waiting main thread looks up */
#define REPLAY_POLL_MS 2 /* ... in a replay: the reading thread may wait for it */

/* --- tasks --- */

struct task *task_new(struct receiver *receiver, int32_t node, struct dest_dir *dir, uint32_t first, uint32_t last)
{
	struct task *task = xcalloc(1, sizeof *task);

	task->dest = &receiver->dest;
	task->node = node;
	task->entries = flist_dir(receiver->dest.list, node)->entries;
	task->first = task->at = first;
	task->last = last;
	task->dir = dir;
	task->state = TASK_DONE;
	task->lock = &receiver->pool->lock;
	entries_init(&task->surplus);
	entries_init(&task->seen);
	if (dir)
		dir->references++;
	return task;
}

static void add_counts(struct run_stats *to, const struct run_stats *from)
{
	to->created.total += from->created.total;
	to->created.dirs += from->created.dirs;
	to->created.links += from->created.links;
	to->created.devices += from->created.devices;
	to->created.specials += from->created.specials;
	to->transferred_files += from->transferred_files;
	to->transferred_size += from->transferred_size;
	to->literal += from->literal;
	to->matched += from->matched;
	to->blocks = block_count_sum(to->blocks, from->blocks);
}

void task_free(struct receiver *receiver, struct task *task)
{
	add_counts(&receiver->stats, &task->counts);
	add_counts(&receiver->stats, &task->received);
	for (size_t i = 0; i < task->sources.count; i++)
		if (task->sources.items[i].root.fd >= 0)
			close(task->sources.items[i].root.fd);
	vec_free(&task->sources);
	dest_leave_dirs(task);
	vec_free(&task->links);
	for (size_t i = 0; i < task->events.list.count; i++)
		free(task->events.list.items[i].text);
	vec_free(&task->events.list);
	entries_free(&task->surplus);
	entries_free(&task->seen);
	free(task->marks);
	if (task->dir)
		dest_dir_release(task->dir);
	free(task);
}

static bool has_source(const struct task *task, uint16_t base)
{
	for (size_t i = 0; i < task->sources.count; i++)
		if (task->sources.items[i].base == base)
			return true;
	return false;
}

void task_open_sources(struct receiver *receiver, struct task *task)
{
	struct strbuf path = STRBUF_INIT;

	bool for_all = receiver->dest.options->acls || receiver->dest.options->xattrs;

	if (receiver->dest.contents->is_remote
	    || (!for_all && (receiver->dest.attrs_only || (receiver->dest.dry_run && !receiver->dest.options->checksum))))
		return;
	for (uint32_t i = task->first; i < task->last; i++) {
		const struct entry *entry = &task->entries->items[i];
		struct task_source source = { .base = entry->root };
		struct attr_source *from;
		size_t name_length = entry->name_length;

		if ((!for_all && !entry_is_regular(entry)) || has_source(task, entry->root))
			continue;
		name_length -= entry_name(task->entries, entry)[0] == '/';
		from = flist_entry_source(receiver->dest.list, task->node, entry, &path);
		strbuf_truncate(&path, path.length > name_length ? path.length - name_length - 1 : 0);
		if (fs_root_open_below(&source.root, &from->attr_root, strbuf_text(&path)) < 0) {
			source.error = errno;
			source.root.fd = -1;
		}
		vec_push(&task->sources, source);
	}
	strbuf_free(&path);
}

/* --- events --- */

void log_text(const struct event *event)
{
	const char *old_role = log_role();

	if (event->role)
		log_set_role(event->role);
	if (event->error)
		log_errno(event->log, event->error, "%s", event->text);
	else
		log_msg(event->log, "%s%s", event->role ? "rsync: " : "", event->text);
	log_set_role(old_role);
}

static void log_source_failure(struct receiver *receiver, struct task *task, const struct event *event)
{
	static const char *const calls[] = {
		[SOURCE_OPEN] = "send_files failed to open ", [SOURCE_READ] = "read errors mapping ",
		[SOURCE_ATTRIBUTES] = "failed to read attributes of ",
	};
	struct strbuf quoted = STRBUF_INIT;

	flist_quote(receiver->dest.list, task->node, &task->entries->items[event->index], &quoted);
	if (event->error == ENOENT) {
		log_warning("file has vanished: %s", strbuf_text(&quoted));
		receiver->session.io_error |= IOERR_VANISHED;
	} else {
		log_errno(L_ERROR_XFER, event->error, "%s%s", calls[event->bytes], strbuf_text(&quoted));
		receiver->session.io_error |= IOERR_GENERAL;
	}
	strbuf_free(&quoted);
}

static void report_directory(struct receiver *receiver, struct task *task, const struct event *event)
{
	const struct flist_dir *listed = flist_dir(receiver->dest.list, task->node);
	int32_t node = task->node ? listed->parent : 0;
	const struct entries *entries = flist_dir(receiver->dest.list, node)->entries;
	int32_t index = task->node ? (int32_t)listed->parent_entry : entries_find(entries, ".", true);

	if (index >= 0)
		report_item(receiver->report, node, &entries->items[index], event, NULL, 0);
}

static void leader_done(struct receiver *receiver, struct task *task, uint32_t index, uint32_t flags, bool failed);

/* A directory was in the way of a file. */
static void redo_entry(struct receiver *receiver, struct task *task, uint32_t index)
{
	const struct entry *entry = &task->entries->items[index];
	const char *name = task_name(task, entry);

	if (!receiver_make_room(receiver, task->dir, name, entry)) {
		leader_done(receiver, task, index, 0, true);
		return;
	}
	dest_process_entry(task, index, TURN_HAS_ROOM);
	receiver_handle_events(receiver, task);
}

void receiver_give_room(struct receiver *receiver)
{
	struct task *task = atomic_load(&receiver->dest.crowded);

	if (!task || pool_state(receiver->pool, task) != TASK_CROWDED)
		return;
	const struct entry *entry = &task->entries->items[task->at];

	if (receiver_make_room(receiver, task->dir, task_name(task, entry), entry))
		dest_process_entry(task, task->at, TURN_HAS_ROOM);
	else
		task_event(task, (struct event){ .kind = EVENT_FAILED, .index = task->at });
	task->at++;
	atomic_store(&receiver->dest.crowded, NULL);
	pool_submit(receiver->pool, task, true);
}

void receiver_decide_rest(struct receiver *receiver, struct task *task)
{
	struct contents *contents = receiver->dest.contents;
	struct events events = { VEC_INIT };

	if (!pool_has_run(receiver->pool, task))
		return;
	task_take_redos(task, &events);
	for (size_t i = 0; i < events.list.count; i++)
		redo_entry(receiver, task, events.list.items[i].index);
	vec_free(&events.list);
	contents->calls->decided_task(contents, task);
}

/* --- tasks of single members of hard-link groups, out of their turn --- */

/* In the late phase directories are looked up again. */
static struct task *new_late_task(struct receiver *receiver, const struct link_member *member)
{
	struct dest_dir *dir = receiver_dir_new(receiver, member->node);
	struct task *task;

	dir->fd = receiver->dest.top.fd < 0 ? -1 : dest_open_dir(&receiver->dest, dir->path, false);
	dir->absent = dir->fd < 0;
	if (dir->absent && receiver->dest.top.fd >= 0 && errno != ENOENT && errno != ENOTDIR && !receiver->dest.dry_run)
		dest_complain_path(&receiver->dest, "generator", errno, *dir->path ? dir->path : ".", "opendir ", " failed");
	task = task_new(receiver, member->node, dir, member->index, member->index + 1);
	/* Whether it leads is of interest whoever watches. */
	task->marks = xcalloc(1, sizeof *task->marks);
	dest_dir_release(dir);
	task_open_sources(receiver, task);
	return task;
}

/* The batch has the content of `ndx` next, perhaps a member's. */
static bool lead_awaited(struct receiver *receiver, int32_t ndx)
{
	struct contents *contents = receiver->dest.contents;
	struct link_group *group;
	struct link_member *member;
	struct flist_pos pos;
	size_t place = 0;

	if (!receiver_batch_leads(receiver) || ndx < 0 || !flist_locate(receiver->dest.list, ndx, &pos) || pos.gap >= 0
	    || !link_is_member(pos.entry))
		return false;
	group = link_group_of(receiver, pos.entries, pos.entry);
	while (place < group->members.count
	       && (group->members.items[place].node != pos.dir
		   || group->members.items[place].index != (uint32_t)(pos.entry - pos.entries->items)))
		place++;
	member = &group->members.items[place];
	if (place == group->members.count || !member->waits)
		return false;
	if (group->leader >= 0) {
		contents->calls->unwanted(contents, ndx);
		return true;
	}
	struct task *task = new_late_task(receiver, member);

	group->leader = (int64_t)place;
	member->waits = false;
	vec_push(&receiver->leading, task);
	if (task->dir->fd >= 0 || receiver->dest.dry_run)
		dest_process_entry(task, member->index, TURN_LEADS);
	else
		contents->calls->unwanted(contents, ndx);
	return true;
}

bool receiver_await_leaders(struct receiver *receiver)
{
	size_t kept = 0;

	for (size_t i = 0; i < receiver->leading.count; i++) {
		struct task *task = receiver->leading.items[i];

		if (pool_state(receiver->pool, task) == TASK_DONE)
			receiver_handle_events(receiver, task);
		if (pool_state(receiver->pool, task) == TASK_DONE)
			task_free(receiver, task);
		else
			receiver->leading.items[kept++] = task;
	}
	receiver->leading.count = kept;
	return kept;
}

/* --- waiting for a peer or a batch --- */

bool receiver_must_decide(struct receiver *receiver)
{
	struct contents *contents = receiver->dest.contents;
	int32_t ndx;

	if (!contents->is_replay || atomic_load(&receiver->pool->submitted)
	    || contents->calls->stands_still(contents, &ndx) != STILL_DECIDES)
		return false;
	return !lead_awaited(receiver, ndx);
}

int receiver_poll_ms(const struct receiver *receiver)
{
	return receiver->dest.contents->is_replay ? REPLAY_POLL_MS : POLL_MS;
}

/* Wait for what a peer owes to a task that the main thread processed itself. */
static void await(struct receiver *receiver, struct task *task)
{
	struct contents *contents = receiver->dest.contents;

	if (contents->is_remote)
		contents->calls->flush(contents);
	while (contents->is_remote && pool_wait(receiver->pool, task, receiver_poll_ms(receiver)) == TASK_RUNNING) {
		receiver_stop_check(receiver);
		receiver_give_room(receiver);
		contents->calls->tick(contents);
		if (receiver_must_decide(receiver))
			receiver_decide_rest(receiver, task);
	}
}

/* --- links of a task --- */

/* Nobody leads any more: this member is brought up to date like a single file. */
static void lead_instead(struct receiver *receiver, struct task *task, uint32_t index)
{
	dest_process_entry(task, index, TURN_LEADS);
	do {
		await(receiver, task);
		receiver_handle_events(receiver, task);
	} while (pool_state(receiver->pool, task) != TASK_DONE);
}

static void with_late_task(struct receiver *receiver, const struct link_member *member, struct link_group *group)
{
	struct task *task = new_late_task(receiver, member);

	if (!(task->entries->items[member->index].flags & ENTRY_DUPLICATE) && (task->dir->fd >= 0 || receiver->dest.dry_run)) {
		if (group->done)
			link_in_task(receiver, task, member->index, group, member - group->members.items < group->leader);
		else
			lead_instead(receiver, task, member->index);
	}
	task_free(receiver, task);
}

void receiver_link_event(struct receiver *receiver, struct task *task, uint32_t index)
{
	struct link_group *group = link_group_of(receiver, task->entries, &task->entries->items[index]);

	/* Such a member is linked when its leader turns out to be current, or later. */
	if (receiver_batch_leads(receiver)
	    || (receiver->loads_all && group->leader >= 0 && task->marks[index - task->first] == MARK_EARLY_LINK))
		return;
	if (group->done && (group->was_current || !receiver->loads_all)) {
		link_in_task(receiver, task, index, group, false);
	} else if (!receiver->loads_all) {
		/* The leader came to nothing. */
		lead_instead(receiver, task, index);
	}
}

/* The leader at `index` has been processed: flags as reported, or failed. */
static void leader_done(struct receiver *receiver, struct task *task, uint32_t index, uint32_t flags, bool failed)
{
	const struct entry *entry = &task->entries->items[index];
	struct link_group *group;

	if (!receiver->dest.options->hard_links || !link_is_member(entry))
		return;
	group = link_group_of(receiver, task->entries, entry);
	/* What was left out is nothing to link to. */
	if (group->done || (flags & ITEM_MATCHED && !(flags & ITEM_LOCAL_CHANGE)))
		return;
	if (!failed) {
		struct strbuf path = STRBUF_INIT;

		flist_entry_path(receiver->dest.list, task->node, entry, &path);
		group->done = true;
		free(group->path);
		if (receiver->dest.single_name && !task->node)
			group->path = xstrdup(receiver->dest.single_name);
		else
			group->path = xstrdup(strbuf_text(&path) + strspn(strbuf_text(&path), "/"));
		strbuf_free(&path);
	} else if (receiver_batch_leads(receiver)) {
		group->leader = -1;
	}
	/* A group that is waiting for the end already is not put there twice. */
	if (!receiver->loads_all || group->members.count < 2 || group->failed)
		return;
	/* Everything else is there when it is reported. */
	group->was_current = !failed && !(flags & ITEM_TRANSFER);
	group->failed = failed;
	if (!group->was_current) {
		vec_push(&receiver->late_groups, group);
		return;
	}
	/* The members before the leader had to wait for it. */
	for (int64_t i = group->leader; i-- > 0;)
		if (!group->members.items[i].skipped)
			with_late_task(receiver, &group->members.items[i], group);
}

void receiver_handle_events(struct receiver *receiver, struct task *task)
{
	struct events events;

	task_take_events(task, false, &events);
	if (receiver->dest.contents->is_remote && events.list.count > 1)
		events_order(&events);
	for (size_t i = 0; i < events.list.count; i++) {
		const struct event *event = &events.list.items[i];

		switch (event->kind) {
		case EVENT_ITEM:
			report_item(receiver->report, task->node, &task->entries->items[event->index], event, NULL,
				    task->first_position + event->index);
			if (!event->is_attempt)
				leader_done(receiver, task, event->index, event->flags, false);
			break;
		case EVENT_DIR:
			report_directory(receiver, task, event);
			break;
		case EVENT_TEXT:
			log_text(event);
			break;
		case EVENT_SOURCE_FAILED:
			log_source_failure(receiver, task, event);
			leader_done(receiver, task, event->index, 0, true);
			break;
		case EVENT_FAILED:
			leader_done(receiver, task, event->index, 0, true);
			break;
		case EVENT_AWAITED:
		case EVENT_NOTHING:
			break;
		case EVENT_LINK:
			if (receiver->dest.contents->is_remote)
				vec_push(&task->links, event->index);
			else
				receiver_link_event(receiver, task, event->index);
			break;
		case EVENT_REDO:
			redo_entry(receiver, task, event->index);
			break;
		case EVENT_DELETE_ARGUMENT:
			receiver_delete_argument(receiver, task, event->index);
			break;
		}
		free(event->text);
	}
	vec_free(&events.list);
}

/* --- links at the end --- */

void receiver_links_finish(struct receiver *receiver)
{
	/* What the batch has come to an end without fails, one member after the other. */
	for (size_t i = 0; receiver_batch_leads(receiver) && i < receiver->groups.count; i++) {
		struct link_group *group = receiver->groups.items[i];

		for (size_t m = group->members.count; m-- > 0;)
			if (group->members.items[m].waits && (int64_t)m != group->leader)
				with_late_task(receiver, &group->members.items[m], group);
	}
	if (!receiver->loads_all || !receiver->dest.options->hard_links)
		return;
	/* A group whose leader was never heard of again failed as well. */
	for (size_t i = 0; i < receiver->groups.count; i++) {
		struct link_group *group = receiver->groups.items[i];

		if (group->members.count > 1 && !group->done && !group->failed) {
			group->failed = true;
			vec_push(&receiver->late_groups, group);
		}
	}
	for (size_t i = 0; i < receiver->late_groups.count; i++) {
		struct link_group *group = receiver->late_groups.items[i];

		/* Content that only goes into a batch leads nobody yet: whoever replays it links. */
		if (group->done && receiver->dest.options->only_write_batch && !receiver->dest.options->dry_run)
			continue;
		for (size_t m = group->members.count; m-- > 0;) {
			const struct link_member *member = &group->members.items[m];

			if ((int64_t)m != group->leader && !member->skipped && (group->done || !member->left_out))
				with_late_task(receiver, member, group);
		}
	}
	receiver->late_groups.count = 0;
}
