/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One connection: buffered reading and writing of rsync's primitive encodings (doc/protocol/01-session.md section 8), with or
 * without multiplexing (section 9). Reading and writing are independent directions.
 *
 * - Writes collect in a buffer; wire_flush sends it. While a write blocks, incoming bytes are drained into the input
 *   buffer (bounded), so two peers that both write do not deadlock. Messages are handled when a read meets them, in a
 *   loop and never from inside a write: no recursion whatever the peer sends.
 * - Every reader checks its field's range and ends with die(): EXIT_STREAMIO for broken encodings and frames,
 *   EXIT_PROTOCOL for a value out of range, naming the field. Callers never re-check.
 * - End of file where more is needed: "connection unexpectedly closed (N bytes received so far) [ROLE]", EXIT_STREAMIO.
 * - Time-outs, keep-alives, --bwlimit, --stop-at and the handshake deadline live here.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <time.h>

#include "lib/budget.h"
#include "wire/primitives.h"

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
 * connection's time-out, which has then adopted it. `payload` is valid during the call and followed by a NUL. A handler may
 * send messages and data; it must not read. */
typedef void wire_message_handler(void *context, enum message_code code, const uint8_t *payload, size_t length);

/* Descriptors are not closed by wire_free; they are set non-blocking. SIGPIPE is ignored from then on: a peer that has gone
 * is a write error. */
struct wire *wire_new(int in_fd, int out_fd);
/* There is no peer: reads from a file (-1: never), and what is written goes nowhere but to the tee. */
struct wire *wire_new_file(int in_fd);
/* For tests and fuzzing: reads from memory, writes are collected (wire_test_output). */
struct wire *wire_new_memory(const void *input, size_t length);
const uint8_t *wire_test_output(struct wire *wire, size_t *length);
void wire_free(struct wire *wire);

void wire_set_protocol(struct wire *wire, int protocol); /* ndx form, longint/varint aliases */
/* A server refuses IO_TIMEOUT messages. */
void wire_set_server(struct wire *wire, bool is_server);
/* A sending side takes BLOCK_STATS messages, from protocol 33 on. */
void wire_set_sender(struct wire *wire, bool is_sender);
void wire_set_message_handler(struct wire *wire, wire_message_handler *handler, void *context);

/* Multiplexing of each direction; flushes output first. Bytes already buffered stay in the stream. */
void wire_set_mux_in(struct wire *wire, bool on);
void wire_set_mux_out(struct wire *wire, bool on);
bool wire_mux_out(const struct wire *wire);

/* Seconds without any byte read or written until "io timeout after N seconds -- exiting", EXIT_TIMEOUT; 0: none. Also sets
 * the keep-alive interval, ceil(N/2) (doc/protocol/01-session.md section 9.8). */
void wire_set_timeout(struct wire *wire, int seconds);
int wire_timeout(const struct wire *wire);
/*
 * Absolute CLOCK_MONOTONIC deadline in nanoseconds for the handshake (doc/protocol/07-daemon.md section 5.2), 0: none. On
 * expiry `expired` is called (it must not return), never by the reader of a split connection. It may be set at the end of a
 * session, too.
 */
void wire_set_deadline(struct wire *wire, int64_t monotonic_ns, void (*expired)(void *context), void *context);
/* --stop-at / --stop-after: wall-clock second at which to end with "stopping at requested limit", EXIT_TIMEOUT; 0: none. */
void wire_set_stop_at(struct wire *wire, time_t when);
void wire_set_bwlimit(struct wire *wire, uint32_t kib_per_second); /* doc/protocol/03-transfer.md section 13; 0: none */
/* Called from any wait, at least once a second while waiting; lets a role notice signals. NULL: none. */
void wire_set_wait_hook(struct wire *wire, void (*hook)(void *context), void *context);

/* What the peer of this connection may cost: no limits until somebody sets them. */
struct budget *wire_budget(struct wire *wire);
/* For long computations (the `look` of a budget): run the wait hook, and end as at the end of file if the peer has gone. */
void wire_check_peer(void *wire);

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

/* Raw byte counts of both directions, headers included; wire_reset_counts at the start of the statistics. */
uint64_t wire_bytes_read(const struct wire *wire);
uint64_t wire_bytes_written(const struct wire *wire); /* including what is still buffered; for those who may write */
void wire_reset_counts(struct wire *wire);
/* Bytes of the stream that have been taken out and put in, without the headers of frames and without messages. */
uint64_t wire_stream_read(const struct wire *wire);
uint64_t wire_stream_written(const struct wire *wire);

/*
 * From now on two threads share the connection: the calling one only reads, any others only write, one at a time (the
 * caller's lock). Reads no longer wait for output, writes no longer take in what arrives: each waits for its own direction,
 * and both see time-outs. Messages may be sent by all threads, with or without the lock: they join the stream with the next
 * write or flush. wire_drain by another thread than the reading one waits until that has come to the end. The wait hook is
 * called by both.
 */
