/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading token streams: every form that there is, and what is refused (doc/protocol/03-transfer.md section 6). */
#include "testsuite/unit/delta_receive.h"
#include "testsuite/unit/wire_memory.h"

/* What a stream says: "L700 T0 T1 end ", literals of adjacent tokens added up. */
struct story {
	char text[4096];
	uint8_t literal[400000];
	size_t literals, run;
};

static void tell(struct story *story, char letter, size_t number)
{
	size_t used = strlen(story->text);

	snprintf(story->text + used, sizeof story->text - used, "%c%zu ", letter, number);
}

static void note(struct story *story, const struct token *token)
{
	if (token->kind == TOKEN_LITERAL) {
		assert_in_range(token->length, 1, 128 * 1024);
		assert_true(story->literals + token->length <= sizeof story->literal);
		memcpy(story->literal + story->literals, token->data, token->length);
		story->literals += token->length;
		story->run += token->length;
		return;
	}
	if (story->run)
		tell(story, 'L', story->run);
	story->run = 0;
	if (token->kind == TOKEN_BLOCK)
		tell(story, 'T', (size_t)token->block);
	else
		strcat(story->text, "end ");
}

static void read_files(struct story *story, int files, enum compress_algorithm compress, const void *stream, size_t length)
{
	struct reception reception;
	struct token token;

	memset(story, 0, sizeof *story);
	reception_start(&reception, compress, 32, SUM_MD5, stream, length);
	for (int i = 0; i < files; i++) {
		do {
			token_read(reception.tokens, &token);
			note(story, &token);
		} while (token.kind != TOKEN_END);
	}
	assert_true(everything_was_read(&reception));
	reception_end(&reception);
}

#define STREAM(text) text, sizeof text - 1

/* `stream` is one file and says `wanted`. */
#define expect_story(compress, stream, wanted) \
	do { \
		struct story story_; \
		read_files(&story_, 1, (compress), STREAM(stream)); \
		assert_string_equal(story_.text, (wanted)); \
	} while (0)

#define expect_refusal(compress, code, words, stream) \
	do { \
		struct story story_; \
		expect_die((code), (words), read_files(&story_, 1, (compress), STREAM(stream))); \
	} while (0)

/* --- forms --- */

UNIT_TEST(plain_tokens)
{
	expect_story(COMPRESS_NONE, "\0\0\0\0", "end ");
	expect_story(COMPRESS_NONE, "\xff\xff\xff\xff\3\0\0\0abc\2\0\0\0de\0\0\0\x80\0\0\0\0", "T0 L5 T2147483647 end ");
}

/* Some peers send longer runs than stock does. */
UNIT_TEST(long_plain_run)
{
	struct bytes noise = random_bytes(300000, 1), stream = bytes_of(300008);
	struct story story;

	memcpy(stream.data, "\xe0\x93\4\0", 4);
	memcpy(stream.data + 4, noise.data, noise.length);
	memset(stream.data + 300004, 0, 4);
	read_files(&story, 1, COMPRESS_NONE, stream.data, stream.length);
	assert_string_equal(story.text, "L300000 end ");
	assert_memory_equal(story.literal, noise.data, noise.length);
	free(noise.data);
	free(stream.data);
}

UNIT_TEST(forms_of_block_references)
{
	expect_story(COMPRESS_LZ4, "\x80\x20\x40\0\0\0\x21\x82\0\0\0\1\0\x20\x0a\0\0\0\x20\xc7\0\0\0\0",
		     "T0 T64 T130 T131 T10 T199 end ");
	expect_story(COMPRESS_ZSTD, "\xc5\x02\0\xe9\1\0\x81\xbf\0", "T5 T6 T7 T48 T49 T50 T113 end ");
	expect_story(COMPRESS_ZLIB, "\x20\xfe\xff\xff\x7f\x80\x20\0\0\0\0\0", "T2147483646 T2147483646 T0 end ");
	expect_story(COMPRESS_ZLIBX, "\x21\xfd\xff\xff\x7f\1\0\0", "T2147483645 T2147483646 end ");
}

