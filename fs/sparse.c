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

static int make_hole(int fd, const char *zeros, size_t length, uint64_t offset, bool has_blocks)
{
	if (!has_blocks)
		return 0;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)length) == 0)
		return 0;
	return fs_write_at(fd, zeros, length, offset);
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

int fs_write_sparse(int fd, const void *bytes, size_t length, uint64_t offset, bool has_blocks)
{
	const char *data = bytes;
	size_t at = 0;

	while (at < length) {
		size_t zeros = zero_run(data + at, length - at);
		bool worth_it = zeros >= HOLE_SIZE || at == 0 || at + zeros == length;

		if (zeros && worth_it) {
			if (make_hole(fd, data + at, zeros, offset + at, has_blocks) < 0)
				return -1;
			at += zeros;
		}
		size_t run = data_run(data + at, length - at);
		if (fs_write_at(fd, data + at, run, offset + at) < 0)
			return -1;
		at += run;
	}
	return 0;
}
