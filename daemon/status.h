/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The metrics file of a daemon; its control socket, and --status, which asks there.
 *
 * The file has the text format of Prometheus: counters of the listener, by module, from the board of its connections, and the
 * state of the modules' attr snapshots.
 *
 * A process that connects to the socket is sent one byte and a descriptor of a file in memory with the whole answer, and the
 * connection is closed: the listener waits for no process and keeps no state, however many ask.
 */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include <stdint.h>

#include "daemon/listen.h"
#include "daemon/snapshots.h"
#include "lib/strbuf.h"
#include "options.h"

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

/* Append a label's value as the format wants it: '\', '"' and line feeds escaped, bytes that are no UTF-8 as \xNN. */
void metrics_add_label(struct strbuf *out, const char *value);

/* In the listener, when the socket can be read: answer everybody who waits there (at most a few at a time) and is root or the
 * daemon's own user. */
void status_answer(int socket_fd, struct children *children);
/* The answer at the time `now` (Unix time): a line for each connection and one for all of them. */
void status_format(struct children *children, int64_t now, struct strbuf *out);

/* --status: ask the daemon that the configuration describes and print what it says. Returns the exit code, 1 without one. */
int daemon_status_main(const struct options *options);

#endif
