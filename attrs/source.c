/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entries from a live tree, an attr tree or a snapshot. */
#include "attrs/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attrs/hint.h"
#include "fs/fake.h"
#include "fs/file.h"
#include "fs/ids.h"
#include "lib/log.h"
#include "wire/session.h"

/* One directory being read, or one named object. */
struct scan {
	struct attr_source *source;
	const struct scan_options *options;
	int dir_fd;             /* live: the directory; -1 for a named object and with a snapshot */
	struct strbuf path;     /* directory below the root, then each name in turn */
	struct strbuf transfer; /* the same as the transfer names it */
	size_t path_length, transfer_length; /* of the directories alone */
	uint64_t parent_dev;
	struct entries *list;
	int *io_error;
	/* Of a snapshot: the entry whose turn it is, NULL for a named object, and where it lies. */
	struct snapshot_place place;
	bool is_searchable;     /* names may be looked at, not only listed */
};

/* --- single objects --- */

/* The link count is only known to be more than one or not. */
static void fill_stat(const struct attr_snapshot *snapshot, const struct snapshot_place *place, struct fs_stat *st)
{
	const struct entry *entry = place->entry;
	struct snapshot_dir_facts facts = { .ino = 0 };
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(&place->view, entry, &expanded);

	*st = (struct fs_stat){
		.mode = entry->mode, .uid = entry->uid, .gid = entry->gid, .nlink = entry->flags & ENTRY_HARD_LINKED ? 2 : 1,
		.size = entry->size, .mtime = entry->mtime, .atime = entry->mtime, .mtime_nsec = entry->mtime_nsec,
	};
	/* Of a directory that could not be looked into, or stems from an attr tree, the device is not known: no mount point. */
	if (entry_is_dir(entry))
		facts = attr_snapshot_dir(snapshot, entry->dir);
	st->ino = facts.ino;
	st->dev = facts.ino ? facts.dev : attr_snapshot_dir(snapshot, place->parent).dev;
	if (!side)
		return;
	if (attr_snapshot_facts(snapshot)->has_atimes && !entry_is_dir(entry))
		st->atime = side->atime;
	if (entry->flags & ENTRY_HARD_LINKED) {
		st->dev = side->dev;
		st->ino = side->ino;
	}
	if (entry_is_device(entry)) {
		st->rdev_major = side->rdev_major;
		st->rdev_minor = side->rdev_minor;
	}
}

/* --- a directory being read --- */

/* As opendir(3) in a snapshot, to be followed by a look at the entries: the number of the directory. 0, or -1 with errno. */
static int open_mapped(struct attr_source *source, const char *path, uint32_t *dir)
{
	struct snapshot_place place;

	if (attr_source_lookup(source, path, true, &place) < 0)
		return -1;
	const struct entry *entry = place.entry;

	if (!entry_is_dir(entry))
		return fs_fail(ENOTDIR);
	if (!fs_permits(attr_source_who(source), entry->mode, entry->uid, entry->gid, FS_MAY_READ))
		return fs_fail(EACCES);
	*dir = entry->dir;
	int error = attr_snapshot_dir(source->snapshot, entry->dir).error;

	return error ? fs_fail(error) : 0;
}

/* A named object is looked up each time it is asked for, as in a live tree. */
static int current_place(const struct scan *scan, struct snapshot_place *place)
{
	if (!scan->place.entry)
		return attr_source_lookup(scan->source, strbuf_text(&scan->path), false, place);
	*place = scan->place;
	return scan->is_searchable ? 0 : fs_fail(EACCES);
}

void attr_file_encode(uint8_t out[ATTR_FILE_SIZE], uint64_t size)
{
	for (int i = 0; i < ATTR_FILE_SIZE; i++)
		out[i] = (uint8_t)(size >> (8 * i));
}

uint64_t attr_file_decode(const uint8_t in[ATTR_FILE_SIZE])
{
	uint64_t size = 0;

	for (int i = 0; i < ATTR_FILE_SIZE; i++)
		size |= (uint64_t)in[i] << (8 * i);
	return size;
}

