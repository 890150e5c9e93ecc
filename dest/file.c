/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One file after the other: look at the destination, decide, carry out, note what was done. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attrs/hint.h"
#include "dest/alternate.h"
#include "dest/apply.h"
#include "dest/attributes.h"
#include "dest/backup.h"
#include "dest/basis.h"
#include "dest/contents.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/file.h"
#include "dest/partial.h"
#include "dest/paths.h"
#include "dest/seen.h"
#include "dest/task.h"
#include "dest/write.h"
#include "fs/fake.h"
#include "fs/file.h"
#include "ui/progress.h"
#include "wire/request.h"

/* --- what is there --- */

static bool look_at_destination(struct file_job *job)
{
	struct fs_stat *st = &job->old.st;

	/* In a dry run what was removed to make room is still there. */
	if (job->dir->fresh || job->dir->absent || (job->turn == TURN_HAS_ROOM && job->dest->dry_run))
		return true;
	if (!job->old.exists)
		job->old.exists = dest_lstat_at(job->dest, job->dir->fd, job->name, st) == 0;
	if (job->old.exists && job->dest->options->write_devices && entry_is_regular(job->entry)
	    && (S_ISBLK(st->mode) || S_ISCHR(st->mode))) {
		/* A device that a file is to be written into. Only block devices have an end. */
		int fd = S_ISBLK(st->mode) ? fs_open_at(job->dir->fd, job->name, O_RDONLY, 0) : -1;

		job->old.is_device = true;
		st->mode = S_IFREG | (st->mode & 07777);
		st->size = fd >= 0 ? fs_device_size(fd) : 0;
		fs_close(fd);
	}
	job->looked_at = (struct looked_at){ job->dir->fd, st };
	if (job->old.exists || errno == ENOENT)
		return true;
	return task_complain(job->task, "generator", errno, job->name, "recv_generator: failed to stat ", "");
}

static bool same_content(void *job_void)
{
	struct file_job *job = job_void;
	struct contents *contents = job->dest->contents;
	const struct entry_side *side = entry_side_of(job->task->entries, job->entry);
	uint8_t old[ATTR_FILE_SIZE + 1];
	uint64_t size;
	bool same;
	int fd;

	if (!job->dest->attrs_only)
		return contents->calls->is_same(contents, job);
	/* Does the attr file say the size that the source has? --checksum wants to have read it. */
	if (!job->dest->options->checksum && attr_hint_read(job->looked_at.st, &size))
		return side && side->real_size == size;
	fd = fs_open_at(job->looked_at.dir_fd, job->name, O_RDONLY, 0);
	if (fd < 0)
		return false;
	same = fs_read_full(fd, old, sizeof old) == ATTR_FILE_SIZE && side && attr_file_decode(old) == side->real_size;
	close(fd);
	return same;
}

static bool same_target(void *job_void)
{
	struct file_job *job = job_void;
	char target[PATH_MAX];
	struct fs_stat st;

	/* With --fake-super a real symlink is to become a kept one, which can say whose it is. */
	if (job->dest->is_fake && fs_lstat_at(job->looked_at.dir_fd, job->name, &st) == 0 && S_ISLNK(st.mode))
		return false;
	ssize_t length = (job->dest->is_fake ? fs_fake_readlink_at : fs_readlink_at)(job->looked_at.dir_fd, job->name, target,
										     sizeof target);

	return length >= 0 && !strcmp(target, entry_target(job->task->entries, job->entry));
}

/* --- what is to be done --- */

/* --info=skip2: what would have been done to a file that --ignore-existing leaves alone. A symlink or device that would not
 * have been kept counts as changed, as with stock; a pipe or socket is compared all the same. */
static const char *what_is_left(struct file_job *job)
{
	struct decide_probe probe = { same_content, same_target, job, NULL };
	struct options relaxed = *job->dest->options;
	struct decide_rules rules = job->rules;
	struct decision decision;

	relaxed.ignore_existing = false;
	relaxed.specials = true;
	relaxed.drop_devices = false;
	rules.options = &relaxed;
	if (!decide_same_kind(job->entry, &job->old))
		return " (type change)";
	decide(&rules, job->task->entries, job->entry, &job->old, &probe, &decision);
	if (decision.action == ACTION_COPY || decision.action == ACTION_MAKE || decision.skip == SKIP_NOT_REGULAR)
		return relaxed.checksum ? " (sum change)" : " (file change)";
	return decide_is_significant(decision.item_flags) ? " (attr change)" : " (uptodate)";
}

