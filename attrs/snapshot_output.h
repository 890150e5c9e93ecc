/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where the bytes of one chunk of a snapshot go: to its place in the file, or only into a sum. Only the writer
 * includes this.
 *
 * Parts of an older snapshot are lent: neighbours that are lent one after the other go out in one piece, straight from the
 * mapping.
 */
#ifndef ATTRS_SNAPSHOT_OUTPUT_H
#define ATTRS_SNAPSHOT_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

struct snapshot_output;

/* Write to the open file from `offset` on; fd -1: only sum up, which can go on meanwhile in another thread. */
struct snapshot_output *output_new(int fd, uint64_t offset);
void output_free(struct snapshot_output *output);

/* Room for the next `size` bytes (at most OUTPUT_ROOM_MAX), to be filled before the next call. */
enum { OUTPUT_ROOM_MAX = 4096 };
void *output_room(struct snapshot_output *output, size_t size);
void output_put(struct snapshot_output *output, const void *bytes, size_t length);
void output_zeros(struct snapshot_output *output, uint64_t length);
/* The same as output_put for bytes that stay as they are until output_end. */
void output_lend(struct snapshot_output *output, const void *bytes, uint64_t length);

/* After the last byte: the errno of the first write that failed (after which there was no other), or 0. */
int output_end(struct snapshot_output *output);
/* After the end of one without a file: the XXH3 of all. */
uint64_t output_sum(const struct snapshot_output *output);

/* --- the file of a snapshot that will be written soon: a thread gets it room --- */

struct snapshot_room;

/* An unnamed file beside `path`, and about so many bytes for it. NULL: that cannot be had. */
struct snapshot_room *snapshot_room_new(const char *path, uint64_t bytes);
/* Wait for the thread, and take the open file over, of whatever length; -1: it has been taken before. NULL is allowed. */
int snapshot_room_take(struct snapshot_room *room);
void snapshot_room_free(struct snapshot_room *room); /* NULL is allowed */

#endif