void attr_source_quote(const struct attr_source *source, const char *path, struct strbuf *out)
{
	while (*path == '/')
		path++;
	strbuf_add_char(out, '"');
	if (!source->module)
		strbuf_add_string(out, source->shown_prefix ? source->shown_prefix : "");
	if ((source->module ? !source->quotes_bare : source->shown_prefix != NULL) && out->data[out->length - 1] != '/')
		strbuf_add_char(out, '/');
	strbuf_add_string(out, !strcmp(path, ".") ? "" : path);
	if (out->data[out->length - 1] == '/' && out->length > 2 && out->data[out->length - 2] != '"')
		strbuf_truncate(out, out->length - 1);
	strbuf_add_char(out, '"');
	if (source->module)
		strbuf_addf(out, " (in %s)", source->module);
}

/* --- single objects, wherever their attributes are --- */

int attr_source_stat(struct attr_source *source, const char *path, bool follow, struct fs_stat *st)
{
	struct snapshot_place place;

	if (source->kind == ATTRS_SNAPSHOT) {
		if (attr_source_lookup(source, path, follow, &place) < 0)
			return -1;
		fill_stat(source->snapshot, &place, st);
		return 0;
	}
	if (follow)
		return fs_stat_follow(&source->attr_root, path, st);
	return source->fake_super ? fs_fake_lstat(&source->attr_root, path, st) : fs_lstat(&source->attr_root, path, st);
}

/* The current name of a scan, not followed. */
static int scan_lstat(const struct scan *scan, const char *name, struct fs_stat *st)
{
	struct attr_source *source = scan->source;

	if (scan->place.entry && !scan->is_searchable)
		return fs_fail(EACCES);
	if (scan->place.entry) {
		fill_stat(source->snapshot, &scan->place, st);
		return 0;
	}
	if (scan->dir_fd < 0)
		return attr_source_stat(source, strbuf_text(&scan->path), false, st);
	return source->fake_super ? fs_fake_lstat_at(scan->dir_fd, name, st) : fs_lstat_at(scan->dir_fd, name, st);
}

static ssize_t read_target(struct scan *scan, const char *name, char *target, size_t size)
{
	const char *path = strbuf_text(&scan->path);
	struct snapshot_place place;

	if (scan->source->kind == ATTRS_SNAPSHOT) {
		if (current_place(scan, &place) < 0)
			return -1;
		if (!entry_is_symlink(place.entry))
			return fs_fail(EINVAL);
		const char *text = entry_target(&place.view, place.entry);
		size_t length = strlen(text);

		if (length >= size)
			return fs_fail(ENAMETOOLONG);
		memcpy(target, text, length + 1);
		return (ssize_t)length;
	}
	if (scan->source->fake_super)
		return scan->dir_fd >= 0 ? fs_fake_readlink_at(scan->dir_fd, name, target, size)
					 : fs_fake_readlink(&scan->source->attr_root, path, target, size);
	return scan->dir_fd >= 0 ? fs_readlink_at(scan->dir_fd, name, target, size)
				 : fs_readlink(&scan->source->attr_root, path, target, size);
}

/* An attr file has the mode and owner of the real one, so it is asked in its place. */
static bool is_readable(struct scan *scan, const char *name, const struct fs_stat *st)
{
	struct snapshot_place place;

	if (S_ISLNK(st->mode) || !scan->options->ignore_nonreadable)
		return true;
	if (scan->source->kind == ATTRS_SNAPSHOT)
		return current_place(scan, &place) == 0
		       && fs_permits(attr_source_who(scan->source), place.entry->mode, place.entry->uid, place.entry->gid,
				     FS_MAY_READ);
	return scan->dir_fd >= 0 ? fs_is_readable_at(scan->dir_fd, name)
				 : fs_is_readable(&scan->source->attr_root, strbuf_text(&scan->path));
}

/* --- one directory, one name after the other --- */

