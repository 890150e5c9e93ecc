/* SPDX-License-Identifier: GPL-3.0-or-later */
/* wire/: frames and messages, in memory. */
#include "expect_die.h"

#include <pthread.h>
#include <stdlib.h>

#include "testsuite/unit/wire_memory.h"
#include "wire/wire.h"

struct heard {
	int count;
	int codes[64];
	size_t lengths[64];
	uint8_t last[8192];
};

static void hear(void *context, enum message_code code, const uint8_t *payload, size_t length)
{
	struct heard *heard = context;

	heard->codes[heard->count % 64] = (int)code;
	heard->lengths[heard->count++ % 64] = length;
	memcpy(heard->last, payload, length);
	assert_int_equal(payload[length], '\0');
}

static size_t put_frame(uint8_t *to, int code, const void *payload, size_t length)
{
	to[0] = (uint8_t)length;
	to[1] = (uint8_t)(length >> 8);
	to[2] = (uint8_t)(length >> 16);
	to[3] = (uint8_t)(code + 7);
	if (payload)
		memcpy(to + 4, payload, length);
	else
		memset(to + 4, 0, length);
	return 4 + length;
}

static struct wire *framed(const void *bytes, size_t length, struct heard *heard)
{
	struct wire *wire = wire_new_memory(bytes, length);

	wire_settings(wire)->protocol = 32;
	wire_set_mux_in(wire, true);
	if (heard) {
		memset(heard, 0, sizeof *heard);
		wire_set_message_handler(wire, hear, heard);
	}
	return wire;
}

UNIT_TEST(frames_may_split_an_integer)
{
	uint8_t in[64];
	size_t length = 0;
	struct heard heard;
	struct wire *wire;

	length += put_frame(in + length, 0, "\x01", 1);
	length += put_frame(in + length, 0, "", 0);
	length += put_frame(in + length, 0, "\x02\x03", 2);
	length += put_frame(in + length, MSG_INFO, "hello\n", 6);
	length += put_frame(in + length, 0, "\x04\xaa", 2);
	wire = framed(in, length, &heard);
	assert_int_equal(wire_read_int(wire), 0x04030201);
	assert_int_equal(heard.count, 1);
	assert_int_equal(heard.codes[0], MSG_INFO);
	assert_memory_equal(heard.last, "hello\n", 6);
	assert_int_equal(wire_read_byte(wire), 0xaa);
	assert_int_equal(wire_bytes_read(wire), length);
	expect_die(EXIT_STREAMIO, "connection unexpectedly closed (31 bytes received so far)", wire_read_byte(wire));
	wire_free(wire);
}

UNIT_TEST(reading_one_byte_at_a_time_equals_reading_at_once)
{
	uint8_t *in = malloc(200000), data[1000];
	size_t length = 0;
	struct wire *wire;

	for (int i = 0; i < 1000; i++)
		data[i] = (uint8_t)(i * 7);
	for (int i = 1; i <= 150; i++)
		length += put_frame(in + length, 0, data, (size_t)i);
	wire = framed(in, length, NULL);
	for (int i = 1; i <= 150; i++)
		for (int j = 0; j < i; j++)
			assert_int_equal(wire_read_byte(wire), data[j]);
	wire_free(wire);
	free(in);
}

struct frame_case { int code; size_t length; int exit_code; const char *words; bool delivered; };

