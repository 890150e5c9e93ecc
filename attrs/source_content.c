/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Paths inside a snapshot, resolved one component at a time; and contents of a source: opened, by another name where a snapshot
 * is stale, or known by their digests.
 */
#include "attrs/source_content.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/file.h"

#define MAX_HOPS 40 /* as the kernel's own resolution */

struct walk {
	struct attr_source *source;
	bool follow;
	bool directory; /* the path ends in a slash: anything but a directory is ENOTDIR */
	int hops;
	uint32_t dir;   /* the directory reached so far */
	struct snapshot_place *place;
};

/* The place of directory number `dir`. */
static void snapshot_dir_place(const struct attr_snapshot *snapshot, uint32_t dir, struct snapshot_place *place)
{
	struct snapshot_dir_facts facts = attr_snapshot_dir(snapshot, dir); /* of the root all 0 */

	place->parent = facts.parent;
	place->view = dir ? attr_snapshot_view(snapshot, facts.parent) : attr_snapshot_root(snapshot);
	place->entry = &place->view.items[facts.parent_entry];
}

bool attr_source_dir_permits(struct attr_source *source, uint32_t dir, unsigned wanted)
{
	const struct fs_credentials *who = attr_source_who(source);
	struct snapshot_place place;

	if (who->superuser)
		return true;
	snapshot_dir_place(source->snapshot, dir, &place);
	return fs_permits(who, place.entry->mode, place.entry->uid, place.entry->gid, wanted);
}

static int walk_text(struct walk *walk, const char *text, bool last);

/* A name in the directory reached: go into it, follow it, or, if it is the last one, arrive at it. */
static int step_to(struct walk *walk, const char *name, bool is_last)
{
	const struct attr_snapshot *snapshot = walk->source->snapshot;
	struct entries view = attr_snapshot_view(snapshot, walk->dir);
	int32_t at = entries_find(&view, name, true);

	if (at >= 0) {
		walk->dir = view.items[at].dir;
		return 0;
	}
	at = entries_find(&view, name, false);
	if (at < 0) {
		int error = attr_snapshot_dir(snapshot, walk->dir).error;
		return fs_fail(error ? error : ENOENT);
	}
	const struct entry *entry = &view.items[at];

	if (entry_is_symlink(entry) && (!is_last || walk->follow || walk->directory))
		return ++walk->hops > MAX_HOPS ? fs_fail(ELOOP) : walk_text(walk, entry_target(&view, entry), is_last);
	if (!is_last || walk->directory)
		return fs_fail(ENOTDIR);
	*walk->place = (struct snapshot_place){ .view = view, .entry = entry, .parent = walk->dir };
	return 0;
}

/* Resolve a whole path or link target from the directory reached. last: its last component is that of the whole walk. */
static int walk_text(struct walk *walk, const char *text, bool last)
{
	char name[NAME_MAX + 1];
	bool trusting = walk->source->attr_root.trusting;
	size_t length;
	int result = 0;

	if (*text == '/' && !trusting)
		return fs_fail(ELOOP);
	if (*text == '/')
		walk->dir = 0;
	while (result == 0) {
		text += strspn(text, "/");
		length = strcspn(text, "/");
		if (length == 0)
			return 0;
		if (!attr_source_dir_permits(walk->source, walk->dir, FS_MAY_SEARCH))
			return fs_fail(EACCES);
		if (length > NAME_MAX)
			return fs_fail(ENAMETOOLONG);
		memcpy(name, text, length);
		name[length] = '\0';
		text += length;

		bool is_last = last && text[strspn(text, "/")] == '\0';

		walk->directory |= is_last && *text == '/';
		if (!strcmp(name, "..") && walk->dir)
			walk->dir = attr_snapshot_dir(walk->source->snapshot, walk->dir).parent;
		else if (!strcmp(name, ".."))
			result = trusting ? 0 : fs_fail(ELOOP);
		else if (strcmp(name, ".") != 0)
			result = step_to(walk, name, is_last);
	}
	return result;
}

int attr_source_lookup(struct attr_source *source, const char *path, bool follow, struct snapshot_place *place)
{
	struct walk walk = { .source = source, .follow = follow, .place = place };

	if (strlen(path) >= PATH_MAX)
		return fs_fail(ENAMETOOLONG);
	place->entry = NULL;
	if (walk_text(&walk, *path ? path : ".", true) < 0)
		return -1;
	if (!place->entry)
		snapshot_dir_place(source->snapshot, walk.dir, place);
	return 0;
}

const struct fs_root *attr_source_real_root(const struct attr_source *source)
{
	return source->kind == ATTRS_ATTR_TREE ? &source->content_root : &source->attr_root;
}

/* The daemon changes its user between making a source and the first question to it. */
const struct fs_credentials *attr_source_who(struct attr_source *source)
{
	if (!source->who.known)
		fs_credentials_read(&source->who);
	return &source->who;
}

int attr_source_open_any(const struct attr_source *source, const char *path, bool follow)
{
	const struct fs_root *root = attr_source_real_root(source);
	const int flags = O_RDONLY | (follow ? FS_FOLLOW : 0);

	if (source->open_noatime) {
		int fd = fs_open(root, path, flags | O_NOATIME, 0);
		if (fd >= 0 || errno != EPERM)
			return fd;
	}
	return fs_open(root, path, flags, 0);
}

