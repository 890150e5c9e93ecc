/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The weak checksum of a whole block. Sixteen bytes a step in vector registers, written so that any compiler can map it. */
#include "delta/rolling.h"

#include <string.h>

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

/* The signed bytes at even places and at odd ones, each widened in its lane. */
static inline void widen(const int8_t *byte, lanes8 *even, lanes8 *odd)
{
	pairs8 pairs, low, high;

	memcpy(&pairs, byte, STEP);
	low = (pairs8)((lanes8)pairs << 8) >> 8;
	high = pairs >> 8;
	*even = (lanes8)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? low : high);
	*odd = (lanes8)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? high : low);
}

/*
 * With n bytes left, a step of 16 adds to s2: 16 times the old s1, and each byte x[i] (16 - i) times. Both sums are kept per
 * lane; the lane weights are applied once at the end. Only the low 16 bits of either sum count, so lanes of 16 bits do.
 */
uint32_t rolling_compute(const void *data, size_t length)
{
	static const lanes8 even_weights = { 16, 14, 12, 10, 8, 6, 4, 2 }, odd_weights = { 15, 13, 11, 9, 7, 5, 3, 1 };
	const int8_t *byte = data;
	lanes8 even_sum = { 0 }, odd_sum = { 0 }, before = { 0 };
	uint32_t s1, s2;

	for (; length >= STEP; length -= STEP, byte += STEP) {
		lanes8 even, odd;
		widen(byte, &even, &odd);
		before += even_sum + odd_sum;
		even_sum += even;
		odd_sum += odd;
	}
	s1 = sum_of(even_sum + odd_sum);
	s2 = sum_of(before) * STEP + sum_of(even_sum * even_weights) + sum_of(odd_sum * odd_weights);
	for (; length; length--, byte++) {
		s1 += (uint32_t)(int32_t)*byte;
		s2 += s1;
	}
	return (s1 & 0xffff) | s2 << 16;
}