/* S-033, S-034: every rule of doc/protocol/08-security.md section 2.2, "Multiplex layer". */
static const struct frame_case frame_cases[] = {
	{ MSG_ERROR_XFER, 5119, 0, "", true }, { MSG_INFO, 0, 0, "", true }, { MSG_ERROR, 5119, 0, "", true },
	{ MSG_WARNING, 1, 0, "", true }, { MSG_DELETED, 5119, 0, "", true },
	{ MSG_INFO, 5120, EXIT_STREAMIO, "multiplexing overflow 2:5120 [", false },
	{ MSG_DELETED, 6000, EXIT_STREAMIO, "multiplexing overflow 101:6000 [", false },
	{ MSG_ERROR_SOCKET, 5, EXIT_STREAMIO, "invalid multi-message 5:5 [", false },
	{ MSG_LOG, 9, EXIT_STREAMIO, "invalid multi-message 6:9 [", false },
	{ MSG_CLIENT, 1, EXIT_STREAMIO, "invalid multi-message 7:1 [", false },
	{ MSG_ERROR_UTF8, 1, EXIT_STREAMIO, "invalid multi-message 8:1 [", false },
	{ MSG_REDO, 4, EXIT_STREAMIO, "invalid multi-message 9:4 [", false },
	{ MSG_STATS, 8, EXIT_STREAMIO, "invalid multi-message 10:8 [", false },
	{ MSG_BLOCK_STATS, 8, EXIT_STREAMIO, "unexpected tag 11 [", false },
	{ MSG_BLOCK_STATS, 0, EXIT_STREAMIO, "unexpected tag 11 [", false },
	{ MSG_IO_ERROR, 4, 0, "", true }, { MSG_IO_ERROR, 3, EXIT_STREAMIO, "invalid multi-message 22:3 [", false },
	{ MSG_IO_TIMEOUT, 4, 0, "", false }, { MSG_IO_TIMEOUT, 0, EXIT_STREAMIO, "invalid multi-message 33:0 [", false },
	{ MSG_NOOP, 0, 0, "", false }, { MSG_NOOP, 1, EXIT_STREAMIO, "invalid multi-message 42:1 [", false },
	{ MSG_ERROR_EXIT, 0, 0, "", true }, { MSG_ERROR_EXIT, 4, 0, "", true },
	{ MSG_ERROR_EXIT, 3, EXIT_STREAMIO, "invalid multi-message 86:3 [", false },
	{ MSG_SUCCESS, 4, 0, "", true }, { MSG_SUCCESS, 5, EXIT_STREAMIO, "invalid multi-message 100:5 [", false },
	{ MSG_NO_SEND, 4, 0, "", true }, { MSG_NO_SEND, 8, EXIT_STREAMIO, "invalid multi-message 102:8 [", false },
	{ 50, 0, EXIT_STREAMIO, "unexpected tag 50 [", false }, { -7, 0, EXIT_STREAMIO, "unexpected tag -7 [", false },
	{ 248, 0, EXIT_STREAMIO, "unexpected tag 248 [", false }, { 20, 4, EXIT_STREAMIO, "unexpected tag 20 [", false },
	{ 9, 0xffffff, EXIT_STREAMIO, "invalid multi-message 9:16777215 [", false },
};

UNIT_TEST(messages_obey_the_table)
{
	static uint8_t in[8192];
	const struct frame_case *c;
	struct heard heard;
	struct wire *wire;
	size_t length;

	for (size_t i = 0; i < sizeof frame_cases / sizeof *frame_cases; i++) {
		c = &frame_cases[i];
		length = put_frame(in, c->code, NULL, c->length < 8000 ? c->length : 8000);
		in[2] = (uint8_t)(c->length >> 16);
		in[1] = (uint8_t)(c->length >> 8);
		in[0] = (uint8_t)c->length;
		length += put_frame(in + length, 0, "Z", 1);
		wire = framed(in, length, &heard);
		if (c->exit_code)
			expect_die(c->exit_code, c->words, wire_read_byte(wire));
		else
			assert_int_equal(wire_read_byte(wire), 'Z');
		assert_int_equal(heard.count, c->delivered ? 1 : 0);
		if (c->delivered) {
			assert_int_equal(heard.codes[0], c->code);
			assert_int_equal(heard.lengths[0], c->length);
		}
		wire_free(wire);
	}
}

