/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Holes instead of zeros; and file content from descriptor to descriptor, the cheapest way that the two file systems have. */
#include "fs/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fs/file.h"
#include "lib/alloc.h"

/* --- holes --- */

#define HOLE_SIZE 1024

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

/* Zeros get their hole once there is data behind them: what lies beyond the end of a file cannot be given back. */
static int settle(struct fs_sparse *sparse, uint64_t end)
{
	static const char zeros[HOLE_SIZE];
	uint64_t start = sparse->data_end, length = end - start;

	if (!sparse->has_blocks || !length)
		return 0;
	if (length >= HOLE_SIZE
	    && fallocate(sparse->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start, (off_t)length) == 0)
		return 0;
	for (; start < end; start += length) {
		length = end - start < HOLE_SIZE ? end - start : HOLE_SIZE;
		if (fs_write_all_at(sparse->fd, zeros, (size_t)length, start) < 0)
			return -1;
	}
	return 0;
}

int fs_sparse_write(struct fs_sparse *sparse, const void *bytes, size_t length, uint64_t offset, bool is_there)
{
	const char *data = bytes;
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
		if ((!is_there && fs_write_all_at(sparse->fd, data + at, run, offset + at) < 0)
		    || settle(sparse, offset + at) < 0)
			return -1;
		at += run;
		sparse->data_end = offset + at;
	}
	return 0;
}

int fs_sparse_end(struct fs_sparse *sparse, uint64_t size)
{
	if (sparse->has_blocks && !sparse->keeps_tail && ftruncate(sparse->fd, (off_t)sparse->data_end) < 0)
		return -1;
	return ftruncate(sparse->fd, (off_t)size);
}

/* --- copies --- */

#define SMALL_SIZE 16384        /* up to here read and write cost less than asking for something better */
#define BUFFER_SIZE 262144
#define KERNEL_CHUNK (64 << 20) /* bytes per copy_file_range: between two calls progress is shown */

struct copy {
	int from, to;
	uint64_t size;  /* announced */
	uint64_t done;  /* both files' position */
	const struct fs_copy_options *options;
	struct fs_sparse sparse;
	bool write_error;
};

static int fail_writing(struct copy *copy)
{
	copy->write_error = true;
	return -1;
}

/* Data goes to the position, by whatever way. */
static void count_touched(const struct copy *copy, uint64_t count)
{
	if (copy->options->touched)
		block_count_add(copy->options->touched, copy->done, count);
}

static void advance(struct copy *copy, uint64_t count)
{
	copy->done += count;
	if (copy->options->progress)
		copy->options->progress(copy->options->context, copy->done);
}

bool fs_clone(int to, int from)
{
	return ioctl(to, FICLONE, from) == 0;
}

/* Share the blocks. Wanted holes, reserved or overwritten blocks are incompatible with that. */
static bool clone_all(struct copy *copy)
{
	const struct fs_copy_options *options = copy->options;

	if (options->sparse || options->preallocate || options->in_place || !fs_clone(copy->to, copy->from))
		return false;
	off_t end = lseek(copy->to, 0, SEEK_END);

	if (end < 0)
		return false;
	count_touched(copy, (uint64_t)end);
	advance(copy, (uint64_t)end);
	return true;
}

/* Copy inside the kernel as far as that goes. What is left, if only to see the end of file, is for read and write. */
static int copy_in_kernel(struct copy *copy)
{
	for (;;) {
		ssize_t got = copy_file_range(copy->from, NULL, copy->to, NULL, KERNEL_CHUNK, 0);

		if (got > 0) {
			count_touched(copy, (uint64_t)got);
			advance(copy, (uint64_t)got);
			continue;
		}
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
			return fail_writing(copy);
		return 0;
	}
}

static int copy_by_reading(struct copy *copy, char *buffer, size_t size)
{
	for (;;) {
		if (copy->options->sparse && copy->size >= BUFFER_SIZE) {
			/* A hole of the source need not be read. */
			off_t next = lseek(copy->from, (off_t)copy->done, SEEK_DATA);

			if (next < 0 && errno == ENXIO)
				next = lseek(copy->from, 0, SEEK_END);
			if (next > 0 && (uint64_t)next > copy->done)
				advance(copy, (uint64_t)next - copy->done);
			if (lseek(copy->from, (off_t)copy->done, SEEK_SET) < 0)
				return -1;
		}
		ssize_t got = read(copy->from, buffer, size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return (int)got;
		if (!copy->options->sparse)
			count_touched(copy, (uint64_t)got);
		int result = copy->options->sparse ? fs_sparse_write(&copy->sparse, buffer, (size_t)got, copy->done, false)
						   : fs_write_all_at(copy->to, buffer, (size_t)got, copy->done);

		if (result < 0)
			return fail_writing(copy);
		advance(copy, (uint64_t)got);
	}
}

static int copy_all(struct copy *copy)
{
	const struct fs_copy_options *options = copy->options;
	char small[SMALL_SIZE];

	if (options->preallocate && fs_preallocate(copy->to, copy->size) < 0)
		return fail_writing(copy);
	if (copy->size <= SMALL_SIZE) {
		if (copy_by_reading(copy, small, sizeof small) < 0)
			return -1;
	} else if (!clone_all(copy)) {
		if (!options->sparse && copy_in_kernel(copy) < 0)
			return -1;
		char *buffer = xmalloc(BUFFER_SIZE);
		int result = copy_by_reading(copy, buffer, BUFFER_SIZE), error = errno;

		free(buffer);
		if (result < 0)
			return fs_fail(error);
	}
	if (options->sparse)
		return fs_sparse_end(&copy->sparse, copy->done) < 0 ? fail_writing(copy) : 0;
	/* Reserved blocks and old content beyond the end. */
	if ((options->preallocate || options->in_place) && ftruncate(copy->to, (off_t)copy->done) < 0)
		return fail_writing(copy);
	return 0;
}

int fs_copy_content(int from, int to, uint64_t size, const struct fs_copy_options *options, uint64_t *copied,
		    bool *write_error)
{
	struct copy copy = {
		.from = from, .to = to, .size = size, .options = options,
		/* Nothing was ever written to a new file; other targets have blocks. */
		.sparse = {
			.fd = to, .has_blocks = options->in_place || options->preallocate,
			.keeps_tail = options->preallocate && !options->in_place, .touched = options->touched,
		},
	};
	int result = copy_all(&copy);

	*copied = copy.done;
	*write_error = copy.write_error;
	return result;
}
