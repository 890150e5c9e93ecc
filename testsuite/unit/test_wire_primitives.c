/* SPDX-License-Identifier: GPL-3.0-or-later */
/* wire/: every encoding of doc/protocol/01-session.md section 8, byte for byte, and the refusals. */
#include "expect_die.h"

#include <stdlib.h>

#include "testsuite/unit/wire_memory.h"
#include "wire/encode.h"
#include "wire/wire.h"

struct vector { int64_t value; const char *hex; };

static size_t from_hex(const char *hex, uint8_t *bytes)
{
	size_t length = 0;
	int used;
	unsigned int byte;

	while (sscanf(hex, "%2x%n", &byte, &used) == 1) {
		bytes[length++] = (uint8_t)byte;
		hex += used;
	}
	return length;
}

static struct wire *wire_of(const char *hex, int protocol)
{
	uint8_t bytes[256];
	struct wire *wire = wire_new_memory(bytes, from_hex(hex, bytes));

	wire_settings(wire)->protocol = protocol;
	return wire;
}

static void assert_written(struct wire *wire, const char *hex)
{
	uint8_t bytes[256];
	size_t wanted = from_hex(hex, bytes), length;
	const uint8_t *written = wire_test_output(wire, &length);

	assert_int_equal(length, wanted);
	assert_memory_equal(written, bytes, wanted);
	wire_free(wire);
}

static const struct vector varints[] = {
	{ 0, "00" }, { 0x7f, "7f" }, { 0x80, "80 80" }, { 0xff, "80 ff" }, { 0x1ff, "81 ff" }, { 0x3fff, "bf ff" },
	{ 0x4000, "c0 00 40" }, { 0x1fffff, "df ff ff" }, { 0x200000, "e0 00 00 20" }, { 0x10000000, "f0 00 00 00 10" },
	{ -1, "f0 ff ff ff ff" },
};

static const struct vector varlongs3[] = {
	{ 0, "00 00 00" }, { 41, "00 29 00" }, { 0xffff, "00 ff ff" }, { 0x10000, "01 00 00" }, { 0x7fffff, "7f ff ff" },
	{ 0x800000, "80 00 00 80" }, { 0x1000000, "81 00 00 00" }, { 0x7fffffff, "c0 ff ff ff 7f" },
	{ INT64_C(1) << 32, "c1 00 00 00 00" }, { INT64_C(1000000000000), "e0 00 10 a5 d4 e8" },
	{ INT64_MAX, "fc ff ff ff ff ff ff ff 7f" },
};

static const struct vector varlongs4[] = {
	{ 0, "00 00 00 00" }, { 0x65937d25, "65 25 7d 93" }, { 0x7fffffff, "7f ff ff ff" }, { 0x80000000, "80 00 00 00 80" },
	{ 0xffffffff, "80 ff ff ff ff" }, { INT64_C(1) << 32, "81 00 00 00 00" },
	{ INT64_C(1000000000000), "c0 00 10 a5 d4 e8" }, { (INT64_C(1) << 48) - 1, "e0 ff ff ff ff ff ff" },
	{ INT64_C(1) << 62, "f8 00 00 00 00 00 00 00 40" }, { INT64_MAX, "f8 ff ff ff ff ff ff ff 7f" },
	{ -1, "f8 ff ff ff ff ff ff ff ff" },
};

UNIT_TEST(varint_vectors)
{
	struct wire *wire;

	for (size_t i = 0; i < sizeof varints / sizeof *varints; i++) {
		wire = wire_of("", 32);
		wire_write_varint(wire, (int32_t)varints[i].value);
		assert_written(wire, varints[i].hex);
		wire = wire_of(varints[i].hex, 32);
		assert_int_equal(wire_read_varint(wire), varints[i].value);
		wire_free(wire);
	}
}

static void check_varlongs(const struct vector *vectors, size_t count, int min_bytes)
{
	struct wire *wire;

	for (size_t i = 0; i < count; i++) {
		wire = wire_of("", 32);
		wire_write_vlong30(wire, vectors[i].value, min_bytes);
		assert_written(wire, vectors[i].hex);
		wire = wire_of(vectors[i].hex, 32);
		assert_true(wire_read_varlong(wire, min_bytes) == vectors[i].value);
		wire_free(wire);
	}
}

UNIT_TEST(varlong_vectors)
{
	check_varlongs(varlongs3, sizeof varlongs3 / sizeof *varlongs3, 3);
	check_varlongs(varlongs4, sizeof varlongs4 / sizeof *varlongs4, 4);
}

