/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is done with existing attr snapshots: list, verify, compare, convert (enum attr_mode in options.h). */
#ifndef SNAPSHOT_TOOLS_H
#define SNAPSHOT_TOOLS_H

#include <stdint.h>

struct attr_snapshot;
struct options;

/* Carry out options->attr_mode; the operands have been counted. The exit code. */
int snapshot_tool_main(struct options *options);

/* How many entries are new, changed or gone. `old` is not changed. */
uint64_t snapshot_count_changes(struct attr_snapshot *old, const struct attr_snapshot *new);

#endif
