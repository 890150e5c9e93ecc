/* SPDX-License-Identifier: GPL-3.0-or-later */
/* File-list indexes on the wire (protocol/01 section 8.7): mostly one byte, the difference to the one before. */
#include <inttypes.h>

#include "lib/exit.h"
#include "wire/internal.h"

enum { POSITIVE, NEGATIVE };
enum {
	MARK_DONE = 0x00,
	MARK_WIDE = 0xfe,      /* two bytes of difference or four of value follow */
	MARK_NEGATIVE = 0xff,
	SMALL_MAX = 253,
	WIDE_MAX = 0x7fff,
};

void wire_write_ndx(struct wire *wire, int32_t ndx)
{
	int sign = ndx < 0 ? NEGATIVE : POSITIVE;
	int32_t magnitude;
	int64_t diff;
	uint8_t bytes[6];
	size_t length = 0;

	if (wire->protocol < 30) {
		wire_write_int(wire, ndx);
		return;
	}
	if (ndx == NDX_DONE) {
		wire_write_byte(wire, MARK_DONE);
		return;
	}
	magnitude = ndx < 0 ? -ndx : ndx;
	diff = (int64_t)magnitude - wire->ndx_out[sign];
	wire->ndx_out[sign] = magnitude;
	if (sign == NEGATIVE)
		bytes[length++] = MARK_NEGATIVE;
	if (diff >= 1 && diff <= SMALL_MAX) {
		bytes[length++] = (uint8_t)diff;
	} else if (diff < 0 || diff > WIDE_MAX) {
		bytes[length++] = MARK_WIDE;
		bytes[length++] = (uint8_t)(0x80 | magnitude >> 24);
		bytes[length++] = (uint8_t)magnitude;
		bytes[length++] = (uint8_t)(magnitude >> 8);
		bytes[length++] = (uint8_t)(magnitude >> 16);
	} else {
		bytes[length++] = MARK_WIDE;
		bytes[length++] = (uint8_t)(diff >> 8);
		bytes[length++] = (uint8_t)diff;
	}
	wire_write(wire, bytes, length);
}

/* What follows the sign. */
static int64_t read_magnitude(struct wire *wire, uint8_t first, int64_t last)
{
	uint8_t scratch[16], high, low;
	const uint8_t *bytes;

	if (first != MARK_WIDE)
		return last + first;
	high = wire_read_byte(wire);
	low = wire_read_byte(wire);
	if (!(high & 0x80))
		return last + (high << 8 | low);
	bytes = wire_take(wire, 2, scratch);
	return (int64_t)(high & 0x7f) << 24 | (int64_t)bytes[1] << 16 | (int64_t)bytes[0] << 8 | low;
}

int32_t wire_read_ndx(struct wire *wire)
{
	int sign = POSITIVE;
	int64_t magnitude;
	uint8_t first;

	if (wire->protocol < 30)
		return wire_read_int(wire);
	first = wire_read_byte(wire);
	if (first == MARK_DONE)
		return NDX_DONE;
	if (first == MARK_NEGATIVE) {
		sign = NEGATIVE;
		first = wire_read_byte(wire);
	}
	magnitude = read_magnitude(wire, first, wire->ndx_in[sign]);
	if (magnitude > INT32_MAX || (sign == NEGATIVE && magnitude <= -NDX_DONE))
		die(EXIT_PROTOCOL, "Invalid file index: %s%" PRId64, sign == NEGATIVE ? "-" : "", magnitude);
	wire->ndx_in[sign] = (int32_t)magnitude;
	return (int32_t)(sign == NEGATIVE ? -magnitude : magnitude);
}
