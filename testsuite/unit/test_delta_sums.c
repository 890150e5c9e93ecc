/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weak and strong checksums against the vectors of doc/protocol/03-transfer.md section 4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "delta/block_sums.h"
#include "delta/digest.h"

#define PATTERN_SIZE (1 << 20)

static int make_pattern(void **state)
{
	uint8_t *pattern = malloc(PATTERN_SIZE);

	for (int i = 0; i < PATTERN_SIZE; i++)
		pattern[i] = (uint8_t)(7 * i + 13 * (i / 256));
	*state = pattern;
	return 0;
}

static int free_pattern(void **state)
{
	free(*state);
	return 0;
}

UNIT_TEST(weak_sums_of_the_vectors)
{
	const uint8_t *pattern = *state;
	uint8_t filled[700];

	assert_int_equal(rolling_compute("", 0), 0);
	assert_int_equal(rolling_compute("a", 1), 0x00610061);
	assert_int_equal(rolling_compute("abc", 3), 0x024a0126);
	assert_int_equal(rolling_compute("\x80", 1), 0xff80ff80);
	assert_int_equal(rolling_compute("\xff\xff\xff\xff", 4), 0xfff6fffc);
	memset(filled, 0xff, sizeof filled);
	assert_int_equal(rolling_compute(filled, 700), 0x419afd44);
	memset(filled, 0x7f, sizeof filled);
	assert_int_equal(rolling_compute(filled, 700), 0x749a5b44);
	assert_int_equal(rolling_compute(pattern, 700), 0x5ab6ffbe);
	assert_int_equal(rolling_compute(pattern + 1, 700), 0x5ab2fffc);
	assert_int_equal(rolling_compute(pattern + 700, 700), 0x49120076);
	assert_int_equal(rolling_compute(pattern + 701, 699), 0x9f8a0038);
	assert_int_equal(rolling_compute(pattern, 1024), 0xb300fe00);
	assert_int_equal(rolling_compute(pattern, 131072), 0x80000000);
}

static uint32_t plain_weak_sum(const uint8_t *data, size_t length)
{
	uint32_t s1 = 0, s2 = 0;

	for (size_t i = 0; i < length; i++) {
		s1 += (uint32_t)(int8_t)data[i];
		s2 += s1;
	}
	return (s1 & 0xffff) | s2 << 16;
}

UNIT_TEST(weak_sums_of_every_length)
{
	const uint8_t *pattern = *state;

	for (size_t length = 0; length < 300; length++)
		assert_int_equal(rolling_compute(pattern + length, length), plain_weak_sum(pattern + length, length));
}

/* Whatever instructions this machine has; long enough for every lane to overflow. */
UNIT_TEST(weak_sums_need_no_special_instructions)
{
	const uint8_t *pattern = *state;
	uint8_t extremes[4097];

	memset(extremes, 0x80, sizeof extremes);
	memset(extremes, 0x7f, sizeof extremes / 3);
	for (size_t length = 0; length < sizeof extremes; length += length < 100 ? 1 : 61) {
		assert_int_equal(rolling_compute_portably(pattern + length, length), plain_weak_sum(pattern + length, length));
		assert_int_equal(rolling_compute_portably(extremes, length), plain_weak_sum(extremes, length));
		assert_int_equal(rolling_compute(extremes, length), plain_weak_sum(extremes, length));
	}
	assert_int_equal(rolling_compute_portably(pattern, PATTERN_SIZE), rolling_compute(pattern, PATTERN_SIZE));
}

