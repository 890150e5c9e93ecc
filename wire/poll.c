/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bytes in and out of the descriptors: waiting, time-outs, keep-alives, the bandwidth limit. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/internal.h"

enum {
	WAIT_MAX_MS = 60 * 1000,
	HOOK_MS = 1000,
	SMALL_PIECE = 4096,     /* of words and requests */
	READ_ROOM = 16 * 1024,  /* less room than this behind `end`: move the bytes to the front first */
	BW_WRITE_MIN = 512,
	BW_PAUSE_MS = 100,      /* shorter pauses are saved up */
	LAST_WORDS_SECONDS = 2,
	/* Time-outs that a peer may only take keep-alives for: a client may be busy with its disk, a user wants to know. */
	SILENCE_FACTOR = 10,
	SERVER_SILENCE_FACTOR = 3,
};

/* --- time --- */

static int64_t keep_alive_interval(const struct wire *wire)
{
	return ((int64_t)wire->timeout + 1) / 2 * NANOSECONDS;
}

static void run_wait_hook(struct wire *wire)
{
	if (wire->wait_hook)
		wire->wait_hook(wire->wait_hook_context);
}

/* Is this the thread that reads a split connection? What it does not end itself, the one that writes does. */
static bool is_reader(const struct wire *wire)
{
	return wire->split && pthread_equal(wire->reader, pthread_self());
}

/* What the clock or a signal ends whatever the peer does; looked at after every system call on the connection. */
static void check_limits(struct wire *wire, int64_t now)
{
	int64_t deadline = wire->deadline;

	if (deadline && now >= deadline && !is_reader(wire)) {
		wire->deadline = 0;
		wire->expired(wire->expired_context);
	}
	if (wire->stop_at && time(NULL) >= wire->stop_at) {
		wire->stop_at = 0;
		die(EXIT_TIMEOUT, "stopping at requested limit");
	}
	run_wait_hook(wire);
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
	wire->timeout = 0;
	wire->failed = true;
	die(EXIT_TIMEOUT, "[%s] io timeout after %" PRId64 " seconds -- exiting", log_role(), seconds);
}

static void check_idle(struct wire *wire, int64_t wait_start, int64_t now)
{
	int timeout = wire->timeout;

	if (timeout && now - idle_start(wire, wait_start) >= timeout * NANOSECONDS)
		time_out(wire, timeout);
}

/*
 * Our own keep-alives count as traffic, so that a peer may be busy with its disk for longer than the time-out, as with every
 * other server. But one that only ever takes them would hold its slot for good (protocol/08 section 3.1).
 */
static void check_silence(struct wire *wire, int64_t wait_start)
{
	int64_t most = (int64_t)wire->timeout * (wire->is_server ? SILENCE_FACTOR : SERVER_SILENCE_FACTOR);
	int64_t last = wire->last_traffic;

	if (most && (monotonic_now() - (last > wait_start ? last : wait_start)) / NANOSECONDS >= most)
		time_out(wire, most);
}

static void lower(int64_t *least, int64_t value)
{
	if (value < *least)
		*least = value;
}

/* Milliseconds until something is due; rounded up, so that a wait that has run its time finds it expired. */
static int wait_milliseconds(const struct wire *wire, int64_t wait_start, int64_t now)
{
	int timeout = wire->timeout;
	int64_t least = WAIT_MAX_MS * INT64_C(1000000);
	int64_t ms;

	if (wire->wait_hook || wire->stop_at || wire->split)
		lower(&least, HOOK_MS * INT64_C(1000000));
	int64_t deadline = wire->deadline;

	if (deadline)
		lower(&least, deadline - now);
	if (timeout) {
		lower(&least, idle_start(wire, wait_start) + timeout * NANOSECONDS - now);
		if (wire->mux_out && !wire->only_listens && !wire->failed
		    && now - wire->last_output < keep_alive_interval(wire))
			lower(&least, wire->last_output + keep_alive_interval(wire) - now);
	}
	ms = (least + 999999) / 1000000;
	return ms < 1 ? 1 : (int)ms;
}

