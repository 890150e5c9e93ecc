/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Backups: by a hard link, by a rename, or as a copy where neither can be. */
#include "dest/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/attributes.h"
#include "dest/dest.h"
#include "dest/events.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "fs/copy.h"
#include "fs/operator.h"
#include "fs/temp.h"
#include "lib/exit.h"

#define DEPTH_MAX 128 /* of a directory that stands where a backup goes */

struct backups {
	char *directory;       /* as it is said, without slashes at the end; NULL: each in its own directory */
	const char *suffix;
	pthread_mutex_t lock;  /* on the rest, and on making directories */
	int fd;                /* the directory, or what there was of its path at the beginning; -1: each in its own */
	const char *missing;   /* the rest of the path; "" when it has been made */
};

/* One backup in the making. */
struct backup {
	const struct backup_of *of;
	struct fs_stat st;    /* of the old object */
	int fd;               /* directory of the backup, owned */
	struct strbuf name;   /* in it */
	struct strbuf shown;
};

/* --- the backup directory --- */

static size_t component_length(const char **path)
{
	*path += strspn(*path, "/");
	return strcspn(*path, "/");
}

/* As far as the path exists. What has to be made later is made without following anything. */
static void find_directory(struct dest *dest, struct backups *backups)
{
	const int flags = O_PATH | O_DIRECTORY;
	const char *path = backups->directory;
	int next, error;

	/* A directory of the operator's path; of links in it, those of others are not followed. */
	if (dest->module)
		backups->fd = dest_open_named(dest, "/", flags);
	else
		backups->fd = *path == '/' ? fs_operator_open("/", flags, 0) : fs_opendir(&dest->top, ".");
	for (size_t length; backups->fd >= 0 && (length = component_length(&path)); path += length) {
		/* From the module's root on, or one step further. */
		const char *from = dest->module ? backups->directory : path;
		char *component = xstrndup(from, (size_t)(path - from) + length);

		next = dest->module ? dest_open_named(dest, component, flags)
				    : fs_owner_open(backups->fd, component, flags | options_link_flag(dest->options), 0);
		error = errno;
		free(component);
		if (next < 0 && error == ENOENT)
			break;
		if (next < 0 && error != ENOTDIR)
			die_errno(EXIT_FILEIO, error, "cannot open the backup-dir %s", backups->directory);
		if (next < 0)
			die(EXIT_SYNTAX, "The backup-dir is not a directory: %s", backups->directory);
		close(backups->fd);
		backups->fd = next;
	}
	backups->missing = path;
	if (backups->fd >= 0 && (backups->fd = options_confine(dest->options, backups->fd)) < 0)
		die_errno(EXIT_FILEIO, errno, "cannot open the backup-dir %s", backups->directory);
}

void dest_backups_begin(struct dest *dest)
{
	const struct options *options = dest->options;
	const char *role = log_role();
	struct backups *backups;

	if (!options->backup)
		return;
	backups = dest->backups = xcalloc(1, sizeof *backups);
	backups->suffix = options->suffix ? options->suffix : options->backup_dir ? "" : "~";
	backups->fd = -1;
	backups->missing = "";
	pthread_mutex_init(&backups->lock, NULL);
	if (!options->backup_dir)
		return;
	/* In a module it is shown as an absolute path there. */
	char *named = dest->module ? dest_named_in_module(dest, options->backup_dir) : xstrdup(options->backup_dir);
	size_t length = strlen(named);

	while (length > (dest->module ? 0 : 1) && named[length - 1] == '/')
		length--;
	backups->directory = xasprintf("%s%.*s", dest->module ? "/" : "", (int)length, named);
	free(named);
	if (dest->top.fd < 0)
		return; /* a dry run whose destination is not there */
	log_set_role("Receiver");
	find_directory(dest, backups);
	if (options->levels.info[INFO_BACKUP])
		log_info("%sbackup_dir is %s", *backups->missing ? "(new) " : "", backups->directory);
	log_set_role(role);
}

void dest_backups_free(struct dest *dest)
{
	struct backups *backups = dest->backups;

	if (!backups)
		return;
	fs_close(backups->fd);
	pthread_mutex_destroy(&backups->lock);
	free(backups->directory);
	free(backups);
	dest->backups = NULL;
}

/* --- what is said --- */

/* Takes over the text. */
static void complain(const struct backup_of *of, int error, char *text)
{
	const char *role = log_role();

	if (of->task && error != ECANCELED) {
		task_error(of->task, of->role, error, text);
		return;
	}
	if (error != ECANCELED) {
		log_set_role(of->role);
		log_errno(L_ERROR_XFER, error, "%s", text);
		log_set_role(role);
	}
	free(text);
}

