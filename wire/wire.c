/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One connection: its bytes and frames in both directions, which wait for each other. A write that blocks takes in what
 * arrives, a read that waits sends what is buffered.
 */
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/internal.h"
#include "wire/message.h"
#include "wire/tee.h"

enum receive_result { RECEIVED, WOULD_BLOCK, CLOSED };

enum {
	DIRECT_MIN = 16 * 1024,                /* data of this length is sent from where it is */
	FRAME_MAX = OUT_SIZE - FRAME_HEADER,   /* payload of a DATA frame that we send */
	/* frames of one such write: one may hold little more than the buffer */
	DIRECT_FRAMES = WIRE_PIECES_LENGTH / FRAME_MAX + 2,
	DIRECT_IOV = 1 + WIRE_PIECES + 2 * DIRECT_FRAMES,   /* the buffer; pieces, some cut by a frame's end; headers */
	IO_TIMEOUT_MAX = 86400,
};

enum {
	CLAIM_SECONDS = 1,      /* for the lock of a split connection */
	AWAIT_MS = 20,
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

static int64_t monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NANOSECONDS + now.tv_nsec;
}

/* Is this the thread that reads a split connection? What it does not end itself, the one that writes does. */
static bool is_reader(const struct wire *wire)
{
	return wire->split && pthread_equal(pthread_self(), wire->reader);
}

static int64_t keep_alive_interval(const struct wire *wire)
{
	return ((int64_t)wire->timeout + 1) / 2 * NANOSECONDS;
}

