/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Holes instead of zeros. */
#include "fs/sparse.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define HOLE_SIZE 1024

int fs_write_at(int fd, const void *data, size_t length, uint64_t offset)
{
	const char *from = data;

	while (length > 0) {
		ssize_t written = pwrite(fd, from, length, (off_t)offset);

		if (written < 0 && errno != EINTR)
			return -1;
		if (written > 0) {
			from += written;
			offset += (uint64_t)written;
			length -= (size_t)written;
		}
	}
	return 0;
}

static size_t zero_run(const char *data, size_t length)
{
	static const char zeros[256];
	size_t run = 0;

	while (length - run >= sizeof zeros && !memcmp(data + run, zeros, sizeof zeros))
		run += sizeof zeros;
	while (run < length && !data[run])
		run++;
	return run;
}

/* The length of the data before the next run of zeros that is worth a hole: a long one, or one that ends the write. */
static size_t data_run(const char *data, size_t length)
{
	size_t at = 0;

	while (at < length) {
		const char *zero = memchr(data + at, 0, length - at);
		if (!zero)
			return length;
		at = (size_t)(zero - data);
		size_t run = zero_run(zero, length - at);
		if (run >= HOLE_SIZE || at + run == length)
			return at;
		at += run;
	}
	return length;
}

static int write_zeros(int fd, size_t length, uint64_t offset)
{
	static const char zeros[HOLE_SIZE];

	return fs_write_at(fd, zeros, length, offset);
}

/* Zeros get their hole once there is data behind them: what lies beyond the end of a file cannot be given back. */
static int settle(struct fs_sparse *sparse, uint64_t end)
{
	uint64_t start = sparse->data_end, length = end - start;

	if (!sparse->has_blocks || !length)
		return 0;
	if (length < HOLE_SIZE)
		return write_zeros(sparse->fd, (size_t)length, start);
	if (fallocate(sparse->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start, (off_t)length) == 0)
		return 0;
	for (; start < end; start += length) {
		length = end - start < HOLE_SIZE ? end - start : HOLE_SIZE;
		if (write_zeros(sparse->fd, (size_t)length, start) < 0)
			return -1;
	}
	return 0;
}

static int add(struct fs_sparse *sparse, const char *data, size_t length, uint64_t offset, bool is_there)
{
	size_t at = 0;

	while (at < length) {
		size_t zeros = zero_run(data + at, length - at);

		if (zeros >= HOLE_SIZE || at == 0 || at + zeros == length)
			at += zeros;
		size_t run = data_run(data + at, length - at);

		if (!run)
			continue;
		/* It begins and ends with a byte that is not zero, and has no run of zeros as long as a block. */
		if (!is_there && sparse->touched)
			block_count_add(sparse->touched, offset + at, run);
		if ((!is_there && fs_write_at(sparse->fd, data + at, run, offset + at) < 0) || settle(sparse, offset + at) < 0)
			return -1;
		at += run;
		sparse->data_end = offset + at;
	}
	return 0;
}

int fs_sparse_write(struct fs_sparse *sparse, const void *data, size_t length, uint64_t offset)
{
	return add(sparse, data, length, offset, false);
}

int fs_sparse_pass(struct fs_sparse *sparse, const void *data, size_t length, uint64_t offset)
{
	return add(sparse, data, length, offset, true);
}

int fs_sparse_end(struct fs_sparse *sparse, uint64_t size)
{
	if (sparse->has_blocks && !sparse->keeps_tail && ftruncate(sparse->fd, (off_t)sparse->data_end) < 0)
		return -1;
	return ftruncate(sparse->fd, (off_t)size);
}
