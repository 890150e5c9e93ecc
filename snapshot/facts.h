/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attr snapshots as a command opens and describes them. */
#ifndef SNAPSHOT_FACTS_H
#define SNAPSHOT_FACTS_H

#include "attrs/snapshot.h"
#include "lib/strbuf.h"

/* Open the snapshot or end the process with EXIT_FILEIO, said why. */
struct attr_snapshot *snapshot_open_or_die(const char *path);
/* Lines that say what the header says. */
void snapshot_describe(struct strbuf *out, const char *path, const struct attr_snapshot *snapshot, int number_level);
/* What was written to standard output has arrived there; else the process ends with EXIT_FILEIO. */
void snapshot_flush_output(void);

#endif