/* Every tag with the lengths of S-033: data, a message or an orderly refusal. */
UNIT_TEST(every_tag_is_data_message_or_refusal)
{
	static const size_t lengths[] = { 0, 1, 3, 4, 5, 8, 20, 5119, 5120 };
	static uint8_t in[8192];
	struct heard heard;

	for (int tag = 0; tag < 256; tag++) {
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			size_t length = put_frame(in, tag - 7, NULL, lengths[i]);
			struct dying dying = { .code = 0, .text = "" };
			struct log_sink old = log_set_sink((struct log_sink){ dying_emit, &dying });
			struct wire *wire = framed(in, length, &heard);

			exit_push_hook(dying_hook, &dying);
			if (!setjmp(dying.jump)) {
				for (;;)
					wire_read_byte(wire);
			}
			log_set_sink(old);
			assert_true(dying.code == EXIT_STREAMIO || dying.code == EXIT_PROTOCOL);
			wire_free(wire);
		}
	}
}

/* S-035, S-001 */
UNIT_TEST(numbers_in_messages_are_bounded)
{
	uint8_t in[64];
	size_t length = 0;
	struct heard heard;
	struct wire *wire;

	length += put_frame(in + length, MSG_IO_ERROR, "\xff\xff\xff\xff", 4);
	length += put_frame(in + length, 0, "Z", 1);
	length += put_frame(in + length, MSG_ERROR_EXIT, "\x2c\x01\x00\x80", 4);
	length += put_frame(in + length, 0, "Z", 1);
	length += put_frame(in + length, MSG_SUCCESS, "\xff\xff\xff\xff", 4);
	wire = framed(in, length, &heard);
	wire_read_byte(wire);
	assert_memory_equal(heard.last, "\x07\0\0\0", 4);
	wire_read_byte(wire);
	assert_memory_equal(heard.last, "\x2c\0\0\0", 4);
	expect_die(EXIT_PROTOCOL, "out of range: -1", wire_read_byte(wire));
	wire_free(wire);
}

/* S-051 */
UNIT_TEST(io_timeout_only_shortens)
{
	static const struct { int32_t current, announced, wanted; } cases[] = {
		{ 3, 0, 3 }, { 3, -1, 3 }, { 3, 86401, 3 }, { 3, INT32_MAX, 3 }, { 3, INT32_MIN, 3 }, { 3, 1, 1 }, { 3, 4, 3 },
		{ 0, 86400, 86400 }, { 0, 86401, 0 }, { 0, 0, 0 }, { 100, 99, 99 },
	};
	uint8_t in[32], number[4];
	size_t length;
	struct wire *wire;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int j = 0; j < 4; j++)
			number[j] = (uint8_t)((uint32_t)cases[i].announced >> 8 * j);
		length = put_frame(in, MSG_IO_TIMEOUT, number, 4);
		length += put_frame(in + length, 0, "Z", 1);
		wire = framed(in, length, NULL);
		wire_settings(wire)->timeout = cases[i].current;
		wire_read_byte(wire);
		assert_int_equal(wire_settings(wire)->timeout, cases[i].wanted);
		wire_free(wire);
		wire = framed(in, length, NULL);
		wire_settings(wire)->is_server = true;
		expect_die(EXIT_STREAMIO, "invalid multi-message 33:4", wire_read_byte(wire));
		wire_free(wire);
	}
}

/* S-058: the work of a flood of messages is done in a loop; a deep stack would not survive this many. */
UNIT_TEST(floods_of_messages_need_no_stack)
{
	enum { FLOOD = 200000 };
	uint8_t *in = malloc((size_t)FLOOD * 8 + 16);
	size_t length = 0;
	struct heard heard;
	struct wire *wire;

	for (int i = 0; i < FLOOD; i++)
		length += i % 3 ? put_frame(in + length, MSG_NOOP, "", 0) : put_frame(in + length, MSG_NO_SEND, "\1\0\0\0", 4);
	length += put_frame(in + length, 0, "Z", 1);
	wire = framed(in, length, &heard);
	assert_int_equal(wire_read_byte(wire), 'Z');
	assert_int_equal(heard.count, (FLOOD + 2) / 3);
	wire_free(wire);
	free(in);
}