static void keeping_failed(const struct backup *backup, int error)
{
	const struct backup_of *of = backup->of;
	struct strbuf text = STRBUF_INIT, path = dest_path_of(of->dir_path, of->name);

	strbuf_add_string(&text, "keep_backup failed: ");
	dest_show_path(of->dest, strbuf_text(&path), &text);
	strbuf_addf(&text, " -> \"%s\"", strbuf_text(&backup->shown));
	strbuf_free(&path);
	complain(of, error, strbuf_detach(&text));
}

static void say_kept(const struct backup *backup, const char *how)
{
	const struct backup_of *of = backup->of;
	const struct ui_levels *levels = &of->dest->options->levels;
	struct strbuf path = dest_path_of(of->dir_path, of->name);
	char *lines[2] = { NULL, NULL };

	if (how && levels->debug[DEBUG_BACKUP])
		lines[0] = xasprintf("make_backup: %s %s successful.", how, strbuf_text(&path));
	if (levels->info[INFO_BACKUP])
		lines[1] = xasprintf("backed up %s to %s", strbuf_text(&path), strbuf_text(&backup->shown));
	for (int i = 0; i < 2; i++) {
		if (lines[i] && of->task)
			task_text(of->task, L_INFO, "%s", lines[i]);
		else if (lines[i])
			log_info("%s", lines[i]);
		free(lines[i]);
	}
	strbuf_free(&path);
}

/* --- its directories --- */

/* The operator's path; under the lock. */
static bool make_directory(const struct backup_of *of, struct backups *backups)
{
	const char *path = backups->missing;
	bool good = true;

	for (size_t length; good && (length = component_length(&path)); path += length) {
		char *name = xstrndup(path, length);
		int next = -1;

		if (fs_mkdir_at(backups->fd, name, dest_unlisted_mode(of->dest, backups->fd)) == 0 || errno == EEXIST)
			next = fs_open_at(backups->fd, name, O_PATH | O_DIRECTORY, 0);
		good = next >= 0;
		if (good) {
			close(backups->fd);
			backups->fd = next;
			backups->missing = path + length;
		} else {
			complain(of, errno, xasprintf("backup mkdir %s failed", backups->directory));
		}
		free(name);
	}
	return good;
}

/* A new directory among the backups is like the one that it stands for. */
static void apply_to_directory(struct dest *dest, int fd, const char *name, const char *original)
{
	const struct decide_rules *rules = &dest->rules;
	struct fs_stat st, made;

	if (fs_lstat(&dest->top, original, &st) < 0 || fs_lstat_at(fd, name, &made) < 0) {
		if (errno != ENOENT)
			dest_complain_path(dest, "generator", errno, original, "stat ", " failed");
	} else if (S_ISDIR(st.mode)) {
		mode_t mode = st.mode & PERMISSION_BITS;

		if (decide_keeps_owner(rules) && !dest->is_fake && fs_chown_at(fd, name, st.uid, st.gid) < 0 && errno != EPERM)
			dest_complain_path(dest, "generator", errno, original, "chown of the backup of ", " failed");
		dest_copy_attributes(dest, &dest->top, original, fd, name);
		if (!dest->options->perms)
			mode |= made.mode & S_ISGID;
		if (fs_chmod_at(fd, name, mode) < 0)
			dest_complain_path(dest, "generator", errno, original, "chmod of the backup of ", " failed");
	}
}

/* The one whose name in `path` is from `start` on, `length` bytes. */
static int enter_directory(const struct backup_of *of, int fd, const char *path, size_t start, size_t length)
{
	const char *directory = of->dest->backups->directory;
	char *whole = xstrndup(path, start + length), *name = whole + start;
	int next = fs_open_at(fd, name, O_PATH | O_DIRECTORY, 0), error;

	/* What stands where a directory is wanted may be hidden as something else. */
	if (next < 0 && (errno == ENOTDIR || errno == ELOOP) && !dest_is_hidden_in(of->dest, directory, whole, false)
	    && fs_unlink_at(fd, name) == 0)
		errno = ENOENT;
	if (next < 0 && errno == ENOENT) {
		bool made = fs_mkdir_at(fd, name, 0700) == 0;

		if (made)
			apply_to_directory(of->dest, fd, name, whole);
		if (made || errno == EEXIST)
			next = fs_open_at(fd, name, O_PATH | O_DIRECTORY, 0);
	}
	error = errno;
	if (next < 0)
		complain(of, error, xasprintf("backup mkdir %s/%s failed", directory, whole));
	free(whole);
	errno = error;
	return next;
}

static int duplicate(const struct backup_of *of, int dir_fd)
{
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0), error = errno;

	if (fd < 0) {
		complain(of, error, xasprintf("cannot hold the directory for the backup of \"%s\"", of->name));
		errno = error;
	}
	return fd;
}

