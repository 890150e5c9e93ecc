/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Destination directories: made or opened before their contents are looked at, given their final attributes after the last
 * change inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/alternate.h"
#include "dest/apply.h"
#include "dest/attributes.h"
#include "dest/backup.h"
#include "dest/events.h"
#include "dest/paths.h"
#include "dest/seen.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "fs/operator.h"
#include "lib/exit.h"
#include "receiver/delete.h"
#include "receiver/dir.h"
#include "receiver/run.h"
#include "wire/request.h"

#define USUAL_PATH 255 /* bytes that most paths do not have */

/* --- making and opening --- */

/* --no-implied-dirs: a parent that the arguments only imply, or that is not even listed, is made where it is missing and not
 * looked at where it is not. */
static bool is_unwanted_parent(const struct receiver *receiver, const struct entry *entry)
{
	return entry->flags & ENTRY_HIDDEN || (!receiver->dest.options->implied_dirs && entry_is_implied(entry));
}

/* Below the destination, as --keep-dirlinks goes: no link leads out of it, unless the operator says that any may. */
static struct fs_root linked_root(const struct receiver *receiver)
{
	struct fs_root root = receiver->dest.top;

	root.trusting = receiver->dest.options->insecure_links;
	return root;
}

/* What --no-implied-dirs leaves alone serves if it is a directory, or leads to one inside the destination; else the errno of
 * everything directly below it. */
static int find_obstacle(const struct receiver *receiver, struct dest_dir *dir, struct fs_stat *st)
{
	struct fs_root root = linked_root(receiver);
	struct fs_stat behind = *st;

	if (S_ISLNK(st->mode) && fs_stat_follow(&root, dir->path, &behind) < 0) {
		int error = errno;

		/* A link to nothing counts as nothing until something is to be made there. */
		root.trusting = true;
		return receiver->dest.dry_run && fs_stat_follow(&root, dir->path, &behind) < 0 ? ENOENT : error;
	}
	if (!S_ISDIR(behind.mode))
		return ENOTDIR;
	dir->is_link = S_ISLNK(st->mode);
	*st = behind;
	return 0;
}

static int open_directory(struct receiver *receiver, struct dest_dir *parent, struct dest_dir *dir, const char *name,
			  const struct fs_stat *st)
{
	struct fs_root root = linked_root(receiver);
	int fd = dir->is_link ? fs_open(&root, dir->path, O_RDONLY | O_DIRECTORY | FS_FOLLOW, 0)
			      : fs_open_at(parent->fd, name, O_RDONLY | O_DIRECTORY, 0);

	if (fd >= 0 && dest_enters_links(&receiver->dest) && receiver->dest.attrs_only) {
		const struct entry *first = &flist_dir(receiver->dest.list, 0)->entries->items[0];
		struct strbuf path = STRBUF_INIT;

		if (fs_is_inside(fd, flist_entry_source(receiver->dest.list, 0, first, &path)->attr_root.fd))
			die(EXIT_FILESELECT,
			    "rsync: a symlink in the attr tree leads into the source: refusing to write there");
		strbuf_free(&path);
	}
	if (fd >= 0 || errno != EACCES || dir->is_link)
		return fd;
	if (!receiver->dest.dry_run && fs_chmod_at(parent->fd, name, (st->mode & PERMISSION_BITS) | 0700) == 0)
		return fs_open_at(parent->fd, name, O_RDONLY | O_DIRECTORY, 0);
	return fs_open_at(parent->fd, name, O_PATH | O_DIRECTORY, 0);
}

/* In the order of the list: files of earlier directories may be still to be spoken of. */
static void skip_contents(struct task *task, int error, const char *before)
{
	task_complain(task, "generator", error, "", before, " failed");
	task_text(task, L_ERROR, "*** Skipping any contents from this failed directory ***");
	task->dir->skipped = true;
}

/* The top is called ".". */
static void complain(struct receiver *receiver, const struct dest_dir *dir, int error, const char *before, const char *after)
{
	dest_complain_path(&receiver->dest, "generator", error, *dir->path ? dir->path : ".", before, after);
}

