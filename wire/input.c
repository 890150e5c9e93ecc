/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What comes in: bytes from the descriptor, frames from the bytes, messages from the frames (doc/protocol/01-session.md
 * sections 9.3 and 9.6).
 */
#include "wire/input.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "wire/internal.h"
#include "wire/wait.h"

enum {
	IO_TIMEOUT_MAX = 86400,
	AWAIT_MS = 20,
	WAIT_MS = 1000,
};

/* --- messages: which may be sent at which protocol, and what may come --- */

static const struct message_rule rules[] = {
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

const struct message_rule *message_rule(int code)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if ((int)rules[i].code == code)
			return &rules[i];
	return NULL;
}

static void message_check(const struct wire *wire, int code, size_t length)
{
	const struct message_rule *rule = message_rule(code);
	bool good = false;

	/* doc/protocol/09-since-3.5.0.md section 2.2: to an older session it is an unknown code. */
	if (!rule || (code == MSG_BLOCK_STATS && wire->set.protocol < rule->send_from))
		die(EXIT_STREAMIO, "unexpected tag %d [%s]", code, log_role());
	switch (rule->receive) {
	case TEXT:
	case NAME:
		if (length > TEXT_MAX)
			die(EXIT_STREAMIO, "multiplexing overflow %d:%zu [%s]", code, length, log_role());
		good = true;
		break;
	case INT32:
		good = length == 4 && !(code == MSG_IO_TIMEOUT && wire->set.is_server);
		break;
	case INT64:
		good = length == 8 && wire->set.is_sender;
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

/* --- frames --- */

/* A peer may only shorten the time-out (doc/protocol/08-security.md section 3.1). */
static bool adopt_timeout(struct wire *wire, int32_t seconds)
{
	if (seconds <= 0 || seconds > IO_TIMEOUT_MAX || (wire->set.timeout && seconds >= wire->set.timeout))
		return false;
	wire->set.timeout = seconds;
	return true;
}

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
	header = decode_int(wire->in + wire->limit);
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
	if (code == MSG_NOOP || (code == MSG_IO_TIMEOUT && !adopt_timeout(wire, (int32_t)decode_int(payload))))
		return true;
	if (code == MSG_ERROR_EXIT)
		wire->exit_heard = true;
	if (code == MSG_BLOCK_STATS && (int64_t)decode_int64(payload) < 0)
		memset(payload, 0, length);
	if (length == 4 && message_rule(code)->receive != TEXT && message_rule(code)->receive != NAME) {
		uint32_t value = decode_int(payload);

		if (code == MSG_IO_ERROR)
			encode_int(payload, value & 7);
		else if (code == MSG_ERROR_EXIT)
			encode_int(payload, value & 0xff);
		else if ((int32_t)value < 0)
			die(EXIT_PROTOCOL, "wire value %s index out of range: %d",
			    code == MSG_SUCCESS ? "success" : "no-send", (int32_t)value);
	}
	if (wire->handler)
		wire->handler(wire->handler_context, (enum message_code)code, payload, length);
	return true;
}

bool wire_take_frames(struct wire *wire)
{
	while (wire->pos == wire->limit && wire->mux_in && next_frame(wire))
		;
	return wire->pos < wire->limit;
}

/* --- bytes --- */

enum wire_received wire_receive(struct wire *wire, size_t room_max)
{
	size_t room;
	ssize_t got;

	if (wire->in_closed)
		return WIRE_CLOSED;
	if (wire->pos && (wire->pos == wire->end || wire->in_capacity - wire->end < READ_ROOM)) {
		memmove(wire->in, wire->in + wire->pos, wire->end - wire->pos);
		wire->end -= wire->pos;
		wire->limit -= wire->pos;
		wire->pos = 0;
	}
	if (wire->in_capacity - wire->end < READ_ROOM && wire->in_capacity < room_max) {
		wire->in = xrealloc_array(wire->in, wire->in_capacity * 2, 1);
		wire->in_capacity *= 2;
	}
	room = wire->in_capacity - wire->end;
	if (!room)
		return WIRE_WOULD_BLOCK;
	do {
		got = read(wire->in_fd, wire->in + wire->end, room);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return WIRE_WOULD_BLOCK;
	if (got <= 0) {
		wire->in_closed = true;
		wire->in_error = got < 0 ? errno : 0;
		return WIRE_CLOSED;
	}
	wire->last_piece = (size_t)got;
	wire->received += (uint64_t)got;
	if (wire->set.meter)
		atomic_store_explicit(&wire->set.meter->received, wire->received, memory_order_relaxed);
	wire->last_io = wire->last_traffic = clock_nanoseconds();
	wire_input_grew(wire, (size_t)got);
	wire_check_limits(wire, wire->last_io);
	return WIRE_RECEIVED;
}

uint64_t wire_bytes_read(const struct wire *wire)
{
	return wire->received - wire->received_base;
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

	wire_run_wait_hook(wire);
	if (poll(ends, 2, 0) <= 0 || !((ends[0].revents | ends[1].revents) & (POLLRDHUP | POLLHUP | POLLERR)))
		return;
	/* What it has said before it went is of no use any more, and nothing that is said now arrives. */
	wire->failed = true;
	wire_die_closed(wire);
}

/* --- the end --- */

bool wire_await_more(struct wire *wire, size_t room_max, int64_t end)
{
	struct pollfd fd = { .fd = wire->in_fd, .events = POLLIN };

	if (clock_nanoseconds() >= end)
		return false;
	enum wire_received result = wire_receive(wire, room_max);
	int64_t ms = (end - clock_nanoseconds()) / CLOCK_MILLISECOND;

	if (result == WIRE_WOULD_BLOCK && ms > 0)
		poll(&fd, 1, ms < WAIT_MS ? (int)ms : WAIT_MS);
	return result != WIRE_CLOSED;
}

/* Throw away frames that are here. true: an ERROR_EXIT was among them. */
static bool discard_frames(struct wire *wire)
{
	uint32_t header;

	for (;;) {
		wire->pos = wire->limit;
		if (!wire->mux_in || wire->frame_left || wire->end - wire->limit < FRAME_HEADER)
			return false;
		header = decode_int(wire->in + wire->limit);
		if ((int)(header >> 24) - TAG_BASE == MSG_ERROR_EXIT)
			return true;
		open_data_frame(wire, header & 0xffffff);
	}
}

void wire_drain(struct wire *wire, int seconds)
{
	int64_t end = clock_nanoseconds() + seconds * CLOCK_SECOND;

	if (wire->split && !wire_is_reader(wire)) {
		while (!wire->in_closed && !wire->exit_heard && clock_nanoseconds() < end)
			poll(NULL, 0, AWAIT_MS);
		return;
	}
	while (!discard_frames(wire) && wire_await_more(wire, IN_SIZE, end))
		;
}

void wire_take_rest(struct wire *wire, int seconds)
{
	int64_t end = clock_nanoseconds() + seconds * CLOCK_SECOND;

	while (!wire_take_frames(wire) && wire_await_more(wire, IN_SIZE, end))
		;
}

/* --- settings --- */

void wire_set_message_handler(struct wire *wire, wire_message_handler *handler, void *context)
{
	wire->handler = handler;
	wire->handler_context = context;
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

void wire_set_tee_in(struct wire *wire, wire_tee *take, void *context)
{
	wire->tee_in = take;
	wire->tee_in_context = context;
	if (wire->limit > wire->pos)
		take(context, wire->in + wire->pos, wire->limit - wire->pos);
}
