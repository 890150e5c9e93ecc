/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Hard links (-H). The members of a group are one file: one of them, the leader, is brought up to date like any other file,
 * the others become links to it.
 *
 * With the whole list at hand the leader is the first member that the destination has, else the last one of the group; links
 * to a leader that was up to date are made when the walk comes by, links to one that was written when everything else is
 * done, last member first (doc/protocol/03-transfer.md section 11.1). Without it (attr trees that nobody watches) the first
 * member leads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dest/alternate.h"
#include "dest/apply.h"
#include "dest/attributes.h"
#include "dest/backup.h"
#include "dest/basis.h"
#include "dest/contents.h"
#include "dest/events.h"
#include "dest/file.h"
#include "dest/paths.h"
#include "dest/seen.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "fs/temp.h"
#include "receiver/debug.h"
#include "receiver/delete.h"
#include "receiver/link.h"
#include "receiver/report.h"
#include "receiver/run.h"
#include "wire/request.h"

bool link_is_member(const struct entry *entry)
{
	return entry->flags & ENTRY_HARD_LINKED && !(entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)) && !entry_is_dir(entry);
}

struct link_group *link_group_of(struct receiver *receiver, const struct entries *entries, const struct entry *entry)
{
	const struct entry_side *side = entry_side_of(entries, entry);
	bool inserted;
	uint64_t *value = hashmap_put(&receiver->link_map, side->dev, side->ino, receiver->groups.count + 1, &inserted);

	if (inserted) {
		struct link_group *group = xcalloc(1, sizeof *group);

		budget_take(session_budget(&receiver->session), sizeof *group + 2 * sizeof(struct hashmap_slot), "hard links");
		group->leader = -1;
		vec_push(&receiver->groups, group);
	}
	return receiver->groups.items[*value - 1];
}

void receiver_links_add(struct receiver *receiver, int32_t node)
{
	struct entries *entries = flist_dir(receiver->dest.list, node)->entries;

	for (uint32_t i = 0; receiver->dest.options->hard_links && i < entries->count; i++) {
		struct link_member member = { .node = node, .index = i };

		if (link_is_member(&entries->items[i])) {
			struct link_group *group = link_group_of(receiver, entries, &entries->items[i]);

			budget_take(session_budget(&receiver->session), 2 * sizeof member, "hard links");
			vec_push(&group->members, member);
		}
	}
}

static int compare_members(const void *a_void, const void *b_void, void *receiver)
{
	const struct link_member *a = a_void, *b = b_void;
	struct flist *list = ((struct receiver *)receiver)->dest.list;
	int32_t a_ndx = flist_ndx_of(list, a->node, &flist_dir(list, a->node)->entries->items[a->index]);
	int32_t b_ndx = flist_ndx_of(list, b->node, &flist_dir(list, b->node)->entries->items[b->index]);

	return (a_ndx > b_ndx) - (a_ndx < b_ndx);
}

void receiver_links_order(struct receiver *receiver)
{
	for (size_t i = 0; i < receiver->groups.count; i++) {
		struct link_group *group = receiver->groups.items[i];

		if (group->members.count)
			qsort_r(group->members.items, group->members.count, sizeof *group->members.items, compare_members,
				receiver);
	}
}

bool receiver_batch_leads(const struct receiver *receiver)
{
	return receiver->dest.options->hard_links && receiver->dest.contents->is_replay && !receiver->loads_all;
}

bool receiver_link_is_open(struct receiver *receiver, const struct entries *entries, const struct entry *entry)
{
	return receiver_batch_leads(receiver) && link_is_member(entry) && !link_group_of(receiver, entries, entry)->done;
}

/* Does this member lead, or fend for itself? Members come in list order. */
static bool decide_member(struct receiver *receiver, struct task *task, struct link_group *group, uint32_t index)
{
	size_t place = group->visited++;
	/* May the destination or an alternate one have it already? */
	bool has_something = receiver->dest.alternates || (!task->dir->fresh && task->dir->fd >= 0), is_last;
	enum candidate candidate = receiver->dest.options->existing ? CANDIDATE_SKIPPED : CANDIDATE_NOT;

	if (receiver->loads_all && group->members.count == 1)
		return true;
	if (group->leader >= 0 && !receiver->dest.options->existing && !receiver->dest.options->ignore_existing)
		return false;
	if (!receiver->loads_all && !receiver->dest.contents->is_remote) {
		group->leader = 0;
		return place == 0;
	}
	if (has_something)
		candidate = dest_leader_candidate(task, index);
	if (candidate == CANDIDATE_SKIPPED && receiver->loads_all)
		group->members.items[place].skipped = true;
	if (candidate == CANDIDATE_SKIPPED)
		return true;
	if (group->leader >= 0)
		return false;
	is_last = receiver->loads_all ? place + 1 == group->members.count : index == group->last_here;
	if (candidate == CANDIDATE_LEFT_OUT) {
		if (receiver->loads_all)
			group->members.items[place].left_out = true;
		return true;
	}
	/* What has no content is made at the first name, whatever there is at the others. */
	bool leads = candidate == CANDIDATE_LEADS || !entry_is_regular(&task->entries->items[index]);

	/* Of a batch, the writer has chosen whose content is in it. */
	if (!receiver_batch_leads(receiver))
		leads |= candidate == CANDIDATE_REQUESTS || is_last;
	if (leads)
		group->leader = (int64_t)place;
	return leads;
}