static void say_skipped(struct file_job *job)
{
	const struct ui_levels *levels = &job->dest->options->levels;
	const char *path = job->dir->path, *name = entry_name(job->task->entries, job->entry), *slash = *path ? "/" : "";
	static const struct { const char *before, *after; } texts[] = {
		[SKIP_NOT_CREATING] = { "not creating new file \"", "\"" }, [SKIP_EXISTS] = { "", " exists" },
		[SKIP_NEWER] = { "", " is newer" }, [SKIP_OVER_MAX] = { "", " is over max-size" },
		[SKIP_UNDER_MIN] = { "", " is under min-size" },
		[SKIP_NOT_REGULAR] = { "skipping non-regular file \"", "\"" },
	};
	int level = job->decision.skip == SKIP_NOT_REGULAR ? levels->info[INFO_NONREG] : levels->info[INFO_SKIP];
	const char *more = level > 1 && job->decision.skip == SKIP_EXISTS ? what_is_left(job) : "";

	if (level > 0)
		task_text(job->task, L_INFO, "%s%s%s%s%s%s", texts[job->decision.skip].before, path, slash, name,
			  texts[job->decision.skip].after, more);
}

static void count_transfer(struct file_job *job)
{
	struct run_stats *counts = job->counts;

	counts->transferred_files++;
	counts->transferred_size += job->entry->size;
	counts->literal += job->copied;
	counts->matched += job->matched;
}

/* An attempt that will be made again is counted and reported like any other. */
void job_note_item(struct file_job *job, bool touched, bool is_attempt)
{
	const struct dest *dest = job->dest;
	struct contents *contents = dest->contents;
	struct run_stats *counts = job->counts;
	uint32_t flags = job->decision.item_flags;
	/* A receiver that has made a file reports the mode that it gave it. */
	bool has_own_mode = dest->shows_receiver && !dest->dry_run && flags & ITEM_TRANSFER;

	if (flags & ITEM_IS_NEW && !is_attempt)
		kind_count(&counts->created, job->entry->mode);
	if (flags & ITEM_TRANSFER)
		count_transfer(job);
	/* The module may want to count it as well. */
	if (flags & ITEM_TRANSFER && !dest->dry_run && dest->module && dest->module->received)
		dest->module->received(dest->module->context);
	if (dest->notifies_items && !job->is_known_to_peer && (!(flags & ITEM_TRANSFER) || dest->options->dry_run))
		contents->calls->notify_item(contents, job->task->node, job->entry, flags, NULL);
	if (!dest->wants_items && !job->task->marks && !(flags & ITEM_TRANSFER && progress_is_asked()))
		return;
	struct event event = {
		.files = counts->transferred_files, .total = counts->transferred_size,
		.kind = EVENT_ITEM, .index = job->index, .flags = flags, .touched = touched,
		.bytes = contents->is_remote ? job->moved : job->copied, .sums = job->sums,
		.mode = has_own_mode ? S_IFREG | decide_mode(&job->rules, job->entry, &job->old) : job->entry->mode,
		.is_attempt = is_attempt,
		.digest_length = job->digest_length,
		.text = job->temp_name,
	};

	job->temp_name = NULL;
	memcpy(event.digest, job->digest, sizeof event.digest);
	job_event(job, &event);
}

void job_tried(struct file_job *job)
{
	job_note_item(job, false, true);
	job->event_place = 0;
}

void job_lost(struct file_job *job)
{
	if (job->decision.item_flags & ITEM_IS_NEW)
		kind_count(&job->counts->created, job->entry->mode);
	/* A sending half has reported it before, and has sent it all. */
	if (!job->dest->contents->is_remote)
		job->copied = job->entry->size;
	if (job->dest->shows_receiver)
		count_transfer(job);
	else
		job_tried(job);
}

void job_show_live(struct file_job *job)
{
	struct task *task = job->task;

	if (!job->dest->options->levels.info[INFO_PROGRESS] || job->dest->attrs_only)
		return;
	atomic_store(&task->live_done, 0);
	atomic_store(&task->live_size, job->entry->size);
	atomic_store(&task->live_flags, job->decision.item_flags);
	atomic_store(&task->live_index, job->index + 1);
}

