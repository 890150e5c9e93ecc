/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the commands on existing snapshots share.
 *
 *   snapshot/facts.c    opening, facts                     snapshot/list.c     --attr-list
 *   snapshot/compare.c  the differences of two trees       snapshot/verify.c   --attr-verify
 *   snapshot/report.c   how a difference is printed        snapshot/diff.c     --attr-diff
 *   snapshot/groups.c   hard links, as two trees have them snapshot/convert.c  --attr-from-tree, --attr-to-tree
 */
#ifndef SNAPSHOT_PRIVATE_H
#define SNAPSHOT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "attrs/entry.h"
#include "attrs/image.h"
#include "attrs/snapshot.h"
#include "lib/hashmap.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "options.h"

int snapshot_list_main(struct options *options);
int snapshot_verify_main(struct options *options);
int snapshot_diff_main(struct options *options);
int snapshot_from_tree_main(struct options *options);
int snapshot_to_tree_main(struct options *options);

/* --- snapshot/facts.c --- */

/* Open the snapshot or end the process with EXIT_FILEIO, said why. */
struct attr_snapshot *snapshot_open_or_die(const char *path);
/* Lines that say what the header says. */
void snapshot_describe(struct strbuf *out, const char *path, const struct attr_snapshot *snapshot, int number_level);
/* What was written to standard output has arrived there; else the process ends with EXIT_FILEIO. */
void snapshot_flush_output(void);

/* --- snapshot/groups.c: which entries are links to one file, in both trees --- */

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

/* --- snapshot/compare.c --- */

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
	bool all;                    /* tell of unchanged entries that have several links as well, with item 0 */
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

/* --- snapshot/report.c --- */

struct change_report {
	const struct options *options;
	const char *format;               /* of a line; NULL: paths for --files-from or rm, as they are */
	const struct compared_tree *tree; /* the newer one */
	const struct link_groups *groups;
	uint64_t unprintable;             /* paths that cannot stand on a line of their own */
};
void change_report(struct change_report *report, const struct snapshot_change *change);
/* A path as it is, made safe for a list that --files-from reads. */
void change_report_path(struct change_report *report, const char *path);

#endif
