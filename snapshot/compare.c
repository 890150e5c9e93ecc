/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The differences of two trees, by a walk through both at once: directory by directory, each a merge of two sorted lists. */
#include "snapshot/compare.h"

#include <stdlib.h>
#include <string.h>

#include "attrs/image.h"
#include "attrs/snapshot.h"
#include "dest/decide.h"
#include "lib/alloc.h"
#include "lib/hashmap.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "wire/request.h"

/* --- hard links of two trees --- */

/*
 * Inode numbers of the two need not agree, groups are compared: an entry that is linked to the leader of its group now must
 * have been linked to it then, and entries that were linked then must still be.
 */

/* A group of the newer tree. */
struct link_pair {
	struct tree_place leader;
	bool is_known;               /* the leader was there in the older tree */
	uint64_t then_dev, then_ino; /* what it belonged to then, both 0 if to nothing */
};

struct link_groups {
	struct hashmap now;  /* device and inode in the newer tree -> index of the group */
	struct hashmap then; /* device and inode in the older tree -> the group that its first entry is in now, or NO_GROUP */
	VEC(struct link_pair) pairs;
};

struct link_groups *link_groups_new(void)
{
	return xcalloc(1, sizeof(struct link_groups));
}

void link_groups_free(struct link_groups *groups)
{
	hashmap_free(&groups->now);
	hashmap_free(&groups->then);
	vec_free(&groups->pairs);
	free(groups);
}

struct tree_place link_groups_leader(const struct link_groups *groups, uint32_t group)
{
	return groups->pairs.items[group].leader;
}

/* Then, of every entry of both trees that has several links in either: was it linked to others than now? then: what it was
 * linked to; group: its group now, or NO_GROUP; leads: it is the leader. */
static bool link_groups_differ(struct link_groups *groups, const struct entry_side *then, uint32_t group, bool leads)
{
	bool differs = false, first;

	/* Was it linked to the leader that it has now? */
	if (group != NO_GROUP && !leads) {
		const struct link_pair *pair = &groups->pairs.items[group];
		differs = !then || then->dev != pair->then_dev || then->ino != pair->then_ino;
	}
	if (!then)
		return differs;
	/* A group that fell apart: all but the first of it have changed. */
	uint64_t was_with = *hashmap_put(&groups->then, then->dev, then->ino, group, &first);

	return differs || (!first && (was_with != group || group == NO_GROUP));
}

/* A directory that is being compared. */
struct level {
	struct entries old_view, new_view;
	const struct entries *old, *new; /* old without entries: the directory is new */
	uint32_t new_dir, old_at, new_at;
	size_t path_length;              /* of its path */
	bool keeps;                      /* one of the two could not be read: nothing below it counts as deleted */
};

struct walk {
	const struct snapshot_comparison *comparison;
	bool learns;                     /* the first of two walks: hard links are looked at, nothing is reported */
	VEC(struct level *) levels;
	struct strbuf path;
};

/* --- trees --- */

static const struct entries *tree_entries(const struct compared_tree *tree, uint32_t dir, struct entries *view)
{
	if (tree->image)
		return &tree->image->dirs.items[dir]->entries;
	*view = attr_snapshot_view(tree->snapshot, dir);
	return view;
}

void compared_path(const struct compared_tree *tree, struct tree_place place, struct strbuf *out)
{
	struct entries view;
	const struct entries *list = tree_entries(tree, place.dir, &view);

	if (tree->image)
		image_dir_path(tree->image, place.dir, out);
	else
		attr_snapshot_dir_path(tree->snapshot, place.dir, out);
	strbuf_add_path(out, entry_name(list, &list->items[place.index]));
}

const uint8_t *compared_digest(const struct compared_tree *tree, const struct entries *list, const struct entry *entry,
			       enum attr_digest which)
{
	const struct entry_side *side;

	if (!entry_is_regular(entry))
		return NULL;
	if (list->snapshot)
		return attr_snapshot_digest(list, entry, which);
	side = entry_side_of(list, entry);
	if (!tree->image || !(tree->image->digests & which) || !side || !side->digest)
		return NULL;
	const struct image_digest *digest = &tree->image->digest_list.items[side->digest - 1];

	return which == ATTR_DIGEST_XXH128 ? digest->xxh128 : digest->md5;
}

/* --- two entries of one name and kind --- */