UNIT_TEST(variable_numbers_round_trip)
{
	struct wire *out = wire_of("", 32), *in;
	uint8_t encoded[ENCODED_MAX + ENCODE_SLACK];
	const uint8_t *bytes;
	size_t length;
	uint64_t seed = 1;

	for (int i = 0; i < 5000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		wire_write_vlong30(out, (int64_t)(seed >> (i % 63 + 1)), 3 + i % 2);
		wire_write_varint(out, (int32_t)(seed >> (32 + i % 32)));
		wire_write(out, encoded, (size_t)(encode_longint(encoded, (int64_t)(seed >> (i % 64))) - encoded));
	}
	bytes = wire_test_output(out, &length);
	in = wire_new_memory(bytes, length);
	wire_free(out);
	seed = 1;
	for (int i = 0; i < 5000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		assert_true(wire_read_varlong(in, 3 + i % 2) == (int64_t)(seed >> (i % 63 + 1)));
		assert_int_equal(wire_read_varint(in), (int32_t)(seed >> (32 + i % 32)));
		assert_true(wire_read_longint(in) == (int64_t)(seed >> (i % 64)));
	}
	wire_free(in);
}

/* S-002 */
UNIT_TEST(overlong_variable_numbers_are_refused)
{
	struct wire *wire;

	for (unsigned int head = 0xf8; head <= 0xff; head++) {
		char hex[32];

		snprintf(hex, sizeof hex, "%02x ff ff ff ff ff ff", head);
		wire = wire_of(hex, 32);
		expect_die(EXIT_STREAMIO, "Overflow in read_varint()", wire_read_varint(wire));
		wire_free(wire);
	}
	wire = wire_of("fc 00 00 00 00 00 00 00 00 00", 32);
	expect_die(EXIT_STREAMIO, "Overflow in read_varlong()", wire_read_varlong(wire, 4));
	wire_free(wire);
	wire = wire_of("fe 01 00 00 00 00 00 00 00", 32);
	assert_true(wire_read_varlong(wire, 3) == 1);
	wire_free(wire);
}

UNIT_TEST(fixed_integers)
{
	struct wire *wire = wire_of("", 29);

	wire_write_byte(wire, 0xab);
	wire_write_short(wire, 0x1234);
	wire_write_int(wire, -2);
	wire_write_vlong30(wire, 0x7fffffff, 3);
	wire_write_vlong30(wire, 0x80000000, 3);
	wire_write_vlong30(wire, -1, 3);
	wire_write_vint30(wire, 5);
	wire_write_vlong30(wire, 6, 3);
	assert_written(wire, "ab 34 12 fe ff ff ff ff ff ff 7f ff ff ff ff 00 00 00 80 00 00 00 00"
			     "ff ff ff ff ff ff ff ff ff ff ff ff 05 00 00 00 06 00 00 00");
	wire = wire_of("ab 34 12 fe ff ff ff ff ff ff 7f ff ff ff ff 00 00 00 80 00 00 00 00 fe ff ff ff 05 00 00 00", 29);
	assert_int_equal(wire_read_byte(wire), 0xab);
	assert_int_equal(wire_read_short(wire), 0x1234);
	assert_int_equal(wire_read_int(wire), -2);
	assert_true(wire_read_longint(wire) == 0x7fffffff);
	assert_true(wire_read_longint(wire) == 0x80000000);
	assert_true(wire_read_longint(wire) == -2);
	assert_int_equal(wire_read_vint30(wire), 5);
	expect_die(EXIT_STREAMIO, "connection unexpectedly closed (31 bytes received so far)", wire_read_byte(wire));
	wire_free(wire);
}

UNIT_TEST(vstring_lengths)
{
	static const struct { size_t length; const char *head; } cases[] = {
		{ 0, "00" }, { 127, "7f" }, { 128, "80 80" }, { 255, "80 ff" }, { 300, "81 2c" }, { 32767, "ff ff" },
	};
	char *text = malloc(32768), *back = malloc(32768);
	uint8_t head[4];
	const uint8_t *written;
	size_t length, head_length;
	struct wire *wire, *in;

	memset(text, 'x', 32768);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		wire = wire_of("", 32);
		wire_write_vstring(wire, text, cases[i].length);
		written = wire_test_output(wire, &length);
		head_length = from_hex(cases[i].head, head);
		assert_int_equal(length, head_length + cases[i].length);
		assert_memory_equal(written, head, head_length);
		in = wire_new_memory(written, length);
		assert_int_equal(wire_read_vstring(in, back, 32768, "name"), cases[i].length);
		assert_memory_equal(back, text, cases[i].length);
		wire_free(in);
		wire_free(wire);
	}
	wire = wire_of("", 32);
	expect_die(EXIT_PROTOCOL, "over-long vstring", wire_write_vstring(wire, text, 32768));
	wire_free(wire);
	free(text);
	free(back);
}