/* S-066 */
UNIT_TEST(reading_nothing_never_waits)
{
	struct wire *wire = framed("\4\0\0\7\0\0\0\0", 8, NULL);
	char buf[4];

	assert_int_equal(wire_read_int(wire), 0);
	wire_read(wire, buf, 0);
	wire_free(wire);
	wire = wire_new_memory("\0", 1);
	assert_int_equal(wire_read_vstring(wire, buf, sizeof buf, "name"), 0);
	wire_free(wire);
}

UNIT_TEST(mux_may_start_and_end_in_the_middle_of_what_arrived)
{
	struct wire *wire = wire_new_memory("R\1\0\0\7FSX", 8);

	wire_settings(wire)->protocol = 30;
	assert_int_equal(wire_read_byte(wire), 'R');
	wire_set_mux_in(wire, true);
	assert_int_equal(wire_read_byte(wire), 'F');
	wire_set_mux_in(wire, false);
	assert_int_equal(wire_read_byte(wire), 'S');
	wire_free(wire);
	wire = wire_new_memory("\2\0\0\7FG", 6);
	wire_set_mux_in(wire, true);
	assert_int_equal(wire_read_byte(wire), 'F');
	expect_die(EXIT_STREAMIO, "a data frame goes on", wire_set_mux_in(wire, false));
	wire_free(wire);
}

/* doc/protocol/09-since-3.5.0.md section 2.2: only a sending side of protocol 33 takes the count of blocks. */
UNIT_TEST(block_counts_are_for_senders)
{
	static const struct { int protocol; bool is_sender; size_t length; const char *words; } cases[] = {
		{ 33, true, 8, NULL }, { 34, true, 8, NULL }, { 33, true, 0, "invalid multi-message 11:0 [" },
		{ 33, true, 4, "invalid multi-message 11:4 [" }, { 33, true, 7, "invalid multi-message 11:7 [" },
		{ 33, true, 9, "invalid multi-message 11:9 [" }, { 33, false, 8, "invalid multi-message 11:8 [" },
		{ 32, true, 8, "unexpected tag 11 [" }, { 32, false, 8, "unexpected tag 11 [" },
		{ 27, true, 8, "unexpected tag 11 [" },
	};
	static const struct { const char *payload; int64_t value; } values[] = {
		{ "\1\0\0\0\0\0\0\0", 1 }, { "\0\0\0\0\0\0\0\0", 0 }, { "\xff\xff\xff\xff\xff\xff\xff\xff", 0 },
		{ "\xff\xff\xff\xff\xff\xff\xff\x7f", INT64_MAX }, { "\0\0\0\0\0\0\0\x80", 0 },
		{ "\x88\x77\x66\x95\x44\x33\x22\x11", 0x1122334495667788 },
	};
	struct heard heard;
	uint8_t in[64];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t length = put_frame(in, MSG_BLOCK_STATS, "\7\0\0\0\0\0\0\0\0", cases[i].length);

		length += put_frame(in + length, 0, "Z", 1);
		struct wire *wire = framed(in, length, &heard);

		wire_settings(wire)->protocol = cases[i].protocol;
		wire_settings(wire)->is_sender = cases[i].is_sender;
		if (cases[i].words)
			expect_die(EXIT_STREAMIO, cases[i].words, wire_read_byte(wire));
		else
			assert_int_equal(wire_read_byte(wire), 'Z');
		assert_int_equal(heard.count, cases[i].words ? 0 : 1);
		wire_free(wire);
	}
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		size_t length = put_frame(in, MSG_BLOCK_STATS, values[i].payload, 8);

		length += put_frame(in + length, 0, "Z", 1);
		struct wire *wire = framed(in, length, &heard);

		wire_settings(wire)->protocol = 33;
		wire_settings(wire)->is_sender = true;
		wire_read_byte(wire);
		assert_true((int64_t)decode_int64(heard.last) == values[i].value);
		wire_free(wire);
	}
}

/* --- writing --- */

static struct wire *writer(int protocol)
{
	struct wire *wire = wire_new_memory("", 0);

	wire_settings(wire)->protocol = protocol;
	wire_set_mux_out(wire, true);
	return wire;
}

