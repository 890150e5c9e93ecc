/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The runs that make a destination tree equal to its sources, or list them. */
#ifndef CONTENTS_CONTENTS_H
#define CONTENTS_CONTENTS_H

#include "receiver.h"

/* Operands: sources and, last, the destination (or one source: list it). What was done goes into `stats`, unless that is NULL.
 * Returns the exit code. */
int receiver_main(struct options *options, struct run_stats *stats);

/* --attr-list FILE [PATH]: what --list-only would say of the tree. */
int receiver_list_snapshot(struct options *options);

/* --attr-to-tree TREE: the snapshot as an attr tree. */
int receiver_snapshot_to_tree(struct options *options);

/* A pull: sources that a peer sends. destination NULL: list them. Reads and writes up to the goodbye. */
int receiver_pull_main(struct options *options, const struct receiver_peer *peer, const char *destination);

#endif