static int open_parents(const struct backup_of *of, bool may_make)
{
	struct backups *backups = of->dest->backups;
	const char *path = of->dir_path;
	int fd = -1;

	if (!backups->directory)
		return duplicate(of, of->dir_fd);
	pthread_mutex_lock(&backups->lock);
	if (may_make && !make_directory(of, backups))
		errno = EACCES;
	else
		fd = duplicate(of, backups->fd);
	/* New directories take after the ones above, once these are as they shall be. */
	for (size_t length; fd >= 0 && (length = component_length(&path)); path += length) {
		int next = enter_directory(of, fd, of->dir_path, (size_t)(path - of->dir_path), length);

		fs_close(fd);
		fd = next;
	}
	int error = errno;

	pthread_mutex_unlock(&backups->lock);
	errno = error;
	return fd;
}

static void name_backup(struct backup *backup)
{
	const struct backups *backups = backup->of->dest->backups;

	strbuf_addf(&backup->name, "%s%s", backup->of->name, backups->suffix);
	if (backups->directory)
		strbuf_addf(&backup->shown, "%s/", backups->directory);
	if (*backup->of->dir_path)
		strbuf_addf(&backup->shown, "%s/", backup->of->dir_path);
	strbuf_add_string(&backup->shown, strbuf_text(&backup->name));
}

/* --- in the way of a backup --- */

/* path: of it, as dest_is_hidden wants it. What a module hides stays, and so do the directories above. */
static void remove_tree(struct dest *dest, int dir_fd, const char *name, struct strbuf *path, int depth)
{
	size_t length = path->length;
	struct fs_stat st;
	int fd;

	if (fs_lstat_at(dir_fd, name, &st) < 0 || depth > DEPTH_MAX
	    || dest_is_hidden(dest, strbuf_text(path), S_ISDIR(st.mode)))
		return;
	if (!S_ISDIR(st.mode)) {
		fs_unlink_at(dir_fd, name);
		return;
	}
	fd = fs_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0) {
		struct entries names;

		entries_init(&names);
		dest_read_names(fd, NULL, &names);
		for (uint32_t i = 0; i < names.count; i++) {
			strbuf_add_path(path, entry_name(&names, &names.items[i]));
			remove_tree(dest, fd, entry_name(&names, &names.items[i]), path, depth + 1);
			strbuf_truncate(path, length);
		}
		entries_free(&names);
		close(fd);
	}
	fs_rmdir_at(dir_fd, name);
}

/* --- the ways --- */

static int commit_copy(struct backup *backup, struct fs_temp *temp)
{
	const struct dest *dest = backup->of->dest;
	const struct fs_root here = { .fd = backup->of->dir_fd };
	const struct fs_stat *st = &backup->st;
	const struct timespec times[2] = {
		{ (time_t)st->atime, (long)st->atime_nsec }, { (time_t)st->mtime, (long)st->mtime_nsec },
	};

	if (decide_keeps_owner(&dest->rules) && !dest->is_fake)
		fs_chown_at(backup->fd, temp->name, st->uid, st->gid);
	dest_copy_attributes(dest, &here, backup->of->name, backup->fd, temp->name);
	if (!S_ISLNK(st->mode))
		fs_chmod_at(backup->fd, temp->name, st->mode & PERMISSION_BITS);
	if (dest->options->times)
		fs_utimens_at(backup->fd, temp->name, times);
	return fs_temp_commit(temp, strbuf_text(&backup->name));
}

static int copy_file(struct backup *backup)
{
	const struct fs_copy_options how = { .sparse = backup->of->dest->options->sparse };
	int from = fs_open_at(backup->of->dir_fd, backup->of->name, O_RDONLY, 0), error;
	struct fs_temp temp;
	bool write_error;
	uint64_t copied;

	if (from < 0)
		return -1;
	if (fs_temp_create(&temp, backup->fd, strbuf_text(&backup->name)) < 0) {
		error = errno;
	} else if (fs_copy_content(from, temp.fd, backup->st.size, &how, &copied, &write_error) < 0) {
		error = errno;
		fs_temp_discard(&temp);
	} else {
		error = commit_copy(backup, &temp) < 0 ? errno : 0;
	}
	close(from);
	errno = error;
	return error ? -1 : 0;
}

