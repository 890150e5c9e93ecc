/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Counts the aligned blocks of 4 KiB of a file that writes at growing offsets touch (doc/protocol/09-since-3.5.0.md
 * section 3.1).
 */
#ifndef LIB_BLOCK_COUNT_H
#define LIB_BLOCK_COUNT_H

#include <stdint.h>

#define BLOCK_COUNT_SIZE 4096u

/* One reception of one file. Starts as all zeros. */
struct block_count {
	uint64_t next;  /* the first block that no write has touched yet */
	uint64_t total; /* distinct blocks touched */
};

/* `length` bytes are written at `offset`, which is not before the last such offset. */
static inline void block_count_add(struct block_count *count, uint64_t offset, uint64_t length)
{
	if (!length)
		return;
	uint64_t first = offset / BLOCK_COUNT_SIZE, end = (offset + length - 1) / BLOCK_COUNT_SIZE + 1;

	if (first < count->next)
		first = count->next;
	if (end <= first)
		return;
	count->total += end - first;
	count->next = end;
}

/* The sum of two counts; it stops at 2^63 - 1, the largest that travels. */
static inline uint64_t block_count_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) || sum > INT64_MAX ? INT64_MAX : sum;
}

#endif