/* Log about the current name, `before` QUOTED `after`[: reason], and note it in *io_error. Returns the result. */
static enum scan_result complain(struct scan *scan, enum scan_result result, const char *before, const char *after, int error)
{
	bool vanished = result == SCAN_VANISHED;
	struct strbuf quoted = STRBUF_INIT;

	attr_source_quote(scan->source, strbuf_text(&scan->path), &quoted);
	if (error)
		log_errno(L_ERROR_XFER, error, "%s%s%s", before, strbuf_text(&quoted), after);
	else
		log_msg(vanished ? L_WARNING : L_ERROR_XFER, "%s%s%s", before, strbuf_text(&quoted), after);
	strbuf_free(&quoted);
	*scan->io_error |= vanished ? IOERR_VANISHED : IOERR_GENERAL;
	return result;
}

static bool scan_excluded(struct scan *scan, bool is_dir)
{
	return scan->options->excluded && scan->options->excluded(scan->options->context, strbuf_text(&scan->transfer), is_dir);
}

/* A name that cannot be looked at. If it might be an excluded one, nobody wants to know. */
static enum scan_result scan_failed(struct scan *scan, int error)
{
	if (scan_excluded(scan, true) || scan_excluded(scan, false))
		return SCAN_MISSING;
	if (error == ENOENT)
		return complain(scan, SCAN_VANISHED, "file has vanished: ", "", 0);
	return complain(scan, SCAN_ERROR, "readlink_stat(", ") failed", error);
}

/* An attr tree's regular file: metadata and size through one descriptor. */
static enum scan_result read_attr_file(struct scan *scan, const char *name, bool follow, struct fs_stat *st)
{
	const struct fs_root *root = &scan->source->attr_root;
	const char *path = strbuf_text(&scan->path);
	int fd = follow ? fs_open(root, path, O_RDONLY | FS_FOLLOW, 0) : fs_open_at(scan->dir_fd, name, O_RDONLY, 0);
	uint8_t content[ATTR_FILE_SIZE + 1];

	if (fd < 0 || fs_stat_at_fd(fd, st) < 0) {
		int error = errno;
		fs_close(fd);
		if (error == ENOENT)
			return scan_failed(scan, error);
		/* What this process may not read, and so not its attr file either, is listed all the same if its size is known.
		 */
		if (error == EACCES && (follow ? fs_stat_follow(root, path, st) : fs_lstat_at(scan->dir_fd, name, st)) == 0
		    && S_ISREG(st->mode) && st->size == ATTR_FILE_SIZE && attr_hint_read(st, &st->size))
			return SCAN_OK;
		return complain(scan, SCAN_ERROR, "send_files failed to open ", "", error);
	}
	bool is_file = S_ISREG(st->mode);
	bool is_short = is_file && (st->size != ATTR_FILE_SIZE || fs_read_full(fd, content, sizeof content) != ATTR_FILE_SIZE);

	close(fd);
	if (is_short)
		return complain(scan, SCAN_ERROR, "rsync: attr file ", " is not 8 bytes long", 0);
	if (is_file)
		st->size = attr_file_decode(content);
	if (is_file && st->size > INT64_MAX)
		return complain(scan, SCAN_ERROR, "rsync: attr file ", " holds a size over 2^63-1", 0);
	return SCAN_OK;
}

/* -L, -k and --copy-unsafe-links: is this symlink to be replaced by what it points to? */
static bool wants_referent(struct scan *scan, const char *name)
{
	const struct scan_options *options = scan->options;
	struct fs_stat referent;
	char target[PATH_MAX];

	if (options->copy_links)
		return true;
	if (options->copy_unsafe_links && read_target(scan, name, target, sizeof target) > 0
	    && fs_symlink_is_unsafe(target, strbuf_text(&scan->transfer))) {
		if (options->log_copied_unsafe)
			log_info("copying unsafe symlink \"%s\" -> \"%s\"", strbuf_text(&scan->transfer), target);
		return true;
	}
	return options->copy_dirlinks && attr_source_stat(scan->source, strbuf_text(&scan->path), true, &referent) == 0
	       && S_ISDIR(referent.mode);
}