/*
 * Other rsyncs write their words in several pieces and let the kernel keep the second back until the first is acknowledged,
 * which the kernel on this side puts off for 40 ms in the hope of an answer. There is none: we wait for more. Long transfers do
 * without: they are acknowledged as they come.
 */
static void acknowledge(const struct wire *wire)
{
	int one = 1;

	setsockopt(wire->in_fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);
}

/* A wait for the peer has ended. While a split connection is owed nothing, it is the peer who waits for our disk. */
static void count_wait(struct wire *wire, bool for_output, int64_t since)
{
	if (wire->meter && (for_output || !wire->split || wire->owed))
		atomic_fetch_add_explicit(&wire->meter->waited, (uint64_t)(monotonic_now() - since), memory_order_relaxed);
}

/* Wait for one of the events; -1 as descriptor: none. Returns with or without them. */
static void wait_for(struct wire *wire, int in_fd, int out_fd, int64_t wait_start)
{
	struct pollfd fds[2] = { { .fd = in_fd, .events = POLLIN }, { .fd = out_fd, .events = POLLOUT } };
	int64_t now = monotonic_now();

	check_limits(wire, now);
	check_idle(wire, wait_start, now);
	if (wire->is_tcp && in_fd >= 0 && out_fd < 0 && wire->last_piece <= SMALL_PIECE)
		acknowledge(wire);
	if (poll(fds, 2, wait_milliseconds(wire, wait_start, now)) < 0 && errno != EINTR && errno != EAGAIN)
		die(EXIT_SOCKETIO, "[%s] poll on the connection failed: %s (%d)", log_role(), strerror(errno), errno);
	count_wait(wire, out_fd >= 0, now);
	run_wait_hook(wire);
}

void wire_wait_input(const struct wire *wire, int64_t end)
{
	struct pollfd fd = { .fd = wire->in_fd, .events = POLLIN };
	int64_t ms = (end - monotonic_now()) / 1000000;

	if (ms > 0)
		poll(&fd, 1, ms < HOOK_MS ? (int)ms : HOOK_MS);
}

bool wire_keep_alive_due(const struct wire *wire)
{
	return wire->timeout && wire->mux_out && !wire->only_listens
	       && monotonic_now() - wire->last_output >= keep_alive_interval(wire);
}

void wire_keep_alive(struct wire *wire)
{
	if (wire_is_reader(wire)) {
		wire_offer_output(wire);
		return;
	}
	if (!wire_keep_alive_due(wire))
		return;
	wire->sends_keep_alive = !wire_output_pending(wire);
	if (wire->sends_keep_alive)
		wire_put_empty_frame(wire);
	wire_flush(wire);
	wire->sends_keep_alive = false;
}

/* --- in --- */

static void move_to_front(struct wire *wire)
{
	memmove(wire->in, wire->in + wire->pos, wire->end - wire->pos);
	wire->end -= wire->pos;
	wire->limit -= wire->pos;
	wire->pos = 0;
}

static size_t make_room(struct wire *wire, size_t room_max)
{
	if (wire->pos && (wire->pos == wire->end || wire->in_capacity - wire->end < READ_ROOM))
		move_to_front(wire);
	if (wire->in_capacity - wire->end < READ_ROOM && wire->in_capacity < room_max) {
		wire->in = xrealloc_array(wire->in, wire->in_capacity * 2, 1);
		wire->in_capacity *= 2;
	}
	return wire->in_capacity - wire->end;
}

enum receive_result wire_try_receive(struct wire *wire, size_t room_max)
{
	size_t room;
	ssize_t got;