/* ACLs and extended attributes: what has not come yet is asked for. True: the mode has to be set again. */
static bool apply_attributes(struct dest_dir *dir, struct task *task, struct wanted *wanted)
{
	const struct attr_subject subject = {
		.task = task,
		.name = ".",
		.old_name = ".",
		.alternate = dir->alternate,
		.role = "generator",
	};
	struct fs_held held;
	bool has_acl;

	if (!(dir->fresh ? wanted->access || wanted->xattrs : dir->differs) || !subject_hold(&subject, dir->fd, ".", &held))
		return false;
	if (wanted->lacks_values)
		task->dir_wanted = *wanted;
	else if (dir->fresh || dir->differs & ITEM_REPORT_XATTR)
		apply_xattrs(&subject, wanted, &held);
	has_acl = apply_acls(&subject, wanted, &held, dir->entry.mode, &dir->mode);
	fs_release(&held);
	/* What is made here from now on may inherit another ACL, which rules can make an attribute like others. */
	if (wanted->defaults || wanted->xattrs)
		atomic_store(&dir->acl_state, ACL_UNKNOWN);
	return has_acl;
}

/* A new directory is compared with that of an alternate destination, as its item is; else with nothing. */
static uint32_t compare_new(const struct receiver *receiver, const struct dest_dir *dir, struct wanted *wanted)
{
	const struct fs_root *root = dir->alternate ? &receiver->dest.alternates->roots[dir->alternate - 1] : NULL;
	int fd = root ? fs_opendir(root, *dir->path ? dir->path : ".") : -1;
	uint32_t flags = wanted_compare(&receiver->dest, wanted, dir->entry.mode, fd, fd < 0 ? NULL : ".");

	if (fd >= 0)
		close(fd);
	return flags;
}

/* Owner and mode of now; times and what would lock us out wait until the end. */
static void apply_to_directory(struct receiver *receiver, struct dest_dir *dir, struct task *task, const struct fs_stat *st,
			       struct wanted *wanted)
{
	if (receiver->dest.is_fake) {
		/* Nothing of what is kept locks us out. */
		const struct attr_subject subject = { .task = task, .name = ".", .old_name = ".", .role = "generator" };
		struct fs_held held;

		if (subject_hold(&subject, dir->fd, ".", &held)) {
			dir_fake_store(&receiver->dest, dir, &subject, &held);
			fs_release(&held);
			apply_attributes(dir, task, wanted);
		}
		return;
	}
	const struct decide_rules *rules = &receiver->dest.rules;
	uid_t uid;
	gid_t gid;
	unsigned impossible = decide_owner(rules, &dir->entry, st->uid, st->gid, &uid, &gid);

	if (impossible & OWNER_UID_IMPOSSIBLE)
		dest_complain_path(&receiver->dest, NULL, 0, dir->path, OWNER_UID_TEXT, "");
	if (impossible & OWNER_GID_IMPOSSIBLE)
		dest_complain_path(&receiver->dest, NULL, 0, dir->path, OWNER_GID_TEXT, "");
	bool gives = uid != (uid_t)-1 || gid != (gid_t)-1;

	dir->subject |= gives;
	if (gives && receiver->dest.logs_steps)
		dest_debug_owner(task, *dir->path ? "" : ".", st->uid, uid, st->gid, gid);
	if (gives && fs_chown_at(dir->fd, ".", uid, gid) < 0) {
		complain(receiver, dir, errno, uid == (uid_t)-1 ? "chgrp " : "chown ", " failed");
		return;
	}
	bool has_acl = apply_attributes(dir, task, wanted);

	if (!rules->am_root && (dir->mode & 0700) != 0700) {
		dir->mode_pending = true;
		if ((st->mode & 0700) != 0700 && fs_chmod_at(dir->fd, ".", (st->mode & PERMISSION_BITS) | 0700) < 0)
			complain(receiver, dir, errno, "failed to modify permissions on ", "");
	} else if ((has_acl || dir->mode != (st->mode & PERMISSION_BITS)) && fs_chmod_at(dir->fd, ".", dir->mode) < 0) {
		complain(receiver, dir, errno, "failed to set permissions on ", "");
	}
}

