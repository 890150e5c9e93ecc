/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Deletions: what the sources do not have, what is in the way, what --delete-missing-args names. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/backup.h"
#include "dest/events.h"
#include "dest/paths.h"
#include "dest/seen.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "fs/file.h"
#include "fs/temp.h"
#include "lib/exit.h"
#include "receiver/delete.h"
#include "receiver/report.h"
#include "receiver/run.h"

/* What --debug=del shows of a deletion beside what is deleted: stock's numbers. */
enum {
	DEL_WITH_CONTENTS = 2, DEL_IS_BELOW = 4, DEL_FOR_FILE = 8, DEL_FOR_DIRECTORY = 16, DEL_FOR_SYMLINK = 32,
	DEL_FOR_DEVICE = 64, DEL_FOR_SPECIAL = 128,
};

/* One deletion with everything below it. */
struct deletion {
	struct receiver *receiver;
	struct strbuf path;    /* in the transfer */
	bool make_room;        /* not for its own sake: the thing itself is not reported */
	uint64_t dev;          /* file system that may not be left */
	int dev_error;         /* why that is not known, or 0 */
	int flags;             /* DEL_*, of the outermost thing */
};

/* --- names of a directory --- */

static int compare_names(const void *a, const void *b, void *names)
{
	return strcmp(entry_name(names, a), entry_name(names, b));
}

/* Deletions go backwards through the order of lists, which once made no difference between files and directories. */
static void order_names(const struct session *session, struct entries *names)
{
	if (session->caps.sorts_by_path && names->count)
		qsort_r(names->items, names->count, sizeof *names->items, compare_names, names);
}

void receiver_find_surplus(struct task *task)
{
	if (!task->dir->absent && task->dest->options->levels.debug[DEBUG_DEL] > 1)
		task_text(task, L_INFO, "delete_in_dir(%s)", *task->dir->path ? task->dir->path : ".");
	if (task->dir->fresh || task->dir->fd < 0)
		return;
	if (dest_read_names(task->dir->fd, task->entries, &task->surplus) < 0)
		task_complain(task, "generator", errno, "", "opendir ", " failed");
	else
		task->knows_names = !task->surplus.count;
	order_names(task->dest->session, &task->surplus);
}

/* --- one item --- */

static bool limit_reached(struct receiver *receiver)
{
	int limit = receiver->dest.options->max_delete;

	if (limit < 0 || receiver->stats.deleted.total < (uint64_t)limit)
		return false;
	receiver->delete_skipped++;
	return true;
}

static void note_deleted(const struct deletion *deletion, mode_t mode)
{
	struct receiver *receiver = deletion->receiver;
	kind_count(&receiver->stats.deleted, mode);
	report_deletion(receiver->report, strbuf_text(&deletion->path), S_ISDIR(mode));
}

static void delete_failed(struct deletion *deletion, int error, const char *call)
{
	const char *old_role = log_role();

	log_set_role("generator");
	log_errno(L_ERROR_XFER, error, "delete_file: %s(%s) failed", call, strbuf_text(&deletion->path));
	log_set_role(old_role);
}

/* false: it stays. */
static bool delete_item(struct deletion *deletion, int dir_fd, const char *name, bool reported, bool nested);

static void say_deletion(const struct deletion *deletion, mode_t mode, bool nested)
{
	const char *path = strbuf_text(&deletion->path);
	int level = deletion->receiver->dest.options->levels.debug[DEBUG_DEL];

	if (level > 1 && (!nested || !S_ISDIR(mode)))
		log_info("delete_item(%s) mode=%o flags=%d", path, mode, nested ? DEL_IS_BELOW : deletion->flags);
	if (level > 2 && S_ISDIR(mode))
		log_info("delete_dir_contents(%s) flags=%d", path, nested ? DEL_IS_BELOW | DEL_WITH_CONTENTS : deletion->flags);
}

/* One that is below another is spoken of when it is empty. */
static void say_emptied(const struct deletion *deletion, mode_t mode, bool nested)
{
	if (nested && deletion->receiver->dest.options->levels.debug[DEBUG_DEL] > 1)
		log_info("delete_item(%s) mode=%o flags=%d", strbuf_text(&deletion->path), mode, DEL_IS_BELOW);
}

