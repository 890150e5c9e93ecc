/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Integers and strings on the wire (doc/protocol/01-session.md section 8). */
#include <inttypes.h>
#include <string.h>

#include "lib/exit.h"
#include "lib/log.h"
#include "wire/encode.h"
#include "wire/internal.h"

enum {
	VSTRING_MAX = 32767,
	VARINT_EXTRA_MAX = 4,
	VARLONG_BYTES_MAX = 9,
};

/* --- writing --- */

/* What an encoding wrote into a scratch array becomes part of the stream. */
static void write_encoded(struct wire *wire, const uint8_t *bytes, const uint8_t *end)
{
	size_t length = (size_t)(end - bytes);

	memcpy(wire_room(wire, length), bytes, length);
}

void wire_write_byte(struct wire *wire, uint8_t value)
{
	*wire_room(wire, 1) = value;
}

void wire_write_short(struct wire *wire, uint16_t value)
{
	encode_short(wire_room(wire, 2), value);
}

void wire_write_int(struct wire *wire, int32_t value)
{
	encode_int(wire_room(wire, 4), (uint32_t)value);
}

void wire_write_varint(struct wire *wire, int32_t value)
{
	uint8_t bytes[ENCODED_MAX + ENCODE_SLACK];

	if (value >= 0 && value < 0x80)
		wire_write_byte(wire, (uint8_t)value);
	else
		write_encoded(wire, bytes, encode_varint(bytes, value));
}

void wire_write_vint30(struct wire *wire, int32_t value)
{
	if (wire->set.protocol < 30)
		wire_write_int(wire, value);
	else
		wire_write_varint(wire, value);
}

void wire_write_vlong30(struct wire *wire, int64_t value, int min_bytes)
{
	uint8_t bytes[ENCODED_MAX + ENCODE_SLACK];

	write_encoded(wire, bytes, wire->set.protocol < 30 ? encode_longint(bytes, value)
						       : encode_varlong(bytes, value, (unsigned)min_bytes));
}

void wire_write_vstring(struct wire *wire, const void *bytes, size_t length)
{
	if (length > VSTRING_MAX)
		die(EXIT_PROTOCOL, "attempt to send an over-long vstring (%zu > %d)", length, VSTRING_MAX);
	if (length > 0x7f)
		wire_write_byte(wire, (uint8_t)(0x80 | length >> 8));
	wire_write_byte(wire, (uint8_t)length);
	wire_write(wire, bytes, length);
}

/* --- reading --- */

uint8_t wire_read_byte(struct wire *wire)
{
	uint8_t scratch[16];

	return *wire_take(wire, 1, scratch);
}

uint16_t wire_read_short(struct wire *wire)
{
	uint8_t scratch[16];
	const uint8_t *bytes = wire_take(wire, 2, scratch);

	return (uint16_t)(bytes[0] | bytes[1] << 8);
}

int32_t wire_read_int(struct wire *wire)
{
	uint8_t scratch[16];

	return (int32_t)decode_int(wire_take(wire, 4, scratch));
}

int64_t wire_read_longint(struct wire *wire)
{
	uint8_t scratch[16];
	int32_t value = wire_read_int(wire);

	return value == -1 ? (int64_t)decode_int64(wire_take(wire, 8, scratch)) : value;
}

/* Number of leading ones of a header byte, at most 6 (doc/protocol/01-session.md section 8.4). */
static size_t extra_bytes(uint8_t head)
{
	size_t ones = (size_t)__builtin_clz(~((uint32_t)head << 24));

	return ones < 6 ? ones : 6;
}

/* The bits of a header byte that belong to the value. */
static uint8_t head_value(uint8_t head, size_t extra)
{
	return extra == 6 ? head & 3 : head & ((1u << (7 - extra)) - 1);
}

/* The next `length` (<= 8) bytes as the low ones of a number. */
static uint64_t take_low_bytes(struct wire *wire, size_t length)
{
	uint8_t bytes[8] = { 0 };

	if (wire->limit - wire->pos < sizeof bytes) {
		wire_read(wire, bytes, length);
		return decode_int64(bytes);
	}
	uint64_t value = decode_int64(wire->in + wire->pos);

	wire->pos += length;
	return length < 8 ? value & ((UINT64_C(1) << (8 * length)) - 1) : value;
}

int32_t wire_read_varint(struct wire *wire)
{
	uint8_t head = wire_read_byte(wire);
	size_t extra;

	if (head < 0x80)
		return head;
	extra = extra_bytes(head);
	if (extra > VARINT_EXTRA_MAX)
		die(EXIT_STREAMIO, "Overflow in read_varint()");
	uint64_t value = take_low_bytes(wire, extra);

	return (int32_t)(uint32_t)(value | (uint64_t)head_value(head, extra) << (8 * extra));
}

int64_t wire_read_varlong(struct wire *wire, int min_bytes)
{
	uint8_t head = wire_read_byte(wire);
	size_t extra = extra_bytes(head), low = (size_t)min_bytes - 1 + extra;

	if (low + 1 > VARLONG_BYTES_MAX)
		die(EXIT_STREAMIO, "Overflow in read_varlong()");
	uint64_t value = take_low_bytes(wire, low);

	/* With eight low bytes the header holds no value bits that fit; a well-formed one holds none. */
	if (low < 8)
		value |= (uint64_t)head_value(head, extra) << (8 * low);
	return (int64_t)value;
}

int32_t wire_read_vint30(struct wire *wire)
{
	return wire->set.protocol < 30 ? wire_read_int(wire) : wire_read_varint(wire);
}

int64_t wire_read_vlong30(struct wire *wire, int min_bytes)
{
	return wire->set.protocol < 30 ? wire_read_longint(wire) : wire_read_varlong(wire, min_bytes);
}

int32_t wire_read_varint_range(struct wire *wire, int32_t low, int32_t high, const char *field)
{
	int32_t value = wire_read_varint(wire);

	if (value < low || value > high)
		die(EXIT_PROTOCOL, "wire value %s out of range: %" PRId32 " not in [%" PRId32 ",%" PRId32 "] [%s]", field,
		    value, low, high, log_role());
	return value;
}

size_t wire_read_vstring(struct wire *wire, char *buf, size_t size, const char *field)
{
	size_t length = wire_read_byte(wire);

	if (length & 0x80)
		length = (length & 0x7f) << 8 | wire_read_byte(wire);
	if (length >= size)
		die(EXIT_PROTOCOL, "over-long vstring received (%zu > %zu)", length, size - 1);
	wire_read(wire, buf, length);
	buf[length] = '\0';
	if (memchr(buf, '\0', length))
		die(EXIT_PROTOCOL, "NUL byte inside the %s received", field);
	return length;
}

/* --- lines --- */

bool wire_read_line(struct wire *wire, char *buf, size_t size, int stop1, int stop2, bool *too_bad)
{
	bool drop_cr = stop1 == '\n' && stop2 != '\r';
	size_t length = 0;
	uint8_t byte;

	*too_bad = false;
	while (wire_next_byte(wire, &byte)) {
		if (byte == stop1 || byte == stop2) {
			buf[length] = '\0';
			return true;
		}
		if (byte == '\r' && drop_cr)
			continue;
		if (byte == '\0' || length + 1 >= size) {
			*too_bad = true;
			break;
		}
		buf[length++] = (char)byte;
	}
	buf[length] = '\0';
	return false;
}

/* --- indexes of files (doc/protocol/01-session.md section 8.7) --- */

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

	if (wire->set.protocol < 30) {
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

	if (wire->set.protocol < 30)
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
