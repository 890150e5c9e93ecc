/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a connection waits for, and how long. Included by wire/wire.h. */
#ifndef WIRE_WAIT_H
#define WIRE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct wire;

/*
 * Where somebody else can read what has come in and gone out so far, and how long the process has waited for its peer, in
 * nanoseconds.
 */
struct wire_meter {
	_Atomic uint64_t received, sent, waited;
};

struct wire_settings {
	int protocol;            /* form of ndx, integers of variable length, messages that are known */
	bool is_server;          /* refuses IO_TIMEOUT messages */
	bool is_sender;          /* takes BLOCK_STATS messages, from protocol 33 on */
	/* Seconds without any byte read or written until "io timeout after N seconds -- exiting", EXIT_TIMEOUT; 0: none. Also
	 * sets the keep-alive interval, ceil(N/2) (doc/protocol/01-session.md section 9.8). */
	atomic_int timeout;
	/* No keep-alives go out: who waits for a file list has nothing to do that takes time, and a peer that is silent then
	 * has the time-out, not several (doc/protocol/01-session.md section 9.8). Not beside a split connection. */
	bool only_listens;
	_Atomic time_t stop_at;  /* --stop-at / --stop-after: "stopping at requested limit", EXIT_TIMEOUT; 0: never */
	/* Called from any wait, at least once a second while waiting; lets a role notice signals. NULL: none. */
	void (*wait_hook)(void *context);
	void *wait_hook_context;
	struct wire_meter *meter; /* NULL: nobody asks */
	atomic_bool owed;        /* on a split connection, where the reader waits all the time: does the peer owe an answer? */
};

/*
 * Absolute CLOCK_MONOTONIC deadline in nanoseconds for the handshake (doc/protocol/07-daemon.md section 5.2), 0: none. On
 * expiry `expired` is called (it must not return), never by the reader of a split connection. It may be set at the end of a
 * session, too.
 */
void wire_set_deadline(struct wire *wire, int64_t monotonic_ns, void (*expired)(void *context), void *context);

/* --- for this room --- */

/* What the clock or a signal ends whatever the peer does; looked at after every system call on the connection. */
void wire_check_limits(struct wire *wire, int64_t now);
/* End a wait since `wait_start` in which the peer has done no more than take keep-alives for too long. */
void wire_check_silence(struct wire *wire, int64_t wait_start);
/* Wait for one of the events; -1 as descriptor: none. Returns with or without them. */
void wire_wait_for(struct wire *wire, int in_fd, int out_fd, int64_t wait_start);

#endif
