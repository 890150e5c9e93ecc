/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The token stream, plain and compressed, and what is not compressed (doc/protocol/03-transfer.md sections 6 and 14). */
#include "delta/skip_list.h"
#include "testsuite/unit/delta_support.h"
#include "testsuite/unit/wire_memory.h"

/* --- the worked examples of doc/protocol/03-transfer.md section 14 --- */

static void start_worked_example(struct transfer *transfer, enum compress_algorithm compress, struct bytes *old,
				 struct bytes *new)
{
	struct setting setting = { .compress = compress, .strong_length = 2 };

	*new = numbered_lines();
	*old = copy_of(*new);
	old->data[50000] = 'X';
	transfer_start(transfer, &setting);
	round_trip(transfer, *old, *new);
	assert_int_equal(transfer->decoder.literals, 700);
	assert_int_equal(transfer->decoder.blocks, 142);
}

UNIT_TEST(worked_example_plain)
{
	static const uint8_t first[] = { 0xff, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff };
	static const uint8_t literal[] = { 0xb9, 0xff, 0xff, 0xff, 0xbc, 2, 0, 0 };
	static const uint8_t last[] = { 0x71, 0xff, 0xff, 0xff, 0, 0, 0, 0 };
	struct transfer transfer;
	struct bytes old, new;
	size_t length;

	start_worked_example(&transfer, COMPRESS_NONE, &old, &new);
	assert_int_equal(transfer.sums.weak[0], 0xec7a7ae9);
	assert_int_equal(transfer.sums.weak[71], 0x70c87db9);
	assert_int_equal(transfer.sums.weak[142], 0x590c6e64);
	const uint8_t *stream = wire_test_output(transfer.session.wire, &length);

	assert_int_equal(length, 142 * 4 + 4 + 700 + 4);
	assert_memory_equal(stream, first, sizeof first);
	assert_memory_equal(stream + 70 * 4, literal, sizeof literal);
	assert_memory_equal(stream + length - 8, last, sizeof last);
	transfer_end(&transfer);
	free(old.data);
	free(new.data);
}

UNIT_TEST(worked_example_compressed)
{
	static const enum compress_algorithm methods[] = { COMPRESS_ZLIB, COMPRESS_ZLIBX, COMPRESS_ZSTD, COMPRESS_LZ4 };
	static const uint8_t first[] = { 0xc0, 0x46, 0 }, last[] = { 0xc2, 0x46, 0, 0 };
	/* What section 14 shows takes this much; other builds of a compressor may do a little better or worse. */
	static const size_t lengths[] = { 152, 128, 92, 314 };
	struct transfer transfer;
	struct bytes old, new;
	size_t length;

	for (size_t i = 0; i < 4; i++) {
		start_worked_example(&transfer, methods[i], &old, &new);
		const uint8_t *stream = wire_test_output(transfer.session.wire, &length);
		assert_memory_equal(stream, first, sizeof first);
		assert_int_equal(stream[3], i == 3 ? 0x41 : 0x40);
		assert_memory_equal(stream + length - 4, last, sizeof last);
		assert_in_range(length, 9, 9 + lengths[i] + lengths[i] / 4);
		transfer_end(&transfer);
		free(old.data);
		free(new.data);
	}
}

/* --- forms of block references, doc/protocol/03-transfer.md section 6.2 --- */

static void start_tokens(struct transfer *transfer, enum compress_algorithm compress, int protocol)
{
	struct setting setting = { .compress = compress, .protocol = protocol };

	transfer_start(transfer, &setting);
	token_start_file(transfer->tokens, 0);
}

static void expect_stream(struct transfer *transfer, const void *expected, size_t expected_length)
{
	size_t length;
	const uint8_t *stream = wire_test_output(transfer->session.wire, &length);

	assert_int_equal(length, expected_length);
	assert_memory_equal(stream, expected, length);
	transfer_end(transfer);
}

static void put_blocks(struct transfer *transfer, int32_t first, int32_t last)
{
	for (int32_t block = first; block <= last; block++)
		token_block(transfer->tokens, block, NULL, 0);
}

UNIT_TEST(forms_of_block_references)
{
	static const uint8_t scattered[] = { 0x80, 0x20, 64, 0, 0, 0, 0x21, 130, 0, 0, 0, 1, 0,
					     0x20, 10, 0, 0, 0, 0x20, 199, 0, 0, 0, 0 };
	static const uint8_t runs[] = { 0xc5, 54, 0, 0xe9, 79, 0, 0 };
	static const uint8_t plain[] = { 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x80, 0, 0, 0, 0 };
	struct transfer transfer;

	start_tokens(&transfer, COMPRESS_ZLIBX, 32);
	put_blocks(&transfer, 0, 0);
	put_blocks(&transfer, 64, 64);
	put_blocks(&transfer, 130, 131);
	put_blocks(&transfer, 10, 10);
	put_blocks(&transfer, 199, 199);
	token_end_file(transfer.tokens);
	expect_stream(&transfer, scattered, sizeof scattered);
	start_tokens(&transfer, COMPRESS_LZ4, 32);
	put_blocks(&transfer, 5, 59);
	put_blocks(&transfer, 100, 179);
	token_end_file(transfer.tokens);
	expect_stream(&transfer, runs, sizeof runs);
	start_tokens(&transfer, COMPRESS_NONE, 32);
	token_block(transfer.tokens, 0, NULL, 0);
	token_block(transfer.tokens, INT32_MAX, NULL, 0);
	token_end_file(transfer.tokens);
	expect_stream(&transfer, plain, sizeof plain);
}