void receiver_links_mark(struct receiver *receiver, struct task *task)
{
	if (!receiver->dest.options->hard_links)
		return;
	/* A peer sends further members later: the last one of this task leads, as if there were no more. */
	for (uint32_t i = task->first; receiver->dest.contents->is_remote && !receiver->loads_all && i < task->last; i++)
		if (link_is_member(&task->entries->items[i]))
			link_group_of(receiver, task->entries, &task->entries->items[i])->last_here = i;
	for (uint32_t i = task->first; i < task->last; i++) {
		const struct entry *entry = &task->entries->items[i];
		struct link_group *group;

		if (!link_is_member(entry))
			continue;
		if (!task->marks)
			task->marks = xcalloc(task->last - task->first, 1);
		group = link_group_of(receiver, task->entries, entry);
		size_t place = group->visited;

		if (decide_member(receiver, task, group, i))
			continue;
		task->marks[i - task->first] = group->leader < 0 ? MARK_EARLY_LINK : MARK_LINK;
		if (receiver_batch_leads(receiver))
			group->members.items[place].waits = true;
	}
	dest_leave_dirs(task);
}

/* --- making links --- */

/* One link to be made. */
struct link_job {
	struct receiver *receiver;
	const struct task *task; /* holds its directory */
	const struct entry *entry;
	uint32_t index;
	const char *name;
	struct link_group *group;
	struct decide_dest removed; /* a directory that was in the way */
	bool had_to_wait;           /* for the leader to be found */
};

static const char *leaf_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int link_object(struct link_job *job, int leader_fd, bool replaces)
{
	const char *leaf = leaf_of(job->group->path);
	const struct dest_dir *dir = job->task->dir;
	const struct backup_of of = { &job->receiver->dest, NULL, "generator", dir->fd, dir->path, job->name };
	struct fs_temp temp;

	if (!replaces)
		return fs_link_at(leader_fd, leaf, dir->fd, job->name);
	if (!dest_back_up(&of, BACKUP_LINK) || fs_temp_link(&temp, dir->fd, job->name, leader_fd, leaf) < 0)
		return -1;
	return fs_temp_commit(&temp, job->name);
}

static void report_link(struct link_job *job, uint32_t flags, const char *target)
{
	struct contents *contents = job->receiver->dest.contents;
	struct event event = { .kind = EVENT_ITEM, .index = job->index, .touched = false };

	/* Another object's time has come where no times are kept. */
	if (target && !(flags & (ITEM_IS_NEW | ITEM_MATCHED)) && !decide_keeps_time(job->receiver->dest.options, job->entry))
		flags |= ITEM_REPORT_TIME;
	event.flags = flags;
	if (flags & ITEM_IS_NEW)
		kind_count(&job->receiver->stats.created, job->entry->mode);
	if (job->receiver->dest.notifies_items)
		contents->calls->notify_item(contents, job->task->node, job->entry, flags, target ? target : "");
	report_item(job->receiver->report, job->task->node, job->entry, &event, target, 0);
	if (contents->is_remote)
		contents->calls->in_place(contents, job->task->node, job->entry, false);
}