static void run_wait_hook(struct wire *wire)
{
	if (wire->wait_hook)
		wire->wait_hook(wire->wait_hook_context);
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
 * other server. But one that only ever takes them would hold its slot for good (doc/protocol/08-security.md section 3.1).
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

static void wait_input(const struct wire *wire, int64_t end)
{
	struct pollfd fd = { .fd = wire->in_fd, .events = POLLIN };
	int64_t ms = (end - monotonic_now()) / 1000000;

	if (ms > 0)
		poll(&fd, 1, ms < HOOK_MS ? (int)ms : HOOK_MS);
}

static bool is_keep_alive_due(const struct wire *wire)
{
	return wire->timeout && wire->mux_out && !wire->only_listens
	       && monotonic_now() - wire->last_output >= keep_alive_interval(wire);
}

/* --- frames that come in --- */

/* A peer may only shorten the time-out (doc/protocol/08-security.md section 3.1). */
static bool adopt_timeout(struct wire *wire, int32_t seconds)
{
	if (seconds <= 0 || seconds > IO_TIMEOUT_MAX || (wire->timeout && seconds >= wire->timeout))
		return false;
	wire->timeout = seconds;
	return true;
}

static void deliver(struct wire *wire, int code, uint8_t *payload, size_t length)
{
	if (code == MSG_NOOP || (code == MSG_IO_TIMEOUT && !adopt_timeout(wire, (int32_t)get_le32(payload))))
		return;
	if (code == MSG_ERROR_EXIT)
		wire->exit_heard = true;
	if (code == MSG_BLOCK_STATS && wire_message_longint(payload) < 0)
		memset(payload, 0, length);
	if (length == 4 && message_rule(code)->receive != TEXT && message_rule(code)->receive != NAME)
		message_bound(code, payload);
	if (wire->handler)
		wire->handler(wire->handler_context, (enum message_code)code, payload, length);
}

static void input_grew(struct wire *wire, size_t length)
{
	size_t mine = length;

	wire->end += length;
	if (wire->mux_in) {
		mine = length < wire->frame_left ? length : wire->frame_left;
		wire->frame_left -= mine;
	}
	if (wire->tee_in && mine)
		wire->tee_in(wire->tee_in_context, wire->in + wire->limit, mine);
	wire->limit += mine;
	wire->stream += mine;
}

static void open_data_frame(struct wire *wire, size_t length)
{
	size_t here;

	wire->limit += FRAME_HEADER;
	wire->pos = wire->limit;
	here = wire->end - wire->limit;
	if (here > length)
		here = length;
	if (wire->tee_in && here)
		wire->tee_in(wire->tee_in_context, wire->in + wire->limit, here);
	wire->limit += here;
	wire->stream += here;
	wire->frame_left = length - here;
}

/* All stream bytes have been read: look at the next frame. false: it is not here in full. */
static bool next_frame(struct wire *wire)
{
	uint8_t payload[TEXT_MAX + 1];
	size_t here = wire->end - wire->limit, length;
	uint32_t header;
	int code;

	if (wire->frame_left || here < FRAME_HEADER)
		return false;
	header = get_le32(wire->in + wire->limit);
	code = (int)(header >> 24) - TAG_BASE;
	length = header & 0xffffff;
	if (code == MSG_DATA) {
		open_data_frame(wire, length);
		return true;
	}
	message_check(wire, code, length);
	if (here < FRAME_HEADER + length)
		return false;
	/* The handler may send, which may drain input and move the buffer: it gets a copy of a message that is gone. */
	memcpy(payload, wire->in + wire->limit + FRAME_HEADER, length);
	payload[length] = '\0';
	wire->limit += FRAME_HEADER + length;
	wire->pos = wire->limit;
	deliver(wire, code, payload, length);
	return true;
}

static bool take_frames(struct wire *wire)
{
	while (wire->pos == wire->limit && wire->mux_in && next_frame(wire))
		;
	return wire->pos < wire->limit;
}

/* --- bytes that come in --- */

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

static enum receive_result try_receive(struct wire *wire, size_t room_max)
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
	input_grew(wire, (size_t)got);
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

/* --- bytes that go out --- */

/* A server that ends says why before it closes, and there is no other way to know than to read on to the end. */
static void hear_last_words(struct wire *wire)
{
	int64_t end = monotonic_now() + LAST_WORDS_SECONDS * NANOSECONDS;
	enum receive_result result = RECEIVED;

	while (wire->mux_in && result != CLOSED && monotonic_now() < end) {
		while (take_frames(wire))
			wire->pos = wire->limit;
		result = try_receive(wire, IN_MAX);
		if (result == WOULD_BLOCK)
			wait_input(wire, end);
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
		try_receive(wire, IN_MAX);
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

static void send_all(struct wire *wire, struct iovec *iov, int count)
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

static void send_some(struct wire *wire)
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

/* --- frames that go out --- */

static void close_frame(struct wire *wire)
{
	size_t length;

	if (wire->frame == NO_FRAME)
		return;
	length = wire->out_used - wire->frame - FRAME_HEADER;
	put_le32(wire->out + wire->frame, (uint32_t)length | (uint32_t)TAG_BASE << 24);
	if (!length) {
		wire->out_used = wire->frame;
		wire->overhead -= FRAME_HEADER;
	}
	wire->frame = NO_FRAME;
}

/* Send the output buffer and then the pieces behind it. */
static void send_buffer(struct wire *wire, struct iovec *iov, int count)
{
	iov[0].iov_base = wire->out;
	iov[0].iov_len = wire->out_used;
	wire->out_used = 0;
	wire->frame = NO_FRAME;
	if (wire->tee_out)
		wire_tee_output(wire, iov, count);
	send_all(wire, iov, count);
}

static void put_frame(struct wire *wire, enum message_code code, const void *payload, size_t length)
{
	struct iovec iov[1];

	close_frame(wire);
	if (wire->out_used + FRAME_HEADER + length > OUT_SIZE)
		send_buffer(wire, iov, 1);
	put_le32(wire->out + wire->out_used, (uint32_t)length | (uint32_t)(code + TAG_BASE) << 24);
	if (length)
		memcpy(wire->out + wire->out_used + FRAME_HEADER, payload, length);
	wire->out_used += FRAME_HEADER + length;
	wire->overhead += FRAME_HEADER + length;
}

static void put_empty_frame(struct wire *wire)
{
	put_frame(wire, MSG_DATA, NULL, 0);
}

/* Messages of other threads join the stream at a frame boundary. */
static void take_queue(struct wire *wire)
{
	struct strbuf queue;
	const uint8_t *frame;
	size_t length;

	if (!atomic_load_explicit(&wire->queued, memory_order_acquire))
		return;
	pthread_mutex_lock(&wire->queue_lock);
	queue = wire->queue;
	wire->queue = (struct strbuf)STRBUF_INIT;
	atomic_store(&wire->queued, false);
	pthread_mutex_unlock(&wire->queue_lock);
	for (size_t at = 0; at < queue.length; at += FRAME_HEADER + length) {
		frame = (const uint8_t *)queue.data + at;
		length = get_le32(frame) & 0xffffff;
		put_frame(wire, (enum message_code)(frame[3] - TAG_BASE), frame + FRAME_HEADER, length);
	}
	strbuf_free(&queue);
}

static size_t queue_length(struct wire *wire)
{
	size_t length;

	pthread_mutex_lock(&wire->queue_lock);
	length = wire->queue.length;
	pthread_mutex_unlock(&wire->queue_lock);
	return length;
}

static bool is_output_pending(struct wire *wire)
{
	take_queue(wire);
	return wire->out_used > 0;
}

static void flush_buffer(struct wire *wire)
{
	struct iovec iov[1];

	take_queue(wire);
	close_frame(wire);
	if (wire->out_used)
		send_buffer(wire, iov, 1);
}

/* --- a connection that one thread reads and others write --- */

void wire_set_output_lock(struct wire *wire, pthread_mutex_t *lock)
{
	wire->output_lock = lock;
}

void wire_split(struct wire *wire)
{
	wire->reader = pthread_self();
	wire->split = true;
}

bool wire_claim_output(struct wire *wire)
{
	struct timespec end;

	if (!wire->output_lock)
		return false;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += CLAIM_SECONDS;
	return pthread_mutex_timedlock(wire->output_lock, &end) == 0;
}

void wire_flush(struct wire *wire)
{
	if (!is_reader(wire)) {
		flush_buffer(wire);
	} else if (wire_claim_output(wire)) {
		flush_buffer(wire);
		pthread_mutex_unlock(wire->output_lock);
	}
}

/* What waits is complete frames once the open one is closed, so that a part of them can go and the rest follow. */
static void send_at_once(struct wire *wire)
{
	bool due = is_keep_alive_due(wire);

	if (wire->out_used + queue_length(wire) <= OUT_SIZE && is_output_pending(wire))
		due = false;
	if (due && !wire->out_used) {
		wire->sends_keep_alive = true;
		put_empty_frame(wire);
	}
	close_frame(wire);
	if (wire->out_used)
		send_some(wire);
	wire->sends_keep_alive = false;
}

static void offer_output(struct wire *wire)
{
	if (!wire->output_lock || pthread_mutex_trylock(wire->output_lock) != 0)
		return;
	send_at_once(wire);
	pthread_mutex_unlock(wire->output_lock);
}

static void await_close(const struct wire *wire, int64_t end)
{
	while (!wire->in_closed && !wire->exit_heard && monotonic_now() < end)
		poll(NULL, 0, AWAIT_MS);
}

void wire_keep_alive(struct wire *wire)
{
	if (is_reader(wire)) {
		offer_output(wire);
		return;
	}
	if (!is_keep_alive_due(wire))
		return;
	wire->sends_keep_alive = !is_output_pending(wire);
	if (wire->sends_keep_alive)
		put_empty_frame(wire);
	wire_flush(wire);
	wire->sends_keep_alive = false;
}

/* --- reading --- */

static void receive_or_close(struct wire *wire)
{
	uint64_t before = wire->received;
	int64_t since = monotonic_now();

	while (try_receive(wire, IN_SIZE) == WOULD_BLOCK) {
		/* The peer may be waiting for what we hold back; sending it may have drained input. */
		if (!wire->split && is_output_pending(wire)) {
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

static void receive_more(struct wire *wire)
{
	uint64_t before = wire->received;

	receive_or_close(wire);
	if (wire->received == before)
		wire_die_closed(wire);
}

bool wire_input_ready(struct wire *wire)
{
	do {
		if (take_frames(wire))
			return true;
	} while (try_receive(wire, IN_SIZE) == RECEIVED);
	return wire->in_closed;
}

static void fill_stream(struct wire *wire)
{
	while (!take_frames(wire))
		receive_more(wire);
}

bool wire_next_byte(struct wire *wire, uint8_t *byte)
{
	while (!take_frames(wire)) {
		if (wire->in_closed)
			return false;
		receive_or_close(wire);
	}
	*byte = wire->in[wire->pos++];
	return true;
}

void wire_read(struct wire *wire, void *bytes, size_t length)
{
	uint8_t *to = bytes;
	size_t here;

	while (length) {
		fill_stream(wire);
		here = wire->limit - wire->pos;
		if (here > length)
			here = length;
		memcpy(to, wire->in + wire->pos, here);
		wire->pos += here;
		to += here;
		length -= here;
	}
}

const uint8_t *wire_read_piece(struct wire *wire, size_t most, size_t *length)
{
	const uint8_t *piece;

	if (most >= DIRECT_MIN && wire->in_capacity < IN_LONG) {
		wire->in = xrealloc_array(wire->in, IN_LONG, 1);
		wire->in_capacity = IN_LONG;
	}
	fill_stream(wire);
	piece = wire->in + wire->pos;
	*length = wire->limit - wire->pos < most ? wire->limit - wire->pos : most;
	wire->pos += *length;
	return piece;
}

void wire_set_mux_in(struct wire *wire, bool on)
{
	if (on == wire->mux_in)
		return;
	if (on)
		wire->limit = wire->pos;
	else if (wire->pos < wire->limit || wire->frame_left)
		die(EXIT_STREAMIO, "a data frame goes on where unframed bytes must begin [%s]", log_role());
	else
		wire->limit = wire->end;
	wire->mux_in = on;
}

/* --- writing --- */

uint8_t *wire_room_slow(struct wire *wire, size_t length)
{
	uint8_t *room;

	/* A message comes before the data that are written after it; where one thread does both, it is in its place already. */
	if (wire->split)
		take_queue(wire);
	if (wire->out_used + FRAME_HEADER + length > OUT_SIZE)
		wire_flush(wire);
	if (wire->mux_out && wire->frame == NO_FRAME) {
		wire->frame = wire->out_used;
		wire->out_used += FRAME_HEADER;
		wire->overhead += FRAME_HEADER;
	}
	room = wire->out + wire->out_used;
	wire->out_used += length;
	return room;
}

uint8_t *wire_reserve(struct wire *wire, size_t length)
{
	uint8_t *room = wire_room(wire, length);

	wire->out_used -= length;
	return room;
}

void wire_commit(struct wire *wire, const uint8_t *end)
{
	wire->out_used = (size_t)(end - wire->out);
}

static size_t length_of(const struct iovec *pieces, int count)
{
	size_t length = 0;

	for (int i = 0; i < count; i++)
		length += pieces[i].iov_len;
	return length;
}

/*
 * Long data is not copied: the first frame holds what is buffered in the open frame and goes on in the pieces; further
 * frames have their headers in an array of their own.
 */
static void send_framed(struct wire *wire, struct iovec *pieces, int count)
{
	uint8_t headers[DIRECT_FRAMES][FRAME_HEADER], *header;
	struct iovec iov[DIRECT_IOV];
	size_t left = length_of(pieces, count), buffered, room, take;
	int used = 1;

	if (!left)
		return;
	wire_room(wire, 0);
	header = wire->out + wire->frame;
	buffered = wire->out_used - wire->frame - FRAME_HEADER;
	for (int frame = 0; left; frame++) {
		room = FRAME_MAX - buffered < left ? FRAME_MAX - buffered : left;
		put_le32(header, (uint32_t)(buffered + room) | (uint32_t)TAG_BASE << 24);
		for (left -= room; room; room -= take) {
			take = pieces->iov_len < room ? pieces->iov_len : room;
			iov[used++] = (struct iovec){ pieces->iov_base, take };
			pieces->iov_base = (uint8_t *)pieces->iov_base + take;
			pieces->iov_len -= take;
			pieces += !pieces->iov_len;
		}
		if (!left)
			break;
		buffered = 0;
		header = headers[frame];
		iov[used++] = (struct iovec){ header, FRAME_HEADER };
		wire->overhead += FRAME_HEADER;
	}
	send_buffer(wire, iov, used);
}

void wire_write_pieces(struct wire *wire, struct iovec *pieces, int count)
{
	struct iovec iov[1 + WIRE_PIECES];

	if (wire->mux_out) {
		send_framed(wire, pieces, count);
		return;
	}
	memcpy(iov + 1, pieces, (size_t)count * sizeof *pieces);
	send_buffer(wire, iov, count + 1);
}

void wire_write(struct wire *wire, const void *bytes, size_t length)
{
	/* struct iovec has no const; the bytes are not changed. */
	uint8_t *from = (uint8_t *)(uintptr_t)bytes;
	struct iovec piece;
	size_t step;

	for (; length; from += step, length -= step) {
		step = length < WIRE_PIECES_LENGTH ? length : WIRE_PIECES_LENGTH;
		if (step < DIRECT_MIN) {
			memcpy(wire_room(wire, step), from, step);
			continue;
		}
		piece = (struct iovec){ from, step };
		wire_write_pieces(wire, &piece, 1);
	}
}

void wire_set_mux_out(struct wire *wire, bool on)
{
	wire_flush(wire);
	wire->mux_out = on;
}

bool wire_mux_out(const struct wire *wire)
{
	return wire->mux_out;
}

/* --- messages --- */

/* Without memory the process ends within the lock, and its last message comes here again: the lock is recursive, and nothing is
 * added before there is room for all of the frame. */
static void queue_frame(struct wire *wire, enum message_code code, const void *payload, size_t length)
{
	uint8_t header[FRAME_HEADER];

	put_le32(header, (uint32_t)length | (uint32_t)(code + TAG_BASE) << 24);
	pthread_mutex_lock(&wire->queue_lock);
	strbuf_reserve(&wire->queue, sizeof header + length);
	strbuf_add(&wire->queue, header, sizeof header);
	strbuf_add(&wire->queue, payload, length);
	atomic_store_explicit(&wire->queued, true, memory_order_release);
	pthread_mutex_unlock(&wire->queue_lock);
}

void wire_send_message(struct wire *wire, enum message_code code, const void *payload, size_t length)
{
	const struct message_rule *rule = message_rule((int)code);
	size_t step, most = message_text_max(wire->protocol);
	const uint8_t *from = payload;

	if (rule && rule->send_from > wire->protocol) {
		code = rule->instead;
		rule = message_rule((int)code);
	}
	if (!rule || !rule->send_from || !wire->mux_out || (rule->receive == NAME && length > most))
		return;
	/* Text that is too long for one message goes in several. */
	do {
		step = length < most ? length : most;
		if (!wire->split && pthread_equal(pthread_self(), wire->owner)) {
			take_queue(wire);
			put_frame(wire, code, from, step);
		} else {
			queue_frame(wire, code, from, step);
		}
		if (step)
			from += step;
		length -= step;
	} while (length);
}

void wire_send_message_int(struct wire *wire, enum message_code code, int32_t value)
{
	uint8_t payload[4];

	put_le32(payload, (uint32_t)value);
	wire_send_message(wire, code, payload, sizeof payload);
}

void wire_send_message_longint(struct wire *wire, enum message_code code, int64_t value)
{
	uint8_t payload[8];

	put_le32(payload, (uint32_t)value);
	put_le32(payload + 4, (uint32_t)((uint64_t)value >> 32));
	wire_send_message(wire, code, payload, sizeof payload);
}

/* --- the end --- */

/* Throw away frames that are here. true: an ERROR_EXIT was among them. */
static bool discard_frames(struct wire *wire)
{
	uint32_t header;

	for (;;) {
		wire->pos = wire->limit;
		if (!wire->mux_in || wire->frame_left || wire->end - wire->limit < FRAME_HEADER)
			return false;
		header = get_le32(wire->in + wire->limit);
		if ((int)(header >> 24) - TAG_BASE == MSG_ERROR_EXIT)
			return true;
		open_data_frame(wire, header & 0xffffff);
	}
}

void wire_drain(struct wire *wire, int seconds)
{
	int64_t end = monotonic_now() + seconds * NANOSECONDS;
	enum receive_result result = RECEIVED;

	if (wire->split && !is_reader(wire)) {
		await_close(wire, end);
		return;
	}
	while (result != CLOSED && !discard_frames(wire) && monotonic_now() < end) {
		result = try_receive(wire, IN_SIZE);
		if (result == WOULD_BLOCK)
			wait_input(wire, end);
	}
}

void wire_take_rest(struct wire *wire, int seconds)
{
	int64_t end = monotonic_now() + seconds * NANOSECONDS;
	enum receive_result result = RECEIVED;

	while (!take_frames(wire) && result != CLOSED && monotonic_now() < end) {
		result = try_receive(wire, IN_SIZE);
		if (result == WOULD_BLOCK)
			wait_input(wire, end);
	}
}

/* --- the life of a connection --- */

static void set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		die(EXIT_SOCKETIO, "cannot make the connection's descriptor %d non-blocking: %s", fd, strerror(errno));
}

static struct wire *new_wire(int in_fd, int out_fd, size_t in_capacity)
{
	struct wire *wire = xcalloc(1, sizeof *wire);
	pthread_mutexattr_t recursive;

	wire->in_fd = in_fd;
	wire->out_fd = out_fd;
	wire->protocol = 0;
	wire->in_capacity = in_capacity;
	wire->in = xmalloc(in_capacity);
	wire->out = xmalloc(OUT_SIZE);
	wire->frame = NO_FRAME;
	wire->ndx_in[0] = wire->ndx_out[0] = -1;
	wire->ndx_in[1] = wire->ndx_out[1] = 1;
	wire->owner = pthread_self();
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&wire->queue_lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	wire->last_io = wire->last_output = wire->last_traffic = wire->bw_last = monotonic_now();
	return wire;
}

static bool is_tcp(int fd)
{
	int protocol;
	socklen_t length = sizeof protocol;

	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == IPPROTO_TCP;
}

struct wire *wire_new(int in_fd, int out_fd)
{
	struct wire *wire;

	/* A peer that has gone must be an error of write(), not a signal. */
	signal(SIGPIPE, SIG_IGN);
	set_nonblocking(in_fd);
	set_nonblocking(out_fd);
	wire = new_wire(in_fd, out_fd, IN_SIZE);
	wire->is_tcp = is_tcp(in_fd);
	return wire;
}

struct wire *wire_new_file(int in_fd)
{
	struct wire *wire = new_wire(in_fd, -1, IN_SIZE);

	wire->failed = true;
	wire->in_closed = in_fd < 0;
	return wire;
}

struct wire *wire_new_memory(const void *input, size_t length)
{
	struct wire *wire = new_wire(-1, -1, length ? length : 1);

	if (length)
		memcpy(wire->in, input, length);
	wire->end = 0;
	input_grew(wire, length);
	wire->received = length;
	wire->in_closed = true;
	return wire;
}

const uint8_t *wire_test_output(struct wire *wire, size_t *length)
{
	wire_flush(wire);
	*length = wire->collected.length;
	return (const uint8_t *)strbuf_text(&wire->collected);
}

void wire_free(struct wire *wire)
{
	if (!wire)
		return;
	pthread_mutex_destroy(&wire->queue_lock);
	strbuf_free(&wire->queue);
	strbuf_free(&wire->collected);
	free(wire->in);
	free(wire->out);
	free(wire);
}

/* --- settings --- */

void wire_set_protocol(struct wire *wire, int protocol)
{
	wire->protocol = protocol;
}

void wire_set_server(struct wire *wire, bool is_server)
{
	wire->is_server = is_server;
}

void wire_set_sender(struct wire *wire, bool is_sender)
{
	wire->is_sender = is_sender;
}

void wire_set_message_handler(struct wire *wire, wire_message_handler *handler, void *context)
{
	wire->handler = handler;
	wire->handler_context = context;
}

void wire_set_timeout(struct wire *wire, int seconds)
{
	wire->timeout = seconds > 0 ? seconds : 0;
}

void wire_only_listen(struct wire *wire, bool only_listens)
{
	wire->only_listens = only_listens;
}

int wire_timeout(const struct wire *wire)
{
	return wire->timeout;
}

void wire_set_deadline(struct wire *wire, int64_t monotonic_ns, void (*expired)(void *context), void *context)
{
	wire->expired = expired;
	wire->expired_context = context;
	wire->deadline = monotonic_ns;
}

void wire_set_stop_at(struct wire *wire, time_t when)
{
	wire->stop_at = when;
}

void wire_set_bwlimit(struct wire *wire, uint32_t kib_per_second)
{
	wire->bwlimit = kib_per_second;
	wire->bw_last = monotonic_now();
	wire->bw_debt = 0;
}

void wire_set_wait_hook(struct wire *wire, void (*hook)(void *context), void *context)
{
	wire->wait_hook = hook;
	wire->wait_hook_context = context;
}

void wire_set_owed(struct wire *wire, bool owed)
{
	atomic_store(&wire->owed, owed);
}

void wire_set_meter(struct wire *wire, struct wire_meter *meter)
{
	wire->meter = meter;
	atomic_store(&wire->owed, true);
}

void wire_set_tee_in(struct wire *wire, wire_tee *take, void *context)
{
	wire->tee_in = take;
	wire->tee_in_context = context;
	if (wire->limit > wire->pos)
		take(context, wire->in + wire->pos, wire->limit - wire->pos);
}

void wire_set_tee_out(struct wire *wire, wire_tee *take, void *context)
{
	wire_flush(wire);
	wire->tee_out = take;
	wire->tee_out_context = context;
}

/* --- counts --- */

uint64_t wire_bytes_read(const struct wire *wire)
{
	return wire->received - wire->received_base;
}

uint64_t wire_stream_read(const struct wire *wire)
{
	return wire->stream - (wire->limit - wire->pos);
}

uint64_t wire_stream_written(const struct wire *wire)
{
	return wire->sent + wire->out_used - wire->overhead;
}

uint64_t wire_bytes_written(const struct wire *wire)
{
	return wire->sent + wire->out_used - wire->sent_base;
}

void wire_reset_counts(struct wire *wire)
{
	/* What has arrived but has not been read belongs to the part that is counted. */
	wire->received_base = wire->received - (wire->end - wire->pos);
	wire->sent_base = wire->sent + wire->out_used;
}

struct budget *wire_budget(struct wire *wire)
{
	return &wire->budget;
}
