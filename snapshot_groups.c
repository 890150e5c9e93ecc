/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Hard links of two trees. Inode numbers of the two need not agree, groups are compared: an entry that is linked to the leader
 * of its group now must have been linked to it then, and entries that were linked then must still be.
 */
#include <stdlib.h>

#include "lib/alloc.h"
#include "snapshot_private.h"

/* A group of the newer tree. */
struct link_pair {
	struct tree_place leader;
	uint64_t then_dev, then_ino; /* what the leader belonged to in the older tree, both 0 if to nothing */
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

uint32_t link_groups_join(struct link_groups *groups, const struct entry_side *side, struct tree_place place, bool *leads)
{
	uint32_t group = (uint32_t)*hashmap_put(&groups->now, side->dev, side->ino, groups->pairs.count, leads);
	struct link_pair pair = { .leader = place };

	if (*leads)
		vec_push(&groups->pairs, pair);
	return group;
}

struct tree_place link_groups_leader(const struct link_groups *groups, uint32_t group)
{
	return groups->pairs.items[group].leader;
}

/* Was it linked to the leader that it has now? */
static bool follows_leader(struct link_groups *groups, const struct entry_side *then, uint32_t group)
{
	const struct link_pair *pair = &groups->pairs.items[group];

	return then && then->dev == pair->then_dev && then->ino == pair->then_ino;
}

bool link_groups_differ(struct link_groups *groups, const struct entry_side *then, uint32_t group, bool leads)
{
	bool differs = group != NO_GROUP && !leads && !follows_leader(groups, then, group), first;

	if (!then)
		return differs;
	if (group != NO_GROUP && leads) {
		groups->pairs.items[group].then_dev = then->dev;
		groups->pairs.items[group].then_ino = then->ino;
	}
	/* A group that fell apart: all but the first of it have changed. */
	uint64_t was_with = *hashmap_put(&groups->then, then->dev, then->ino, group, &first);

	return differs || (!first && (was_with != group || group == NO_GROUP));
}
