/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Block sums of a basis: the header's numbers, and one pass over the file (doc/protocol/03-transfer.md sections 3.3 and 4). */
#include "delta/block_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "delta/rolling.h"
#include "lib/alloc.h"

enum {
	BLOCK_MIN = 700,
	BLOCK_STEP = 8,
	STRONG_MIN = 2,
	STRONG_MAX = 16,
	BIAS_BITS = 10,
	READ_SIZE = 256 * 1024,
};

static int floor_log2(uint64_t value)
{
	return 63 - __builtin_clzll(value);
}

/* The largest multiple of BLOCK_STEP, within the bounds, whose square is no more than the size. */
static uint32_t usual_block_length(uint64_t size, uint32_t most)
{
	uint64_t length = 0;

	if (size <= (uint64_t)BLOCK_MIN * BLOCK_MIN)
		return BLOCK_MIN;
	if (size >= (uint64_t)most * most)
		return most;
	for (uint64_t bit = most; bit >= BLOCK_STEP; bit /= 2)
		if ((length | bit) * (length | bit) <= size)
			length |= bit;
	return length < BLOCK_MIN ? BLOCK_MIN : (uint32_t)length;
}

/* Enough bytes that blocks of a file of this size are hardly ever taken for one another. */
static int usual_strong_length(uint64_t size, uint32_t block_length)
{
	int bits = BIAS_BITS + 2 * floor_log2(size) - floor_log2(block_length);
	int length = bits > 24 ? (bits - 24) / 8 : 0;

	return length < STRONG_MIN ? STRONG_MIN : length;
}

void sum_head_choose(struct sum_head *head, uint64_t size, uint32_t block_size, int32_t longest, int strong, bool full)
{
	uint32_t length = block_size ? block_size : usual_block_length(size, (uint32_t)longest);
	uint64_t count = size / length + (size % length != 0);
	int strong_length;

	*head = (struct sum_head){ 0 };
	if (!count || count > INT32_MAX)
		return;
	strong_length = full ? STRONG_MAX : usual_strong_length(size, length);
	if (strong_length > STRONG_MAX)
		strong_length = STRONG_MAX;
	head->count = (int32_t)count;
	head->block_length = (int32_t)length;
	head->strong_length = strong_length < strong ? strong_length : strong;
	head->remainder = (int32_t)(size % length);
}

uint64_t sum_head_size(const struct sum_head *head)
{
	uint64_t size = (uint64_t)head->count * (uint64_t)head->block_length;

	return head->count && head->remainder ? size - (uint64_t)(head->block_length - head->remainder) : size;
}

/* What cannot be read is zero bytes. Returns errno, 0 if all is there. */
static int read_or_zeros(int fd, uint8_t *buffer, size_t length, uint64_t offset)
{
	size_t done = 0;
	int error = 0;

	while (done < length && !error) {
		ssize_t got = pread(fd, buffer + done, length - done, (off_t)(offset + done));

		if (got > 0)
			done += (size_t)got;
		else if (got == 0)
			error = ENODATA;
		else if (errno != EINTR)
			error = errno;
	}
	memset(buffer + done, 0, length - done);
	return error;
}

static void write_sums(struct session *session, const struct sum_head *head, const uint8_t *data, size_t length)
{
	const struct block_digest how = { session->xfer_sum, session->seed, session->seed_first };
	size_t block = (size_t)head->block_length;
	uint8_t strong[DIGEST_MAX_LENGTH];

	for (size_t at = 0; at < length; at += block) {
		size_t here = length - at < block ? length - at : block;

		block_digest_compute(&how, data + at, here, strong);
		wire_write_int(session->wire, (int32_t)rolling_compute(data + at, here));
		wire_write(session->wire, strong, (size_t)head->strong_length);
	}
}

int block_sums_write(struct session *session, int fd, const struct sum_head *head)
{
	uint64_t size = sum_head_size(head), block = (uint64_t)head->block_length, step;
	int error = 0;
	uint8_t *buffer;

	if (!size)
		return 0;
	step = block < READ_SIZE ? READ_SIZE / block * block : block;
	if (step > size)
		step = size;
	buffer = peer_alloc((size_t)step, 1, session->max_alloc ? session->max_alloc : MAX_ALLOC_DEFAULT);
	for (uint64_t offset = 0; offset < size; offset += step) {
		size_t length = size - offset < step ? (size_t)(size - offset) : (size_t)step;

		if (!error)
			error = read_or_zeros(fd, buffer, length, offset);
		else
			memset(buffer, 0, length);
		write_sums(session, head, buffer, length);
		wire_keep_alive(session->wire);
	}
	free(buffer);
	return error;
}
