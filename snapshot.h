/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is done with existing attr snapshots: list, verify, compare, convert (enum attr_mode in options.h). */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

struct options;

/* Carry out options->attr_mode; the operands have been counted. The exit code. */
int snapshot_tool_main(struct options *options);

#endif
