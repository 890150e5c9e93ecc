/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The metrics file of a daemon, in the text format of Prometheus: counters of the listener, by module, from the board
 * of its connections, and the state of the modules' attr snapshots.
 */
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include <stdint.h>

#include "daemon/children.h"
#include "daemon/snapshots.h"
#include "lib/strbuf.h"

struct metrics;

/* path: of the file, "" if nobody wants one. Hears of the ends of children from now on. */
struct metrics *metrics_new(const char *path, struct children *children, struct snapshots *snapshots);
/* A connection that did not get a process. */
void metrics_count_refusal(struct metrics *metrics);
/* Milliseconds until metrics_update should be called, -1: never. */
int metrics_wait(const struct metrics *metrics);
/* Count what has gone over the connections, and replace the file if it would have another content. At most every 15 s, unless
 * that is to happen now. */
void metrics_update(struct metrics *metrics, bool now);
/* Append the content of the file. */
void metrics_format(struct metrics *metrics, struct strbuf *out);

/* Append a label's value as the format wants it: '\', '"' and line feeds escaped, bytes that are no UTF-8 as \xNN. */
void metrics_add_label(struct strbuf *out, const char *value);

#endif
