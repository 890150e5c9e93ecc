/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing at a place of an open file, whole or with holes where there are only zeros (protocol/03 section 7.7). */
#ifndef FS_SPARSE_H
#define FS_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All bytes or -1 with errno. The file's position is not touched. */
int fs_write_at(int fd, const void *data, size_t length, uint64_t offset);

/*
 * The same, but zeros at the start, at the end and in runs of 1 KiB or more become holes. has_blocks: the file may have blocks
 * there, which are given back; else nothing may ever have been written there. The file may end up too short: the caller sets
 * its length at the end.
 */
int fs_write_sparse(int fd, const void *data, size_t length, uint64_t offset, bool has_blocks);

#endif
