/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A snapshot in the place of the real tree: what the system calls of source.c would have said. */
#include "attrs/snapshot_source.h"

#include <errno.h>
#include <string.h>

static int fail(int error)
{
	errno = error;
	return -1;
}

static int look_up(struct attr_source *source, const char *path, bool follow, struct snapshot_place *place)
{
	return snapshot_lookup(source->snapshot, attr_source_who(source), source->attr_root.trusting, path, follow, place);
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
	if (!fs_permits(attr_source_who(source), entry->mode, entry->uid, entry->gid, FS_MAY_READ))
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
	scan->is_searchable = snapshot_dir_permits(snapshot, attr_source_who(scan->source), dir, FS_MAY_SEARCH);
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
	       && fs_permits(attr_source_who(scan->source), place.entry->mode, place.entry->uid, place.entry->gid, FS_MAY_READ);
}
