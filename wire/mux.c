/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stream and its frames: what is read and written, with or without multiplexing (protocol/01 section 9). */
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/internal.h"

enum {
	DIRECT_MIN = 16 * 1024,                /* data of this length is sent from where it is */
	FRAME_MAX = OUT_SIZE - FRAME_HEADER,   /* payload of a DATA frame that we send */
	/* frames of one such write: one may hold little more than the buffer */
	DIRECT_FRAMES = WIRE_PIECES_LENGTH / FRAME_MAX + 2,
	DIRECT_IOV = 1 + WIRE_PIECES + 2 * DIRECT_FRAMES,   /* the buffer; pieces, some cut by a frame's end; headers */
	IO_TIMEOUT_MAX = 86400,
};

/* --- messages: protocol/01 9.3 and 9.6 --- */

enum length_rule { REFUSED, TEXT, NAME, INT32, INT64, EMPTY, EXIT_CODE };

static const struct message_rule {
	enum message_code code;
	enum length_rule receive;
	int send_from;              /* first protocol whose peers know the code; 0: never sent */
	enum message_code instead;  /* below that; MSG_DATA: dropped */
} rules[] = {
	{ MSG_ERROR_XFER, TEXT, 27, MSG_DATA },
	{ MSG_INFO, TEXT, 27, MSG_DATA },
	{ MSG_ERROR, TEXT, 30, MSG_ERROR_XFER },
	{ MSG_WARNING, TEXT, 30, MSG_INFO },
	{ MSG_ERROR_SOCKET, REFUSED, 0, MSG_DATA },
	{ MSG_LOG, REFUSED, 0, MSG_DATA },
	{ MSG_CLIENT, REFUSED, 0, MSG_DATA },
	{ MSG_ERROR_UTF8, REFUSED, 0, MSG_DATA },
	{ MSG_REDO, REFUSED, 0, MSG_DATA },
	{ MSG_STATS, REFUSED, 0, MSG_DATA },
	{ MSG_BLOCK_STATS, INT64, 33, MSG_DATA },
	{ MSG_IO_ERROR, INT32, 30, MSG_DATA },
	{ MSG_IO_TIMEOUT, INT32, 31, MSG_DATA },
	{ MSG_NOOP, EMPTY, 0, MSG_DATA },
	{ MSG_ERROR_EXIT, EXIT_CODE, 31, MSG_DATA },
	{ MSG_SUCCESS, INT32, 27, MSG_DATA },
	{ MSG_DELETED, NAME, 29, MSG_DATA },
	{ MSG_NO_SEND, INT32, 30, MSG_DATA },
};

static const struct message_rule *find_rule(int code)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if ((int)rules[i].code == code)
			return &rules[i];
	return NULL;
}

/* Ends the process unless a frame with this code and length may come from a peer. */
static void check_message(const struct wire *wire, int code, size_t length)
{
	const struct message_rule *rule = find_rule(code);
	bool good = false;

	/* protocol/09 section 2.2: to an older session it is an unknown code. */
	if (!rule || (code == MSG_BLOCK_STATS && wire->protocol < rule->send_from))
		die(EXIT_STREAMIO, "unexpected tag %d [%s]", code, log_role());
	switch (rule->receive) {
	case TEXT:
	case NAME:
		if (length > TEXT_MAX)
			die(EXIT_STREAMIO, "multiplexing overflow %d:%zu [%s]", code, length, log_role());
		good = true;
		break;
	case INT32:
		good = length == 4 && !(code == MSG_IO_TIMEOUT && wire->is_server);
		break;
	case INT64:
		good = length == 8 && wire->is_sender;
		break;
	case EMPTY:
		good = length == 0;
		break;
	case EXIT_CODE:
		good = length == 0 || length == 4;
		break;
	case REFUSED:
		break;
	}
	if (!good)
		die(EXIT_STREAMIO, "invalid multi-message %d:%zu [%s]", code, length, log_role());
}

/* A peer may only shorten the time-out (protocol/08 3.1). */
static bool adopt_timeout(struct wire *wire, int32_t seconds)
{
	if (seconds <= 0 || seconds > IO_TIMEOUT_MAX || (wire->timeout && seconds >= wire->timeout))
		return false;
	wire_set_timeout(wire, seconds);
	return true;
}

