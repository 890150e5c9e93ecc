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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/budget.h"
#include "wire/input.h"
#include "wire/output.h"
#include "wire/primitives.h"
#include "wire/wait.h"

struct wire;

/* Descriptors are not closed by wire_free; they are set non-blocking. SIGPIPE is ignored from then on: a peer that has gone
 * is a write error. */
struct wire *wire_new(int in_fd, int out_fd);
/* There is no peer: reads from a file (-1: never), and what is written goes nowhere but to the tee. */
struct wire *wire_new_file(int in_fd);
void wire_free(struct wire *wire);

/* For its users to set, whenever they know. */
struct wire_settings *wire_settings(struct wire *wire);

/* What the peer of this connection may cost: no limits until somebody sets them. */
struct budget *wire_budget(struct wire *wire);

/* Raw bytes that have gone out, headers included, since wire_reset_counts at the start of the statistics; including what is
 * still buffered; for those who may write. wire_bytes_read (wire/input.h) counts the other direction. */
uint64_t wire_bytes_written(const struct wire *wire);
void wire_reset_counts(struct wire *wire);
/* Bytes of the stream that have been taken out and put in, without the headers of frames and without messages. */
uint64_t wire_stream_read(const struct wire *wire);
uint64_t wire_stream_written(const struct wire *wire);

/* --- reading --- */
void wire_read(struct wire *wire, void *bytes, size_t length);
/* Long data where it lies: 1..most bytes, as many as are here in one piece. Valid until the next call that reads - or, unless
 * the connection is split, writes. */
const uint8_t *wire_read_piece(struct wire *wire, size_t most, size_t *length);
/* One byte; false at end of file, which is no error here. */
bool wire_next_byte(struct wire *wire, uint8_t *byte);
/* Is there anything to read without waiting (buffered or readable)? */
bool wire_input_ready(struct wire *wire);

#endif
