/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The weak checksum of a whole block. Sixteen bytes a step in vector registers, written so that any compiler can map it. */
#include "delta/rolling.h"

#include <string.h>

typedef int8_t bytes16 __attribute__((vector_size(16)));
typedef int32_t ints16 __attribute__((vector_size(64)));
typedef uint32_t lanes16 __attribute__((vector_size(64)));

#define STEP 16

/* By address: passing so wide a vector by value would depend on the processor the compiler aims at. */
static uint32_t sum_of(const lanes16 *v)
{
	uint32_t sum = 0;

	for (int i = 0; i < STEP; i++)
		sum += (*v)[i];
	return sum;
}

/*
 * With n bytes left, a step of 16 adds to s2: 16 times the old s1, and each byte x[i] (16 - i) times. Both sums are kept per
 * lane; the lane weights are applied once at the end. All arithmetic is modulo 2^32, of which the low 16 bits count.
 */
uint32_t rolling_compute(const void *data, size_t length)
{
	static const lanes16 weights = { 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1 };
	const int8_t *byte = data;
	lanes16 lane_sum = { 0 }, lane_before = { 0 };
	uint32_t s1, s2;

	for (; length >= STEP; length -= STEP, byte += STEP) {
		bytes16 block;
		memcpy(&block, byte, STEP);
		lane_before += lane_sum;
		lane_sum += (lanes16)__builtin_convertvector(block, ints16);
	}
	s1 = sum_of(&lane_sum);
	s2 = sum_of(&lane_before) * STEP;
	lane_sum *= weights;
	s2 += sum_of(&lane_sum);
	for (; length; length--, byte++) {
		s1 += (uint32_t)(int32_t)*byte;
		s2 += s1;
	}
	return (s1 & 0xffff) | s2 << 16;
}
