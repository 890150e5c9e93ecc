/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The differences of two trees. */
#ifndef SNAPSHOT_COMPARE_H
#define SNAPSHOT_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "attrs/image.h"
#include "attrs/snapshot.h"
#include "lib/strbuf.h"

/* Which entries of the newer tree are links to one file. */
struct link_groups;
struct link_groups *link_groups_new(void);
void link_groups_free(struct link_groups *groups);

/* Where the newer tree has an entry. */
struct tree_place { uint32_t dir, index; };
enum { NO_GROUP = UINT32_MAX };
struct tree_place link_groups_leader(const struct link_groups *groups, uint32_t group);

/* One of the trees: either a snapshot or an image. */
struct compared_tree {
	const struct attr_snapshot *snapshot;
	const struct image *image;
};

struct snapshot_change {
	/* ITEM_* as rsync would itemize the step from old to new; ITEM_DELETED of names that are there no more; 0: none. */
	uint32_t item;
	const struct entries *list;  /* of the newer tree; of the older one if it is deleted */
	const struct entry *entry;
	const char *path;            /* below the root; "." for the root itself */
	uint32_t group;              /* of the newer tree, or NO_GROUP */
	bool leads;
	struct tree_place place;     /* in the newer tree */
};

/* Compares two trees, both in wire order, one directory after the other; nothing of a snapshot is loaded. */
struct snapshot_comparison {
	struct attr_snapshot *old;   /* not changed */
	struct compared_tree new;
	bool atimes;                 /* access times count */
	int modify_window;           /* seconds by which times may differ; 0: not by a nanosecond */
	bool all;                    /* report unchanged entries that have several links as well, with item 0 */
	bool keeps;                  /* nothing counts as deleted: the newer tree may lack something */
	struct link_groups *groups;
	void (*tell)(void *context, const struct snapshot_change *change);
	void *context;
};
void snapshot_compare(const struct snapshot_comparison *comparison);
/* Path below the root of an entry of the newer tree, after a reset. */
void compared_path(const struct compared_tree *tree, struct tree_place place, struct strbuf *out);
/* The digest of a regular file's content, 16 bytes, or NULL. */
const uint8_t *compared_digest(const struct compared_tree *tree, const struct entries *list, const struct entry *entry,
			       enum attr_digest which);

#endif
