/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A snapshot in the place of the real tree: what the system calls of source.c would have said, and views of directories. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "attrs/source_private.h"

static int fail(int error)
{
	errno = error;
	return -1;
}

/* The daemon changes its user between making a source and the first question to it. */
static const struct fs_credentials *who_asks(struct attr_source *source)
{
	if (!source->who.known)
		fs_credentials_read(&source->who);
	return &source->who;
}

static int look_up(struct attr_source *source, const char *path, bool follow, struct snapshot_place *place)
{
	return snapshot_lookup(source->snapshot, who_asks(source), source->attr_root.trusting, path, follow, place);
}

/* --- single objects --- */

/* Where a directory could not be looked into, or stems from an attr tree, its device is not known: no mount point then. */
static void fill_device(const struct attr_snapshot *snapshot, const struct snapshot_place *place, struct fs_stat *st)
{
	struct snapshot_dir_facts facts = { .ino = 0 };

	if (entry_is_dir(place->entry))
		attr_snapshot_dir(snapshot, place->entry->dir, &facts);
	st->ino = facts.ino;
	if (!facts.ino)
		attr_snapshot_dir(snapshot, place->parent, &facts);
	st->dev = facts.dev;
}

/* The link count is only known to be more than one or not. */
static void fill_stat(const struct attr_snapshot *snapshot, const struct snapshot_place *place, struct fs_stat *st)
{
	const struct entry *entry = place->entry;
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(&place->view, entry, &expanded);

	*st = (struct fs_stat){
		.mode = entry->mode, .uid = entry->uid, .gid = entry->gid, .nlink = entry->flags & ENTRY_HARD_LINKED ? 2 : 1,
		.size = entry->size, .mtime = entry->mtime, .atime = entry->mtime, .mtime_nsec = entry->mtime_nsec,
	};
	fill_device(snapshot, place, st);
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

int snapshot_source_stat(struct attr_source *source, const char *path, bool follow, struct fs_stat *st)
{
	struct snapshot_place place;

	if (look_up(source, path, follow, &place) < 0)
		return -1;
	fill_stat(source->snapshot, &place, st);
	return 0;
}

/* --- a directory being read --- */

int snapshot_source_opendir(struct attr_source *source, const char *path, uint32_t *dir)
{
	struct snapshot_place place;
	struct snapshot_dir_facts facts;

	if (look_up(source, path, true, &place) < 0)
		return -1;
	const struct entry *entry = place.entry;

	if (!entry_is_dir(entry))
		return fail(ENOTDIR);
	if (!fs_permits(who_asks(source), entry->mode, entry->uid, entry->gid, FS_MAY_READ))
		return fail(EACCES);
	attr_snapshot_dir(source->snapshot, entry->dir, &facts);
	*dir = entry->dir;
	return facts.error ? fail(facts.error) : 0;
}

void snapshot_scan_start(struct scan *scan, uint32_t dir)
{
	const struct attr_snapshot *snapshot = scan->source->snapshot;
	struct snapshot_dir_facts facts;

	attr_snapshot_dir(snapshot, dir, &facts);
	attr_snapshot_view(snapshot, dir, &scan->place.view);
	scan->place.parent = dir;
	scan->parent_dev = facts.dev;
	scan->is_searchable = snapshot_dir_permits(snapshot, who_asks(scan->source), dir, FS_MAY_SEARCH);
}

/* A named object is looked up each time it is asked for, as in a live tree. */
static int current_place(const struct scan *scan, struct snapshot_place *place)
{
	if (!scan->place.entry)
		return look_up(scan->source, strbuf_text(&scan->path), false, place);
	*place = scan->place;
	return scan->is_searchable ? 0 : fail(EACCES);
}

int snapshot_scan_lstat(const struct scan *scan, struct fs_stat *st)
{
	struct snapshot_place place;

	if (current_place(scan, &place) < 0)
		return -1;
	fill_stat(scan->source->snapshot, &place, st);
	return 0;
}

ssize_t snapshot_scan_readlink(const struct scan *scan, char *target, size_t size)
{
	struct snapshot_place place;

	if (current_place(scan, &place) < 0)
		return -1;
	if (!entry_is_symlink(place.entry))
		return fail(EINVAL);
	const char *text = entry_target(&place.view, place.entry);
	size_t length = strlen(text);

	if (length >= size)
		return fail(ENAMETOOLONG);
	memcpy(target, text, length + 1);
	return (ssize_t)length;
}

bool snapshot_scan_is_readable(const struct scan *scan)
{
	struct snapshot_place place;

	return current_place(scan, &place) == 0
	       && fs_permits(who_asks(scan->source), place.entry->mode, place.entry->uid, place.entry->gid, FS_MAY_READ);
}

/* --- views --- */

/* Are entries what the mapping holds, whichever directory it is? */
static bool takes_entries_as_they_are(struct attr_source *source, const struct scan_options *options)
{
	if (options->copy_links || options->copy_dirlinks || options->copy_unsafe_links || options->one_file_system)
		return false;
	if (options->origins || source->only_attrs)
		return false;
	if (options->atimes && !attr_snapshot_facts(source->snapshot)->has_atimes)
		return false;
	return !options->ignore_nonreadable || who_asks(source)->superuser;
}

/* transfer_dir: `length` bytes, short enough for any name behind it. */
static bool wants_all(const struct scan_options *options, const char *transfer_dir, size_t length, const struct entries *view)
{
	char path[PATH_MAX];

	if (length == 1 && *transfer_dir == '.')
		length = 0;
	memcpy(path, transfer_dir, length);
	if (length && path[length - 1] != '/')
		path[length++] = '/';
	for (uint32_t i = 0; i < view->count; i++) {
		const struct entry *entry = &view->items[i];

		memcpy(path + length, entry_name(view, entry), (size_t)entry->name_length + 1);
		if (options->excluded(options->context, path, entry_is_dir(entry)))
			return false;
	}
	return true;
}

/* Only such targets are listed otherwise than they are stored. */
static bool has_munged_target(const struct entries *view)
{
	for (uint32_t i = 0; i < view->count && !entry_is_dir(&view->items[i]); i++) {
		const struct entry *entry = &view->items[i];

		if (entry_is_symlink(entry) && !strncmp(entry_target(view, entry), MUNGE_PREFIX, strlen(MUNGE_PREFIX)))
			return true;
	}
	return false;
}

bool attr_source_view(struct attr_source *source, const struct scan_options *options, uint32_t dir, const char *path,
		      const char *transfer_dir, struct entries *view, int *io_error, enum scan_result *result)
{
	struct snapshot_dir_facts facts;
	struct entries found;
	size_t length = strlen(transfer_dir);

	(void)io_error; /* what there is to complain about is left to attr_source_scan */
	if (source->kind != ATTRS_SNAPSHOT || !takes_entries_as_they_are(source, options))
		return false;
	if (length + NAME_MAX + 2 > PATH_MAX)
		return false;
	if (dir == SNAPSHOT_DIR_UNKNOWN && snapshot_source_opendir(source, path, &dir) < 0)
		return false;
	attr_snapshot_dir(source->snapshot, dir, &facts);
	if (facts.error || !snapshot_dir_permits(source->snapshot, who_asks(source), dir, FS_MAY_READ | FS_MAY_SEARCH))
		return false;
	attr_snapshot_view(source->snapshot, dir, &found);
	if (options->munge_symlinks && has_munged_target(&found))
		return false;
	if (options->excluded && !wants_all(options, transfer_dir, length, &found))
		return false;
	*view = found;
	*result = SCAN_OK;
	return true;
}

/* --- names --- */

int attr_source_names(struct attr_source *source, const char *path, struct attr_names *names)
{
	uint32_t dir;

	names->is_view = source->kind == ATTRS_SNAPSHOT;
	names->next = 0;
	if (!names->is_view) {
		int fd = fs_opendir(&source->attr_root, path);

		if (fd >= 0)
			fs_dir_start(&names->live, fd);
		return fd < 0 ? -1 : 0;
	}
	if (snapshot_source_opendir(source, path, &dir) < 0)
		return -1;
	attr_snapshot_view(source->snapshot, dir, &names->view);
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

void attr_source_finish(struct attr_source *source)
{
	attr_source_links_free(source);
	fs_credentials_free(&source->who);
}