struct pair {
	const struct walk *walk;
	const struct entries *old_list, *new_list;
	const struct entry *old, *new;
};

static bool same_digests(const struct pair *pair)
{
	static const enum attr_digest kinds[] = { ATTR_DIGEST_XXH128, ATTR_DIGEST_MD5 };
	const struct snapshot_comparison *comparison = pair->walk->comparison;
	const struct compared_tree old_tree = { .snapshot = comparison->old };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const uint8_t *old = compared_digest(&old_tree, pair->old_list, pair->old, kinds[i]);
		const uint8_t *new = old ? compared_digest(&comparison->new, pair->new_list, pair->new, kinds[i]) : NULL;

		if (new && memcmp(old, new, 16) != 0)
			return false;
	}
	return true;
}

/* Anything but what every entry has. */
static uint32_t content_flags(const struct pair *pair)
{
	const uint32_t made_anew = ITEM_LOCAL_CHANGE | ITEM_REPORT_CHANGE;
	struct entry_side old_room, new_room;

	if (entry_is_regular(pair->new))
		return (pair->old->size != pair->new->size ? ITEM_REPORT_SIZE : 0)
		       | (same_digests(pair) ? 0 : ITEM_REPORT_CHANGE);
	if (entry_is_symlink(pair->new))
		return strcmp(entry_target(pair->old_list, pair->old), entry_target(pair->new_list, pair->new)) ? made_anew : 0;
	if (!entry_is_device(pair->new))
		return 0;
	const struct entry_side *old = entry_any_side(pair->old_list, pair->old, &old_room);
	const struct entry_side *new = entry_any_side(pair->new_list, pair->new, &new_room);

	return old && new && old->rdev_major == new->rdev_major && old->rdev_minor == new->rdev_minor ? 0 : made_anew;
}

static bool same_atime(const struct pair *pair)
{
	struct entry_side old_room, new_room;
	const struct entry_side *old = entry_any_side(pair->old_list, pair->old, &old_room);
	const struct entry_side *new = entry_any_side(pair->new_list, pair->new, &new_room);

	return (old ? old->atime : 0) == (new ? new->atime : 0);
}

static uint32_t attribute_flags(const struct pair *pair)
{
	const struct entry *old = pair->old, *new = pair->new;
	int window = pair->walk->comparison->modify_window;
	uint32_t flags = 0;

	if (!decide_same_time(window ? window : -1, old->mtime, old->mtime_nsec, new->mtime, new->mtime_nsec))
		flags |= ITEM_REPORT_TIME;
	if (old->mode != new->mode && !entry_is_symlink(new))
		flags |= ITEM_REPORT_PERMS;
	if (old->uid != new->uid)
		flags |= ITEM_REPORT_OWNER;
	if (old->gid != new->gid)
		flags |= ITEM_REPORT_GROUP;
	if (pair->walk->comparison->atimes && !entry_is_dir(new) && !same_atime(pair))
		flags |= ITEM_REPORT_ATIME;
	return flags;
}

/* What happens to an entry of the newer tree; same_kind: the older one has such an entry of its name. */
static uint32_t item_flags(const struct pair *pair, bool same_kind)
{
	const uint32_t transferred = ITEM_REPORT_SIZE | ITEM_REPORT_TIME | ITEM_REPORT_CHANGE;
	bool regular = entry_is_regular(pair->new);

	if (!same_kind && regular)
		return ITEM_IS_NEW | ITEM_TRANSFER;
	if (!same_kind)
		return ITEM_IS_NEW | ITEM_LOCAL_CHANGE | (entry_is_dir(pair->new) ? 0 : ITEM_REPORT_CHANGE);
	uint32_t flags = content_flags(pair) | attribute_flags(pair);

	return regular && flags & transferred ? flags | ITEM_TRANSFER : flags;
}

/* --- reports --- */

static const struct entry_side *link_side(const struct entries *list, const struct entry *entry, struct entry_side *room)
{
	return entry && entry->flags & ENTRY_HARD_LINKED ? entry_any_side(list, entry, room) : NULL;
}

static bool is_same_kind(const struct pair *pair)
{
	return pair->old && (pair->old->mode & S_IFMT) == (pair->new->mode & S_IFMT);
}

/* First, of every entry of the newer tree that has several links, in order: the leader of a group is the first that existed in
 * the older tree, else the last of all. */
