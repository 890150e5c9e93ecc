/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What goes out: data and messages into frames, frames into the buffer, the buffer to the descriptor. */
#include "wire/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/input.h"
#include "wire/internal.h"
#include "wire/wait.h"

enum {
	FRAME_MAX = OUT_SIZE - FRAME_HEADER,   /* payload of a DATA frame that we send */
	/* frames of one such write: one may hold little more than the buffer */
	DIRECT_FRAMES = WIRE_PIECES_LENGTH / FRAME_MAX + 2,
	DIRECT_IOV = 1 + WIRE_PIECES + 2 * DIRECT_FRAMES,   /* the buffer; pieces, some cut by a frame's end; headers */
	LAST_WORDS_SECONDS = 2,
	CLAIM_SECONDS = 1,      /* for the lock of a split connection */
	BW_WRITE_MIN = 512,
	BW_PAUSE_MS = 100,      /* shorter pauses are saved up */
};

/* --- bytes --- */

static void write_failed(struct wire *wire, int error)
{
	wire->failed = true;
	wire->out_used = 0;
	wire->frame = NO_FRAME;
	/* A remote shell that has not come to anything: what it has said, or that it has closed, will be read next. Of any
	 * other error the peer knows nothing: it waits for what was not sent. */
	if (!wire->set.is_server && !wire->received && (error == EPIPE || error == ECONNRESET))
		return;
	if (!wire->set.is_server && !wire->split) {
		/* It says why before it closes, and there is no other way to know than to read on to the end. */
		int64_t end = clock_nanoseconds() + LAST_WORDS_SECONDS * CLOCK_SECOND;

		do {
			while (wire->mux_in && wire_take_frames(wire))
				wire->pos = wire->limit;
		} while (wire->mux_in && wire_await_more(wire, IN_MAX, end));
	}
	die(EXIT_SOCKETIO, "rsync: [%s] write error: %s (%d)", log_role(), strerror(error), error);
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
	length = (size_t)wire->bwlimit * 128;
	if (length < BW_WRITE_MIN)
		length = BW_WRITE_MIN;
	return write(wire->out_fd, iov->iov_base, iov->iov_len < length ? iov->iov_len : length);
}

static void count_sent(struct wire *wire, uint64_t length)
{
	wire->sent += length;
	if (wire->set.meter)
		atomic_store_explicit(&wire->set.meter->sent, wire->sent, memory_order_relaxed);
	wire->last_io = wire->last_output = clock_nanoseconds();
	if (!wire->sends_keep_alive)
		wire->last_traffic = wire->last_io;
}

static void account(struct wire *wire, size_t length)
{
	count_sent(wire, length);
	if (wire->bwlimit && wire->out_fd >= 0 && !wire->failed) {
		/* After `length` bytes: pause when what was sent ahead is worth it. */
		uint64_t rate = (uint64_t)wire->bwlimit * 1024, earned, milliseconds;
		int64_t now = clock_nanoseconds();
		struct timespec pause;

		wire->bw_debt += length;
		earned = (uint64_t)(now - wire->bw_last) / 1000 * rate / 1000000;
		wire->bw_debt = earned < wire->bw_debt ? wire->bw_debt - earned : 0;
		wire->bw_last = now;
		milliseconds = wire->bw_debt * 1000 / rate;
		if (milliseconds >= BW_PAUSE_MS) {
			pause.tv_sec = (time_t)(milliseconds / 1000);
			pause.tv_nsec = (long)(milliseconds % 1000) * 1000000;
			nanosleep(&pause, NULL);
		}
	}
	wire_check_limits(wire, wire->last_io);
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
	int64_t wait_start = clock_nanoseconds();
	ssize_t written;

	advance(&iov, &count, 0);
	while (count) {
		written = write_some(wire, iov, count);
		if (written >= 0) {
			account(wire, (size_t)written);
			advance(&iov, &count, (size_t)written);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			/* Until output is possible, take in what the peer sends, so that it can come to read: the buffer is
			 * bounded. */
			bool drain = !wire->split && !wire->in_closed && wire->end - wire->pos < IN_MAX - READ_ROOM;

			wire_wait_for(wire, drain ? wire->in_fd : -1, wire->out_fd, wait_start);
			if (drain)
				wire_receive(wire, IN_MAX);
		} else if (errno != EINTR) {
			write_failed(wire, errno);
		}
	}
}

/* --- the tee: data without frames and messages, for somebody who writes it down --- */

static void tee_output(struct wire *wire, const struct iovec *iov, int count)
{
	/* What is sent is whole frames, and no header lies in two pieces. */
	bool is_data = !wire->mux_out;
	size_t left = 0, step;

	for (int i = 0; i < count; i++) {
		const uint8_t *bytes = iov[i].iov_base;

		for (size_t length = iov[i].iov_len; length; bytes += step, length -= step) {
			if (wire->mux_out && !left) {
				left = decode_int(bytes) & 0xffffff;
				is_data = bytes[3] - TAG_BASE == MSG_DATA;
				step = FRAME_HEADER;
				continue;
			}
			step = wire->mux_out && left < length ? left : length;
			left -= wire->mux_out ? step : 0;
			if (is_data)
				wire->tee_out(wire->tee_out_context, bytes, step);
		}
	}
}

/* --- frames --- */

static void close_frame(struct wire *wire)
{
	size_t length;

	if (wire->frame == NO_FRAME)
		return;
	length = wire->out_used - wire->frame - FRAME_HEADER;
	encode_int(wire->out + wire->frame, (uint32_t)length | (uint32_t)TAG_BASE << 24);
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
		tee_output(wire, iov, count);
	send_all(wire, iov, count);
}