#define assert_output(wire, text) \
	do { \
		size_t length_; \
		const uint8_t *bytes_ = wire_test_output((wire), &length_); \
		assert_int_equal(length_, sizeof(text) - 1); \
		assert_memory_equal(bytes_, text, sizeof(text) - 1); \
	} while (0)

UNIT_TEST(small_writes_share_a_frame)
{
	struct wire *wire = writer(32);

	wire_write_byte(wire, 1);
	wire_write_int(wire, 2);
	assert_int_equal(wire_bytes_written(wire), 9);
	wire_flush(wire);
	assert_int_equal(wire_bytes_written(wire), 9);
	wire_write_byte(wire, 3);
	assert_output(wire, "\5\0\0\7\1\2\0\0\0\1\0\0\7\3");
	wire_free(wire);
}

UNIT_TEST(messages_keep_their_place_between_data)
{
	struct wire *wire = writer(32);

	wire_write_byte(wire, 'a');
	wire_send_message_int(wire, MSG_NO_SEND, 5);
	wire_send_message(wire, MSG_INFO, "x\n", 2);
	wire_write_byte(wire, 'b');
	assert_output(wire, "\1\0\0\7a\4\0\0\x6d\5\0\0\0\2\0\0\x09x\n\1\0\0\7b");
	wire_free(wire);
}

struct send_case { int protocol; enum message_code code; int tag; };

UNIT_TEST(messages_are_mapped_to_what_the_protocol_knows)
{
	static const struct send_case cases[] = {
		{ 27, MSG_ERROR, 8 }, { 29, MSG_ERROR, 8 }, { 30, MSG_ERROR, 10 }, { 29, MSG_WARNING, 9 },
		{ 30, MSG_WARNING, 11 },
		{ 27, MSG_ERROR_XFER, 8 }, { 27, MSG_INFO, 9 }, { 29, MSG_IO_ERROR, 0 }, { 30, MSG_IO_ERROR, 29 },
		{ 30, MSG_IO_TIMEOUT, 0 }, { 31, MSG_IO_TIMEOUT, 40 }, { 30, MSG_ERROR_EXIT, 0 }, { 31, MSG_ERROR_EXIT, 93 },
		{ 27, MSG_SUCCESS, 107 }, { 29, MSG_SUCCESS, 107 }, { 29, MSG_NO_SEND, 0 }, { 30, MSG_NO_SEND, 109 },
		{ 28, MSG_DELETED, 0 }, { 29, MSG_DELETED, 108 }, { 32, MSG_LOG, 0 }, { 32, MSG_NOOP, 0 }, { 32, MSG_REDO, 0 },
	};
	const uint8_t *bytes;
	struct wire *wire;
	size_t length;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		wire = writer(cases[i].protocol);
		wire_send_message(wire, cases[i].code, "abcd", 4);
		bytes = wire_test_output(wire, &length);
		assert_int_equal(length, cases[i].tag ? 8 : 0);
		if (length)
			assert_int_equal(bytes[3], cases[i].tag);
		wire_free(wire);
	}
	wire = wire_new_memory("", 0);
	wire_settings(wire)->protocol = 32;
	wire_send_message(wire, MSG_INFO, "raw", 3);
	assert_output(wire, "");
	wire_free(wire);
}

UNIT_TEST(block_counts_go_to_who_knows_them)
{
	struct wire *wire = writer(33);

	wire_send_message(wire, MSG_BLOCK_STATS, "\x88\x77\x66\x95\x44\x33\x22\x11", 8);
	assert_output(wire, "\x08\0\0\x12\x88\x77\x66\x95\x44\x33\x22\x11");
	wire_free(wire);
	wire = writer(32);
	wire_send_message(wire, MSG_BLOCK_STATS, "\1\0\0\0\0\0\0", 8);
	assert_output(wire, "");
	wire_free(wire);
}