static void learn_entry(const struct walk *walk, const struct pair *pair, struct tree_place place)
{
	struct link_groups *groups = walk->comparison->groups;
	struct entry_side then_room, now_room;
	const struct entry_side *now = link_side(pair->new_list, pair->new, &now_room);
	bool existed = now && is_same_kind(pair), is_new;
	const struct entry_side *then = existed ? link_side(pair->old_list, pair->old, &then_room) : NULL;

	if (!now)
		return;
	uint64_t group = *hashmap_put(&groups->now, now->dev, now->ino, groups->pairs.count, &is_new);
	struct link_pair learned = {
		.leader = place, .is_known = existed, .then_dev = then ? then->dev : 0, .then_ino = then ? then->ino : 0,
	};

	if (is_new)
		vec_push(&groups->pairs, learned);
	else if (!groups->pairs.items[group].is_known)
		groups->pairs.items[group] = learned;
}

/* An entry of the newer tree; old NULL: it is new. */
static void report_entry(const struct walk *walk, const struct pair *pair, struct tree_place place)
{
	const struct snapshot_comparison *comparison = walk->comparison;
	const uint32_t written = ITEM_TRANSFER | ITEM_LOCAL_CHANGE;
	bool same_kind = is_same_kind(pair);
	struct snapshot_change change = {
		.item = item_flags(pair, same_kind), .list = pair->new_list, .entry = pair->new, .group = NO_GROUP,
		.place = place, .path = strbuf_text(&walk->path),
	};
	struct entry_side then_room, now_room;
	const struct entry_side *now = link_side(pair->new_list, pair->new, &now_room);
	const struct entry_side *then = same_kind ? link_side(pair->old_list, pair->old, &then_room) : NULL;

	if (now) {
		change.group = (uint32_t)*hashmap_get(&comparison->groups->now, now->dev, now->ino);
		struct tree_place leader = link_groups_leader(comparison->groups, change.group);

		change.leads = leader.dir == place.dir && leader.index == place.index;
	}
	bool relinked = (now || then) && link_groups_differ(comparison->groups, then, change.group, change.leads);

	/* A link to the leader of its group is made as a link, not transferred. */
	if (change.group != NO_GROUP && !change.leads && (change.item & written || relinked))
		change.item = (change.item & ~(uint32_t)ITEM_TRANSFER) | ITEM_LOCAL_CHANGE | ITEM_XNAME_FOLLOWS;
	else if (relinked && !(change.item & (written | ITEM_IS_NEW)))
		change.item |= ITEM_LOCAL_CHANGE | ITEM_XNAME_FOLLOWS;
	if (change.item || (now && comparison->all))
		comparison->tell(comparison->context, &change);
}

/* --- what is gone --- */

static void report_gone(struct walk *walk, const struct entries *list, const struct entry *entry)
{
	const struct snapshot_change change = {
		.item = ITEM_DELETED, .list = list, .entry = entry, .path = strbuf_text(&walk->path), .group = NO_GROUP,
	};

	walk->comparison->tell(walk->comparison->context, &change);
}

/* Everything in a directory of the older tree and in those below it: directories after what they hold. */
static void report_contents_gone(struct walk *walk, uint32_t top)
{
	const struct attr_snapshot *old = walk->comparison->old;
	struct snapshot_dir_facts facts;
	struct strbuf saved = walk->path;
	struct entries view;

	walk->path = (struct strbuf)STRBUF_INIT;
	facts = attr_snapshot_dir(old, top);
	for (uint32_t dir = facts.subtree_end; dir-- > top;) {
		view = attr_snapshot_view(old, dir);
		attr_snapshot_dir_path(old, dir, &walk->path);
		for (uint32_t i = 0, length = (uint32_t)walk->path.length; i < view.count; i++) {
			strbuf_truncate(&walk->path, length);
			strbuf_add_path(&walk->path, entry_name(&view, &view.items[i]));
			report_gone(walk, &view, &view.items[i]);
		}
	}
	strbuf_free(&walk->path);
	walk->path = saved;
}

/* --- the walk --- */

