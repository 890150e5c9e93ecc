/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers in little-endian bytes. */
#ifndef LIB_BYTES_H
#define LIB_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* The number that up to eight bytes hold. */
static inline uint64_t bytes_number(const uint8_t *bytes, size_t count)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count; i++)
		value |= (uint64_t)bytes[i] << (8 * i);
	return value;
}

/* Returns the place behind the bytes that it has written. */
static inline uint8_t *bytes_put(uint8_t *to, uint64_t value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*to++ = (uint8_t)(value >> (8 * i));
	return to;
}

#endif
