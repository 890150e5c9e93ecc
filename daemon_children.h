/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The server processes of a listener: how many there are, and how many of one address have not got past the handshake yet
 * (protocol/08 section 3.5). The counts are taken before a process is forked, so that strangers who only connect can neither
 * fill the machine nor keep others out.
 */
#ifndef DAEMON_CHILDREN_H
#define DAEMON_CHILDREN_H

#include <sys/socket.h>
#include <sys/types.h>

#include "daemon_board.h"
#include "daemon_hosts.h"

#define CHILDREN_MAX 1024       /* server processes at a time; a busy mirror has hundreds */
#define HANDSHAKES_MAX 64       /* of one IPv4 address or IPv6 /64 at a time; an honest handshake takes milliseconds */

struct children;

struct children *children_new(void);
/* A free slot for a connection from this address (NULL: a proxy's, which speaks for many); -1: *limit is how many there are. */
int children_admit(struct children *children, const struct sockaddr *peer, int *limit);
/* Whose slot it is, and how many other processes serve that client. */
const struct origin *children_origin(const struct children *children, int slot);
int children_of_host(const struct children *children, int slot);
/* The process that gets this slot only tells the client that it is refused: it does not count for the client. */
void children_refuse(struct children *children, int slot);
void children_started(struct children *children, int slot, pid_t pid);
/* Forget every process that has ended; one that crashed is logged. `ended` hears of each before its slot is free. */
void children_reap(struct children *children);
void children_on_end(struct children *children, void (*ended)(void *context, int slot, int status), void *context);
/* Where the process of the slot tells what it does: cleared by children_admit. */
struct board_slot *children_board(struct children *children, int slot);
/* What the process in this slot is, since when it runs (Unix time); 0 if there is none. */
pid_t children_pid(const struct children *children, int slot, int64_t *since);
/* In the child: the client has asked for something and is served. */
void children_handshake_done(struct children *children, int slot);

#endif
