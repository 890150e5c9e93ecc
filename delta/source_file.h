/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A source file read once, front to back, through a window that the matcher looks into. */
#ifndef DELTA_SOURCE_FILE_H
#define DELTA_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source_file;
/*
 * size: as fstat gave it at open time; the file is read through pread(2), never mapped, and what cannot be read (error, or
 * the file shrank) is delivered as zero bytes with *failed set (doc/protocol/03-transfer.md section 7.8). The descriptor is not
 * owned.
 */
struct source_file *source_file_new(int fd, uint64_t size);
struct source_file *source_file_new_memory(const void *bytes, uint64_t size);
void source_file_free(struct source_file *file);
bool source_file_failed(const struct source_file *file, int *error); /* error: errno, 0 for a shrunken file */

/*
 * Prepare for `window` bytes at a time. Every byte that is read is told to `seen` once, in order, before it can be looked at.
 */
void source_file_open_window(struct source_file *file, uint64_t start, size_t window,
			     void (*seen)(void *context, const void *data, size_t length), void *context);
/*
 * Pointer to the bytes from `offset` on, of which at least `wanted` are there (fewer only at the end of the file); all that
 * happen to be there are counted in *available. Bytes before `keep` may be forgotten: keep <= offset never goes back, and
 * offset + wanted - keep is at most the window.
 */
const uint8_t *source_file_look(struct source_file *file, uint64_t keep, uint64_t offset, size_t wanted, size_t *available);

#endif