UNIT_TEST(longest_run)
{
	struct reception reception;
	struct token token;

	reception_start(&reception, COMPRESS_LZ4, 32, SUM_MD5, STREAM("\xc0\xff\xff\x81\0"));
	for (int32_t block = 0; block <= 65536; block++) {
		token_read(reception.tokens, &token);
		assert_int_equal(token.kind, TOKEN_BLOCK);
		assert_int_equal(token.block, block);
	}
	token_read(reception.tokens, &token);
	assert_int_equal(token.kind, TOKEN_END);
	reception_end(&reception);
}

/* The streams of doc/protocol/03-transfer.md sections 14.7 and 14.8: numbers of blocks and zlib begin anew with each file, zstd
 * goes on. */
UNIT_TEST(two_files_in_one_session)
{
	struct story story;

	read_files(&story, 2, COMPRESS_ZSTD, STREAM("\x40\x0c\x28\xb5\x2f\xfd\0\x58\x18\0\0abc\0\x40\x09\x30\0\0abcdef\0"));
	assert_string_equal(story.text, "L3 end L6 end ");
	assert_memory_equal(story.literal, "abcabcdef", 9);
	read_files(&story, 2, COMPRESS_LZ4, STREAM("\x40\4\x30" "abc\0\x40\7\x60" "abcdef\0"));
	assert_string_equal(story.text, "L3 end L6 end ");
	read_files(&story, 2, COMPRESS_ZLIBX, STREAM("\x40\5\x4a\x4c\x4a\6\0\0\x40\x08\x4a\x4c\x4a\x4e\x49\x4d\3\0\0"));
	assert_string_equal(story.text, "L3 end L6 end ");
	assert_memory_equal(story.literal, "abcabcdef", 9);
	read_files(&story, 2, COMPRESS_ZLIB, STREAM("\xbf\0\xbf\0"));
	assert_string_equal(story.text, "T63 end T63 end ");
}

/* A sender may end its zstd frame with a file and begin another. */
UNIT_TEST(zstd_frames_may_end)
{
	uint8_t stream[256];
	size_t used = 0;
	struct story story;

	for (int i = 0; i < 2; i++) {
		size_t packed = ZSTD_compress(stream + used + 2, 100, "abcdefabcdef", 12, 3);
		stream[used] = 0x40;
		stream[used + 1] = (uint8_t)packed;
		used += packed + 2;
		stream[used++] = 0;
	}
	read_files(&story, 2, COMPRESS_ZSTD, stream, used);
	assert_string_equal(story.text, "L12 end L12 end ");
}

/* --- refusals --- */

UNIT_TEST(numbers_of_blocks_out_of_range)
{
	static const char words[] = "invalid token number in compressed stream";

	for (int compress = COMPRESS_ZLIB; compress <= COMPRESS_LZ4; compress++) {
		enum compress_algorithm method = (enum compress_algorithm)compress;

		expect_refusal(method, EXIT_PROTOCOL, words, "\x20\xff\xff\xff\xff\0");
		expect_refusal(method, EXIT_PROTOCOL, words, "\x20\0\0\0\x80\0");
		expect_refusal(method, EXIT_PROTOCOL, words, "\x20\xff\xff\xff\x7f\0");
		expect_refusal(method, EXIT_PROTOCOL, words, "\x21\xfe\xff\xff\x7f\1\0\0");
		expect_refusal(method, EXIT_PROTOCOL, words, "\x21\0\0\0\0\0\0\0");
		expect_refusal(method, EXIT_PROTOCOL, words, "\xc0\0\0\0");
		expect_refusal(method, EXIT_PROTOCOL, words, "\x20\xfe\xff\xff\x7f\x81\0");
		expect_refusal(method, EXIT_PROTOCOL, words, "\x20\xfd\xff\xff\x7f\xc1\1\0\0");
		expect_refusal(method, EXIT_PROTOCOL, "invalid token flag 0x01", "\1\0\0\0\0");
		expect_refusal(method, EXIT_PROTOCOL, "invalid token flag 0x22", "\x22\0\0\0\0");
		expect_refusal(method, EXIT_PROTOCOL, "invalid token flag 0x3f", "\x3f\0\0\0\0");
		expect_refusal(method, EXIT_STREAMIO, "Invalid literal token with no data", "\x40\0\0");
		expect_refusal(method, EXIT_STREAMIO, "connection unexpectedly closed", "\x7f\xff" "abc");
	}
}

