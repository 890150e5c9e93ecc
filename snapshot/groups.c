/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Hard links of two trees. Inode numbers of the two need not agree, groups are compared: an entry that is linked to the leader
 * of its group now must have been linked to it then, and entries that were linked then must still be.
 */
#include "snapshot/groups.h"

#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/hashmap.h"
#include "lib/vec.h"

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

void link_groups_learn(struct link_groups *groups, const struct entry_side *now, struct tree_place place, bool existed,
		       const struct entry_side *then)
{
	bool is_new;
	uint64_t group = *hashmap_put(&groups->now, now->dev, now->ino, groups->pairs.count, &is_new);
	struct link_pair none = { .is_known = false };

	if (is_new)
		vec_push(&groups->pairs, none);
	if (groups->pairs.items[group].is_known)
		return;
	groups->pairs.items[group] = (struct link_pair){
		.leader = place, .is_known = existed, .then_dev = then ? then->dev : 0, .then_ino = then ? then->ino : 0,
	};
}

uint32_t link_groups_find(const struct link_groups *groups, const struct entry_side *now)
{
	return (uint32_t)*hashmap_get(&groups->now, now->dev, now->ino);
}

struct tree_place link_groups_leader(const struct link_groups *groups, uint32_t group)
{
	return groups->pairs.items[group].leader;
}

/* Was it linked to the leader that it has now? */
static bool follows_leader(const struct link_groups *groups, const struct entry_side *then, uint32_t group)
{
	const struct link_pair *pair = &groups->pairs.items[group];

	return then && then->dev == pair->then_dev && then->ino == pair->then_ino;
}

bool link_groups_differ(struct link_groups *groups, const struct entry_side *then, uint32_t group, bool leads)
{
	bool differs = group != NO_GROUP && !leads && !follows_leader(groups, then, group), first;

	if (!then)
		return differs;
	/* A group that fell apart: all but the first of it have changed. */
	uint64_t was_with = *hashmap_put(&groups->then, then->dev, then->ino, group, &first);

	return differs || (!first && (was_with != group || group == NO_GROUP));
}
