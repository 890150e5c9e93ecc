/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is done with existing attr snapshots: opened, described, verified, compared. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <stdint.h>

#include "attrs/snapshot.h"
#include "lib/strbuf.h"

struct options;

/* Open the snapshot or end the process with EXIT_FILEIO, said why. */
struct attr_snapshot *snapshot_open_or_die(const char *path);
/* Lines that say what the header says. */
void snapshot_describe(struct strbuf *out, const char *path, const struct attr_snapshot *snapshot, int number_level);

/* --attr-verify and --attr-diff; the operands have been counted. The exit code. */
int snapshot_verify_main(struct options *options);
int snapshot_diff_main(struct options *options);

/* How many entries are new, changed or gone. `old` is not changed. */
uint64_t snapshot_count_changes(struct attr_snapshot *old, const struct attr_snapshot *new);

#endif