UNIT_TEST(runs_are_cut_at_65536_blocks)
{
	static const uint8_t expected[] = { 0xc0, 0xff, 0xff, 0xc1, 0x0f, 0x00, 0 };
	struct transfer transfer;

	start_tokens(&transfer, COMPRESS_ZSTD, 32);
	put_blocks(&transfer, 0, 65551);
	token_end_file(transfer.tokens);
	expect_stream(&transfer, expected, sizeof expected);
}

/* Relative numbers begin anew with each file. */
UNIT_TEST(each_file_counts_blocks_from_zero)
{
	static const uint8_t expected[] = { 0xbf, 0, 0xbf, 0 };
	struct transfer transfer;

	start_tokens(&transfer, COMPRESS_LZ4, 32);
	for (int i = 0; i < 2; i++) {
		token_start_file(transfer.tokens, 0);
		put_blocks(&transfer, 63, 63);
		token_end_file(transfer.tokens);
	}
	expect_stream(&transfer, expected, sizeof expected);
}

/* --- histories --- */

static void put_file(struct transfer *transfer, const char *text)
{
	token_start_file(transfer->tokens, 0);
	token_literal(transfer->tokens, text, strlen(text));
	token_end_file(transfer->tokens);
}

UNIT_TEST(two_files_in_one_session)
{
	static const uint8_t zstd[] = { 0x40, 0x0c, 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x18, 0, 0, 'a', 'b', 'c', 0,
					0x40, 0x09, 0x30, 0, 0, 'a', 'b', 'c', 'd', 'e', 'f', 0 };
	static const uint8_t lz4[] = { 0x40, 4, 0x30, 'a', 'b', 'c', 0, 0x40, 7, 0x60, 'a', 'b', 'c', 'd', 'e', 'f', 0 };
	static const uint8_t zlibx[] = { 0x40, 5, 0x4a, 0x4c, 0x4a, 0x06, 0, 0, 0x40, 8, 0x4a, 0x4c, 0x4a, 0x4e, 0x49, 0x4d,
					 3, 0, 0 };
	static const struct {
		enum compress_algorithm method;
		const uint8_t *stream;
		size_t length;
	} vectors[] = {
		{ COMPRESS_ZSTD, zstd, sizeof zstd }, { COMPRESS_LZ4, lz4, sizeof lz4 },
		{ COMPRESS_ZLIBX, zlibx, sizeof zlibx },
		{ COMPRESS_ZLIB, zlibx, sizeof zlibx },
	};
	struct transfer transfer;

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		struct setting setting = { .compress = vectors[i].method };
		transfer_start(&transfer, &setting);
		put_file(&transfer, "abc");
		put_file(&transfer, "abcdef");
		expect_stream(&transfer, vectors[i].stream, vectors[i].length);
	}
}

/* What a later file repeats of an earlier one costs zstd next to nothing. */
UNIT_TEST(zstd_remembers_earlier_files)
{
	struct bytes noise = random_bytes(50000, 31);
	struct setting setting = { .compress = COMPRESS_ZSTD };
	struct transfer transfer;
	size_t first;

	transfer_start(&transfer, &setting);
	round_trip(&transfer, (struct bytes){ NULL, 0 }, noise);
	first = transfer.streamed;
	round_trip(&transfer, (struct bytes){ NULL, 0 }, noise);
	assert_in_range(first, 50000, 51000);
	assert_in_range(transfer.streamed - first, 1, 500);
	transfer_end(&transfer);
	free(noise.data);
}

/*
 * A literal that repeats a part of the long block before it: which part is in the history distinguishes the two protocols
 * (doc/protocol/03-transfer.md section 6.4). Returns how much the stream grew by the literal.
 */
static size_t cost_after_long_block(int protocol, size_t from, size_t length)
{
	struct setting setting = { .compress = COMPRESS_ZLIB, .protocol = protocol, .block_length = 131072 };
	struct bytes block = random_bytes(131072, 32), source = bytes_of(131072 + length);
	struct transfer transfer;
	size_t cost;

	memcpy(source.data, block.data, block.length);
	memcpy(source.data + block.length, block.data + from, length);
	transfer_start(&transfer, &setting);
	round_trip(&transfer, block, source);
	assert_int_equal(transfer.decoder.literals, length);
	cost = transfer.streamed;
	transfer_end(&transfer);
	free(block.data);
	free(source.data);
	return cost;
}

