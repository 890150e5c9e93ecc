/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What goes out: data and messages. Included by wire/wire.h. */
#ifndef WIRE_OUTPUT_H
#define WIRE_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/input.h"

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
void wire_flush(struct wire *wire);
/* Send a keep-alive if half the time-out has passed without output; cheap, for long computations. */
void wire_keep_alive(struct wire *wire);

/* Multiplexing of what goes out; flushes it first. */
void wire_set_mux_out(struct wire *wire, bool on);
bool wire_mux_out(const struct wire *wire);
void wire_set_bwlimit(struct wire *wire, uint32_t kib_per_second); /* doc/protocol/03-transfer.md section 13; 0: none */
/* Of the stream that goes out, as wire_set_tee_in. */
void wire_set_tee_out(struct wire *wire, wire_tee *take, void *context);

/*
 * From now on two threads share the connection: the calling one only reads, any others only write, one at a time (the
 * caller's lock). Reads no longer wait for output, writes no longer take in what arrives: each waits for its own direction,
 * and both see time-outs. Messages may be sent by all threads, with or without the lock: they join the stream with the next
 * write or flush. wire_drain by another thread than the reading one waits until that has come to the end. The wait hook is
 * called by both.
 */
void wire_split(struct wire *wire);
/*
 * Before wire_split: give the connection that lock. A reading thread that waits for input and finds it free then sends
 * messages, keep-alives and what else is buffered, as far as that does not block; and wire_flush by the reading thread, which
 * does nothing without, tries for a second to get it, for the sake of last words.
 */
void wire_set_output_lock(struct wire *wire, pthread_mutex_t *lock);
/* Get that lock, for whoever wants to say a last word: at most for a second. false: there is none, or it cannot be had. */
bool wire_claim_output(struct wire *wire);

/* --- for this room --- */

/* Room for `length` (at most a quarter of the buffer) more stream bytes, counted as written. */
uint8_t *wire_room_slow(struct wire *wire, size_t length);
/* Is there anything to be flushed? */
bool wire_is_output_pending(struct wire *wire);

#endif
