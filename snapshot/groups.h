/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which entries are links to one file, in two trees. */
#ifndef SNAPSHOT_GROUPS_H
#define SNAPSHOT_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "attrs/entry.h"

struct link_groups;
struct link_groups *link_groups_new(void);
void link_groups_free(struct link_groups *groups);

/* Where the newer tree has an entry. */
struct tree_place { uint32_t dir, index; };
/*
 * First, of every entry of the newer tree that has several links, in order (now: its side record): the leader of a group is the
 * first that existed in the older tree, else the last of all. then: what it was linked to, or NULL.
 */
void link_groups_learn(struct link_groups *groups, const struct entry_side *now, struct tree_place place, bool existed,
		       const struct entry_side *then);

enum { NO_GROUP = UINT32_MAX };
/* Of an entry that has been learned. */
uint32_t link_groups_find(const struct link_groups *groups, const struct entry_side *now);
struct tree_place link_groups_leader(const struct link_groups *groups, uint32_t group);
/*
 * Then, of every entry of both trees that has several links in either: was it linked to others than now? then: as above; group:
 * its group now, or NO_GROUP; leads: it is the leader.
 */
bool link_groups_differ(struct link_groups *groups, const struct entry_side *then, uint32_t group, bool leads);

#endif