/* A --temp-dir may lie in the destination. */
static bool is_protected(struct receiver *receiver, const struct strbuf *path, int dir_fd, const char *name, bool is_dir)
{
	return (!is_dir && fs_temp_is_own(dir_fd, name)) || dest_is_hidden(&receiver->dest, strbuf_text(path), is_dir);
}

/* A directory that cannot be read whole stops the deletions to come, as one of the source does. */
static void reading_failed(struct receiver *receiver, const char *dir_path, int error)
{
	dest_complain_path(&receiver->dest, "generator", error, dir_path, "opendir ", " failed");
	receiver->session.io_error |= IOERR_GENERAL;
}

/* What is not there, or is no directory, has nothing in it to be deleted. */
static bool is_absent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/* Empty a directory, in reverse order. false: something stays. */
static bool delete_contents(struct deletion *deletion, int fd)
{
	struct receiver *receiver = deletion->receiver;
	struct entries names;
	bool all_gone = true;
	size_t length = deletion->path.length;

	entries_init(&names);
	if (dest_read_names(fd, NULL, &names) < 0)
		reading_failed(receiver, strbuf_text(&deletion->path), errno);
	order_names(&receiver->session, &names);
	filter_set_dir(receiver->receiver_rules, strbuf_text(&deletion->path));
	for (uint32_t i = names.count; i-- > 0;) {
		const struct entry *entry = &names.items[i];

		const char *name = entry_name(&names, entry);

		strbuf_add_path(&deletion->path, name);
		if (filter_excludes_doomed(receiver->receiver_rules, strbuf_text(&deletion->path), entry_is_dir(entry))
		    || is_protected(receiver, &deletion->path, fd, name, entry_is_dir(entry))
		    || !delete_item(deletion, fd, name, true, true))
			all_gone = false;
		strbuf_truncate(&deletion->path, length);
		filter_set_dir(receiver->receiver_rules, strbuf_text(&deletion->path));
	}
	entries_free(&names);
	return all_gone;
}

static void say_not_empty(const struct deletion *deletion)
{
	log_info("cannot delete non-empty directory: %s", strbuf_text(&deletion->path));
}

static bool delete_directory(struct deletion *deletion, int dir_fd, const char *name, const struct fs_stat *st, bool reported,
			     bool nested)
{
	struct receiver *receiver = deletion->receiver;
	bool is_emptied;
	int fd;

	if (deletion->dev_error) {
		delete_failed(deletion, deletion->dev_error, "lstat");
		return false;
	}
	if (st->dev != deletion->dev) {
		if (receiver->dest.options->levels.info[INFO_MOUNT])
			log_info("cannot delete mount point: %s", strbuf_text(&deletion->path));
		return false;
	}
	if (!receiver->dest.rules.am_root && (st->mode & 0700) != 0700 && !receiver->dest.dry_run)
		fs_chmod_at(dir_fd, name, (st->mode & 07777) | 0700);
	fd = fs_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && !is_absent(errno))
		reading_failed(receiver, strbuf_text(&deletion->path), errno);
	is_emptied = fd < 0 || delete_contents(deletion, fd);
	if (fd >= 0)
		close(fd);
	if (!is_emptied) {
		say_not_empty(deletion);
		say_emptied(deletion, st->mode, nested);
		/* What lies deeper is tried all the same, and so counts against the limit and is spoken of twice; and in a dry
		 * run, where nothing fails, as if it were gone. */
		if (nested && !limit_reached(receiver)) {
			if (receiver->dest.dry_run)
				note_deleted(deletion, st->mode);
			else
				say_not_empty(deletion);
		}
		return false;
	}
	say_emptied(deletion, st->mode, nested);
	if (reported && limit_reached(receiver))
		return false;
	if (!receiver->dest.dry_run && fs_rmdir_at(dir_fd, name) < 0) {
		if (errno == ENOTEMPTY || errno == EEXIST)
			say_not_empty(deletion);
		else
			delete_failed(deletion, errno, "rmdir");
		return false;
	}
	return true;
}

