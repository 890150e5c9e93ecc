/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Paths inside a snapshot, with the decisions that resolver R1 takes in the live tree (fs/root.h, doc/protocol/08-security.md
 * section 4.2) and the errors that the kernel gives: symlinks to directories are followed by their stored targets as long as
 * they stay inside, and a directory that the process could not search is in the way here, too. The real tree is not looked at.
 */
#ifndef ATTRS_SNAPSHOT_LOOKUP_H
#define ATTRS_SNAPSHOT_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "attrs/entry.h"
#include "attrs/snapshot.h"
#include "fs/access.h"

/* One object of a snapshot. */
struct snapshot_place {
	struct entries view;       /* the list that the entry is in: that of `parent`, or the root's own list of one */
	const struct entry *entry; /* of a directory: entry->dir is its number */
	uint32_t parent;           /* the directory that it lies in; 0 for the root */
};

/*
 * Resolve `path`; "" and "." mean the root. follow: a final symlink stands for its target. trusting: as fs_root.trusting of a
 * root that the process is confined to: absolute targets begin at the root, ".." stays there. 0, or -1 with errno.
 */
int snapshot_lookup(const struct attr_snapshot *snapshot, const struct fs_credentials *who, bool trusting, const char *path,
		    bool follow, struct snapshot_place *place);

/* The place of directory number `dir`. */
void snapshot_dir_place(const struct attr_snapshot *snapshot, uint32_t dir, struct snapshot_place *place);
/* Do the mode bits of directory number `dir` grant this (enum fs_permission)? */
bool snapshot_dir_permits(const struct attr_snapshot *snapshot, const struct fs_credentials *who, uint32_t dir,
			  unsigned wanted);

#endif