UNIT_TEST(long_blocks_in_old_zlibs_history)
{
	/* Below 31 each piece of the block is its beginning, from 31 on pieces follow each other. */
	assert_in_range(cost_after_long_block(30, 45535, 19900), 1, 500);
	assert_in_range(cost_after_long_block(30, 131072 - 19900, 19900), 19000, 25000);
	assert_in_range(cost_after_long_block(31, 45535, 19900), 19000, 25000);
	assert_in_range(cost_after_long_block(31, 131072 - 19900, 19900), 1, 500);
}

/* A file that is not worth it is stored, one of the same session that is gets compressed again. */
UNIT_TEST(level_off_is_for_one_file)
{
	struct bytes text = filled(100000, 'x');
	struct setting setting = { .compress = COMPRESS_ZLIBX };
	struct transfer transfer;
	size_t stored;

	transfer_start(&transfer, &setting);
	transfer.setting.level_off = true;
	round_trip(&transfer, (struct bytes){ NULL, 0 }, text);
	stored = transfer.streamed;
	transfer.setting.level_off = false;
	round_trip(&transfer, (struct bytes){ NULL, 0 }, text);
	assert_in_range(stored, 100000, 101000);
	assert_in_range(transfer.streamed - stored, 1, 1000);
	transfer_end(&transfer);
	free(text.data);
}

/* --- whole files --- */

UNIT_TEST(whole_files_of_every_method)
{
	static const size_t sizes[] = { 0, 1, 16383, 16384, 32767, 32768, 32769, 65536, 131072, 262143, 262144, 3000001 };
	struct bytes noise = random_bytes(3000001, 21), text = filled(3000001, 'x');

	for (int compress = COMPRESS_NONE; compress <= COMPRESS_LZ4; compress++) {
		struct setting setting = { .compress = (enum compress_algorithm)compress };
		struct transfer transfer;

		transfer_start(&transfer, &setting);
		for (size_t i = 0; i < 2 * (sizeof sizes / sizeof *sizes); i++) {
			struct bytes source = { (i & 1 ? noise : text).data, sizes[i / 2] };
			transfer.setting.level_off = i % 3 == 0;
			round_trip(&transfer, (struct bytes){ NULL, 0 }, source);
		}
		transfer_end(&transfer);
	}
	free(noise.data);
	free(text.data);
}

/* --- suffixes, doc/protocol/03-transfer.md section 6.7 --- */

UNIT_TEST(skip_list_of_the_option)
{
	struct skip_list *list = skip_list_new();

	skip_list_add_option(list, "gz/JPG/mp[34]/t[a-c]z//7z");
	assert_true(skip_list_matches(list, "a.gz"));
	assert_true(skip_list_matches(list, "a.b.GZ"));
	assert_true(skip_list_matches(list, "photo.jpg"));
	assert_true(skip_list_matches(list, "x.mp3"));
	assert_true(skip_list_matches(list, "x.mp4"));
	assert_false(skip_list_matches(list, "x.mp5"));
	assert_true(skip_list_matches(list, "x.tbz"));
	assert_false(skip_list_matches(list, "x.tdz"));
	assert_true(skip_list_matches(list, "x.7z"));
	assert_false(skip_list_matches(list, "gz"));
	assert_false(skip_list_matches(list, "x.gzip"));
	assert_false(skip_list_matches(list, "x.g"));
	assert_false(skip_list_matches(list, "x."));
	assert_false(skip_list_matches(list, ""));
	skip_list_free(list);
}

UNIT_TEST(skip_list_of_the_daemon)
{
	struct skip_list *list = skip_list_new();

	skip_list_add_daemon(list, " *.gz  *.t[gx]z\t*.rpm ");
	assert_true(skip_list_matches(list, "a.gz"));
	assert_true(skip_list_matches(list, "a.txz"));
	assert_true(skip_list_matches(list, "a.RPM"));
	assert_false(skip_list_matches(list, "a.txt"));
	assert_false(skip_list_matches(list, "README"));
	skip_list_add_daemon(list, "*.deb *");
	assert_true(skip_list_matches(list, "README"));
	skip_list_free(list);
}

/* A megabyte of anything is one item, cut short, or many: no recursion (doc/protocol/08-security.md S-060). */
UNIT_TEST(skip_list_of_a_megabyte)
{
	static const char fillings[] = { 'a', '/', '[', ']', '-', '*' };
	struct bytes long_item = bytes_of((1 << 20) + 1);

	for (size_t i = 0; i < sizeof fillings; i++) {
		struct skip_list *list = skip_list_new();
		memset(long_item.data, fillings[i], 1 << 20);
		long_item.data[1 << 20] = '\0';
		skip_list_add_option(list, (const char *)long_item.data);
		assert_int_equal(skip_list_matches(list, "x.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), fillings[i] == 'a');
		assert_false(skip_list_matches(list, "x.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
		skip_list_free(list);
	}
	free(long_item.data);
}