/* S-003, S-008 */
UNIT_TEST(vstring_refuses_too_long_and_nul)
{
	char buf[4];
	struct wire *wire = wire_of("03 61 62 63", 32);

	assert_int_equal(wire_read_vstring(wire, buf, sizeof buf, "name"), 3);
	assert_string_equal(buf, "abc");
	wire_free(wire);
	wire = wire_of("04 61 62 63 64", 32);
	expect_die(EXIT_PROTOCOL, "over-long vstring received (4 > 3)", wire_read_vstring(wire, buf, sizeof buf, "name"));
	wire_free(wire);
	wire = wire_of("03 61 00 63", 32);
	expect_die(EXIT_PROTOCOL, "NUL byte inside the name", wire_read_vstring(wire, buf, sizeof buf, "name"));
	wire_free(wire);
}

/* S-001 */
UNIT_TEST(ranges_are_enforced)
{
	static const char *const bad[] = { "f0 fe ff ff ff", "f0 00 00 00 80", "0b" };
	struct wire *wire;

	for (size_t i = 0; i < 3; i++) {
		wire = wire_of(bad[i], 32);
		expect_die(EXIT_PROTOCOL, "wire value count out of range: ", wire_read_varint_range(wire, 0, 10, "count"));
		wire_free(wire);
	}
	wire = wire_of("f0 ff ff ff ff", 32);
	expect_die(EXIT_PROTOCOL, "wire value count out of range: -1 not in [0,10]",
		   wire_read_varint_range(wire, 0, 10, "count"));
	wire_free(wire);
	wire = wire_of("0a 0a", 32);
	assert_int_equal(wire_read_varint_range(wire, 0, 10, "count"), 10);
	assert_int_equal(wire_read_varint_range(wire, 10, 10, "count"), 10);
	wire_free(wire);
}

struct ndx_vector { int32_t ndx; const char *hex; };

static const struct ndx_vector ndx_stream[] = {
	{ 0, "01" }, { 1, "01" }, { 254, "fd" }, { 508, "fe 00 fe" }, { 509, "01" }, { 509, "fe 00 00" },
	{ 3, "fe 80 03 00 00" }, { -1, "00" }, { 40000, "fe 80 40 9c 00" }, { 40001, "01" }, { -2, "ff 01" }, { -3, "ff 01" },
	{ -102, "ff 63" }, { -104, "ff 02" }, { -103, "ff fe 80 67 00 00" }, { -2, "ff fe 80 02 00 00" },
	{ 2147483647, "fe ff ff ff ff" },
};

static const struct ndx_vector ndx_stream2[] = {
	{ 1, "02" }, { 2, "01" }, { 5, "03" }, { 4, "fe 80 04 00 00" }, { 4, "fe 00 00" }, { 300, "fe 01 28" }, { -1, "00" },
	{ 301, "01" }, { 763, "fe 01 ce" }, { 33601, "fe 80 41 83 00" },
};

static void check_ndx_stream(const struct ndx_vector *vectors, size_t count)
{
	struct wire *out = wire_of("", 30), *in;
	uint8_t all[256];
	size_t length = 0;

	for (size_t i = 0; i < count; i++) {
		wire_write_ndx(out, vectors[i].ndx);
		length += from_hex(vectors[i].hex, all + length);
	}
	in = wire_new_memory(all, length);
	wire_settings(in)->protocol = 30;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(wire_read_ndx(in), vectors[i].ndx);
	wire_free(in);
	{
		size_t written;
		const uint8_t *bytes = wire_test_output(out, &written);

		assert_int_equal(written, length);
		assert_memory_equal(bytes, all, length);
	}
	wire_free(out);
}

UNIT_TEST(ndx_vectors)
{
	static const struct ndx_vector first[][1] = {
		{ { 253, "fe 00 fe" } }, { { 252, "fd" } }, { { -3, "ff 02" } }, { { -101, "ff 64" } }, { { 0, "01" } },
	};

	check_ndx_stream(ndx_stream, sizeof ndx_stream / sizeof *ndx_stream);
	check_ndx_stream(ndx_stream2, sizeof ndx_stream2 / sizeof *ndx_stream2);
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		check_ndx_stream(first[i], 1);
}

UNIT_TEST(ndx_is_an_int_below_30)
{
	struct wire *wire = wire_of("", 29);

	wire_write_ndx(wire, -1);
	wire_write_ndx(wire, 258);
	assert_written(wire, "ff ff ff ff 02 01 00 00");
	wire = wire_of("ff ff ff ff 02 01 00 00", 29);
	assert_int_equal(wire_read_ndx(wire), -1);
	assert_int_equal(wire_read_ndx(wire), 258);
	wire_free(wire);
}

UNIT_TEST(ndx_refuses_what_does_not_fit)
{
	static const char *const bad[] = { "fe ff ff ff ff 01", "fe ff ff ff ff fe 7f ff", "ff 00", "ff fe 80 00 00 00" };
	struct wire *wire;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		wire = wire_of(bad[i], 30);
		if (i < 2)
			assert_int_equal(wire_read_ndx(wire), INT32_MAX);
		expect_die(EXIT_PROTOCOL, "Invalid file index", wire_read_ndx(wire));
		wire_free(wire);
	}
}