/* Attributes of the current name, links replaced as the options want. *followed: st is that of a symlink's referent. */
static enum scan_result stat_name(struct scan *scan, const char *name, struct fs_stat *st, bool *followed)
{
	*followed = false;
	if (scan_lstat(scan, name, st) < 0)
		return scan_failed(scan, errno);
	if (!S_ISLNK(st->mode) || !wants_referent(scan, name))
		return SCAN_OK;
	*followed = true;
	if (attr_source_stat(scan->source, strbuf_text(&scan->path), true, st) == 0)
		return SCAN_OK;
	int error = errno;

	if (scan_excluded(scan, true) || scan_excluded(scan, false))
		return SCAN_MISSING;
	/* To a module's client what lies outside does not exist. */
	if (error == ENOENT || (error == ELOOP && scan->source->module))
		return complain(scan, SCAN_ERROR, "symlink has no referent: ", "", 0);
	return complain(scan, SCAN_ERROR, "readlink_stat(", ") failed", error);
}

/* false, and the entry is gone: its target cannot be read. */
static bool add_symlink_target(struct scan *scan, struct entry *entry, const char *name)
{
	char target[PATH_MAX];
	ssize_t length = read_target(scan, name, target, sizeof target);
	size_t prefix = strlen(MUNGE_PREFIX);

	if (length <= 0) {
		if (length < 0)
			complain(scan, SCAN_ERROR, "readlink_stat(", ") failed", errno);
		else
			complain(scan, SCAN_ERROR, "rsync: symlink ", " has an empty target", 0);
		entries_remove_last(scan->list);
		return false;
	}
	if (!scan->options->munge_symlinks || (size_t)length <= prefix || memcmp(target, MUNGE_PREFIX, prefix) != 0)
		prefix = 0;
	entries_set_target(scan->list, entry, target + prefix, (size_t)length - prefix);
	return true;
}

/* An entry from its attributes. NULL: a symlink turned out to be unreadable. */
static struct entry *add_entry(struct scan *scan, const char *name, size_t name_length, const struct fs_stat *st)
{
	const struct scan_options *options = scan->options;
	struct entry *entry = entries_add(scan->list, name, name_length);
	bool linked = options->hard_links && st->nlink > 1 && !S_ISDIR(st->mode),
	     origin = options->origins && S_ISREG(st->mode);
	bool only_attrs = scan->source->only_attrs && S_ISREG(st->mode), atime = options->atimes && !S_ISDIR(st->mode);

	entry_set_stat(entry, st);
	if (only_attrs)
		entry->size = ATTR_FILE_SIZE;
	if (linked || origin || atime || only_attrs || entry_is_device(entry)) {
		struct entry_side *side = entries_side(scan->list, entry);
		uint64_t size;

		if (linked || origin) {
			side->dev = st->dev;
			side->ino = st->ino;
		}
		if (linked)
			entry->flags |= ENTRY_HARD_LINKED;
		if (origin) {
			side->ctime = st->ctime;
			side->ctime_nsec = st->ctime_nsec;
		}
		/* The access time of an attr file may stand for its size: the file's own is not known. */
		if (atime)
			side->atime = scan->source->kind == ATTRS_ATTR_TREE && attr_hint_read(st, &size) ? st->mtime
													 : st->atime;
		if (entry_is_device(entry)) {
			side->rdev_major = st->rdev_major;
			side->rdev_minor = st->rdev_minor;
		}
		side->real_size = only_attrs ? st->size : 0;
	}
	if (entry_is_symlink(entry) && options->links && !add_symlink_target(scan, entry, name))
		return NULL;
	return entry;
}

/* --copy-devices: a device is a file of what can be read from it. Only block devices have an end. */
static void take_for_file(struct scan *scan, struct fs_stat *st)
{
	struct timespec now;

	if (!scan->options->copy_devices || !(S_ISCHR(st->mode) || S_ISBLK(st->mode)) || scan->source->kind != ATTRS_LIVE)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	st->mtime = now.tv_sec;
	st->mtime_nsec = (uint32_t)now.tv_nsec;
	st->size = 0;
	if (S_ISBLK(st->mode)) {
		int fd = attr_source_open_any(scan->source, strbuf_text(&scan->path), true);

		st->size = fd < 0 ? 0 : fs_device_size(fd);
		fs_close(fd);
	}
	st->mode = S_IFREG | (st->mode & 07777);
}

