/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a snapshot's bytes go: a file or memory, through a buffer and a sum. Only the writer includes this.
 *
 * Parts of an older snapshot are lent: neighbours that are lent one after the other go out in one piece, straight from the
 * mapping.
 */
#ifndef ATTRS_SNAPSHOT_OUTPUT_H
#define ATTRS_SNAPSHOT_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

struct snapshot_output;

/* Write to `fd` from its position, or into `memory` (fd -1), which is as large as all that will come. */
struct snapshot_output *output_new(int fd, unsigned char *memory);
void output_free(struct snapshot_output *output);

/* Room for the next `size` bytes (at most OUTPUT_ROOM_MAX), to be filled before the next call. */
enum { OUTPUT_ROOM_MAX = 4096 };
void *output_room(struct snapshot_output *output, size_t size);
void output_put(struct snapshot_output *output, const void *bytes, size_t length);
void output_zeros(struct snapshot_output *output, uint64_t length);
/* The same as output_put for bytes that stay as they are until the next output_sum. */
void output_lend(struct snapshot_output *output, const void *bytes, uint64_t length);

/* The XXH3 of all since the last call, which has then been written. */
uint64_t output_sum(struct snapshot_output *output);
/* Bytes so far, and the errno of the first write that failed (0: none; after that nothing is written). */
uint64_t output_position(const struct snapshot_output *output);
int output_error(const struct snapshot_output *output);

#endif