static void note_in_place(struct file_job *job, bool is_new)
{
	struct contents *contents = job->dest->contents;

	if (contents->is_remote)
		contents->calls->in_place(contents, job->task->node, job->entry, is_new);
}

/* What an alternate destination has is put here, or nothing. */
static void take(struct file_job *job)
{
	const struct backup_of of = { job->dest, job->task, "generator", job->dir->fd, job->dir->path, job->name };
	bool is_regular = entry_is_regular(job->entry), done;

	/* A regular file goes without a trace, as it does with stock. */
	if (job->decision.make_room && job->decision.action != ACTION_TAKE_COPY && !dest_back_up(&of, BACKUP_RENAME))
		return;
	if (job->decision.action == ACTION_LEAVE_OUT) {
		done = !job->old.exists || fs_unlink_at(job->dir->fd, job->name) == 0 || errno == ENOENT;
		if (!done)
			task_complain(job->task, "generator", errno, job->name, "delete_file: unlink ", " failed");
	} else if (job->decision.action == ACTION_TAKE_LINK && job_take_link(job)) {
		done = true;
	} else {
		if (job->decision.action == ACTION_TAKE_LINK)
			job->decision.item_flags &= ~(uint32_t)ITEM_XNAME_FOLLOWS;
		job->decision.action = is_regular ? ACTION_TAKE_COPY : ACTION_MAKE;
		done = is_regular ? job_copy(job) : job_make(job);
		job->copied = 0; /* not from the source */
	}
	if (!done)
		return;
	job_note_item(job, false, false);
	if (is_regular || job->decision.action == ACTION_MAKE)
		note_in_place(job, job->decision.action == ACTION_MAKE);
}

static void note_done(struct file_job *job, bool touched)
{
	job_note_item(job, touched, false);
	note_in_place(job, job->decision.action == ACTION_MAKE && entry_is_symlink(job->entry));
}

void job_change(struct file_job *job)
{
	bool touched = false, done = true;

	if (job->decision.action >= ACTION_LEAVE_OUT) {
		take(job);
		return;
	}
	if (job->decision.action == ACTION_MAKE)
		done = job_make(job);
	else
		touched = job_touch(job, TOUCH_UP_TO_DATE);
	if (job->decision.action == ACTION_ATTRS && entry_is_regular(job->entry))
		dest_partial_drop(job->dest, job->dir, job->name);
	job->untouched = job->decision.action == ACTION_ATTRS && !touched && !job->set_xattrs;
	if (done)
		note_done(job, touched);
}

void job_take_content(struct file_job *job)
{
	job_show_live(job);
	bool done = job_copy(job);

	atomic_store(&job->task->live_index, 0);
	if (done)
		note_done(job, false);
	else if (!job->source_failed)
		job_lost(job);
}

static void carry_out(struct file_job *job)
{
	const struct options *options = job->dest->options;
	struct contents *contents = job->dest->contents;
	bool copies = job->decision.action == ACTION_COPY, has_old_file = job->old.exists && S_ISREG(job->old.st.mode);
	/* Contents are copied here, or the sums of an old one have to be sent. */
	bool may_have_basis = has_old_file || options->fuzzy || options->has_partial_dir || options->alt_dest_dirs.count;
	bool takes_long = job->decision.action >= ACTION_LEAVE_OUT || (copies && options->whole_file <= 0 && may_have_basis);
	bool asks = (copies && !job->dest->attrs_only) || job->wanted.lacks_values;

	if (job->decision.make_room && S_ISDIR(job->old.st.mode)) {
		job->deferred = true;
		/* Only a task on its first way through can stop here; another turn is the main thread's already. */
		if (!job->dest->asks_in_turn || job->turn != TURN_FIRST)
			task_event(job->task, (struct event){ .kind = EVENT_REDO, .index = job->index });
		else if (job->task->is_brief)
			job->task->is_left = true;
		else
			atomic_store(&job->dest->crowded, job->task);
		return;
	}
	if (job->task->is_brief && takes_long) {
		job->task->is_left = job->deferred = true;
		return;
	}
	if (copies && !job->decision.alternate && !has_old_file)
		job_find_fuzzy(job);
	if (job->dest->logs_steps && job->decision.action == ACTION_MAKE)
		dest_debug_node(job);
	/* For a batch, contents are asked for although nothing is done with them here. */
	if (job->dest->dry_run && !(asks && contents->is_remote && options->only_write_batch)) {
		if (job->decision.action == ACTION_MAKE || (copies && !S_ISREG(job->old.st.mode)))
			job_back_up(job, BACKUP_LINK);
		job_note_item(job, (job->decision.item_flags & ~(uint32_t)ITEM_TRANSFER) != 0, false);
		return;
	}
	if (asks)
		contents->calls->request(contents, job);
	else if (copies)
		job_take_content(job);
	else
		job_change(job);
}