UNIT_TEST(long_text_goes_in_pieces_the_peer_takes)
{
	static char text[6000];
	const uint8_t *bytes;
	struct wire *wire;
	size_t length;

	wire = writer(28);
	wire_send_message(wire, MSG_INFO, text, sizeof text);
	bytes = wire_test_output(wire, &length);
	assert_int_equal(length, sizeof text + 6 * 4);
	assert_int_equal(bytes[0] | bytes[1] << 8, 1023);
	wire_free(wire);
	wire = writer(32);
	wire_send_message(wire, MSG_INFO, text, sizeof text);
	wire_send_message(wire, MSG_DELETED, text, sizeof text);
	bytes = wire_test_output(wire, &length);
	assert_int_equal(length, sizeof text + 2 * 4);
	assert_int_equal(bytes[0] | bytes[1] << 8, 5119);
	wire_free(wire);
}

/* Read back what was written, frame by frame; no frame may be over 64 KiB. */
static void check_read_back(struct wire *wire, const uint8_t *wanted, size_t wanted_length)
{
	size_t length, at = 0, got = 0, payload;
	const uint8_t *bytes = wire_test_output(wire, &length);

	while (at < length) {
		payload = bytes[at] | (size_t)bytes[at + 1] << 8 | (size_t)bytes[at + 2] << 16;
		assert_true(payload > 0 && payload <= 65536);
		assert_int_equal(bytes[at + 3], 7);
		assert_true(got + payload <= wanted_length);
		assert_memory_equal(bytes + at + 4, wanted + got, payload);
		got += payload;
		at += 4 + payload;
	}
	assert_int_equal(at, length);
	assert_int_equal(got, wanted_length);
}

UNIT_TEST(large_writes_keep_the_stream)
{
	static const size_t sizes[] = { 1, 16383, 16384, 40000, 65528, 65531, 65532, 65533, 65536, 131072,
					700000, 3, 0, 20000 };
	uint8_t *data = malloc(3000000);
	struct wire *wire = writer(32);
	size_t at = 0;

	for (size_t i = 0; i < 3000000; i++)
		data[i] = (uint8_t)(i * i >> 7);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			wire_write(wire, data + at, sizes[i]);
			at += sizes[i];
			wire_write_byte(wire, data[at++]);
		}
	}
	check_read_back(wire, data, at);
	wire_free(wire);
	free(data);
}

UNIT_TEST(large_raw_writes_are_verbatim)
{
	uint8_t *data = calloc(1, 300000);
	struct wire *wire = wire_new_memory("", 0);
	const uint8_t *bytes;
	size_t length;

	data[0] = 1;
	data[299999] = 2;
	wire_write_byte(wire, 9);
	wire_write(wire, data, 300000);
	wire_write_byte(wire, 8);
	bytes = wire_test_output(wire, &length);
	assert_int_equal(length, 300002);
	assert_int_equal(bytes[0], 9);
	assert_memory_equal(bytes + 1, data, 300000);
	assert_int_equal(bytes[300001], 8);
	wire_free(wire);
	free(data);
}

/* As many and as long pieces as there may be, after every amount of buffered bytes that matters, framed and not. */
UNIT_TEST(pieces_follow_each_other)
{
	static const size_t before[] = { 0, 1, 65527, 65528, 65529, 65531, 65532, 65533, 65536 };
	static const size_t lengths[][WIRE_PIECES] = {
		{ 4, 32768, 4, 32768, 4, 32768, 4, 32768, 4, 32768, 4, 32768, 4, 32768, 4, 32768 },
		{ WIRE_PIECES_LENGTH }, { 0, 5, 0, 65532, 0, 65532, 65532, 0 }, { 65531, 1, 65532, 0 }, { 1 }, { 0 },
		{ WIRE_PIECES_LENGTH - 15, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 },
	};
	uint8_t *data = malloc(WIRE_PIECES_LENGTH + 70000);

	for (size_t i = 0; i < WIRE_PIECES_LENGTH + 70000; i++)
		data[i] = (uint8_t)(i * i >> 9);
	for (size_t i = 0; i < 2 * (sizeof before / sizeof *before) * (sizeof lengths / sizeof *lengths); i++) {
		const size_t *wanted = lengths[i / 2 % (sizeof lengths / sizeof *lengths)];
		size_t at = 0, length, first = before[i / 2 / (sizeof lengths / sizeof *lengths)];
		struct wire *wire = i % 2 ? writer(32) : wire_new_memory("", 0);
		struct iovec pieces[WIRE_PIECES];

		for (; at < first; at++)
			wire_write_byte(wire, data[at]);
		for (int piece = 0; piece < WIRE_PIECES; at += wanted[piece++])
			pieces[piece] = (struct iovec){ data + at, wanted[piece] };
		wire_write_pieces(wire, pieces, WIRE_PIECES);
		wire_write_byte(wire, data[at++]);
		if (i % 2) {
			check_read_back(wire, data, at);
		} else {
			const uint8_t *bytes = wire_test_output(wire, &length);
			assert_int_equal(length, at);
			assert_memory_equal(bytes, data, at);
		}
		wire_free(wire);
	}
	free(data);
}

