/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The weak checksum of a block; block sums of a basis: the header's numbers, and one pass over the file
 * (doc/protocol/03-transfer.md sections 3.3 and 4).
 */
#include "delta/block_sums.h"

#include <stdlib.h>
#include <string.h>

#include "fs/file.h"
#include "lib/alloc.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/*
 * --- the weak checksum of a whole block ---
 *
 * Sixteen bytes a step in vector registers, written so that any compiler can map it; more where the processor is seen to have
 * instructions made for it.
 */

/* Registers of 16 bytes, which every processor with vectors has: wider types would live in memory. */
typedef int16_t pairs8 __attribute__((vector_size(16))); /* 16 bytes as pairs */
typedef uint16_t lanes8 __attribute__((vector_size(16)));

enum { STEP = 16, LANES = 8 };

static uint32_t sum_of(lanes8 v)
{
	uint32_t sum = 0;

	for (int i = 0; i < LANES; i++)
		sum += v[i];
	return sum;
}

/*
 * With n bytes left, a step of 16 adds to s2: 16 times the old s1, and each byte x[i] (16 - i) times. Both sums are kept per
 * lane; the lane weights are applied once at the end. Only the low 16 bits of either sum count, so lanes of 16 bits do.
 */
static size_t sum_steps(const int8_t *byte, size_t length, uint32_t *s1, uint32_t *s2)
{
	static const lanes8 even_weights = { 16, 14, 12, 10, 8, 6, 4, 2 }, odd_weights = { 15, 13, 11, 9, 7, 5, 3, 1 };
	lanes8 even_sum = { 0 }, odd_sum = { 0 }, before = { 0 };
	size_t done;

	for (done = 0; length - done >= STEP; done += STEP) {
		pairs8 pairs, low, high;
		lanes8 even, odd;

		/* The signed bytes at even places and at odd ones, each widened in its lane. */
		memcpy(&pairs, byte + done, STEP);
		low = (pairs8)((lanes8)pairs << 8) >> 8;
		high = pairs >> 8;
		even = (lanes8)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? low : high);
		odd = (lanes8)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? high : low);
		before += even_sum + odd_sum;
		even_sum += even;
		odd_sum += odd;
	}
	*s1 = sum_of(even_sum + odd_sum);
	*s2 = sum_of(before) * STEP + sum_of(even_sum * even_weights) + sum_of(odd_sum * odd_weights);
	return done;
}

#ifdef __x86_64__
enum { WIDE_STEP = 32 };

__attribute__((target("avx2"))) static uint32_t sum_of_wide(__m256i v)
{
	lanes8 halves[2];

	memcpy(halves, &v, sizeof halves);
	return sum_of(halves[0] + halves[1]);
}

/* The same in steps of 32, with an instruction that multiplies bytes by weights and adds pairs of the products. */
__attribute__((target("avx2"))) static size_t sum_wide_steps(const int8_t *byte, size_t length, uint32_t *s1, uint32_t *s2)
{
	const __m256i weights = _mm256_setr_epi8(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13,
						 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1),
		      ones = _mm256_set1_epi8(1);
	__m256i sum = _mm256_setzero_si256(), weighted = sum, before = sum;
	size_t done;

	for (done = 0; length - done >= WIDE_STEP; done += WIDE_STEP) {
		__m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(byte + done));
		before = _mm256_add_epi16(before, sum);
		sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(ones, bytes));
		weighted = _mm256_add_epi16(weighted, _mm256_maddubs_epi16(weights, bytes));
	}
	*s1 = sum_of_wide(sum);
	*s2 = sum_of_wide(before) * WIDE_STEP + sum_of_wide(weighted);
	return done;
}
#endif

/* The bytes behind the steps that are done. */
static uint32_t finish(const int8_t *byte, size_t done, size_t length, uint32_t s1, uint32_t s2)
{
	for (; done < length; done++) {
		s1 += (uint32_t)(int32_t)byte[done];
		s2 += s1;
	}
	return (s1 & 0xffff) | s2 << 16;
}

uint32_t rolling_compute_portably(const void *data, size_t length)
{
	uint32_t s1, s2;
	size_t done = sum_steps(data, length, &s1, &s2);

	return finish(data, done, length, s1, s2);
}

uint32_t rolling_compute(const void *data, size_t length)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		uint32_t s1, s2;
		size_t done = sum_wide_steps(data, length, &s1, &s2);

		return finish(data, done, length, s1, s2);
	}
#endif
	return rolling_compute_portably(data, length);
}

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

void sum_head_choose(struct sum_head *head, uint64_t size, uint32_t block_size, int32_t longest, int strong, bool full)
{
	uint32_t length = block_size ? block_size : usual_block_length(size, (uint32_t)longest);
	uint64_t count = size / length + (size % length != 0);

	*head = (struct sum_head){ 0 };
	if (!count || count > INT32_MAX)
		return;
	/* Enough bytes that blocks of a file of this size are hardly ever taken for one another. */
	int bits = BIAS_BITS + 2 * floor_log2(size) - floor_log2(length);
	int strong_length = bits > 24 ? (bits - 24) / 8 : 0;

	if (strong_length < STRONG_MIN)
		strong_length = STRONG_MIN;
	if (full || strong_length > STRONG_MAX)
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

int block_sums_write(struct session *session, int fd, const struct sum_head *head)
{
	const struct block_digest how = { session->xfer_sum, session->seed, session->seed_first };
	uint64_t size = sum_head_size(head), block = (uint64_t)head->block_length;
	uint8_t strong[DIGEST_MAX_LENGTH];
	int error = 0;

	if (!size)
		return 0;
	uint64_t step = block < READ_SIZE ? READ_SIZE / block * block : block;

	if (step > size)
		step = size;
	uint8_t *buffer = peer_alloc((size_t)step, 1, session->max_alloc ? session->max_alloc : MAX_ALLOC_DEFAULT);

	for (uint64_t offset = 0; offset < size; offset += step) {
		size_t length = size - offset < step ? (size_t)(size - offset) : (size_t)step;

		if (!error)
			error = fs_read_at(fd, buffer, length, offset);
		else
			memset(buffer, 0, length);
		for (size_t at = 0; at < length; at += block) {
			size_t here = length - at < block ? length - at : block;

			block_digest_compute(&how, buffer + at, here, strong);
			wire_write_int(session->wire, (int32_t)rolling_compute(buffer + at, here));
			wire_write(session->wire, strong, (size_t)head->strong_length);
		}
		wire_keep_alive(session->wire);
	}
	free(buffer);
	return error;
}