static void make_link(struct link_job *job)
{
	struct receiver *receiver = job->receiver;
	const struct entries *entries = flist_dir(receiver->dest.list, job->task->node)->entries;
	struct decide_dest dest = { .exists = false }, old;
	const char *leaf = leaf_of(job->group->path);
	char *parent = xstrndup(job->group->path, leaf == job->group->path ? 0 : (size_t)(leaf - 1 - job->group->path));
	int leader_fd = receiver->dest.top.fd < 0 ? -1 : dest_open_dir(&receiver->dest, parent, false);
	struct fs_stat leader;
	struct strbuf path = STRBUF_INIT;
	struct wanted wanted;
	uint32_t flags;
	bool is_compared, has_leader = leader_fd >= 0 && fs_lstat_at(leader_fd, leaf, &leader) == 0;

	free(parent);
	dest.exists = job->task->dir->fd >= 0 && dest_lstat_at(&receiver->dest, job->task->dir->fd, job->name, &dest.st) == 0;
	old = job->removed.exists ? job->removed : dest;
	/* What is in the way of content that may be sent is removed before a leader is found. */
	is_compared = old.exists
		      && (!job->had_to_wait || receiver->dest.dry_run || !entry_is_regular(job->entry) || S_ISREG(old.st.mode));
	old.exists = is_compared;
	/* An alternate destination may have a member that is not here; of what has no content only a link comes from there. */
	if (job->removed.exists || dest.exists || !receiver->dest.alternates
	    || receiver->dest.alternates->kind == ALTERNATE_COMPARE
	    || (receiver->dest.alternates->kind != ALTERNATE_LINK && !entry_is_regular(job->entry))) {
		/* With what is there, if that counts. */
		dest_want_attributes(&receiver->dest, job->task->node, job->entry, &wanted);
		flags = decide_item_flags(&receiver->dest.rules, entries, job->entry, &old,
					  ITEM_LOCAL_CHANGE | ITEM_XNAME_FOLLOWS)
			| wanted_compare(&receiver->dest, &wanted, job->entry->mode, job->task->dir->fd,
					 is_compared ? job->name : NULL);
		wanted_free(&wanted);
	} else {
		struct decide_alternate found = { .level = ALTERNATE_NONE };

		flist_entry_path(receiver->dest.list, job->task->node, job->entry, &path);
		dest_find_alternate_link(&receiver->dest, entries, job->entry,
					 strbuf_text(&path) + strspn(strbuf_text(&path), "/"), job->group->path,
					 has_leader ? &leader : NULL, &found);
		strbuf_reset(&path);
		flags = decide_item_flags(&receiver->dest.rules, entries, job->entry, &found.dest,
					  ITEM_LOCAL_CHANGE | ITEM_XNAME_FOLLOWS)
			| (found.level == ALTERNATE_SAME ? ITEM_MATCHED : 0);
	}
	if (has_leader && dest.exists && leader.dev == dest.st.dev && leader.ino == dest.st.ino) {
		dest_seen_link(&receiver->dest, job->task->node, job->index, &dest.st);
		report_link(job, flags & ~(uint32_t)ITEM_IS_NEW, NULL);
	} else if (receiver->dest.dry_run || link_object(job, leader_fd, dest.exists) == 0) {
		/* The leader has one name more than before, what it replaced one less. */
		if (has_leader) {
			leader.nlink++;
			dest_seen_change(&receiver->dest, &leader);
		}
		if (dest.exists)
			dest_seen_change(&receiver->dest, &dest.st);
		report_link(job, flags, job->group->path);
	} else {
		int error = errno;
		char *after = xasprintf(" => %s failed", job->group->path);

		flist_entry_path(receiver->dest.list, job->task->node, job->entry, &path);
		dest_complain_path(&receiver->dest, "generator", error, strbuf_text(&path), "link ", after);
		free(after);
	}
	if (leader_fd >= 0)
		close(leader_fd);
	strbuf_free(&path);
}

void link_in_task(struct receiver *receiver, struct task *task, uint32_t index, struct link_group *group, bool had_to_wait)
{
	const struct entry *entry = &task->entries->items[index];
	const char *name = task_name(task, entry);
	struct link_job job = { receiver, task, entry, index, name, group, .had_to_wait = had_to_wait };
	struct decide_dest *old = &job.removed;

	receiver_debug_link(receiver, task, index, group->path);
	old->exists = task->dir->fd >= 0 && fs_lstat_at(task->dir->fd, name, &old->st) == 0 && S_ISDIR(old->st.mode);
	if (old->exists && !receiver_make_room(receiver, task->dir, name, entry))
		return;
	atomic_store(&task->dir->touched, true);
	make_link(&job);
}

void receiver_links_free(struct receiver *receiver)
{
	for (size_t i = 0; i < receiver->groups.count; i++) {
		vec_free(&receiver->groups.items[i]->members);
		free(receiver->groups.items[i]->path);
		free(receiver->groups.items[i]);
	}
	vec_free(&receiver->groups);
	vec_free(&receiver->late_groups);
	vec_free(&receiver->leading);
	hashmap_free(&receiver->link_map);
}