static void put_frame(struct wire *wire, enum message_code code, const void *payload, size_t length)
{
	struct iovec iov[1];

	close_frame(wire);
	if (wire->out_used + FRAME_HEADER + length > OUT_SIZE)
		send_buffer(wire, iov, 1);
	encode_int(wire->out + wire->out_used, (uint32_t)length | (uint32_t)(code + TAG_BASE) << 24);
	if (length)
		memcpy(wire->out + wire->out_used + FRAME_HEADER, payload, length);
	wire->out_used += FRAME_HEADER + length;
	wire->overhead += FRAME_HEADER + length;
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
		length = decode_int(frame) & 0xffffff;
		put_frame(wire, (enum message_code)(frame[3] - TAG_BASE), frame + FRAME_HEADER, length);
	}
	strbuf_free(&queue);
}

bool wire_is_output_pending(struct wire *wire)
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
	if (!wire_is_reader(wire)) {
		flush_buffer(wire);
	} else if (wire_claim_output(wire)) {
		flush_buffer(wire);
		pthread_mutex_unlock(wire->output_lock);
	}
}

static bool is_keep_alive_due(const struct wire *wire)
{
	return wire->set.timeout && wire->mux_out && !wire->set.only_listens
	       && clock_nanoseconds() - wire->last_output >= wire_keep_alive_interval(wire);
}

/* What waits is complete frames once the open one is closed, so that a part of them can go and the rest follow. */
static void send_at_once(struct wire *wire)
{
	bool due = is_keep_alive_due(wire);

	pthread_mutex_lock(&wire->queue_lock);
	size_t queued = wire->queue.length;

	pthread_mutex_unlock(&wire->queue_lock);
	if (wire->out_used + queued <= OUT_SIZE && wire_is_output_pending(wire))
		due = false;
	if (due && !wire->out_used) {
		wire->sends_keep_alive = true;
		put_frame(wire, MSG_DATA, NULL, 0);
	}
	close_frame(wire);
	if (wire->out_used) {
		struct iovec iov = { wire->out, wire->out_used };
		ssize_t written = write_some(wire, &iov, 1);

		if (written < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
			write_failed(wire, errno);
		if (written > 0) {
			wire->out_used -= (size_t)written;
			memmove(wire->out, wire->out + written, wire->out_used);
			count_sent(wire, (uint64_t)written);
			/* Not the moment to pause: the next writer makes up for it. */
			wire->bw_debt += (uint64_t)written;
		}
	}
	wire->sends_keep_alive = false;
}

void wire_keep_alive(struct wire *wire)
{
	if (wire_is_reader(wire)) {
		if (wire->output_lock && pthread_mutex_trylock(wire->output_lock) == 0) {
			send_at_once(wire);
			pthread_mutex_unlock(wire->output_lock);
		}
		return;
	}
	if (!is_keep_alive_due(wire))
		return;
	wire->sends_keep_alive = !wire_is_output_pending(wire);
	if (wire->sends_keep_alive)
		put_frame(wire, MSG_DATA, NULL, 0);
	wire_flush(wire);
	wire->sends_keep_alive = false;
}

/* --- data --- */

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

/*
 * Long data is not copied: the first frame holds what is buffered in the open frame and goes on in the pieces; further
 * frames have their headers in an array of their own.
 */
static void send_framed(struct wire *wire, struct iovec *pieces, int count)
{
	uint8_t headers[DIRECT_FRAMES][FRAME_HEADER], *header;
	struct iovec iov[DIRECT_IOV];
	size_t left = 0, buffered, room, take;
	int used = 1;

	for (int i = 0; i < count; i++)
		left += pieces[i].iov_len;
	if (!left)
		return;
	wire_room(wire, 0);
	header = wire->out + wire->frame;
	buffered = wire->out_used - wire->frame - FRAME_HEADER;
	for (int frame = 0; left; frame++) {
		room = FRAME_MAX - buffered < left ? FRAME_MAX - buffered : left;
		encode_int(header, (uint32_t)(buffered + room) | (uint32_t)TAG_BASE << 24);
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

void wire_send_message(struct wire *wire, enum message_code code, const void *payload, size_t length)
{
	const struct message_rule *rule = message_rule((int)code);
	/* The longest text that every release speaking the protocol takes. */
	size_t step, most = wire->set.protocol < 29 ? 1023 : wire->set.protocol < 30 ? 4096 : TEXT_MAX;
	const uint8_t *from = payload;

	if (rule && rule->send_from > wire->set.protocol) {
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
			/* Without memory the process ends within the lock, and its last message comes here again: the lock is
			 * recursive, and nothing is added before there is room for all of the frame. */
			uint8_t header[FRAME_HEADER];

			encode_int(header, (uint32_t)step | (uint32_t)(code + TAG_BASE) << 24);
			pthread_mutex_lock(&wire->queue_lock);
			strbuf_reserve(&wire->queue, sizeof header + step);
			strbuf_add(&wire->queue, header, sizeof header);
			strbuf_add(&wire->queue, from, step);
			atomic_store_explicit(&wire->queued, true, memory_order_release);
			pthread_mutex_unlock(&wire->queue_lock);
		}
		if (step)
			from += step;
		length -= step;
	} while (length);
}

void wire_send_message_int(struct wire *wire, enum message_code code, int32_t value)
{
	uint8_t payload[4];

	encode_int(payload, (uint32_t)value);
	wire_send_message(wire, code, payload, sizeof payload);
}

/* --- settings --- */

void wire_set_bwlimit(struct wire *wire, uint32_t kib_per_second)
{
	wire->bwlimit = kib_per_second;
	wire->bw_last = clock_nanoseconds();
	wire->bw_debt = 0;
}

void wire_set_tee_out(struct wire *wire, wire_tee *take, void *context)
{
	wire_flush(wire);
	wire->tee_out = take;
	wire->tee_out_context = context;
}