static bool delete_item(struct deletion *deletion, int dir_fd, const char *name, bool reported, bool nested)
{
	struct receiver *receiver = deletion->receiver;
	bool gone = true;
	struct fs_stat st;

	if (fs_lstat_at(dir_fd, name, &st) < 0) {
		if (errno == ENOENT)
			return true;
		delete_failed(deletion, errno, "lstat");
		return false;
	}
	/* An attr tree has no regular file of another size; a mirror that was named by mistake has. */
	if (receiver->dest.attrs_only && S_ISREG(st.mode) && st.size != ATTR_FILE_SIZE && !receiver->dest.options->force
	    && !receiver->dest.dry_run)
		die(EXIT_FILESELECT,
		    "rsync: refusing to delete \"%s/%s\": it is not an attr file (not 8 bytes long); "
		    "--force overrides this",
		    receiver->dest.top_path, strbuf_text(&deletion->path));
	say_deletion(deletion, st.mode, nested);
	if (S_ISDIR(st.mode)) {
		gone = delete_directory(deletion, dir_fd, name, &st, reported, nested);
	} else if (reported && limit_reached(receiver)) {
		gone = false;
	} else {
		/* Anything but a directory; with --backup it moves there. */
		size_t parent = deletion->path.length - strlen(name);
		char *dir_path = xstrndup(strbuf_text(&deletion->path), parent ? parent - 1 : 0);
		const struct backup_of of = { &receiver->dest, NULL, "generator", dir_fd, dir_path, name };

		if (!dest_is_backup_name(&receiver->dest, name) && !dest_back_up(&of, BACKUP_RENAME)) {
			delete_failed(deletion, errno, "make_backup");
			gone = false;
		} else if (!receiver->dest.dry_run && fs_unlink_at(dir_fd, name) < 0 && errno != ENOENT) {
			delete_failed(deletion, errno, "unlink");
			gone = false;
		}
		free(dir_path);
	}
	if (gone)
		dest_seen_change(&receiver->dest, &st);
	if (gone && reported)
		note_deleted(deletion, st.mode);
	return gone;
}

static void start_deletion(struct deletion *deletion, struct receiver *receiver, const char *dir_path, const char *name,
			   int dir_fd)
{
	struct fs_stat st;

	*deletion = (struct deletion){ .receiver = receiver, .path = dest_path_of(dir_path, name), .flags = DEL_WITH_CONTENTS };
	deletion->dev_error = fs_lstat_at(dir_fd, ".", &st) < 0 ? errno : 0;
	deletion->dev = deletion->dev_error ? 0 : st.dev;
}

/* --- surplus names of a listed directory --- */

bool receiver_may_delete(struct receiver *receiver, struct task *task)
{
	static const char text[] = "IO error encountered -- skipping file deletion";

	if (receiver->dest.options->ignore_errors || !(receiver->session.io_error & IOERR_GENERAL))
		return true;
	if (!receiver->deletes_stopped && task)
		task_text(task, L_INFO, text);
	else if (!receiver->deletes_stopped)
		log_info(text);
	receiver->deletes_stopped = true;
	return false;
}

void receiver_delete_names(struct receiver *receiver, struct dest_dir *dir, const struct entries *names)
{
	atomic_store(&dir->touched, true);
	filter_set_dir(receiver->receiver_rules, dir->path);
	for (uint32_t i = names->count; i-- > 0;) {
		const char *name = entry_name(names, &names->items[i]);
		bool is_dir = entry_is_dir(&names->items[i]);
		struct deletion deletion;

		start_deletion(&deletion, receiver, dir->path, name, dir->fd);
		if (filter_excludes(receiver->receiver_rules, strbuf_text(&deletion.path), is_dir)
		    || is_protected(receiver, &deletion.path, dir->fd, name, is_dir)) {
			;
		} else if (receiver->dest.options->delete_when == DELETE_DELAY) {
			vec_push(&receiver->delayed, strbuf_detach(&deletion.path));
		} else {
			delete_item(&deletion, dir->fd, name, true, false);
			filter_set_dir(receiver->receiver_rules, dir->path);
		}
		strbuf_free(&deletion.path);
	}
}

