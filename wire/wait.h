/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a connection waits for, and how long. Included by wire/wire.h. */
#ifndef WIRE_WAIT_H
#define WIRE_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct wire;

/* Seconds without any byte read or written until "io timeout after N seconds -- exiting", EXIT_TIMEOUT; 0: none. Also sets
 * the keep-alive interval, ceil(N/2) (doc/protocol/01-session.md section 9.8). */
void wire_set_timeout(struct wire *wire, int seconds);
int wire_timeout(const struct wire *wire);
/*
 * Until it is called with false, no keep-alives go out: who waits for a file list has nothing to do that takes time, and a
 * peer that is silent then has the time-out, not several (doc/protocol/01-session.md section 9.8). Not beside a split
 * connection.
 */
void wire_only_listen(struct wire *wire, bool only_listens);
/*
 * Absolute CLOCK_MONOTONIC deadline in nanoseconds for the handshake (doc/protocol/07-daemon.md section 5.2), 0: none. On
 * expiry `expired` is called (it must not return), never by the reader of a split connection. It may be set at the end of a
 * session, too.
 */
void wire_set_deadline(struct wire *wire, int64_t monotonic_ns, void (*expired)(void *context), void *context);
/* --stop-at / --stop-after: wall-clock second at which to end with "stopping at requested limit", EXIT_TIMEOUT; 0: none. */
void wire_set_stop_at(struct wire *wire, time_t when);
/* Called from any wait, at least once a second while waiting; lets a role notice signals. NULL: none. */
void wire_set_wait_hook(struct wire *wire, void (*hook)(void *context), void *context);

/*
 * Where somebody else can read what has come in and gone out so far, and how long the process has waited for its peer, in
 * nanoseconds; it must stay. NULL: nowhere.
 */
struct wire_meter {
	_Atomic uint64_t received, sent, waited;
};
void wire_set_meter(struct wire *wire, struct wire_meter *meter);
/* On a split connection, where the reader waits all the time: does the peer owe an answer? At first it does. */
void wire_set_owed(struct wire *wire, bool owed);

/* --- for this room --- */

/* What the clock or a signal ends whatever the peer does; looked at after every system call on the connection. */
void wire_check_limits(struct wire *wire, int64_t now);
/* End a wait since `wait_start` in which the peer has done no more than take keep-alives for too long. */
void wire_check_silence(struct wire *wire, int64_t wait_start);
/* Wait for one of the events; -1 as descriptor: none. Returns with or without them. */
void wire_wait_for(struct wire *wire, int in_fd, int out_fd, int64_t wait_start);

#endif