	if (wire->in_closed)
		return CLOSED;
	room = make_room(wire, room_max);
	if (!room)
		return WOULD_BLOCK;
	do {
		got = read(wire->in_fd, wire->in + wire->end, room);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return WOULD_BLOCK;
	if (got <= 0) {
		wire->in_closed = true;
		wire->in_error = got < 0 ? errno : 0;
		return CLOSED;
	}
	wire->last_piece = (size_t)got;
	wire->received += (uint64_t)got;
	if (wire->meter)
		atomic_store_explicit(&wire->meter->received, wire->received, memory_order_relaxed);
	wire->last_io = wire->last_traffic = monotonic_now();
	wire_input_grew(wire, (size_t)got);
	check_limits(wire, wire->last_io);
	return RECEIVED;
}

void wire_die_closed(struct wire *wire)
{
	if (wire->in_error)
		die(EXIT_SOCKETIO, "rsync: [%s] read error: %s (%d)", log_role(), strerror(wire->in_error), wire->in_error);
	die(EXIT_STREAMIO, "rsync: connection unexpectedly closed (%" PRIu64 " bytes received so far) [%s]",
	    wire_bytes_read(wire), log_role());
}

void wire_check_peer(void *wire_void)
{
	struct wire *wire = wire_void;
	struct pollfd ends[2] = { { .fd = wire->in_fd, .events = POLLRDHUP }, { .fd = wire->out_fd } };

	run_wait_hook(wire);
	if (poll(ends, 2, 0) <= 0 || !((ends[0].revents | ends[1].revents) & (POLLRDHUP | POLLHUP | POLLERR)))
		return;
	/* What it has said before it went is of no use any more, and nothing that is said now arrives. */
	wire->failed = true;
	wire_die_closed(wire);
}

void wire_receive_or_close(struct wire *wire)
{
	uint64_t before = wire->received;
	int64_t since = monotonic_now();

	while (wire_try_receive(wire, IN_SIZE) == WOULD_BLOCK) {
		/* The peer may be waiting for what we hold back; sending it may have drained input. */
		if (!wire->split && wire_output_pending(wire)) {
			wire_flush(wire);
		} else {
			check_silence(wire, since);
			wire_keep_alive(wire);
			if (wire->received == before)
				wait_for(wire, wire->in_fd, -1, since);
		}
		if (wire->received != before)
			return;
	}
}

void wire_receive(struct wire *wire)
{
	uint64_t before = wire->received;

	wire_receive_or_close(wire);
	if (wire->received == before)
		wire_die_closed(wire);
}

bool wire_input_ready(struct wire *wire)
{
	do {
		if (wire_take_frames(wire))
			return true;
	} while (wire_try_receive(wire, IN_SIZE) == RECEIVED);
	return wire->in_closed;
}

/* --- out --- */

/* A server that ends says why before it closes, and there is no other way to know than to read on to the end. */
static void hear_last_words(struct wire *wire)
{
	int64_t end = monotonic_now() + LAST_WORDS_SECONDS * NANOSECONDS;
	enum receive_result result = RECEIVED;

	while (wire->mux_in && result != CLOSED && monotonic_now() < end) {
		while (wire_take_frames(wire))
			wire->pos = wire->limit;
		result = wire_try_receive(wire, IN_MAX);
		if (result == WOULD_BLOCK)
			wire_wait_input(wire, end);
	}
}

static void write_failed(struct wire *wire, int error)
{
	wire->failed = true;
	wire->out_used = 0;
	wire->frame = NO_FRAME;
	/* A remote shell that has not come to anything: what it has said, or that it has closed, will be read next. Of any
	 * other error the peer knows nothing: it waits for what was not sent. */
	if (!wire->is_server && !wire->received && (error == EPIPE || error == ECONNRESET))
		return;
	if (!wire->is_server && !wire->split)
		hear_last_words(wire);
	die(EXIT_SOCKETIO, "rsync: [%s] write error: %s (%d)", log_role(), strerror(error), error);
}

static size_t bw_write_max(const struct wire *wire)
{
	size_t most = (size_t)wire->bwlimit * 128;

	return most < BW_WRITE_MIN ? BW_WRITE_MIN : most;
}

/* After `length` bytes: pause when what was sent ahead is worth it. */
static void bw_pause(struct wire *wire, size_t length)
{
	uint64_t rate = (uint64_t)wire->bwlimit * 1024, earned, milliseconds;
	int64_t now = monotonic_now();
	struct timespec pause;

	wire->bw_debt += length;
	earned = (uint64_t)(now - wire->bw_last) / 1000 * rate / 1000000;
	wire->bw_debt = earned < wire->bw_debt ? wire->bw_debt - earned : 0;
	wire->bw_last = now;
	milliseconds = wire->bw_debt * 1000 / rate;
	if (milliseconds < BW_PAUSE_MS)
		return;
	pause.tv_sec = (time_t)(milliseconds / 1000);
	pause.tv_nsec = (long)(milliseconds % 1000) * 1000000;
	nanosleep(&pause, NULL);
}

static ssize_t write_some(struct wire *wire, const struct iovec *iov, int count)
{
	size_t length = 0;

	if (wire->failed || wire->out_fd < 0) {
		for (int i = 0; i < count; i++) {
			length += iov[i].iov_len;
			if (!wire->failed)
				strbuf_add(&wire->collected, iov[i].iov_base, iov[i].iov_len);
		}
		return (ssize_t)length;
	}
	if (!wire->bwlimit)
		return writev(wire->out_fd, iov, count);
	length = iov->iov_len < bw_write_max(wire) ? iov->iov_len : bw_write_max(wire);
	return write(wire->out_fd, iov->iov_base, length);
}

/* Until output is possible, take in what the peer sends, so that it can come to read: the buffer is bounded. */
static void wait_for_output(struct wire *wire, int64_t wait_start)
{
	bool drain = !wire->split && !wire->in_closed && wire->end - wire->pos < IN_MAX - READ_ROOM;

	wait_for(wire, drain ? wire->in_fd : -1, wire->out_fd, wait_start);
	if (drain)
		wire_try_receive(wire, IN_MAX);
}

static void count_sent(struct wire *wire, uint64_t length)
{
	wire->sent += length;
	if (wire->meter)
		atomic_store_explicit(&wire->meter->sent, wire->sent, memory_order_relaxed);
}

static void account(struct wire *wire, size_t length)
{
	count_sent(wire, length);
	wire->last_io = wire->last_output = monotonic_now();
	if (!wire->sends_keep_alive)
		wire->last_traffic = wire->last_io;
	if (wire->bwlimit && wire->out_fd >= 0 && !wire->failed)
		bw_pause(wire, length);
	check_limits(wire, wire->last_io);
}

static void advance(struct iovec **iov, int *count, size_t length)
{
	while (*count && length >= (*iov)->iov_len) {
		length -= (*iov)->iov_len;
		(*iov)++;
		(*count)--;
	}
	if (*count) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + length;
		(*iov)->iov_len -= length;
	}
}

void wire_send_all(struct wire *wire, struct iovec *iov, int count)
{
	int64_t wait_start = monotonic_now();
	ssize_t written;

	advance(&iov, &count, 0);
	while (count) {
		written = write_some(wire, iov, count);
		if (written >= 0) {
			account(wire, (size_t)written);
			advance(&iov, &count, (size_t)written);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			wait_for_output(wire, wait_start);
		} else if (errno != EINTR) {
			write_failed(wire, errno);
		}
	}
}

void wire_send_some(struct wire *wire)
{
	struct iovec iov[1] = { { wire->out, wire->out_used } };
	ssize_t written = write_some(wire, iov, 1);

	if (written < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		write_failed(wire, errno);
	if (written <= 0)
		return;
	wire->out_used -= (size_t)written;
	memmove(wire->out, wire->out + written, wire->out_used);
	count_sent(wire, (uint64_t)written);
	wire->last_io = wire->last_output = monotonic_now();
	if (!wire->sends_keep_alive)
		wire->last_traffic = wire->last_io;
	/* Not the moment to pause: the next writer makes up for it. */
	wire->bw_debt += (uint64_t)written;
}
