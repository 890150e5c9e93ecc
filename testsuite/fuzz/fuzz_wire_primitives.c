/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzzes the primitive readers; what was read is written, read again and must be the same. */
#include "catch_die.h"

#include <string.h>

#include "testsuite/unit/wire_memory.h"
#include "wire/encode.h"
#include "wire/wire.h"

enum { KINDS = 12 };

struct run { struct wire *in, *out; uint8_t *kinds; size_t count, limit; };

static void wire_write_longint(struct wire *wire, int64_t value)
{
	uint8_t bytes[ENCODED_MAX + ENCODE_SLACK];

	wire_write(wire, bytes, (size_t)(encode_longint(bytes, value) - bytes));
}

static void wire_write_varlong(struct wire *wire, int64_t value, unsigned min_bytes)
{
	uint8_t bytes[ENCODED_MAX + ENCODE_SLACK];

	wire_write(wire, bytes, (size_t)(encode_varlong(bytes, value, min_bytes) - bytes));
}

/* One value of the kind from `in`; `out` (if any) gets it written. Returns something to compare. */
static int64_t pass_on(struct wire *in, struct wire *out, uint8_t kind)
{
	char text[300];
	int64_t value = 0;
	size_t length;

#define PASS(READ, WRITE, ...) \
	do { \
		value = READ; \
		if (out) \
			WRITE(out, __VA_ARGS__); \
	} while (0)

	switch (kind % KINDS) {
	case 0: PASS(wire_read_byte(in), wire_write_byte, (uint8_t)value); break;
	case 1: PASS(wire_read_short(in), wire_write_short, (uint16_t)value); break;
	case 2: PASS(wire_read_int(in), wire_write_int, (int32_t)value); break;
	case 3: PASS(wire_read_longint(in), wire_write_longint, value); break;
	case 4: PASS(wire_read_varint(in), wire_write_varint, (int32_t)value); break;
	case 5: PASS(wire_read_varlong(in, 3), wire_write_varlong, value, 3); break;
	case 6: PASS(wire_read_varlong(in, 4), wire_write_varlong, value, 4); break;
	case 7: PASS(wire_read_vint30(in), wire_write_vint30, (int32_t)value); break;
	case 8: PASS(wire_read_vlong30(in, 3), wire_write_vlong30, value, 3); break;
	case 9: PASS(wire_read_ndx(in), wire_write_ndx, (int32_t)value); break;
	case 10: PASS(wire_read_varint_range(in, 0, 1000, "field"), wire_write_varint, (int32_t)value); break;
	case 11:
		length = wire_read_vstring(in, text, sizeof text, "text");
		if (strlen(text) != length)
			abort();
		if (out)
			wire_write_vstring(out, text, length);
		value = (int64_t)length;
		break;
	}
	return value;
}

static void forth(void *context)
{
	struct run *run = context;

	for (run->count = 0; run->count < run->limit; run->count++) {
		run->kinds[run->count] = wire_read_byte(run->in);
		pass_on(run->in, run->out, run->kinds[run->count]);
	}
}

/* What was written reads back to the bytes that it was written as. */
static void back(void *context)
{
	struct run *run = context;

	for (size_t i = 0; i < run->count; i++)
		pass_on(run->in, run->out, run->kinds[i]);
	run->limit = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run = { .limit = size }, again;
	size_t length, again_length;
	const uint8_t *bytes, *again_bytes;
	int protocol;

	if (!size)
		return 0;
	protocol = data[0] & 1 ? 29 : 31;
	run.kinds = calloc(size, 1);
	run.in = wire_new_memory(data + 1, size - 1);
	run.out = wire_new_memory("", 0);
	wire_settings(run.in)->protocol = protocol;
	wire_settings(run.out)->protocol = protocol;
	catch_die(forth, &run);
	bytes = wire_test_output(run.out, &length);
	again = run;
	again.in = wire_new_memory(bytes, length);
	again.out = wire_new_memory("", 0);
	wire_settings(again.in)->protocol = protocol;
	wire_settings(again.out)->protocol = protocol;
	catch_die(back, &again);
	again_bytes = wire_test_output(again.out, &again_length);
	if (again.limit || again_length != length || memcmp(again_bytes, bytes, length) != 0)
		abort();
	wire_free(run.in);
	wire_free(run.out);
	wire_free(again.in);
	wire_free(again.out);
	free(run.kinds);
	return 0;
}
