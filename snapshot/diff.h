/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The differences of two attr snapshots, printed or counted. */
#ifndef SNAPSHOT_DIFF_H
#define SNAPSHOT_DIFF_H

#include <stdint.h>

struct attr_snapshot;
struct options;

/* --attr-diff */
int snapshot_diff_main(struct options *options);

/* How many entries are new, changed or gone. `old` is not changed. */
uint64_t snapshot_count_changes(struct attr_snapshot *old, const struct attr_snapshot *new);

#endif
