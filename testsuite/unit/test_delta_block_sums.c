/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The header and the sums that a generator sends of its basis (doc/protocol/03-transfer.md sections 3 and 4). */
#include "testsuite/unit/delta_receive.h"

#include "delta/block_sums.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

/* --- the header --- */

struct vector {
	uint64_t size;
	uint32_t block_size;
	int protocol;
	struct sum_head head;
};

static const struct vector vectors[] = {
	{ 0, 0, 32, { 0, 0, 0, 0 } },
	{ 1, 0, 32, { 1, 700, 2, 1 } },
	{ 699, 0, 32, { 1, 700, 2, 699 } },
	{ 700, 0, 32, { 1, 700, 2, 0 } },
	{ 701, 0, 27, { 2, 700, 2, 1 } },
	{ 10000, 0, 32, { 15, 700, 2, 200 } },
	{ 100000, 0, 32, { 143, 700, 2, 600 } },
	{ 490000, 0, 32, { 700, 700, 2, 0 } },
	{ 490001, 0, 32, { 701, 700, 2, 1 } },
	{ 495616, 0, 32, { 704, 704, 2, 0 } },
	{ 500000, 0, 32, { 711, 704, 2, 160 } },
	{ 1048576, 0, 32, { 1024, 1024, 2, 0 } },
	{ 10000000, 0, 30, { 3165, 3160, 2, 1760 } },
	{ 16777216, 0, 32, { 4096, 4096, 2, 0 } },
	{ 100000000, 0, 32, { 10000, 10000, 3, 0 } },
	{ 268435456, 0, 32, { 16384, 16384, 3, 0 } },
	{ 1000000000, 0, 32, { 31630, 31616, 3, 17536 } },
	{ 1073741824, 0, 32, { 32768, 32768, 3, 0 } },
	{ 4294967295, 0, 32, { 65545, 65528, 4, 63 } },
	{ 4294967296, 0, 32, { 65536, 65536, 4, 0 } },
	{ 17179869183, 0, 32, { 131081, 131064, 4, 63 } },
	{ 17179869184, 0, 32, { 131072, 131072, 4, 0 } },
	{ 17179869184, 0, 29, { 131072, 131072, 4, 0 } },
	{ 68719476736, 0, 32, { 524288, 131072, 5, 0 } },
	{ 68719476736, 0, 29, { 262144, 262144, 5, 0 } },
	{ 100000000000, 0, 30, { 762940, 131072, 5, 59392 } },
	{ 100000000000, 0, 27, { 316232, 316224, 5, 168256 } },
	{ 1099511627776, 0, 32, { 8388608, 131072, 6, 0 } },
	{ 1099511627776, 0, 28, { 1048576, 1048576, 5, 0 } },
	{ UINT64_C(1) << 58, 0, 29, { 1 << 29, 1 << 29, 9, 0 } },
	{ UINT64_C(1) << 62, 0, 29, { 0, 0, 0, 0 } },
	{ UINT64_C(1) << 49, 0, 30, { 0, 0, 0, 0 } },
	{ INT64_C(131072) * 2147483647, 0, 30, { 2147483647, 131072, 7, 0 } },
	{ 5000, 1, 32, { 5000, 1, 2, 0 } },
	{ 1073741824, 1, 32, { 1073741824, 1, 5, 0 } },
	{ 1073741824, 700, 32, { 1533917, 700, 4, 624 } },
	{ 1073741824, 131072, 32, { 8192, 131072, 3, 0 } },
	{ 5000, 131072, 32, { 1, 131072, 2, 5000 } },
	{ 2147483648, 1, 32, { 0, 0, 0, 0 } },
};

static void expect_head(const struct sum_head *head, const struct sum_head *wanted)
{
	assert_int_equal(head->count, wanted->count);
	assert_int_equal(head->block_length, wanted->block_length);
	assert_int_equal(head->strong_length, wanted->strong_length);
	assert_int_equal(head->remainder, wanted->remainder);
}

UNIT_TEST(headers_as_stock_chooses_them)
{
	struct sum_head head;

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		const struct vector *vector = &vectors[i];
		int32_t longest = session_caps_of(vector->protocol).block_length_max;

		sum_head_choose(&head, vector->size, vector->block_size, longest, 16, false);
		expect_head(&head, &vector->head);
		if (head.count)
			assert_int_equal(sum_head_size(&head), vector->size);
	}
}

UNIT_TEST(lengths_of_strong_sums)
{
	static const struct { int digest; bool full; int wanted; } cases[] = {
		{ 16, true, 16 }, { 20, true, 16 }, { 8, true, 8 }, { 1, true, 1 }, { 20, false, 4 }, { 1, false, 1 },
	};
	struct sum_head head;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sum_head_choose(&head, 4294967296, 0, BLOCK_LENGTH_MAX, cases[i].digest, cases[i].full);
		assert_int_equal(head.strong_length, cases[i].wanted);
	}
	sum_head_choose(&head, 0, 0, BLOCK_LENGTH_MAX, 16, true);
	assert_int_equal(head.strong_length, 0);
}

