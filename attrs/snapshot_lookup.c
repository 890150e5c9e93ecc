/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Resolving a path inside a snapshot, one component at a time. */
#include "attrs/snapshot_lookup.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define MAX_HOPS 40 /* as the kernel's own resolution */

struct walk {
	const struct attr_snapshot *snapshot;
	const struct fs_credentials *who;
	bool trusting, follow;
	bool directory; /* the path ends in a slash: anything but a directory is ENOTDIR */
	int hops;
	uint32_t dir;   /* the directory reached so far */
	struct snapshot_place *place;
};

static int fail(int error)
{
	errno = error;
	return -1;
}

void snapshot_dir_place(const struct attr_snapshot *snapshot, uint32_t dir, struct snapshot_place *place)
{
	struct snapshot_dir_facts facts;

	place->parent = 0;
	if (dir == 0) {
		attr_snapshot_root(snapshot, &place->view);
		place->entry = place->view.items;
		return;
	}
	attr_snapshot_dir(snapshot, dir, &facts);
	place->parent = facts.parent;
	attr_snapshot_view(snapshot, facts.parent, &place->view);
	place->entry = &place->view.items[facts.parent_entry];
}

bool snapshot_dir_permits(const struct attr_snapshot *snapshot, const struct fs_credentials *who, uint32_t dir,
			  unsigned wanted)
{
	struct snapshot_place place;

	if (who->superuser)
		return true;
	snapshot_dir_place(snapshot, dir, &place);
	return fs_permits(who, place.entry->mode, place.entry->uid, place.entry->gid, wanted);
}

static int walk_text(struct walk *walk, const char *text, bool last);

static int step_back(struct walk *walk)
{
	struct snapshot_dir_facts facts;

	if (walk->dir == 0)
		return walk->trusting ? 0 : fail(ELOOP);
	attr_snapshot_dir(walk->snapshot, walk->dir, &facts);
	walk->dir = facts.parent;
	return 0;
}

/* A name in the directory reached: go into it, follow it, or, if it is the last one, arrive at it. */
static int step_to(struct walk *walk, const char *name, bool is_last)
{
	struct snapshot_dir_facts facts;
	struct entries view;
	int32_t at;

	attr_snapshot_view(walk->snapshot, walk->dir, &view);
	at = entries_find(&view, name, true);
	if (at >= 0) {
		walk->dir = view.items[at].dir;
		return 0;
	}
	at = entries_find(&view, name, false);
	if (at < 0) {
		attr_snapshot_dir(walk->snapshot, walk->dir, &facts);
		return fail(facts.error ? facts.error : ENOENT);
	}
	const struct entry *entry = &view.items[at];

	if (entry_is_symlink(entry) && (!is_last || walk->follow || walk->directory))
		return ++walk->hops > MAX_HOPS ? fail(ELOOP) : walk_text(walk, entry_target(&view, entry), is_last);
	if (!is_last || walk->directory)
		return fail(ENOTDIR);
	*walk->place = (struct snapshot_place){ .view = view, .entry = entry, .parent = walk->dir };
	return 0;
}

/* Resolve a whole path or link target from the directory reached. last: its last component is that of the whole walk. */
static int walk_text(struct walk *walk, const char *text, bool last)
{
	char name[NAME_MAX + 1];
	size_t length;
	int result = 0;

	if (*text == '/' && !walk->trusting)
		return fail(ELOOP);
	if (*text == '/')
		walk->dir = 0;
	while (result == 0) {
		text += strspn(text, "/");
		length = strcspn(text, "/");
		if (length == 0)
			return 0;
		if (!snapshot_dir_permits(walk->snapshot, walk->who, walk->dir, FS_MAY_SEARCH))
			return fail(EACCES);
		if (length > NAME_MAX)
			return fail(ENAMETOOLONG);
		memcpy(name, text, length);
		name[length] = '\0';
		text += length;

		bool is_last = last && text[strspn(text, "/")] == '\0';

		walk->directory |= is_last && *text == '/';
		if (!strcmp(name, ".."))
			result = step_back(walk);
		else if (strcmp(name, ".") != 0)
			result = step_to(walk, name, is_last);
	}
	return result;
}

int snapshot_lookup(const struct attr_snapshot *snapshot, const struct fs_credentials *who, bool trusting, const char *path,
		    bool follow, struct snapshot_place *place)
{
	struct walk walk = { .snapshot = snapshot, .who = who, .trusting = trusting, .follow = follow, .place = place };

	if (strlen(path) >= PATH_MAX)
		return fail(ENAMETOOLONG);
	place->entry = NULL;
	if (walk_text(&walk, *path ? path : ".", true) < 0)
		return -1;
	if (!place->entry)
		snapshot_dir_place(snapshot, walk.dir, place);
	return 0;
}