int job_compared_object(struct file_job *job, const char **name)
{
	/* What has been made anew in the place of another object has nothing yet, as stock's items say. */
	bool is_made = job->decision.action == ACTION_MAKE && !job->decision.alternate && !job->dest->dry_run;

	*name = is_made || job->decision.item_flags & ITEM_IS_NEW ? NULL : job->name;
	return job->decision.alternate ? dest_alternate_dir(job->task, job->decision.alternate - 1) : job->dir->fd;
}

/* For alternate destinations: ACLs and extended attributes of the object that is looked at. */
static bool same_attributes(void *job_void)
{
	struct file_job *job = job_void;

	return !wanted_compare(job->dest, &job->wanted, job->entry->mode, job->looked_at.dir_fd, job->name);
}

/* What would be done, with everything that is there. */
static void decide_job(struct file_job *job)
{
	const struct decide_probe probe = { same_content, same_target, job, same_attributes };
	const struct alternates *alternates = job->dest->alternates;
	const struct entries *list = job->task->entries;
	struct decide_alternate found;

	decide(&job->rules, list, job->entry, &job->old, &probe, &job->decision);
	if (!alternates || job->decision.action == ACTION_SKIP || job->decision.action == ACTION_DELETE
	    || !decide_wants_alternate(alternates->kind, job->entry, &job->old))
		return;
	/* What takes the place of a directory is made. */
	if (job->turn == TURN_HAS_ROOM && !entry_is_regular(job->entry))
		return;
	job_want_attributes(job);
	job_find_alternate(job, &probe, &found);
	decide_with_alternate(&job->rules, list, job->entry, &job->old, alternates->kind, &found, &job->decision);
}

/* What is no directory has nothing in it that could be looked at, which is said. Symlinks and the like fail when they are made;
 * of what an alternate destination has an event comes when it cannot be taken, or when other content has come for it. */
static bool is_cut_off(struct file_job *job)
{
	const int obstacle = job->dir->obstacle;

	if (!obstacle || obstacle == ENOENT || !entry_is_regular(job->entry))
		return false;
	if (job->dest->alternates)
		decide_job(job);
	if (job->decision.action == ACTION_TAKE_COPY || job->decision.action == ACTION_TAKE_LINK) {
		bool in_place = job->dest->options->inplace;

		if (job->dest->dry_run)
			return false;
		task_complain(job->task, "generator", obstacle, job->name, in_place ? "unlink " : "mkstemp ",
			      in_place ? "" : " failed");
	} else if (job->decision.action == ACTION_LEAVE_OUT || job->decision.alternate) {
		return false;
	}
	task_complain(job->task, "generator", obstacle, job->name, "recv_generator: failed to stat ", "");
	return true;
}