void receiver_delete_delayed(struct receiver *receiver)
{
	/* Asked once: what goes wrong from here on stops none of those that have been found. */
	bool allowed = receiver->delayed.count && receiver_may_delete(receiver, NULL);

	for (size_t i = 0; i < receiver->delayed.count; i++) {
		char *path = receiver->delayed.items[i], *slash = strrchr(path, '/');
		struct deletion deletion;
		int fd;

		if (slash)
			*slash = '\0';
		fd = dest_open_dir(&receiver->dest, slash ? path : "", true);
		if (allowed && fd < 0 && !is_absent(errno))
			reading_failed(receiver, slash ? path : "", errno);
		if (fd >= 0 && allowed) {
			start_deletion(&deletion, receiver, slash ? path : "", slash ? slash + 1 : path, fd);
			delete_item(&deletion, fd, slash ? slash + 1 : path, true, false);
			strbuf_free(&deletion.path);
		}
		if (fd >= 0)
			close(fd);
		free(path);
	}
	vec_free(&receiver->delayed);
}

/* false: an I/O error forbids it and all further ones. */
static bool delete_pass_node(struct receiver *receiver, int32_t node)
{
	const struct flist_dir *listed = flist_dir(receiver->dest.list, node);
	int32_t dot = node ? -1 : entries_find(listed->entries, ".", true);
	uint16_t flags = node ? listed->flags : dot < 0 ? ENTRY_NO_CONTENT : listed->entries->items[dot].flags;
	struct dest_dir dir = { .fd = -1 };
	struct strbuf path = STRBUF_INIT;
	bool allowed = true;
	struct entries names;

	if (flags & ENTRY_NO_CONTENT || receiver->dest.top.fd < 0)
		return true;
	flist_dir_path(receiver->dest.list, node, &path);
	dir.path = path.data ? path.data + strspn(path.data, "/") : (char *)"";
	if (flags & ENTRY_TOP_DIR && receiver->dest.options->levels.debug[DEBUG_DEL])
		log_info("deleting in %s", *dir.path ? dir.path : ".");
	dir.fd = dest_open_dir(&receiver->dest, dir.path, true);
	if (dir.fd < 0 && !is_absent(errno))
		reading_failed(receiver, dir.path, errno);
	if (dir.fd >= 0 && receiver->dest.options->levels.debug[DEBUG_DEL] > 1)
		log_info("delete_in_dir(%s)", *dir.path ? dir.path : ".");
	if (dir.fd >= 0 && (allowed = receiver_may_delete(receiver, NULL))) {
		entries_init(&names);
		if (dest_read_names(dir.fd, listed->entries, &names) >= 0) {
			order_names(&receiver->session, &names);
			receiver_delete_names(receiver, &dir, &names);
		} else {
			reading_failed(receiver, dir.path, errno);
		}
		entries_free(&names);
	}
	if (dir.fd >= 0)
		close(dir.fd);
	strbuf_free(&path);
	return allowed;
}

struct numbered_node {
	int32_t ndx, node;
};

static int compare_numbers(const void *a_void, const void *b_void)
{
	const struct numbered_node *a = a_void, *b = b_void;

	return (a->ndx > b->ndx) - (a->ndx < b->ndx);
}

/* In the order of the peer's list; once that was another than the walk's. */
void receiver_delete_pass(struct receiver *receiver)
{
	size_t count = receiver->order.count;
	struct numbered_node *nodes = xcalloc(count, sizeof *nodes);

	for (size_t i = 0; i < count; i++) {
		const struct flist_dir *listed = flist_dir(receiver->dest.list, receiver->order.items[i]);

		nodes[i] = (struct numbered_node){ (int32_t)i, receiver->order.items[i] };
		if (receiver->session.caps.sorts_by_path)
			nodes[i].ndx = listed->parent < 0 ? -1
							  : flist_ndx_of(receiver->dest.list, listed->parent,
									 &flist_dir(receiver->dest.list, listed->parent)
										  ->entries->items[listed->parent_entry]);
	}
	qsort(nodes, count, sizeof *nodes, compare_numbers);
	for (size_t i = 0; i < count && delete_pass_node(receiver, nodes[i].node); i++)
		;
	free(nodes);
}