/* Bring the number of a message into its range before anybody sees it. */
static void bound_number(int code, uint8_t *payload)
{
	uint32_t value = get_le32(payload);

	if (code == MSG_IO_ERROR)
		put_le32(payload, value & 7);
	else if (code == MSG_ERROR_EXIT)
		put_le32(payload, value & 0xff);
	else if ((int32_t)value < 0)
		die(EXIT_PROTOCOL, "wire value %s index out of range: %d", code == MSG_SUCCESS ? "success" : "no-send",
		    (int32_t)value);
}

static void deliver(struct wire *wire, int code, uint8_t *payload, size_t length)
{
	if (code == MSG_NOOP || (code == MSG_IO_TIMEOUT && !adopt_timeout(wire, (int32_t)get_le32(payload))))
		return;
	if (code == MSG_ERROR_EXIT)
		wire->exit_heard = true;
	if (code == MSG_BLOCK_STATS && wire_message_longint(payload) < 0)
		memset(payload, 0, length);
	if (length == 4 && find_rule(code)->receive != TEXT && find_rule(code)->receive != NAME)
		bound_number(code, payload);
	if (wire->handler)
		wire->handler(wire->handler_context, (enum message_code)code, payload, length);
}

/* --- in --- */

void wire_input_grew(struct wire *wire, size_t length)
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
	check_message(wire, code, length);
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

bool wire_take_frames(struct wire *wire)
{
	while (wire->pos == wire->limit && wire->mux_in && next_frame(wire))
		;
	return wire->pos < wire->limit;
}

void wire_fill(struct wire *wire)
{
	while (!wire_take_frames(wire))
		wire_receive(wire);
}

void wire_read(struct wire *wire, void *bytes, size_t length)
{
	uint8_t *to = bytes;
	size_t here;

	while (length) {
		wire_fill(wire);
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
	wire_fill(wire);
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

/* --- out --- */

void wire_close_frame(struct wire *wire)
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
	wire_send_all(wire, iov, count);
}

static void put_frame(struct wire *wire, enum message_code code, const void *payload, size_t length)
{
	struct iovec iov[1];

	wire_close_frame(wire);
	if (wire->out_used + FRAME_HEADER + length > OUT_SIZE)
		send_buffer(wire, iov, 1);
	put_le32(wire->out + wire->out_used, (uint32_t)length | (uint32_t)(code + TAG_BASE) << 24);
	if (length)
		memcpy(wire->out + wire->out_used + FRAME_HEADER, payload, length);
	wire->out_used += FRAME_HEADER + length;
	wire->overhead += FRAME_HEADER + length;
}

void wire_put_empty_frame(struct wire *wire)
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

size_t wire_queue_length(struct wire *wire)
{
	size_t length;

	pthread_mutex_lock(&wire->queue_lock);
	length = wire->queue.length;
	pthread_mutex_unlock(&wire->queue_lock);
	return length;
}

bool wire_output_pending(struct wire *wire)
{
	take_queue(wire);
	return wire->out_used > 0;
}

static void flush_buffer(struct wire *wire)
{
	struct iovec iov[1];

	take_queue(wire);
	wire_close_frame(wire);
	if (wire->out_used)
		send_buffer(wire, iov, 1);
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

/* The longest text that every release speaking the protocol takes. */
static size_t text_max(int protocol)
{
	return protocol < 29 ? 1023 : protocol < 30 ? 4096 : TEXT_MAX;
}

void wire_send_message(struct wire *wire, enum message_code code, const void *payload, size_t length)
{
	const struct message_rule *rule = find_rule((int)code);
	size_t step, most = text_max(wire->protocol);
	const uint8_t *from = payload;

	if (rule && rule->send_from > wire->protocol) {
		code = rule->instead;
		rule = find_rule((int)code);
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

	if (wire->split && !wire_is_reader(wire)) {
		wire_await_close(wire, end);
		return;
	}
	while (result != CLOSED && !discard_frames(wire) && monotonic_now() < end) {
		result = wire_try_receive(wire, IN_SIZE);
		if (result == WOULD_BLOCK)
			wire_wait_input(wire, end);
	}
}

void wire_take_rest(struct wire *wire, int seconds)
{
	int64_t end = monotonic_now() + seconds * NANOSECONDS;
	enum receive_result result = RECEIVED;

	while (!wire_take_frames(wire) && result != CLOSED && monotonic_now() < end) {
		result = wire_try_receive(wire, IN_SIZE);
		if (result == WOULD_BLOCK)
			wire_wait_input(wire, end);
	}
}