static void enter_level(struct walk *walk, bool has_old, uint32_t old_dir, uint32_t new_dir)
{
	const struct snapshot_comparison *comparison = walk->comparison;
	const struct compared_tree old_tree = { .snapshot = comparison->old }, *new = &comparison->new;
	struct level *level = xcalloc(1, sizeof *level);

	level->old = has_old ? tree_entries(&old_tree, old_dir, &level->old_view) : &level->old_view;
	level->new = tree_entries(new, new_dir, &level->new_view);
	level->new_dir = new_dir;
	level->path_length = walk->path.length;
	int error = new->image ? new->image->dirs.items[new_dir]->error : attr_snapshot_dir(new->snapshot, new_dir).error;

	level->keeps = comparison->keeps || error;
	vec_push(&walk->levels, level);
}

static void set_name(struct walk *walk, const struct level *level, const struct entries *list, const struct entry *entry)
{
	strbuf_truncate(&walk->path, level->path_length);
	strbuf_add_path(&walk->path, entry_name(list, entry));
}

static void step_old(struct walk *walk, struct level *level)
{
	const struct entry *entry = &level->old->items[level->old_at++];
	const char *name = entry_name(level->old, entry);

	if (level->keeps || walk->learns)
		return;
	set_name(walk, level, level->old, entry);
	if (entry->dir)
		report_contents_gone(walk, entry->dir);
	/* Whatever makes the new object makes room for it; a list of what to delete would come too late for that. */
	if (entries_find(level->new, name, !entry_is_dir(entry)) < 0)
		report_gone(walk, level->old, entry);
}

static void step_new(struct walk *walk, struct level *level, const struct entry *old)
{
	const struct image *image = walk->comparison->new.image;
	struct tree_place place = { level->new_dir, level->new_at++ };
	const struct entry *new = &level->new->items[place.index];
	struct pair pair = { walk, level->old, level->new, old, new };
	uint32_t dir = new->dir;

	if (walk->learns) {
		learn_entry(walk, &pair, place);
	} else {
		set_name(walk, level, level->new, new);
		report_entry(walk, &pair, place);
	}
	if (!entry_is_dir(new))
		return;
	if (image) {
		const struct image_dir *parent = image->dirs.items[place.dir];
		dir = parent->first_child + (place.index - (level->new->count - parent->child_count));
	}
	enter_level(walk, old != NULL, old ? old->dir : 0, dir);
}

static void walk_through(struct walk *walk)
{
	enter_level(walk, true, 0, 0);
	/* The next name of the directory, of one tree or of both. */
	while (walk->levels.count) {
		struct level *level = walk->levels.items[walk->levels.count - 1];
		const struct entry *old = level->old_at < level->old->count ? &level->old->items[level->old_at] : NULL;
		const struct entry *new = level->new_at < level->new->count ? &level->new->items[level->new_at] : NULL;
		int order = !old ? 1 : !new ? -1 : entry_compare(level->old, old, level->new, new);

		if (!old && !new) {
			free(walk->levels.items[--walk->levels.count]);
		} else if (order < 0) {
			step_old(walk, level);
		} else {
			level->old_at += order == 0;
			step_new(walk, level, order == 0 ? old : NULL);
		}
	}
}

static bool has_links(const struct compared_tree *tree)
{
	size_t dirs = tree->image ? tree->image->dirs.count : attr_snapshot_facts(tree->snapshot)->dir_count;
	struct entries view;

	for (uint32_t dir = 0; dir < dirs; dir++) {
		const struct entries *list = tree_entries(tree, dir, &view);

		for (uint32_t i = 0; i < list->count; i++)
			if (list->items[i].flags & ENTRY_HARD_LINKED)
				return true;
	}
	return false;
}

void snapshot_compare(const struct snapshot_comparison *comparison)
{
	const struct image *image = comparison->new.image;
	struct walk walk = { .comparison = comparison, .learns = has_links(&comparison->new) };
	struct entries old = attr_snapshot_root(comparison->old);
	struct entries new = image ? image->root : attr_snapshot_root(comparison->new.snapshot);
	struct pair roots = { &walk, &old, &new, &old.items[0], &new.items[0] };

	if (walk.learns)
		walk_through(&walk);
	walk.learns = false;
	strbuf_add_string(&walk.path, ".");
	report_entry(&walk, &roots, (struct tree_place){ 0, 0 });
	strbuf_reset(&walk.path);
	walk_through(&walk);
	vec_free(&walk.levels);
	strbuf_free(&walk.path);
}
