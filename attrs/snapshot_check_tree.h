/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The check of a snapshot's tree, by ranges of directories that several threads can look at. A range believes what its first
 * directory says of its place, as long as that is in the file; the range before it has to end there. Only snapshot_check*.c
 * include this.
 */
#ifndef ATTRS_SNAPSHOT_CHECK_TREE_H
#define ATTRS_SNAPSHOT_CHECK_TREE_H

#include "attrs/snapshot_check.h"
#include "lib/strbuf.h"

/* Of each directory, known when it and its parent have been looked at. */
struct snapshot_dir_lengths {
	uint8_t name, longest;   /* its own name, the longest of its entries' */
	uint16_t path;           /* filled by snapshot_check_paths */
};

struct snapshot_part {
	const struct attr_snapshot *snapshot; /* with facts and chunks in place */
	uint32_t first, end;     /* directories first..end - 1, at least one */
	struct snapshot_dir_lengths *lengths; /* of all directories, zeroed; shared by the parts */
	struct strbuf *why;
	uint64_t content_bytes;  /* out: of its entries */
	/* Where the next directory's share of each chunk has to begin. */
	uint64_t next_entry, next_name, next_side;
	bool has_sides;          /* may the entries of the directory have side records? */
};

/* false: *part->why says what is wrong. All is well with the tree when all of its parts are. */
bool snapshot_check_part(struct snapshot_part *part);
/* After that: no path in it is too long for the system. */
bool snapshot_check_paths(const struct attr_snapshot *snapshot, struct snapshot_dir_lengths *lengths, struct strbuf *why);

#endif