static void perform(struct file_job *job)
{
	const struct options *options = job->dest->options;

	if (entry_is_symlink(job->entry) && options->safe_links && options->links) {
		struct strbuf path = dest_path_of(job->dir->path, entry_name(job->task->entries, job->entry));
		const char *target = entry_target(job->task->entries, job->entry);
		bool is_unsafe = fs_symlink_is_unsafe(target, strbuf_text(&path));

		if (is_unsafe && options->levels.info[INFO_NAME])
			task_text(job->task, L_INFO, "ignoring unsafe symlink \"%s\" -> \"%s\"", strbuf_text(&path), target);
		strbuf_free(&path);
		if (is_unsafe)
			return;
	}
	decide_job(job);
	const enum action action = job->decision.action;
	bool is_made = action == ACTION_COPY || action == ACTION_MAKE || action == ACTION_TAKE_COPY;
	bool has_attributes = is_made || action == ACTION_ATTRS;

	if ((is_made || action == ACTION_LEAVE_OUT || action == ACTION_TAKE_LINK) && !job->dest->dry_run) {
		atomic_store(&job->dir->touched, true);
		job->rules.umask = dest_dir_umask(job->dest, job->dir);
	}
	if (has_attributes && !job_want_attributes(job)) {
		job_source_failed(job, errno, SOURCE_ATTRIBUTES);
		return;
	}
	if (has_attributes) {
		const char *name;
		int dir_fd = job_compared_object(job, &name);
		mode_t mode = decide_mode(&job->rules, job->entry, &job->old);

		job->decision.item_flags |= wanted_compare(job->dest, &job->wanted, mode, dir_fd, name);
	}
	/* Other kinds may need more than attributes: targets, contents of directories. */
	job->untouched = action == ACTION_SKIP && S_ISREG(job->old.st.mode);
	if (action == ACTION_SKIP)
		say_skipped(job);
	else if (action == ACTION_DELETE)
		task_event(job->task, (struct event){ .kind = EVENT_DELETE_ARGUMENT, .index = job->index });
	else if (action != ACTION_NONE)
		carry_out(job);
}

static void start_job(struct file_job *job, struct task *task, uint32_t index)
{
	*job = (struct file_job){
		.task = task,
		.dest = task->dest,
		.dir = task->dir,
		.entry = &task->entries->items[index],
		.index = index,
		.rules = task->dest->rules,
		.counts = &task->counts,
	};
	job->name = task_name(task, job->entry);
}

void dest_process_entry(struct task *task, uint32_t index, enum turn turn)
{
	const struct entry *entry = &task->entries->items[index];
	const struct dest_dir *dir = task->dir;
	struct decide_dest old = { .exists = false };
	struct options relaxed;
	struct file_job job;

	if (task->dest->logs_steps && turn == TURN_FIRST)
		dest_debug_entry(task, index);
	if (entry_is_dir(entry) || entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN))
		return;
	if (turn == TURN_FIRST && task->marks && task->marks[index - task->first] != MARK_PLAIN) {
		task_event(task, (struct event){ .kind = EVENT_LINK, .index = index });
		return;
	}
	/* Most files of a run that repeats another are as they should be, which is found out with no more than it takes. */
	if (turn == TURN_FIRST && task->dest->passes_settled && !task->marks && !dir->fresh && !dir->absent) {
		old.exists = fs_lstat_at(dir->fd, task_name(task, entry), &old.st) == 0;
		if (old.exists && decide_is_settled(&task->dest->rules, entry, &old.st))
			return;
	}
	start_job(&job, task, index);
	job.old = old;
	job.turn = turn;
	if (turn == TURN_HAS_ROOM || (job.dir->obstacle && job.dir->obstacle != ENOENT)) {
		/* What was there counts as there for --existing, although it is gone; so does what cannot be looked at. */
		relaxed = *job.rules.options;
		relaxed.existing = false;
		job.rules.options = &relaxed;
	}
	if (!is_cut_off(&job) && look_at_destination(&job))
		perform(&job);
	if (!job.deferred && task->dest->contents->is_remote)
		task->dest->contents->calls->decided(task->dest->contents, &job);
	dest_seen_file(&job);
	free(job.fuzzy);
	free(job.temp_name);
	wanted_free(&job.wanted);
}

enum candidate dest_leader_candidate(struct task *task, uint32_t index)
{
	struct file_job job;

	start_job(&job, task, index);
	if (is_cut_off(&job) || !look_at_destination(&job))
		return CANDIDATE_NOT;
	/* Such a member of a group of hard links is looked at no further than any other file. */
	if (job.old.exists ? job.dest->options->ignore_existing : job.dest->options->existing)
		return CANDIDATE_SKIPPED;
	if (!job.dest->alternates && !job.old.exists)
		return CANDIDATE_NOT;
	decide_job(&job);
	if (job.decision.action == ACTION_LEAVE_OUT)
		return CANDIDATE_LEFT_OUT;
	if (!job.decision.alternate && (!job.old.exists || job.decision.make_room))
		return CANDIDATE_NOT;
	if (job.decision.action == ACTION_COPY)
		return CANDIDATE_REQUESTS;
	return job.decision.alternate || job.decision.action == ACTION_ATTRS ? CANDIDATE_LEADS : CANDIDATE_NOT;
}