static int keep(struct backup *backup, enum backup_way way, const char **how)
{
	const struct backup_of *of = backup->of;
	const struct fs_stat *st = &backup->st;
	const char *name = strbuf_text(&backup->name);
	char target[PATH_MAX];
	struct fs_temp temp;
	int result;

	*how = "HLINK";
	if (way == BACKUP_LINK
	    && (fs_link_at(of->dir_fd, of->name, backup->fd, name) == 0
		|| (errno == EEXIST && fs_temp_link(&temp, backup->fd, name, of->dir_fd, of->name) == 0
		    && fs_temp_commit(&temp, name) == 0)))
		return 0;
	if (way == BACKUP_RENAME || (way == BACKUP_LINK && errno != EXDEV && errno != EISDIR)) {
		*how = "RENAME";
		if (fs_rename_at(of->dir_fd, of->name, backup->fd, name) == 0)
			return 0;
	}
	if (way != BACKUP_COPY && (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST))
		return -1;
	if (S_ISREG(st->mode)) {
		*how = way == BACKUP_COPY ? NULL : "COPY";
		return copy_file(backup);
	}
	*how = S_ISLNK(st->mode) ? "SYMLINK" : "DEVICE";
	if (!S_ISLNK(st->mode))
		result = fs_temp_mknod(&temp, backup->fd, name, (mode_t)st->mode, st->rdev_major, st->rdev_minor);
	else if (fs_readlink_at(of->dir_fd, of->name, target, sizeof target) < 0)
		return -1;
	else
		result = fs_temp_symlink(&temp, backup->fd, name, target);
	return result < 0 ? -1 : commit_copy(backup, &temp);
}

static bool is_unsafe_link(const struct backup *backup)
{
	const struct backup_of *of = backup->of;
	char target[PATH_MAX];

	if (!S_ISLNK(backup->st.mode) || !of->dest->options->safe_links
	    || fs_readlink_at(of->dir_fd, of->name, target, sizeof target) < 0)
		return false;
	struct strbuf path = dest_path_of(of->dir_path, of->name);
	bool is_unsafe = fs_symlink_is_unsafe(target, strbuf_text(&path));

	strbuf_free(&path);
	return is_unsafe;
}

/* 0, or what has gone wrong, said so. */
static int make(struct backup *backup, enum backup_way way)
{
	const char *how = NULL;
	int result, error;

	backup->fd = open_parents(backup->of, true);
	if (backup->fd < 0)
		return errno;
	result = keep(backup, way, &how);
	if (result < 0 && (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST)) {
		remove_tree(backup->of->dest, backup->fd, strbuf_text(&backup->name), &backup->shown, 0);
		result = keep(backup, way, &how);
	}
	error = result < 0 ? errno : 0;
	close(backup->fd);
	if (error)
		keeping_failed(backup, error);
	else
		say_kept(backup, how);
	return error;
}

/* --- for callers --- */

bool dest_back_up(const struct backup_of *of, enum backup_way way)
{
	struct backup backup = { .of = of, .name = STRBUF_INIT, .shown = STRBUF_INIT };

	if (!of->dest->backups)
		return true;
	bool is_there = fs_lstat_at(of->dir_fd, of->name, &backup.st) == 0;
	int error = is_there ? 0 : errno;

	if (is_there ? S_ISDIR(backup.st.mode) : error == ENOENT)
		return true;
	name_backup(&backup);
	if (is_there && dest_is_hidden(of->dest, strbuf_text(&backup.shown), false))
		error = EACCES;
	if (error)
		keeping_failed(&backup, error);
	else if (is_unsafe_link(&backup)) /* where it does not lie in the tree any more, it would lead elsewhere */
		say_kept(&backup, NULL);
	else if (of->dest->dry_run)
		say_kept(&backup, way == BACKUP_LINK ? "HLINK" : "RENAME");
	else
		error = make(&backup, way);
	strbuf_free(&backup.name);
	strbuf_free(&backup.shown);
	errno = error;
	return !error;
}

bool dest_is_backup_name(const struct dest *dest, const char *name)
{
	const struct backups *backups = dest->backups;
	size_t length = strlen(name), suffix;

	if (!backups || backups->directory)
		return false;
	suffix = strlen(backups->suffix);
	return length > suffix && !strcmp(name + length - suffix, backups->suffix);
}

int dest_backup_open(const struct backup_of *of)
{
	struct backup backup = { .of = of, .name = STRBUF_INIT, .shown = STRBUF_INIT };
	int dir = -1, fd = -1, error = ENOENT;

	name_backup(&backup);
	if (!dest_is_hidden(of->dest, strbuf_text(&backup.shown), false)) {
		dir = open_parents(of, false);
		fd = dir < 0 ? -1 : fs_open_at(dir, strbuf_text(&backup.name), O_RDONLY, 0);
		error = errno;
	}
	fs_close(dir);
	strbuf_free(&backup.name);
	strbuf_free(&backup.shown);
	errno = error;
	return fd;
}
