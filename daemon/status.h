/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The daemon's control socket, and --status, which asks there.
 *
 * A process that connects is sent one byte and a descriptor of a file in memory with the whole answer, and the connection is
 * closed: the listener waits for no process and keeps no state, however many ask.
 */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include <stdint.h>

#include "daemon/children.h"
#include "lib/strbuf.h"
#include "options.h"

/* In the listener, when the socket can be read: answer everybody who waits there (at most a few at a time) and is root or the
 * daemon's own user. */
void status_answer(int socket_fd, struct children *children);
/* The answer at the time `now` (Unix time): a line for each connection and one for all of them. */
void status_format(struct children *children, int64_t now, struct strbuf *out);

/* --status: ask the daemon that the configuration describes and print what it says. Returns the exit code, 1 without one. */
int daemon_status_main(const struct options *options);

#endif