static void make_directory(struct receiver *receiver, struct dest_dir *parent, struct dest_dir *dir, const char *name,
			   struct task *task, struct wanted *wanted)
{
	static const struct decide_dest nothing;
	struct decide_rules rules = receiver->dest.rules;
	struct fs_stat st;

	rules.umask = dest_dir_umask(&receiver->dest, parent);
	atomic_store(&parent->touched, true);
	atomic_store(&dir->touched, true);
	/* A default ACL is inherited. */
	atomic_store(&dir->acl_umask, atomic_load(&parent->acl_umask));
	atomic_store(&dir->acl_state, atomic_load(&parent->acl_state));
	dir->fresh = true;
	atomic_store(&dir->has_no_partial, true);
	dir->absent = receiver->dest.dry_run;
	dest_seen_enter(&receiver->dest, dir->node, NULL);
	dir->mode = decide_mode(&rules, &dir->entry, &nothing);
	dir->subject = (dir->mode & 0777 & ~rules.umask) != dir->mode;
	dir->differs = compare_new(receiver, dir, wanted);
	if (receiver->dest.dry_run)
		return;
	if (fs_mkdir_at(parent->fd, name, dir->mode & 0700) < 0) {
		skip_contents(task, errno, "recv_generator: mkdir ");
		return;
	}
	dir->fd = fs_open_at(parent->fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (dir->fd < 0 && errno == EACCES && fs_chmod_at(parent->fd, name, 0700) == 0)
		dir->fd = fs_open_at(parent->fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (dir->fd < 0 || fs_stat_at_fd(dir->fd, &st) < 0) {
		skip_contents(task, errno, "recv_generator: opendir ");
		return;
	}
	if (!receiver->dest.options->perms)
		dir->mode |= st.mode & S_ISGID;
	dir->has_entry = true;
	apply_to_directory(receiver, dir, task, &st, wanted);
}

static void note_time(struct receiver *receiver, struct dest_dir *dir, const struct decide_dest *dest)
{
	dir->old_mtime = dest->st.mtime;
	dir->old_mtime_nsec = dest->st.mtime_nsec;
	dir->time_agrees = !decide_keeps_time(receiver->dest.options, &dir->entry)
			   || decide_same_time(receiver->dest.options->modify_window, dir->old_mtime, dir->old_mtime_nsec,
					       dir->entry.mtime, dir->entry.mtime_nsec);
}

static void enter_directory(struct receiver *receiver, struct dest_dir *parent, struct dest_dir *dir, const char *name,
			    const struct decide_dest *dest, struct task *task, struct wanted *wanted)
{
	dir->mode = decide_mode(&receiver->dest.rules, &dir->entry, dest);
	note_time(receiver, dir, dest);
	dir->fd = open_directory(receiver, parent, dir, name, &dest->st);
	if (dir->fd < 0) {
		skip_contents(task, errno, "recv_generator: opendir ");
		return;
	}
	dir->has_entry = true;
	dir->differs = wanted_compare(&receiver->dest, wanted, dir->entry.mode, dir->fd, ".");
	dest_seen_enter(&receiver->dest, dir->node, &dest->st);
	if (!receiver->dest.dry_run && !is_unwanted_parent(receiver, &dir->entry))
		apply_to_directory(receiver, dir, task, &dest->st, wanted);
}

static void say_skipped(struct task *task, const struct decision *decision)
{
	const char *path = *task->dir->path ? task->dir->path : ".";

	if (task->dest->options->levels.info[INFO_SKIP] == 0)
		return;
	if (decision->skip == SKIP_NOT_CREATING)
		task_text(task, L_INFO, "not creating new directory \"%s\"", path);
	else if (decision->skip == SKIP_EXISTS)
		task_text(task, L_INFO, "%s exists%s", path,
			  task->dest->options->levels.info[INFO_SKIP] > 1 ? " (type change)" : "");
}

static void count_directory(struct task *task, uint32_t flags)
{
	/* Not quite the one of the alternate destination. */
	if (flags & (ITEM_REPORT_ACL | ITEM_REPORT_XATTR))
		flags &= ~(uint32_t)ITEM_MATCHED;
	if (flags & ITEM_IS_NEW)
		kind_count(&task->counts.created, S_IFDIR);
	task->notifies_dir = task->dest->notifies_items;
	task->dir_flags = flags;
	dest_debug_umask(task);
	if (!task->dest->wants_items)
		return;
	bool is_bare =
		!task->dir->subject && !task->dest->dry_run && !decide_keeps_time(task->dest->options, &task->dir->entry);

	task_event(task, (struct event){ .kind = EVENT_DIR, .flags = flags, .is_bare = is_bare });
}

/* False: nothing is to be done with the directory, said so. With --keep-dirlinks a symlink to a directory is as good as one;
 * what it leads to is then in `dest`. */
static bool look(struct receiver *receiver, struct dest_dir *parent, struct dest_dir *dir, const char *name,
		 struct decide_dest *dest)
{
	struct fs_root root = linked_root(receiver);
	struct fs_stat behind;

	if (parent->fresh || parent->absent)
		return true;
	dest->exists = dest_lstat_at(&receiver->dest, parent->fd, name, &dest->st) == 0;
	if (!dest->exists)
		return true;
	if (is_unwanted_parent(receiver, &dir->entry)) {
		dir->obstacle = find_obstacle(receiver, dir, &dest->st);
		dir->absent = dir->obstacle != 0;
		return !dir->obstacle;
	}
	if (!receiver->dest.options->keep_dirlinks || !S_ISLNK(dest->st.mode))
		return true;
	if (fs_stat_follow(&root, dir->path, &behind) == 0) {
		dir->is_link = S_ISDIR(behind.mode);
		if (dir->is_link)
			dest->st = behind;
		return true;
	}
	if (errno != ELOOP)
		return true;
	root.trusting = true;
	if (fs_stat_follow(&root, dir->path, &behind) < 0 || !S_ISDIR(behind.mode))
		return true;
	/* It leads out of the destination. */
	dest_complain_path(&receiver->dest, "generator", ELOOP, dir->path, "recv_generator: failed to stat ", "");
	log_error("*** Skipping any contents from this failed directory ***");
	dir->skipped = true;
	return false;
}

/* A directory that is not here may be in an alternate destination: then it counts as made again. */
static void compare_with_alternates(struct receiver *receiver, const struct entries *list, const struct dest_dir *dir,
				    struct decision *decision)
{
	static const struct decide_dest nothing;
	struct decide_alternate found;

	if (!receiver->dest.alternates || !(decision->item_flags & ITEM_IS_NEW))
		return;
	dest_find_alternate_dir(&receiver->dest, list, &dir->entry, dir->path, &found);
	decide_with_alternate(&receiver->dest.rules, list, &dir->entry, &nothing, receiver->dest.alternates->kind, &found,
			      decision);
}

/* --ignore-existing where something else stands, which stays as it is: a symlink to a directory inside the destination is gone
 * through, as --no-implied-dirs does, but nothing is deleted behind it. Else nothing can be below, which is said of each. */
static void enter_other_kind(struct receiver *receiver, struct dest_dir *parent, struct dest_dir *dir, const char *name,
			     struct fs_stat *st, struct task *task)
{
	dir->other_kind = st->mode & S_IFMT;
	dir->may_delete &= receiver->session.inc_recurse;
	dir->obstacle = find_obstacle(receiver, dir, st);
	dir->absent = dir->obstacle != 0;
	if (dir->absent)
		return;
	dir->fd = open_directory(receiver, parent, dir, name, st);
	if (dir->fd < 0)
		skip_contents(task, errno, "recv_generator: opendir ");
}

/* Below an obstacle that stays nothing can be made. */
static void fail_below_obstacle(struct receiver *receiver, const struct dest_dir *parent, struct dest_dir *dir,
				struct task *task)
{
	dir->obstacle = parent->obstacle == ENOENT ? ENOENT : ELOOP;
	dir->absent = true;
	if (dir->obstacle == ENOENT && receiver->dest.options->existing && !is_unwanted_parent(receiver, &dir->entry)) {
		say_skipped(task, &(struct decision){ .skip = SKIP_NOT_CREATING });
		dir->skipped = true;
		return;
	}
	if (is_unwanted_parent(receiver, &dir->entry)) {
		if (dir->obstacle != ENOENT || !receiver->dest.options->existing)
			task_complain(task, "generator", parent->obstacle, "", "recv_generator: mkdir ", " failed");
		return;
	}
	skip_contents(task, parent->obstacle, "recv_generator: mkdir ");
	count_directory(task, ITEM_LOCAL_CHANGE | ITEM_IS_NEW);
}

static void refuse_directory(struct dest_dir *dir)
{
	log_msg(L_ERROR_XFER, "ERROR: daemon refused to receive directory \"%s\"", dir->path);
	log_error("*** Skipping any contents from this failed directory ***");
	dir->skipped = true;
}

static void prepare_child(struct receiver *receiver, struct dest_dir *parent, struct dest_dir *dir, struct task *task,
			  struct entries *entries)
{
	struct decide_dest dest = { .exists = false };
	struct wanted wanted = { .own = NULL };
	const char *name = entry_name(entries, &dir->entry);
	struct decision decision;
	bool quiet = is_unwanted_parent(receiver, &dir->entry);

	if (dest_is_hidden(&receiver->dest, dir->path, true)) {
		refuse_directory(dir);
		return;
	}
	if (receiver->dest.single_name && !parent->node)
		name = receiver->dest.single_name;
	while (*name == '/')
		name++;
	/* A dry run takes everything in there for new. */
	if (parent->obstacle && !receiver->dest.dry_run) {
		fail_below_obstacle(receiver, parent, dir, task);
		return;
	}
	if (!look(receiver, parent, dir, name, &dest))
		return;
	/* What stands there may be hidden as what it is. */
	if (dest.exists && !S_ISDIR(dest.st.mode) && dest_is_hidden(&receiver->dest, dir->path, false)) {
		refuse_directory(dir);
		return;
	}
	decide(&receiver->dest.rules, entries, &dir->entry, &dest, NULL, &decision);
	if (decision.action == ACTION_SKIP) {
		say_skipped(task, &decision);
		dir->skipped = decision.skip != SKIP_EXISTS;
		if (!dir->skipped)
			enter_other_kind(receiver, parent, dir, name, &dest.st, task);
		return;
	}
	if (!dest.exists || decision.make_room)
		compare_with_alternates(receiver, entries, dir, &decision);
	dir->alternate = decision.alternate;
	/* Something that is no directory stands where one belongs. */
	if (decision.make_room) {
		const struct backup_of of = { &receiver->dest, NULL, "generator", parent->fd, parent->path, name };

		atomic_store(&parent->touched, true);
		receiver_say_file_goes(task, &dest.st);
		if (!dest_back_up(&of, BACKUP_RENAME)
		    || (!receiver->dest.dry_run && fs_unlink_at(parent->fd, name) < 0 && errno != ENOENT)) {
			skip_contents(task, errno, "delete_file: unlink ");
			return;
		}
		dest_seen_change(&receiver->dest, &dest.st);
	}
	if (quiet)
		dir->entry.mode = S_IFDIR | 0777;
	else
		dest_want_attributes(&receiver->dest, parent->node, &dir->entry, &wanted);
	if (decision.action == ACTION_MAKE) {
		make_directory(receiver, parent, dir, name, task, &wanted);
		if (quiet && dir->fd >= 0 && (receiver->dest.options->perms || receiver->dest.options->incoming_chmod))
			fs_chmod_at(dir->fd, ".", 0777 & ~dest_dir_umask(&receiver->dest, dir));
	} else {
		enter_directory(receiver, parent, dir, name, &dest, task, &wanted);
	}
	wanted_free(&wanted);
	if (quiet)
		dir->has_entry = false;
	else if (!dir->skipped || decision.action == ACTION_MAKE)
		count_directory(task, decision.item_flags | dir->differs);
}

static void prepare_top(struct receiver *receiver, struct dest_dir *dir, struct task *task)
{
	struct entries *entries = flist_dir(receiver->dest.list, 0)->entries;
	int32_t dot = entries_find(entries, ".", true);
	struct decide_dest dest = { .exists = false };
	struct decide_rules rules = receiver->dest.rules;
	struct options relaxed = *receiver->dest.options;
	struct wanted wanted;
	struct decision decision;

	dir->fd = receiver->dest.top.fd >= 0 ? fs_opendir(&receiver->dest.top, ".") : -1;
	dir->absent = dir->fd < 0;
	if (dir->absent && receiver->dest.top.fd >= 0)
		complain(receiver, dir, errno, "opendir ", " failed");
	dir->fresh = receiver->dest.top_is_new;
	atomic_store(&dir->touched, receiver->dest.top_is_new);
	if (dir->fd >= 0 && dest_lstat_at(&receiver->dest, dir->fd, ".", &dest.st) < 0)
		complain(receiver, dir, errno, "stat ", " failed");
	dest_seen_enter(&receiver->dest, 0, receiver->dest.top_is_new ? NULL : &dest.st);
	if (dot < 0)
		return;
	dir->entry = entries->items[dot];
	dir->may_delete = receiver->deletes && !(dir->entry.flags & ENTRY_NO_CONTENT);
	dest.exists = !receiver->dest.top_is_new;
	if (is_unwanted_parent(receiver, &dir->entry))
		return;
	note_time(receiver, dir, &dest);
	/* It has been made whatever --existing says; a dry run only reports that. */
	rules.options = &relaxed;
	relaxed.existing &= !receiver->dest.top_is_new || receiver->dest.dry_run;
	decide(&rules, entries, &dir->entry, &dest, NULL, &decision);
	rules.options = receiver->dest.options;
	if (decision.action == ACTION_SKIP) {
		say_skipped(task, &decision);
		return;
	}
	compare_with_alternates(receiver, entries, dir, &decision);
	dest_want_attributes(&receiver->dest, 0, &dir->entry, &wanted);
	if (dir->fd >= 0) {
		rules.umask = dest_dir_umask(&receiver->dest, dir);
		dir->mode = decide_mode(&rules, &dir->entry, &dest);
		dir->has_entry = true;
		dir->alternate = decision.alternate;
		dir->differs = dest.exists ? wanted_compare(&receiver->dest, &wanted, dir->entry.mode, dir->fd, ".")
					   : compare_new(receiver, dir, &wanted);
		if (!receiver->dest.dry_run)
			apply_to_directory(receiver, dir, task, &dest.st, &wanted);
	}
	wanted_free(&wanted);
	count_directory(task, decision.item_flags | dir->differs);
}

struct dest_dir *receiver_dir_new(struct receiver *receiver, int32_t node)
{
	struct dest_dir *dir = xcalloc(1, sizeof *dir);
	struct strbuf path = STRBUF_INIT;

	dir->references = 1;
	dir->fd = -1;
	dir->node = node;
	atomic_store(&dir->new_gid, -1);
	strbuf_reserve(&path, USUAL_PATH);
	flist_dir_path(receiver->dest.list, node, &path);
	dir->path = xstrdup(strbuf_text(&path) + strspn(strbuf_text(&path), "/"));
	strbuf_free(&path);
	return dir;
}

struct dest_dir *receiver_dir_return(struct receiver *receiver, int32_t node)
{
	for (; receiver->open_stack.count; receiver->open_stack.count--) {
		struct dest_dir *top = receiver->open_stack.items[receiver->open_stack.count - 1];

		if (top->node == node)
			return top;
		dest_dir_release(top);
	}
	return NULL;
}

struct dest_dir *receiver_dir_prepare(struct receiver *receiver, int32_t node, struct task *task)
{
	const struct flist_dir *listed = flist_dir(receiver->dest.list, node);
	struct dest_dir *parent = receiver_dir_return(receiver, listed->parent);
	struct dest_dir *dir = receiver_dir_new(receiver, node);

	task->dir = dir;
	dir->parent = parent;
	if (parent)
		parent->references++;
	if (receiver->dest.logs_steps)
		dest_debug_directory(task);
	if (!parent) {
		prepare_top(receiver, dir, task);
	} else {
		struct entries *entries = flist_dir(receiver->dest.list, listed->parent)->entries;

		dir->entry = entries->items[listed->parent_entry];
		dir->may_delete = receiver->deletes && !(dir->entry.flags & ENTRY_NO_CONTENT);
		dir->other_kind = S_ISLNK(parent->other_kind) ? parent->other_kind : 0;
		dir->skipped = parent->skipped;
		if (!dir->skipped)
			prepare_child(receiver, parent, dir, task, entries);
	}
	dir->references++;
	vec_push(&receiver->open_stack, dir);
	return dir;
}

/* --- the end --- */

static void apply_finally(struct receiver *receiver, struct dest_dir *dir)
{
	struct timespec times[2] = { { 0, UTIME_OMIT }, { (time_t)dir->entry.mtime, (long)dir->entry.mtime_nsec } };
	int window = receiver->dest.options->modify_window;
	struct fs_stat st;

	/* What nobody has touched is as it was seen before, and its time was compared then. */
	if (!atomic_load(&dir->touched) && !dir->mode_pending && dir->time_agrees)
		return;
	if (fs_lstat_at(dir->fd, ".", &st) < 0) {
		complain(receiver, dir, errno, "failed to set times on ", "");
		return;
	}
	/* What has been touched gets the very time. */
	if (dir->fresh || st.mtime != dir->old_mtime || st.mtime_nsec != dir->old_mtime_nsec)
		window = -1;
	if (decide_keeps_time(receiver->dest.options, &dir->entry)
	    && !decide_same_time(window, st.mtime, st.mtime_nsec, dir->entry.mtime, dir->entry.mtime_nsec)
	    && fs_utimens_at(dir->fd, ".", times) < 0)
		complain(receiver, dir, errno, "failed to set times on ", "");
	if (dir->mode_pending && dir->mode != (st.mode & PERMISSION_BITS) && fs_chmod_at(dir->fd, ".", dir->mode) < 0)
		complain(receiver, dir, errno, "failed to set permissions on ", "");
}

static void finish_now(struct receiver *receiver, struct dest_dir *dir)
{
	if (dir->has_entry)
		apply_finally(receiver, dir);
	dest_seen_finish(&receiver->dest, dir);
}

void receiver_dir_finish(struct receiver *receiver, struct dest_dir *dir)
{
	const struct flist_dir *listed = flist_dir(receiver->dest.list, dir->node);
	bool is_incremental = receiver->session.inc_recurse;
	int32_t number = is_incremental ? listed->number : listed->own_ndx;

	if (dir->absent || dir->skipped || receiver->dest.dry_run || dir->fd < 0 || (!dir->has_entry && !receiver->dest.seen))
		return;
	/* Of one list those only whose times are set. */
	if (dir->has_entry && receiver->dest.options->levels.debug[DEBUG_TIME] > 1
	    && (is_incremental || decide_keeps_time(receiver->dest.options, &dir->entry)))
		log_info("touch_up_dirs: %s (%d)", *dir->path ? dir->path : ".", dir->node ? number : 0);
	if (!receiver->late_dirs || receiver->dest.single_name) {
		finish_now(receiver, dir);
		return;
	}
	/* There may be more of them than descriptors. */
	close(dir->fd);
	dir->fd = -1;
	dir->references++;
	vec_push(&receiver->late, dir);
}

void receiver_dir_finish_late(struct receiver *receiver)
{
	for (size_t i = 0; i < receiver->late.count; i++) {
		struct dest_dir *dir = receiver->late.items[i];

		dir->fd = dest_open_dir(&receiver->dest, dir->path, false);
		atomic_store(&dir->touched, true);
		if (dir->fd >= 0)
			finish_now(receiver, dir);
		else if (errno != ENOENT && (errno != EACCES || !log_saw_xfer_error())) /* else reported when it was entered */
			complain(receiver, dir, errno, "failed to set times on ", "");
		dest_dir_release(dir);
	}
	vec_free(&receiver->late);
}
