/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What comes in: bytes, frames, messages. Included by wire/wire.h. */
#ifndef WIRE_INPUT_H
#define WIRE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/encode.h"

struct wire;

/* Message codes, doc/protocol/01-session.md section 9.3. */
enum message_code {
	MSG_DATA = 0,
	MSG_ERROR_XFER = 1,
	MSG_INFO = 2,
	MSG_ERROR = 3,
	MSG_WARNING = 4,
	MSG_ERROR_SOCKET = 5,
	MSG_LOG = 6,
	MSG_CLIENT = 7,
	MSG_ERROR_UTF8 = 8,
	MSG_REDO = 9,
	MSG_STATS = 10,
	MSG_BLOCK_STATS = 11, /* doc/protocol/09-since-3.5.0.md section 2.2 */
	MSG_IO_ERROR = 22,
	MSG_IO_TIMEOUT = 33,
	MSG_NOOP = 42,
	MSG_ERROR_EXIT = 86,
	MSG_SUCCESS = 100,
	MSG_DELETED = 101,
	MSG_NO_SEND = 102,
};

/* Called for every message that is not DATA, after its length has been checked against the table of doc/protocol/01-session.md
 * sections 9.3 and 9.6 (text messages at most 5119 bytes), IO_ERROR masked to 3 bits, ERROR_EXIT to 8, an index found not
 * negative, a negative BLOCK_STATS made 0. NOOP and empty DATA never arrive here, and IO_TIMEOUT only if it shortens the
 * connection's time-out, which has then adopted it. `payload` is valid during the call and followed by a NUL; numbers in it are
 * decoded (wire/encode.h). A handler may send messages and data; it must not read. */
typedef void wire_message_handler(void *context, enum message_code code, const uint8_t *payload, size_t length);
void wire_set_message_handler(struct wire *wire, wire_message_handler *handler, void *context);

/* Multiplexing of what comes in. Bytes already buffered stay in the stream. */
void wire_set_mux_in(struct wire *wire, bool on);

/*
 * For a batch file: from now on, `take` gets the stream bytes that come in (those included that wait to be read) or go out, as
 * they do, without frames and messages.
 */
typedef void wire_tee(void *context, const void *bytes, size_t length);
void wire_set_tee_in(struct wire *wire, wire_tee *take, void *context);

/* Raw bytes that have come in, headers included, since wire_reset_counts. */
uint64_t wire_bytes_read(const struct wire *wire);

/* Read and throw away until end of file, ERROR_EXIT, or `seconds` (doc/protocol/01-session.md section 10.8). */
void wire_drain(struct wire *wire, int seconds);
/* After the goodbye, in a connection that is not split: hand on messages that still come, until end of file or `seconds`. */
void wire_take_rest(struct wire *wire, int seconds);

/* The peer has closed where more is needed: "connection unexpectedly closed", EXIT_STREAMIO. For callers of wire_read_line. */
_Noreturn void wire_die_closed(struct wire *wire);
/* For long computations (the `look` of a budget): run the wait hook, and end as at the end of file if the peer has gone. */
void wire_check_peer(void *wire);

/* --- for this room --- */

enum wire_received { WIRE_RECEIVED, WIRE_WOULD_BLOCK, WIRE_CLOSED };

struct message_rule;

/* NULL: there is no such message. */
const struct message_rule *message_rule(int code);
/* Read what is there, without waiting, into a buffer that may grow to `room_max`. */
enum wire_received wire_receive(struct wire *wire, size_t room_max);
/* The same, or a wait for it of a second at most, which no time-out ends; false: nothing more comes, or it is `end`. */
bool wire_await_more(struct wire *wire, size_t room_max, int64_t end);
/* Take the frames that are next and hand on their messages; true: there are stream bytes to be read. */
bool wire_take_frames(struct wire *wire);
/* `length` bytes have been put behind those of the input buffer. */
void wire_input_grew(struct wire *wire, size_t length);

#endif