/* Mount points under -x: false if the directory is left out altogether. */
static bool admit_mount_point(struct scan *scan, const struct fs_stat *st, uint16_t *flags)
{
	bool is_noted = scan->place.entry && scan->place.entry->flags & ENTRY_MOUNT;

	if (!scan->options->one_file_system || !S_ISDIR(st->mode) || (st->dev == scan->parent_dev && !is_noted))
		return true;
	if (scan->options->one_file_system > 1) {
		if (scan->options->log_mounts)
			log_info("[sender] skipping mount-point dir %s", strbuf_text(&scan->transfer));
		return false;
	}
	*flags |= ENTRY_MOUNT | ENTRY_NO_CONTENT;
	return true;
}

static bool follows_links(const struct scan_options *options)
{
	return options->copy_links || options->copy_dirlinks || options->copy_unsafe_links;
}

/* One name of the directory: filter before touching it where its kind is known, then attributes, then the entry. */
static void scan_name(struct scan *scan, const struct fs_dirent *name)
{
	bool attr_tree = scan->source->kind == ATTRS_ATTR_TREE, followed = false;
	bool kind_known = name->type != DT_UNKNOWN && !(name->type == DT_LNK && follows_links(scan->options));
	uint16_t flags = 0;
	struct fs_stat st;

	strbuf_truncate(&scan->path, scan->path_length);
	strbuf_add_path(&scan->path, name->name);
	strbuf_truncate(&scan->transfer, scan->transfer_length);
	strbuf_add_path(&scan->transfer, name->name);
	if (scan->transfer_length + name->name_length + 2 > PATH_MAX) {
		log_msg(L_ERROR_XFER, "rsync: [sender] cannot send file with a name over %d bytes: %s", PATH_MAX - 1,
			strbuf_text(&scan->transfer));
		*scan->io_error |= IOERR_GENERAL;
		return;
	}
	if (kind_known && scan_excluded(scan, name->type == DT_DIR))
		return;
	if (attr_tree && name->type == DT_REG) {
		if (read_attr_file(scan, name->name, false, &st) != SCAN_OK)
			return;
	} else {
		if (stat_name(scan, name->name, &st, &followed) != SCAN_OK)
			return;
		if (attr_tree && S_ISREG(st.mode) && read_attr_file(scan, name->name, followed, &st) != SCAN_OK)
			return;
	}
	if (!kind_known && scan_excluded(scan, S_ISDIR(st.mode)))
		return;
	if (!is_readable(scan, name->name, &st) || !admit_mount_point(scan, &st, &flags))
		return;
	take_for_file(scan, &st);
	struct entry *entry = add_entry(scan, name->name, name->name_length, &st);

	if (entry)
		entry->flags |= flags;
}

static enum scan_result opendir_failed(struct scan *scan, int error)
{
	if (error == ENOENT)
		return complain(scan, SCAN_VANISHED, "directory has vanished: ", "", 0);
	return complain(scan, SCAN_ERROR, "opendir ", " failed", error);
}

static void scan_free(struct scan *scan)
{
	strbuf_free(&scan->path);
	strbuf_free(&scan->transfer);
}

/* Names take the place of a ".". */
static size_t start_path(struct strbuf *sb, const char *directory)
{
	strbuf_add_string(sb, directory);
	return strcmp(directory, ".") != 0 ? sb->length : 0;
}

static void scan_start(struct scan *scan, const char *path, const char *transfer_dir)
{
	scan->path_length = start_path(&scan->path, path);
	scan->transfer_length = start_path(&scan->transfer, transfer_dir);
}

