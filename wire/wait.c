/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long a connection waits, for which of its ends, and what ends the wait: time-outs, deadlines, signals. */
#include "wire/wait.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/internal.h"

enum {
	WAIT_MAX_MS = 60 * 1000,
	HOOK_MS = 1000,
	SMALL_PIECE = 4096,     /* of words and requests */
	/* Time-outs that a peer may only take keep-alives for: a client may be busy with its disk, a user wants to know. */
	SILENCE_FACTOR = 10,
	SERVER_SILENCE_FACTOR = 3,
};

/* --- what ends a wait --- */

/* What the clock or a signal ends whatever the peer does; looked at after every system call on the connection. */
void wire_check_limits(struct wire *wire, int64_t now)
{
	int64_t deadline = wire->deadline;

	if (deadline && now >= deadline && !wire_is_reader(wire)) {
		wire->deadline = 0;
		wire->expired(wire->expired_context);
	}
	if (wire->set.stop_at && time(NULL) >= wire->set.stop_at) {
		wire->set.stop_at = 0;
		die(EXIT_TIMEOUT, "stopping at requested limit");
	}
	wire_run_wait_hook(wire);
}

/* The idle time counts from the last byte or from the start of the wait: our own long computations are not the peer's. */
static int64_t idle_start(const struct wire *wire, int64_t wait_start)
{
	int64_t last = wire->last_io;

	return last > wait_start ? last : wait_start;
}

static void time_out(struct wire *wire, int64_t seconds)
{
	/* The peer does not read either: whatever is still to be said goes nowhere. */
	wire->set.timeout = 0;
	wire->failed = true;
	die(EXIT_TIMEOUT, "[%s] io timeout after %" PRId64 " seconds -- exiting", log_role(), seconds);
}

/*
 * Our own keep-alives count as traffic, so that a peer may be busy with its disk for longer than the time-out, as with every
 * other server. But one that only ever takes them would hold its slot for good (doc/protocol/08-security.md section 3.1).
 */
void wire_check_silence(struct wire *wire, int64_t wait_start)
{
	int64_t most = (int64_t)wire->set.timeout * (wire->set.is_server ? SILENCE_FACTOR : SERVER_SILENCE_FACTOR);
	int64_t last = wire->last_traffic;

	if (most && (clock_nanoseconds() - (last > wait_start ? last : wait_start)) / CLOCK_SECOND >= most)
		time_out(wire, most);
}

/* --- waiting --- */

static void lower(int64_t *least, int64_t value)
{
	if (value < *least)
		*least = value;
}

/* Milliseconds until something is due; rounded up, so that a wait that has run its time finds it expired. */
static int wait_milliseconds(const struct wire *wire, int64_t wait_start, int64_t now)
{
	int timeout = wire->set.timeout;
	int64_t least = WAIT_MAX_MS * INT64_C(1000000);
	int64_t ms;

	if (wire->set.wait_hook || wire->set.stop_at || wire->split)
		lower(&least, HOOK_MS * INT64_C(1000000));
	int64_t deadline = wire->deadline;

	if (deadline)
		lower(&least, deadline - now);
	if (timeout) {
		lower(&least, idle_start(wire, wait_start) + timeout * CLOCK_SECOND - now);
		if (wire->mux_out && !wire->set.only_listens && !wire->failed
		    && now - wire->last_output < wire_keep_alive_interval(wire))
			lower(&least, wire->last_output + wire_keep_alive_interval(wire) - now);
	}
	ms = (least + 999999) / 1000000;
	return ms < 1 ? 1 : (int)ms;
}

/* Wait for one of the events; -1 as descriptor: none. Returns with or without them. */
void wire_wait_for(struct wire *wire, int in_fd, int out_fd, int64_t wait_start)
{
	struct pollfd fds[2] = { { .fd = in_fd, .events = POLLIN }, { .fd = out_fd, .events = POLLOUT } };
	int64_t now = clock_nanoseconds();

	wire_check_limits(wire, now);
	int timeout = wire->set.timeout;

	if (timeout && now - idle_start(wire, wait_start) >= timeout * CLOCK_SECOND)
		time_out(wire, timeout);
	if (wire->is_tcp && in_fd >= 0 && out_fd < 0 && wire->last_piece <= SMALL_PIECE) {
		/*
		 * Other rsyncs write their words in several pieces and let the kernel keep the second back until the first is
		 * acknowledged, which the kernel on this side puts off for 40 ms in the hope of an answer. There is none: we
		 * wait for more. Long transfers do without: they are acknowledged as they come.
		 */
		int one = 1;

		setsockopt(wire->in_fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);
	}
	if (poll(fds, 2, wait_milliseconds(wire, wait_start, now)) < 0 && errno != EINTR && errno != EAGAIN)
		die(EXIT_SOCKETIO, "[%s] poll on the connection failed: %s (%d)", log_role(), strerror(errno), errno);
	/* A wait for the peer has ended. While a split connection is owed nothing, it is the peer who waits for our disk. */
	if (wire->set.meter && ((out_fd >= 0) || !wire->split || wire->set.owed))
		atomic_fetch_add_explicit(&wire->set.meter->waited, (uint64_t)(clock_nanoseconds() - now),
					  memory_order_relaxed);
	wire_run_wait_hook(wire);
}

/* --- settings --- */

void wire_set_deadline(struct wire *wire, int64_t monotonic_ns, void (*expired)(void *context), void *context)
{
	wire->expired = expired;
	wire->expired_context = context;
	wire->deadline = monotonic_ns;
}