void wire_split(struct wire *wire);
/*
 * Before wire_split: tell the connection that lock. A reading thread that waits for input and finds it free then sends
 * messages, keep-alives and what else is buffered, as far as that does not block; and wire_flush by the reading thread, which
 * does nothing without, tries for a second to get it, for the sake of last words.
 */
void wire_set_output_lock(struct wire *wire, pthread_mutex_t *lock);
/* Get that lock, for whoever wants to say a last word: at most for a second. false: there is none, or it cannot be had. */
bool wire_claim_output(struct wire *wire);

/*
 * For a batch file: from now on, `take` gets the stream bytes that come in (those included that wait to be read) or go out, as
 * they do, without frames and messages.
 */
typedef void wire_tee(void *context, const void *bytes, size_t length);
void wire_set_tee_in(struct wire *wire, wire_tee *take, void *context);
void wire_set_tee_out(struct wire *wire, wire_tee *take, void *context);

/* --- writing --- */
void wire_write(struct wire *wire, const void *bytes, size_t length);
/* The same as writing one piece after the other, but sent at once from where they are: for long data with small headers in
 * between. At most WIRE_PIECES pieces, together at most WIRE_PIECES_LENGTH bytes; changes the array. */
enum { WIRE_PIECES = 16, WIRE_PIECES_LENGTH = 256 * 1024 + 4 * WIRE_PIECES };
void wire_write_pieces(struct wire *wire, struct iovec *pieces, int count);
/* Room for up to `length` (at most WIRE_RESERVE_MAX) stream bytes to be put together in place (wire/encode.h); wire_commit says
 * where they end. Nothing may be done with the connection between the two. */
enum { WIRE_RESERVE_MAX = 16 * 1024 };
uint8_t *wire_reserve(struct wire *wire, size_t length);
void wire_commit(struct wire *wire, const uint8_t *end);
/* One message frame now (before data that is still buffered is allowed, after data is not). At a protocol or direction
 * that cannot carry the code it is mapped (ERROR->1, WARNING->2 below 30) or dropped, as doc/protocol/01-session.md
 * sections 9.3 and 9.4 say. Text that is longer than the peer takes goes in several messages. May be called from any thread:
 * frames of threads other than the one that made the wire are queued and join the stream when that one next sends. */
void wire_send_message(struct wire *wire, enum message_code code, const void *payload, size_t length);
void wire_send_message_int(struct wire *wire, enum message_code code, int32_t value);
void wire_send_message_longint(struct wire *wire, enum message_code code, int64_t value); /* 8 bytes */
void wire_flush(struct wire *wire);
/* Send a keep-alive if half the time-out has passed without output; cheap, for long computations. */
void wire_keep_alive(struct wire *wire);
/*
 * Until it is called with false, no keep-alives go out: who waits for a file list has nothing to do that takes time, and a
 * peer that is silent then has the time-out, not several (doc/protocol/01-session.md section 9.8). Not beside a split
 * connection.
 */
void wire_only_listen(struct wire *wire, bool only_listens);

/* --- reading --- */
void wire_read(struct wire *wire, void *bytes, size_t length);
/* Long data where it lies: 1..most bytes, as many as are here in one piece. Valid until the next call that reads - or, unless
 * the connection is split, writes. */
const uint8_t *wire_read_piece(struct wire *wire, size_t most, size_t *length);
/* One byte; false at end of file, which is no error here. */
bool wire_next_byte(struct wire *wire, uint8_t *byte);
/* Is there anything to read without waiting (buffered or readable)? */
bool wire_input_ready(struct wire *wire);
/* Read and throw away until end of file, ERROR_EXIT, or `seconds` (doc/protocol/01-session.md section 10.8). */
void wire_drain(struct wire *wire, int seconds);
/* After the goodbye, in a connection that is not split: hand on messages that still come, until end of file or `seconds`. */
void wire_take_rest(struct wire *wire, int seconds);

/* The peer has closed where more is needed: "connection unexpectedly closed", EXIT_STREAMIO. For callers of wire_read_line. */
_Noreturn void wire_die_closed(struct wire *wire);

/* The int32 that a 4-byte message carries. */
static inline int32_t wire_message_int(const uint8_t *payload)
{
	uint32_t low = payload[0] | (uint32_t)payload[1] << 8;

	return (int32_t)(low | (uint32_t)payload[2] << 16 | (uint32_t)payload[3] << 24);
}

/* The int64 that an 8-byte message carries. */
static inline int64_t wire_message_longint(const uint8_t *payload)
{
	uint64_t high = (uint32_t)wire_message_int(payload + 4);

	return (int64_t)(high << 32 | (uint32_t)wire_message_int(payload));
}

/* For this room: room for `length` (at most a quarter of the buffer) more stream bytes, counted as written. */
uint8_t *wire_room_slow(struct wire *wire, size_t length);

#endif