UNIT_TEST(broken_deflate)
{
	for (int compress = COMPRESS_ZLIB; compress <= COMPRESS_ZLIBX; compress++) {
		enum compress_algorithm method = (enum compress_algorithm)compress;

		expect_refusal(method, EXIT_STREAMIO, "inflate returned -3", "\x40\4\xff\xff\xff\xff\0");
		/* The stream ends; its flush marker is still there; it was not flushed; its match reaches too far back. */
		expect_refusal(method, EXIT_STREAMIO, "inflate returned 1", "\x40\5\x4b\x4c\x4a\6\0\0");
		expect_refusal(method, EXIT_STREAMIO, "decompressor lost sync", "\x40\x09\x4a\x4c\x4a\6\0\0\0\xff\xff\0");
		expect_refusal(method, EXIT_STREAMIO, "decompressor lost sync", "\x40\3\x4a\x4c\x4a\0");
		expect_refusal(method, EXIT_STREAMIO, "inflate returned -3", "\x40\4\x02\x07\x00\x00\0");
	}
}

UNIT_TEST(broken_zstd_and_lz4)
{
	expect_refusal(COMPRESS_ZSTD, EXIT_STREAMIO, "ZSTD decomp returned", "\x40\4zstd\0");
	/* A window of 2^28 bytes; of 2^27 is allowed. */
	expect_refusal(COMPRESS_ZSTD, EXIT_STREAMIO, "ZSTD decomp returned", "\x40\x0c\x28\xb5\x2f\xfd\0\x90\x18\0\0abc\0");
	expect_story(COMPRESS_ZSTD, "\x40\x0c\x28\xb5\x2f\xfd\0\x88\x18\0\0abc\0", "L3 end ");
	expect_refusal(COMPRESS_LZ4, EXIT_STREAMIO, "uncompress failed: -", "\x40\4\xf0\xff\xff\xff\0");
	expect_refusal(COMPRESS_LZ4, EXIT_STREAMIO, "uncompress failed: 0", "\x40\1\0\0");
}

/* An lz4 block that wants more room than stock has. */
UNIT_TEST(lz4_bomb)
{
	char zeros[33000] = { 0 };
	uint8_t stream[1000];
	struct story story;
	int packed = LZ4_compress_default(zeros, (char *)stream + 2, sizeof zeros, 990);

	stream[0] = 0x40;
	stream[1] = (uint8_t)packed;
	assert_in_range(packed, 1, 255);
	expect_die(EXIT_STREAMIO, "uncompress failed: -", read_files(&story, 1, COMPRESS_LZ4, stream, (size_t)packed + 2));
}

/* Much from little comes in pieces. */
UNIT_TEST(bombs_come_in_pieces)
{
	struct bytes zeros = filled(1 << 20, 0);

	for (int compress = COMPRESS_ZLIB; compress <= COMPRESS_ZSTD; compress++) {
		struct setting setting = { .compress = (enum compress_algorithm)compress };
		struct transfer transfer;
		struct reception reception;
		struct token token;
		size_t sum = 0;

		transfer_start(&transfer, &setting);
		token_start_file(transfer.tokens, 0);
		for (int i = 0; i < 100; i++)
			token_literal(transfer.tokens, zeros.data, zeros.length);
		token_end_file(transfer.tokens);
		reception_of(&reception, &transfer);
		for (token_read(reception.tokens, &token); token.kind != TOKEN_END; token_read(reception.tokens, &token)) {
			assert_in_range(token.length, 1, 128 * 1024);
			sum += token.length;
		}
		assert_int_equal(sum, 100 << 20);
		reception_end(&reception);
		transfer_end(&transfer);
	}
	free(zeros.data);
}