/* Each length is the largest that fits: the next one's square is more than the size. */
UNIT_TEST(block_lengths_in_general)
{
	uint32_t seed = 5;

	for (int i = 0; i < 20000; i++) {
		uint64_t size = ((uint64_t)next_random(&seed) << 8 | (uint64_t)i % 256) >> next_random(&seed) % 20;
		struct sum_head head;

		sum_head_choose(&head, size, 0, OLD_BLOCK_LENGTH_MAX, 16, false);
		if (size <= 490000) {
			assert_int_equal(head.block_length, size ? 700 : 0);
			continue;
		}
		uint64_t length = (uint64_t)head.block_length;

		assert_true(length == 700 || (length % 8 == 0 && length * length <= size));
		assert_true((length / 8 * 8 + 8) * (length / 8 * 8 + 8) > size);
	}
}

/* --- the sums --- */

static struct bytes pattern(void)
{
	struct bytes bytes = bytes_of(1 << 20);

	for (size_t i = 0; i < bytes.length; i++)
		bytes.data[i] = (uint8_t)(7 * i + 13 * (i / 256));
	return bytes;
}

/* The sums of a file as they go out; returns what block_sums_write does. */
static int written_sums(struct reception *session, const struct sum_head *head, int fd, const uint8_t **out, size_t *length)
{
	int error = block_sums_write(&session->session, fd, head);

	*out = wire_test_output(session->session.wire, length);
	return error;
}

/* doc/protocol/03-transfer.md sections 4.1 and 4.6. */
UNIT_TEST(sums_of_the_pattern)
{
	static const uint8_t first[] = { 0xbe, 0xff, 0xb6, 0x5a, 0xbf, 0x64, 0x2d, 0x32, 0x87, 0x54, 0x7e, 0x6f,
					 0xde, 0x33, 0x57, 0x80, 0xb8, 0x34, 0x80, 0xb2, 0x76, 0x00, 0x12, 0x49 };
	static const struct sum_head head = { 2, 700, 16, 0 };
	struct bytes content = pattern();
	struct reception session;
	const uint8_t *out;
	size_t length;
	int fd = file_of(content);

	reception_start(&session, COMPRESS_NONE, 32, SUM_MD5, NULL, 0);
	assert_int_equal(written_sums(&session, &head, fd, &out, &length), 0);
	assert_int_equal(length, 40);
	assert_memory_equal(out, first, sizeof first);
	reception_end(&session);
	reception_start(&session, COMPRESS_NONE, 30, SUM_MD5, NULL, 0);
	session.session.seed_first = false;
	assert_int_equal(written_sums(&session, &head, fd, &out, &length), 0);
	assert_memory_equal(out, "\xbe\xff\xb6\x5a\xb6\xb2\x86\x08", 8);
	reception_end(&session);
	close(fd);
	free(content.data);
}

static uint32_t weak_sum_at(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Whatever the lengths, also those about the reading buffer's: as computed block by block. */
UNIT_TEST(sums_of_any_length)
{
	static const int32_t lengths[] = { 1, 7, 700, 1024, 131072, 262143, 262144, 262145, 1000000 };
	static const size_t sizes[] = { 1, 700, 1400, 262144, 262145, 524288, 700001 };
	struct bytes noise = random_bytes(700001, 6);

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
			struct setting setting = { .block_length = lengths[i], .sum = SUM_XXH64 };
			struct bytes basis = { noise.data, sizes[j] };
			struct reception session;
			struct transfer transfer;
			const uint8_t *out;
			size_t length;
			int fd = file_of(basis);

			transfer_start(&transfer, &setting);
			make_sums(&transfer, basis);
			reception_start(&session, COMPRESS_NONE, 29, SUM_XXH64, NULL, 0);
			assert_int_equal(written_sums(&session, &transfer.sums.head, fd, &out, &length), 0);
			assert_int_equal(length, 12 * (size_t)transfer.sums.head.count);
			for (int32_t block = 0; block < transfer.sums.head.count; block++) {
				assert_int_equal(weak_sum_at(out + 12 * block), transfer.sums.weak[block]);
				assert_memory_equal(out + 12 * block + 4, transfer.sums.strong + 8 * block, 8);
			}
			reception_end(&session);
			transfer_end(&transfer);
			close(fd);
		}
	}
	free(noise.data);
}

/* All the sums go out whatever the file has become; what is not there counts as zero bytes. */
UNIT_TEST(file_that_cannot_be_read)
{
	static const struct sum_head head = { 1000, 700, 8, 0 };
	struct bytes content = random_bytes(350000, 7), padded = filled(700000, 0);
	struct reception session;
	const uint8_t *out, *wanted;
	size_t length;
	int short_fd = file_of(content), padded_fd, bad_fd = open("/", O_RDONLY | O_DIRECTORY);

	memcpy(padded.data, content.data, content.length);
	padded_fd = file_of(padded);
	struct reception other;

	reception_start(&session, COMPRESS_NONE, 32, SUM_XXH128, NULL, 0);
	reception_start(&other, COMPRESS_NONE, 32, SUM_XXH128, NULL, 0);
	assert_int_equal(written_sums(&session, &head, short_fd, &out, &length), ENODATA);
	assert_int_equal(length, 12000);
	assert_int_equal(written_sums(&other, &head, padded_fd, &wanted, &length), 0);
	assert_memory_equal(out, wanted, 12000);
	assert_int_equal(written_sums(&session, &head, bad_fd, &out, &length), EISDIR);
	assert_int_equal(length, 24000);
	assert_memory_equal(out + 12000, "\0\0\0\0", 4);
	reception_end(&session);
	reception_end(&other);
	close(short_fd);
	close(padded_fd);
	close(bad_fd);
	free(content.data);
	free(padded.data);
}
