/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The server processes of a listener: how many there are, and how many of one address have not got past the handshake yet
 * (doc/protocol/08-security.md section 3.5). The counts are taken before a process is forked, so that clients that only connect
 * can neither fill the machine nor keep others out: if there are too many processes, one of a client that has not been admitted
 * to a module makes room for the next.
 */
#ifndef DAEMON_CHILDREN_H
#define DAEMON_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "daemon/board.h"
#include "daemon/hosts.h"

#define CHILDREN_MAX 1024       /* server processes at a time; a busy mirror has hundreds */
#define CHILDREN_SLOTS (CHILDREN_MAX + 64) /* with those that have been killed and are not gone yet */
#define HANDSHAKES_MAX 64       /* of one IPv4 address or IPv6 /64 at a time; an honest handshake takes milliseconds */
#define HANDSHAKE_MS 1000       /* that every client has, however many come */

struct children;

struct children *children_new(void);
/*
 * Sessions that move fewer than so many bytes in a minute of waiting for their client make room for others, too; 0: none does.
 * What they move is looked at once a minute, by children_sample; children_sample_wait says in how many milliseconds that is
 * due, -1: there is nothing to look at.
 */
void children_set_minimum_rate(struct children *children, int bytes_per_minute);
void children_sample(struct children *children, int64_t now);
int children_sample_wait(const struct children *children, int64_t now);
/*
 * Returns a free slot for a connection from this address (NULL: a proxy's, which speaks for many) at `now` (clock_nanoseconds).
 * If the limit of processes is reached, the oldest of those whose clients have named no module is killed, or else of those
 * whose clients have not been admitted to theirs; if there are none of these, the slowest of the sessions that are below the
 * minimum rate is ended by a signal. -1: there is no slot, or the client has too many handshakes; *limit is how many there are.
 */
int children_admit(struct children *children, const struct sockaddr *peer, int64_t now, int *limit);
/* The client of a slot, and how many other processes serve it. */
const struct origin *children_origin(const struct children *children, int slot);
int children_of_host(const struct children *children, int slot);
/* The process that gets this slot only refuses the client: it does not count for the client. */
void children_refuse(struct children *children, int slot);
void children_started(struct children *children, int slot, pid_t pid);
/* Forget every process that has ended; one that crashed is logged. `ended` is called for each before its slot is free. */
void children_reap(struct children *children);
void children_on_end(struct children *children, void (*ended)(void *context, int slot, int status), void *context);
/* Returns the board slot that the process of this slot writes to; children_admit clears it. */
struct board_slot *children_board(struct children *children, int slot);
/* In the new process: the same, and no other slot can be reached any more. */
struct board_slot *children_become(struct children *children, int slot);
/* Returns the process in this slot and the Unix time at which it started; 0 if there is none. */
pid_t children_pid(const struct children *children, int slot, int64_t *since);
/* Has the process in this slot been killed to make room? */
bool children_made_room(const struct children *children, int slot);
/* Milliseconds until children_report has something to say, -1: never. */
int children_report_wait(const struct children *children, int64_t now);
/* Log how many have been killed to make room: at once, but no more than a line a minute unless it has to be all. */
void children_report(struct children *children, int64_t now, bool all);

#endif