/* --- in the way --- */

static bool may_delete_contents(const struct options *options)
{
	return options->delete_when != DELETE_NEVER || options->force;
}

static int reported_for(const struct options *options, const struct entry *entry)
{
	int contents = may_delete_contents(options) ? DEL_WITH_CONTENTS : 0;

	if (entry_is_dir(entry))
		return contents | DEL_FOR_DIRECTORY;
	if (entry_is_symlink(entry))
		return contents | DEL_FOR_SYMLINK;
	if (entry_is_device(entry))
		return contents | DEL_FOR_DEVICE;
	return contents | (entry_is_special(entry) ? DEL_FOR_SPECIAL : DEL_FOR_FILE);
}

static const char *kind_of(const struct entry *entry)
{
	if (entry_is_dir(entry))
		return "directory";
	if (entry_is_symlink(entry))
		return "symlink";
	if (entry_is_device(entry))
		return "device file";
	return entry_is_special(entry) ? "special file" : "regular file";
}

static bool is_empty(int dir_fd, const char *name)
{
	int fd = fs_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	bool empty = fd >= 0 && fs_dir_is_empty(fd) > 0;

	if (fd >= 0)
		close(fd);
	return empty;
}

bool receiver_make_room(struct receiver *receiver, struct dest_dir *dir, const char *name, const struct entry *entry)
{
	struct deletion deletion;
	bool gone;

	atomic_store(&dir->touched, true);
	start_deletion(&deletion, receiver, dir->path, name, dir->fd);
	deletion.flags = reported_for(receiver->dest.options, entry);
	if (dest_is_hidden(&receiver->dest, strbuf_text(&deletion.path), true)) {
		gone = false;
	} else if (may_delete_contents(receiver->dest.options)) {
		gone = delete_item(&deletion, dir->fd, name, false, false);
	} else {
		say_deletion(&deletion, S_IFDIR | 0755, false);
		gone = receiver->dest.dry_run ? is_empty(dir->fd, name) : fs_rmdir_at(dir->fd, name) == 0;
		if (!gone)
			say_not_empty(&deletion);
	}
	if (!gone)
		log_msg(L_ERROR_XFER, "could not make way for new %s: %s", kind_of(entry), strbuf_text(&deletion.path));
	strbuf_free(&deletion.path);
	return gone;
}

void receiver_say_file_goes(struct task *task, const struct fs_stat *st)
{
	const struct options *options = task->dest->options;

	if (options->levels.debug[DEBUG_DEL] > 1)
		task_text(task, L_INFO, "delete_item(%s) mode=%o flags=%d", task->dir->path, st->mode,
			  reported_for(options, &task->dir->entry));
}

void receiver_delete_argument(struct receiver *receiver, struct task *task, uint32_t index)
{
	const char *name = task_name(task, &task->entries->items[index]);
	struct deletion deletion;
	struct fs_stat st;

	if (task->dir->fd < 0 || fs_lstat_at(task->dir->fd, name, &st) < 0)
		return;
	atomic_store(&task->dir->touched, true);
	start_deletion(&deletion, receiver, task->dir->path, name, task->dir->fd);
	deletion.flags = 0;
	filter_set_dir(receiver->receiver_rules, task->dir->path);
	if (filter_excludes(receiver->receiver_rules, strbuf_text(&deletion.path), S_ISDIR(st.mode))
	    || dest_is_hidden(&receiver->dest, strbuf_text(&deletion.path), S_ISDIR(st.mode)))
		;
	else if (S_ISDIR(st.mode) && !may_delete_contents(receiver->dest.options) && !is_empty(task->dir->fd, name))
		say_not_empty(&deletion);
	else
		delete_item(&deletion, task->dir->fd, name, true, false);
	strbuf_free(&deletion.path);
}