static void assert_hex(const uint8_t *bytes, int length, const char *hex)
{
	char text[2 * DIGEST_MAX_LENGTH + 1] = "";

	for (int i = 0; i < length; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	assert_string_equal(text, hex);
}

UNIT_TEST(block_sums_of_the_vectors)
{
	const uint8_t *pattern = *state;
	const struct {
		const void *data;
		size_t length;
		struct block_digest how;
		const char *hex;
	} vectors[] = {
		{ "abc", 3, { SUM_MD5, 12345, true }, "bb14fea2e616bd230bdf9fb20427076d" },
		{ "abc", 3, { SUM_MD5, 12345, false }, "c3336900e0a75b57373b0d0906bd052b" },
		{ "abc", 3, { SUM_MD4, 12345, true }, "8cd2a284db9442cfb9fabc070bf1bc28" },
		{ "abc", 3, { SUM_MD4_OLD, 12345, false }, "8cd2a284db9442cfb9fabc070bf1bc28" },
		{ "abc", 3, { SUM_SHA1, 12345, true }, "c046d1fdf16b651326c4548bf9d69857f81403f0" },
		{ "abc", 3, { SUM_XXH64, 12345, true }, "0935f2f6640e7001" },
		{ "abc", 3, { SUM_XXH3, 12345, true }, "d0859afdea647e71" },
		{ "abc", 3, { SUM_XXH128, 12345, true }, "d0859afdea647e71799ee027f8e7ec80" },
		{ "abc", 3, { SUM_MD5, -5, true }, "2355fd536118dc4d39a6dddcc85ef2ba" },
		{ "abc", 3, { SUM_XXH64, -5, true }, "b7266f1b12d5c4d7" },
		{ "abc", 3, { SUM_XXH128, -5, true }, "13f6986bc96570aae90cbb1bc59be02d" },
		{ pattern, 700, { SUM_MD5, 12345, true }, "bf642d3287547e6fde335780b83480b2" },
		{ pattern, 700, { SUM_MD5, 12345, false }, "b6b286087008cd93f73c87b073369bd9" },
		{ pattern, 700, { SUM_MD4, 12345, true }, "eaf2d08e943645bb275fc69c32b35e82" },
		{ pattern, 700, { SUM_SHA1, 12345, true }, "c71eb127b6320e2c9b3794107d5c669f00200396" },
		{ pattern, 700, { SUM_XXH64, 12345, true }, "d8eb71ff23ae5644" },
		{ pattern, 700, { SUM_XXH3, 12345, true }, "b2014715d413ccf1" },
		{ pattern, 700, { SUM_XXH128, 12345, true }, "b2014715d413ccf1221f7d6b3ebf29e1" },
		{ pattern, 700, { SUM_XXH64, -5, true }, "3767355f54f82329" },
		{ pattern, 700, { SUM_XXH128, -5, true }, "29921461b8b4f34f4b84eaa72e972f2d" },
		{ pattern, 700, { SUM_MD5, 0, true }, "3a4ecae533f9c19c8377d765a78d294e" },
	};
	uint8_t digest[DIGEST_MAX_LENGTH];

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		block_digest_compute(&vectors[i].how, vectors[i].data, vectors[i].length, digest);
		assert_hex(digest, digest_length(vectors[i].how.algorithm), vectors[i].hex);
	}
}

UNIT_TEST(file_sums_of_the_vectors)
{
	const uint8_t *pattern = *state;
	const struct {
		enum sum_algorithm algorithm;
		int32_t seed;
		const char *empty, *abc, *pattern;
	} vectors[] = {
		{ SUM_MD4_OLD, 12345, "688022c841e2813519ad28a82013eea9", "0e2c828681ac145255b6ac2b75a2f0fa",
		  "5a69118e44fd34225e65c2401b3794ed" },
		{ SUM_MD4_OLD, 0, "1b06b0037d44bcc91f0b2653e4e5ccd5", "280f4da968ef17b2ca2fb5d289874be9",
		  "3a9c13412610d909078f07409aa6fbd8" },
		{ SUM_MD4, 12345, "31d6cfe0d16ae931b73c59d7e0c089c0", "a448017aaf21d8525fc10ae87aa6729d",
		  "6997a26382e7617b6b068d8f74df2b4f" },
		{ SUM_MD5, 12345, "d41d8cd98f00b204e9800998ecf8427e", "900150983cd24fb0d6963f7d28e17f72",
		  "7ef966a06f14417281c672d3d9de8d6b" },
		{ SUM_SHA1, 12345, "da39a3ee5e6b4b0d3255bfef95601890afd80709", "a9993e364706816aba3e25717850c26c9cd0d89d",
		  "8afc1f75aee49040e0ce987fcb2decebaf8c52ef" },
		{ SUM_XXH64, 12345, "99e9d85137db46ef", "990977adf52cbc44", "a000fddc90e9e2fe" },
		{ SUM_XXH3, 12345, "c294d3380580062d", "50392f89945faf78", "140fd8a6a3bf9708" },
		{ SUM_XXH128, 12345, "7f498d4624c30160d8984701d306aa99", "50392f89945faf7885613a73b65ab006",
		  "140fd8a6a3bf97081ed2b2c255e2f06c" },
		{ SUM_NONE, 12345, "00", "00", "00" },
	};
	struct file_digest *digest = file_digest_new();
	uint8_t out[DIGEST_MAX_LENGTH];

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		file_digest_start(digest, vectors[i].algorithm, vectors[i].seed);
		assert_hex(out, file_digest_finish(digest, out), vectors[i].empty);
		file_digest_start(digest, vectors[i].algorithm, vectors[i].seed);
		file_digest_update(digest, "a", 1);
		file_digest_update(digest, "bc", 2);
		assert_hex(out, file_digest_finish(digest, out), vectors[i].abc);
		file_digest_start(digest, vectors[i].algorithm, vectors[i].seed);
		file_digest_update(digest, pattern, 1000);
		file_digest_update(digest, pattern + 1000, PATTERN_SIZE - 1000);
		assert_hex(out, file_digest_finish(digest, out), vectors[i].pattern);
	}
	file_digest_free(digest);
}

UNIT_TEST(list_sums_are_never_seeded)
{
	struct file_digest *digest = file_digest_new();
	uint8_t out[DIGEST_MAX_LENGTH];

	file_digest_start_plain(digest, SUM_MD4_OLD);
	file_digest_update(digest, "hello\n", 6);
	assert_hex(out, file_digest_finish(digest, out), "63481c78ae04c201fa01ea9d2b1db56d");
	file_digest_free(digest);
}

UNIT_GROUP(make_pattern, free_pattern)