enum scan_result attr_source_scan_at(struct attr_source *source, const struct scan_options *options, int dir_fd,
				     const char *path, const char *transfer_dir, struct entries *list, int *io_error)
{
	struct scan scan = { .source = source, .options = options, .dir_fd = dir_fd, .list = list, .io_error = io_error };
	enum scan_result result = SCAN_OK;
	int error = errno, more;
	struct fs_dir dir;
	struct fs_dirent name;
	struct fs_stat st;

	scan_start(&scan, path, transfer_dir);
	if (dir_fd < 0) {
		result = opendir_failed(&scan, error);
	} else {
		if (options->one_file_system && fs_stat_at_fd(dir_fd, &st) == 0)
			scan.parent_dev = st.dev;
		fs_dir_start(&dir, dir_fd);
		while ((more = fs_dir_next(&dir, &name)) > 0)
			scan_name(&scan, &name);
		error = errno;
		fs_dir_finish(&dir);
		if (more < 0) {
			strbuf_truncate(&scan.path, scan.path_length);
			result = complain(&scan, SCAN_ERROR, "readdir(", ")", error);
		}
	}
	scan_free(&scan);
	errno = error;
	return result;
}

enum scan_result attr_source_scan(struct attr_source *source, const struct scan_options *options, const char *path,
				  const char *transfer_dir, struct entries *list, int *io_error)
{
	struct scan scan = { .source = source, .options = options, .dir_fd = -1, .list = list, .io_error = io_error };

	if (source->kind != ATTRS_SNAPSHOT)
		return attr_source_scan_at(source, options, fs_opendir(&source->attr_root, path), path, transfer_dir, list,
					   io_error);
	const struct attr_snapshot *snapshot = source->snapshot;
	const struct entries *view = &scan.place.view;
	enum scan_result result = SCAN_OK;
	uint32_t dir;

	scan_start(&scan, path, transfer_dir);
	if (open_mapped(source, path, &dir) < 0) {
		result = opendir_failed(&scan, errno);
	} else {
		scan.place.view = attr_snapshot_view(snapshot, dir);
		scan.place.parent = dir;
		scan.parent_dev = attr_snapshot_dir(snapshot, dir).dev;
		scan.is_searchable = attr_source_dir_permits(source, dir, FS_MAY_SEARCH);
		for (uint32_t i = 0; i < view->count; i++) {
			const struct entry *entry = &view->items[i];
			struct fs_dirent name = { entry_name(view, entry), entry->name_length, IFTODT(entry->mode) };

			scan.place.entry = entry;
			scan_name(&scan, &name);
		}
	}
	scan_free(&scan);
	return result;
}

/* Attributes of a named object. Following is for dot arguments and implied parents: a symlink there stands for its target. */
static enum scan_result stat_named(struct scan *scan, bool follow, struct fs_stat *st, bool *followed)
{
	const char *path = strbuf_text(&scan->path);

	if (attr_source_stat(scan->source, path, false, st) < 0)
		return SCAN_MISSING;
	*followed = false;
	if (S_ISLNK(st->mode) && follow) {
		*followed = true;
		if (attr_source_stat(scan->source, path, true, st) < 0)
			return SCAN_MISSING;
	} else if (S_ISLNK(st->mode) && follows_links(scan->options)) {
		struct fs_stat referent;

		/* With -L the name is that of what the symlink leads to. */
		if (scan->options->copy_links && attr_source_stat(scan->source, path, true, &referent) < 0
		    && (errno == ENOENT || errno == ENOTDIR))
			return SCAN_MISSING;
		return stat_name(scan, NULL, st, followed);
	}
	return SCAN_OK;
}

enum scan_result attr_source_entry(struct attr_source *source, const struct scan_options *options, const char *path,
				   const char *transfer, const char *name, bool follow, struct entries *list, int *io_error)
{
	struct scan scan = { .source = source, .options = options, .dir_fd = -1, .list = list, .io_error = io_error };
	struct fs_stat st;
	bool followed;

	scan_start(&scan, path, transfer);
	enum scan_result result = stat_named(&scan, follow, &st, &followed);

	if (result == SCAN_OK && source->kind == ATTRS_ATTR_TREE && S_ISREG(st.mode))
		result = read_attr_file(&scan, name, true, &st);
	if (result == SCAN_OK)
		take_for_file(&scan, &st);
	if (result == SCAN_OK && is_readable(&scan, name, &st) && !add_entry(&scan, name, strlen(name), &st))
		result = SCAN_ERROR;
	int error = errno;

	scan_free(&scan);
	errno = error;
	return result;
}