UNIT_TEST(counts_start_where_they_are_reset)
{
	struct wire *wire = wire_new_memory("setup\4\0\0\7\0\0\0\0", 13);
	char buf[8];

	wire_settings(wire)->protocol = 32;
	wire_read(wire, buf, 5);
	wire_write(wire, "hello", 5);
	wire_set_mux_in(wire, true);
	wire_set_mux_out(wire, true);
	wire_reset_counts(wire);
	assert_int_equal(wire_bytes_read(wire), 8);
	assert_int_equal(wire_bytes_written(wire), 0);
	wire_write_byte(wire, 0);
	assert_int_equal(wire_bytes_written(wire), 5);
	wire_free(wire);
}

static void *send_from_thread(void *wire)
{
	for (int i = 0; i < 100; i++)
		wire_send_message(wire, MSG_INFO, "from a worker\n", 14);
	return NULL;
}

UNIT_TEST(messages_of_other_threads_stay_whole)
{
	struct wire *out = writer(32), *in;
	struct heard heard;
	const uint8_t *bytes;
	pthread_t threads[3];
	size_t length;

	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, send_from_thread, out), 0);
	for (int i = 0; i < 20000; i++) {
		wire_write_int(out, i);
		if (i % 100 == 0)
			wire_flush(out);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	bytes = wire_test_output(out, &length);
	in = framed(bytes, length, &heard);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(wire_read_int(in), i);
	assert_true(wire_input_ready(in));
	assert_int_equal(heard.count, 300);
	wire_free(in);
	wire_free(out);
}

UNIT_TEST(lines_end_at_their_stop_bytes)
{
	struct wire *wire = wire_new_memory("a\rb\nword\r\nz\0\0y\0toolong\nend", 26);
	char buf[6];
	bool bad;

	assert_true(wire_read_line(wire, buf, sizeof buf, '\n', -1, &bad));
	assert_string_equal(buf, "ab");
	assert_true(wire_read_line(wire, buf, sizeof buf, '\n', '\r', &bad));
	assert_string_equal(buf, "word");
	assert_true(wire_read_line(wire, buf, sizeof buf, '\n', '\r', &bad));
	assert_string_equal(buf, "");
	assert_true(wire_read_line(wire, buf, sizeof buf, '\0', -1, &bad));
	assert_string_equal(buf, "z");
	assert_false(wire_read_line(wire, buf, sizeof buf, '\n', -1, &bad));
	assert_true(bad);
	assert_true(wire_read_line(wire, buf, sizeof buf, '\0', -1, &bad));
	assert_string_equal(buf, "y");
	assert_false(wire_read_line(wire, buf, sizeof buf, '\n', -1, &bad));
	assert_true(bad);
	assert_true(wire_read_line(wire, buf, sizeof buf, '\n', -1, &bad));
	assert_false(wire_read_line(wire, buf, sizeof buf, '\n', -1, &bad));
	assert_false(bad);
	assert_string_equal(buf, "end");
	wire_free(wire);
}