int attr_source_open(struct attr_source *source, const char *path, const struct entry *entry, bool follow, uint64_t *size)
{
	bool follows = source->kind == ATTRS_SNAPSHOT && attr_snapshot_facts(source->snapshot)->followed_links;
	struct fs_stat st;
	int fd = attr_source_open_any(source, path, follow || follows);

	if (fd < 0) {
		if (errno == ENOENT)
			source->missing++;
		return -1;
	}
	if (fs_stat_at_fd(fd, &st) < 0
	    || !(S_ISREG(st.mode) || (source->copies_devices && (S_ISCHR(st.mode) || S_ISBLK(st.mode))))) {
		close(fd);
		return fs_fail(S_ISDIR(st.mode) ? EISDIR : ENXIO);
	}
	if (source->kind != ATTRS_LIVE && (st.size != entry->size || st.mtime != entry->mtime))
		source->stale++;
	*size = S_ISREG(st.mode) ? st.size : fs_device_size(fd);
	return fd;
}

/* --- hard links --- */

/*
 * Contents of hard links from a stale snapshot. What is sent for one name counts for the whole group at the other side, so it
 * must not come from a file that has taken this name since, while the listed one can still be reached by another name.
 */

#define TRIES 64 /* names of one file that may be gone, too */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_file(const struct linked_name *a, const struct linked_name *b)
{
	int order = compare_u64(a->dev, b->dev);

	return order ? order : compare_u64(a->ino, b->ino);
}

static int compare_names(const void *a_void, const void *b_void)
{
	const struct linked_name *a = a_void, *b = b_void;
	int order = compare_file(a, b);

	if (!order)
		order = compare_u64(a->dir, b->dir);
	return order ? order : compare_u64(a->entry, b->entry);
}

static void read_links(struct attr_source *source)
{
	const struct attr_snapshot *snapshot = source->snapshot;
	struct entry_side expanded;

	for (uint32_t dir = 0; dir < attr_snapshot_facts(snapshot)->dir_count; dir++) {
		struct entries view = attr_snapshot_view(snapshot, dir);

		for (uint32_t i = 0; i < view.count; i++) {
			const struct entry *entry = &view.items[i];

			if (!entry_is_regular(entry) || !(entry->flags & ENTRY_HARD_LINKED))
				continue;
			const struct entry_side *side = entry_any_side(&view, entry, &expanded);
			struct linked_name name = { side->dev, side->ino, dir, i };

			vec_push(&source->links, name);
		}
	}
	if (source->links.count)
		qsort(source->links.items, source->links.count, sizeof *source->links.items, compare_names);
	source->links_are_read = true;
}

/* The same inode; or what a run has written anew that had to make the group again. */
static bool is_listed(int fd, const struct entry *entry, uint64_t ino)
{
	struct fs_stat st;

	if (fd < 0 || fs_stat_at_fd(fd, &st) < 0)
		return false;
	return st.ino == ino || (st.size == entry->size && st.mtime == entry->mtime && st.mtime_nsec == entry->mtime_nsec);
}

/* By any name of the same file. -1: there is none. */
static int open_other(struct attr_source *source, const struct linked_name *file, const struct entry *entry, bool follow,
		      uint64_t *size)
{
	uint64_t stale = source->stale, missing = source->missing;
	struct strbuf path = STRBUF_INIT;
	int fd = -1;

	/* By the first who misses a file, which is rare. */
	if (!source->links_are_read)
		read_links(source);
	const struct linked_name *names = source->links.items;
	size_t first = 0, high = source->links.count;

	while (first < high) {
		size_t middle = first + (high - first) / 2;

		if (compare_file(&names[middle], file) < 0)
			first = middle + 1;
		else
			high = middle;
	}
	for (size_t i = first; fd < 0 && i < source->links.count && i - first < TRIES; i++) {
		if (compare_file(&names[i], file) != 0)
			break;
		struct entries view = attr_snapshot_view(source->snapshot, names[i].dir);

		attr_snapshot_dir_path(source->snapshot, names[i].dir, &path);
		strbuf_add_path(&path, entry_name(&view, &view.items[names[i].entry]));
		fd = attr_source_open(source, strbuf_text(&path), entry, follow, size);
		if (fd >= 0 && !is_listed(fd, entry, file->ino)) {
			close(fd);
			fd = -1;
		}
	}
	strbuf_free(&path);
	source->stale = stale;
	source->missing = missing;
	return fd;
}

int attr_source_open_linked(struct attr_source *source, const char *path, const struct entry *entry,
			    const struct entry_side *side, bool follow, uint64_t *size)
{
	int fd = attr_source_open(source, path, entry, follow, size), error = errno;

	if (source->kind != ATTRS_SNAPSHOT || !side || is_listed(fd, entry, side->ino))
		return fd;
	struct linked_name file = { .dev = side->dev, .ino = side->ino };
	uint64_t other_size;
	int other = open_other(source, &file, entry, follow, &other_size);

	if (other < 0) {
		errno = error;
		return fd;
	}
	fs_close(fd);
	*size = other_size;
	return other;
}

/* --- digests --- */

const uint8_t *attr_source_view_digest(struct attr_source *source, const struct entries *view, const struct entry *entry,
				       enum attr_digest which)
{
	if (!fs_permits(attr_source_who(source), entry->mode, entry->uid, entry->gid, FS_MAY_READ))
		return NULL;
	return attr_snapshot_digest(view, entry, which);
}

const uint8_t *attr_source_digest(struct attr_source *source, const char *path, bool follow, enum attr_digest which)
{
	struct snapshot_place place;

	if (source->kind != ATTRS_SNAPSHOT || attr_source_lookup(source, path, follow, &place) < 0)
		return NULL;
	return entry_is_regular(place.entry) ? attr_source_view_digest(source, &place.view, place.entry, which) : NULL;
}