/* --- views of a snapshot --- */

/* Is every name wanted, and listed as it is stored? transfer_dir: `length` bytes, short enough for any name behind it. */
static bool wants_all(const struct scan_options *options, const char *transfer_dir, size_t length, const struct entries *view)
{
	char path[PATH_MAX];

	if (length == 1 && *transfer_dir == '.')
		length = 0;
	memcpy(path, transfer_dir, length);
	if (length && path[length - 1] != '/')
		path[length++] = '/';
	for (uint32_t i = 0; i < view->count && options->munge_symlinks; i++)
		if (entry_is_symlink(&view->items[i])
		    && !strncmp(entry_target(view, &view->items[i]), MUNGE_PREFIX, strlen(MUNGE_PREFIX)))
			return false;
	for (uint32_t i = 0; i < view->count && options->excluded; i++) {
		const struct entry *entry = &view->items[i];

		memcpy(path + length, entry_name(view, entry), (size_t)entry->name_length + 1);
		if (options->excluded(options->context, path, entry_is_dir(entry)))
			return false;
	}
	return true;
}

bool attr_source_view(struct attr_source *source, const struct scan_options *options, uint32_t dir, const char *path,
		      const char *transfer_dir, struct entries *view)
{
	size_t length = strlen(transfer_dir);

	/* Are entries what the mapping holds, whichever directory it is? */
	if (source->kind != ATTRS_SNAPSHOT || follows_links(options) || options->one_file_system || options->origins
	    || source->only_attrs || (options->atimes && !attr_snapshot_facts(source->snapshot)->has_atimes)
	    || (options->ignore_nonreadable && !attr_source_who(source)->superuser))
		return false;
	if (length + NAME_MAX + 2 > PATH_MAX)
		return false;
	if (dir == SNAPSHOT_DIR_UNKNOWN && open_mapped(source, path, &dir) < 0)
		return false;
	if (attr_snapshot_dir(source->snapshot, dir).error
	    || !attr_source_dir_permits(source, dir, FS_MAY_READ | FS_MAY_SEARCH))
		return false;
	struct entries found = attr_snapshot_view(source->snapshot, dir);

	if (!wants_all(options, transfer_dir, length, &found))
		return false;
	*view = found;
	return true;
}

/* --- names --- */

int attr_source_names(struct attr_source *source, const char *path, struct attr_names *names)
{
	uint32_t dir;

	names->is_view = source->kind == ATTRS_SNAPSHOT;
	names->next = 0;
	if (names->is_view) {
		if (open_mapped(source, path, &dir) < 0)
			return -1;
		names->view = attr_snapshot_view(source->snapshot, dir);
		return 0;
	}
	int fd = fs_opendir(&source->attr_root, path);

	if (fd < 0)
		return -1;
	fs_dir_start(&names->live, fd);
	return 0;
}

int attr_names_next(struct attr_names *names, struct fs_dirent *name)
{
	if (!names->is_view)
		return fs_dir_next(&names->live, name);
	if (names->next == names->view.count)
		return 0;
	const struct entry *entry = &names->view.items[names->next++];

	*name = (struct fs_dirent){ entry_name(&names->view, entry), entry->name_length, IFTODT(entry->mode) };
	return 1;
}

void attr_names_finish(struct attr_names *names)
{
	if (!names->is_view)
		fs_dir_finish(&names->live);
}

bool attrs_munging_is_unsafe(void)
{
	struct fs_root directory;

	if (fs_root_open(&directory, "/rsyncd-munged") < 0)
		return false;
	fs_root_close(&directory);
	return true;
}
