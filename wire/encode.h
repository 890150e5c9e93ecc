/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The encodings of integers (doc/protocol/01-session.md section 8) into memory: what wire_write_* send, for callers that put
 * many together in room of their own or in that of wire_reserve. Each returns the end of what it wrote and may scribble up to
 * ENCODE_SLACK bytes behind it; encode_int64 and shorter ones do not. What is in a message is decoded.
 */
#ifndef WIRE_ENCODE_H
#define WIRE_ENCODE_H

#include <stdint.h>

enum { ENCODE_SLACK = 8, ENCODED_MAX = 12 };

static inline uint8_t *encode_short(uint8_t *to, uint16_t value)
{
	to[0] = (uint8_t)value;
	to[1] = (uint8_t)(value >> 8);
	return to + 2;
}

static inline uint8_t *encode_int(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)value;
	to[1] = (uint8_t)(value >> 8);
	to[2] = (uint8_t)(value >> 16);
	to[3] = (uint8_t)(value >> 24);
	return to + 4;
}

static inline uint8_t *encode_int64(uint8_t *to, uint64_t value)
{
	return encode_int(encode_int(to, (uint32_t)value), (uint32_t)(value >> 32));
}

static inline uint32_t decode_int(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint64_t decode_int64(const uint8_t *bytes)
{
	return decode_int(bytes) | (uint64_t)decode_int(bytes + 4) << 32;
}

static inline uint8_t *encode_longint(uint8_t *to, int64_t value)
{
	if (value >= 0 && value <= INT32_MAX)
		return encode_int(to, (uint32_t)value);
	return encode_int64(encode_int(to, UINT32_MAX), (uint64_t)value);
}

/*
 * The header byte of varint and varlong: as many leading ones as bytes follow beyond the minimum, then a zero, then the most
 * significant bits of the value where they fit.
 */
static inline uint8_t *encode_varlong(uint8_t *to, int64_t signed_value, unsigned min_bytes)
{
	uint64_t value = (uint64_t)signed_value;
	unsigned count = value ? (71 - (unsigned)__builtin_clzll(value)) / 8 : 0;

	if (count < min_bytes)
		count = min_bytes;
	unsigned limit = 1u << (7 - (count - min_bytes)), top = (unsigned)(value >> (8 * (count - 1)));

	encode_int64(to + 1, value);
	if (top < limit) {
		to[0] = (uint8_t)(~(2 * limit - 1) | top);
		return to + count;
	}
	to[0] = (uint8_t)~(limit - 1);
	return to + count + 1;
}

static inline uint8_t *encode_varint(uint8_t *to, int32_t value)
{
	return encode_varlong(to, (uint32_t)value, 1);
}

#endif