/* --- damage --- */

/* A stream with literals, blocks and runs. */
static struct bytes some_stream(enum compress_algorithm compress)
{
	struct setting setting = { .compress = compress };
	struct bytes basis = numbered_lines(), source = copy_of(basis), copy;
	struct transfer transfer;
	size_t length;

	source.length = 6000;
	basis.length = 20000;
	memset(source.data + 1000, 'x', 300);
	transfer_start(&transfer, &setting);
	send_file(&transfer, basis, source);
	const uint8_t *stream = wire_test_output(transfer.session.wire, &length);

	copy = bytes_of(length);
	memcpy(copy.data, stream, length);
	transfer_end(&transfer);
	free(basis.data);
	free(source.data);
	return copy;
}

/* Receive it in whatever shape it is; returns the code with which that ends, 0 if it is a file. */
static int receive_damaged(enum compress_algorithm compress, const uint8_t *stream, size_t length)
{
	const struct sum_head head = { 29, 700, 8, 400 };
	struct dying dying = { .code = 0 };
	struct log_sink sink = log_set_sink((struct log_sink){ dying_emit, &dying });
	struct reception reception;
	int basis_fd = empty_file(), out_fd = empty_file();
	struct patch_request request = { .basis_fd = basis_fd, .out_fd = out_fd, .size = 6000 };

	assert_int_equal(ftruncate(basis_fd, 20000), 0);
	reception_start(&reception, compress, 32, SUM_MD5, stream, length);
	exit_push_hook(dying_hook, &dying);
	if (!setjmp(dying.jump)) {
		assert_int_not_equal(receive_file(&reception, &head, request), PATCH_OK);
		exit_remove_hook(dying_hook, &dying);
	}
	log_set_sink(sink);
	reception_end(&reception);
	close(basis_fd);
	close(out_fd);
	return dying.code;
}

UNIT_TEST(streams_that_end_too_soon)
{
	for (int compress = COMPRESS_NONE; compress <= COMPRESS_LZ4; compress++) {
		struct bytes stream = some_stream((enum compress_algorithm)compress);

		for (size_t length = 0; length < stream.length; length += 1 + length / 40) {
			int code = receive_damaged((enum compress_algorithm)compress, stream.data, length);
			assert_int_equal(code, EXIT_STREAMIO);
		}
		free(stream.data);
	}
}

/* Whatever a stream becomes, it is refused with one of two codes or makes a file with the wrong digest. */
UNIT_TEST(streams_with_other_bytes)
{
	for (int compress = COMPRESS_NONE; compress <= COMPRESS_LZ4; compress++) {
		struct bytes stream = some_stream((enum compress_algorithm)compress);
		uint32_t seed = 77;
		int seen = 0;

		for (int i = 0; i < 600; i++) {
			uint8_t *byte = &stream.data[next_random(&seed) % (i & 1 ? stream.length - 16 : 100)], old = *byte;

			*byte ^= (uint8_t)(1 + next_random(&seed) % 255);
			int code = receive_damaged((enum compress_algorithm)compress, stream.data, stream.length);

			assert_true(code == 0 || code == EXIT_PROTOCOL || code == EXIT_STREAMIO);
			seen |= 1 << code;
			*byte = old;
		}
		assert_int_equal(seen & ~1, 1 << EXIT_PROTOCOL | 1 << EXIT_STREAMIO);
		free(stream.data);
	}
}
