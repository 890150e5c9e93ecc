/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finding blocks: in place, after random edits, against forged sums, in bounded work (doc/protocol/03-transfer.md
 * section 5).
 */
#include "testsuite/unit/delta_support.h"

/* --- in place, doc/protocol/03-transfer.md section 5.3 --- */

UNIT_TEST(in_place_constraint)
{
	static const struct {
		const char *basis, *source, *free, *in_place;
	} vectors[] = {
		{ "ABC", "XABC", "L700 T0 T1 T2", "L2800" },
		{ "ABCD", "BCD", "T1 T2 T3", "T1 T2 T3" },
		{ "ABC", "BAC", "T1 T0 T2", "T1 L700 T2" },
		{ "ABC", "ABCA", "T0 T1 T2 T0", "T0 T1 T2 T0" },
		{ "ABC", "AXCB", "T0 L700 T2 T1", "T0 L700 T2 L700" },
		{ "ABC", "zABC", "L1 T0 T1 T2", "L2101" },
		/* Of equal blocks the one that stands where it goes, so that the receiver only seeks. */
		{ "AAAA", "AAAA", "T0 T1 T2 T3", "T0 T1 T2 T3" },
		/* Of equal blocks one that can still be read. */
		{ "AAXAB", "XXXXAB", "T2 T2 T2 T2 T3 T4", NULL },
		{ "AAXAB", "YYYAB", NULL, "L2100 T3 T4" },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		for (int in_place = 0; in_place < 2; in_place++) {
			struct setting setting = { .in_place = in_place };
			const char *shape = in_place ? vectors[i].in_place : vectors[i].free;
			struct bytes basis = spelled(vectors[i].basis, 700), source = spelled(vectors[i].source, 700);
			struct transfer transfer;

			transfer_start(&transfer, &setting);
			round_trip(&transfer, basis, source);
			if (shape && strcmp(transfer.decoder.shape, shape) != 0)
				fail_msg("%s -> %s: %s, not %s", vectors[i].basis, vectors[i].source, transfer.decoder.shape,
					 shape);
			transfer_end(&transfer);
			free(basis.data);
			free(source.data);
		}
	}
}

/* Long after thousands of equal blocks have been overwritten, others must still be found. */
UNIT_TEST(in_place_passes_over_dead_blocks)
{
	struct setting setting = { .in_place = true, .block_length = 64 };
	struct bytes zeros = filled(5000 * 64, 0), noise = random_bytes(6000 * 64, 5);
	struct bytes basis = bytes_of(11000 * 64), source = bytes_of(11000 * 64);
	struct transfer transfer;

	memcpy(basis.data, zeros.data, zeros.length);
	memcpy(basis.data + zeros.length, noise.data, noise.length);
	/* The zeros move behind the noise's place: none of them can be read any more, all of what follows can. */
	memcpy(source.data, noise.data, 5000 * 64);
	memset(source.data + 5000 * 64, 0, 5500 * 64);
	memcpy(source.data + 10500 * 64, noise.data + 5500 * 64, 500 * 64);
	transfer_start(&transfer, &setting);
	round_trip(&transfer, basis, source);
	assert_int_equal(transfer.decoder.blocks, 5500);
	transfer_end(&transfer);
	free(zeros.data);
	free(noise.data);
	free(basis.data);
	free(source.data);
}

/* --- random edits --- */

/* The basis with a few pieces overwritten, inserted, removed, moved or repeated. */
static struct bytes edited(struct bytes basis, uint32_t *state)
{
	size_t room = basis.length * 2 + 5000;
	struct bytes result = bytes_of(room);
	size_t at = 0, used = 0;

	while (at < basis.length && used + 2000 < room) {
		size_t run = next_random(state) % 3000;
		uint32_t what = next_random(state) % 8;

		if (run > basis.length - at)
			run = basis.length - at;
		if (run > room - used - 1000)
			run = room - used - 1000;
		memcpy(result.data + used, basis.data + at, run);
		used += run;
		at += run;
		if (what == 0) {
			for (size_t i = next_random(state) % 900; i; i--)
				result.data[used++] = (uint8_t)next_random(state);
		} else if (what == 1) {
			at += next_random(state) % 900;
		} else if (what == 2) {
			at = next_random(state) % (basis.length + 1);
		} else if (what == 3 && used) {
			result.data[used - 1] ^= 1;
		}
	}
	result.length = used;
	uint8_t *exact = malloc(used ? used : 1);

	memcpy(exact, result.data, used);
	free(result.data);
	result.data = exact;
	return result;
}

static struct bytes random_basis(uint32_t *state)
{
	size_t length = next_random(state) % 30000;
	struct bytes basis = next_random(state) % 4 ? random_bytes(length, next_random(state) | 1) : filled(length, 0);

	/* Some of it repeats. */
	for (int i = 0; i < 6 && length > 4000; i++)
		memmove(basis.data + next_random(state) % (length - 2000), basis.data + next_random(state) % (length - 2000),
			next_random(state) % 2000);
	return basis;
}

static void edit_and_transfer(struct setting setting, uint32_t *state, int files)
{
	static const int32_t block_lengths[] = { 1, 3, 16, 64, 256, 700, 700, 704, 1000, 4096, 131072 };
	struct transfer transfer;

	setting.block_length = block_lengths[next_random(state) % (sizeof block_lengths / sizeof *block_lengths)];
	transfer_start(&transfer, &setting);
	for (int i = 0; i < files; i++) {
		struct bytes basis = random_basis(state), source = edited(basis, state);

		transfer.setting.in_place = next_random(state) % 2;
		transfer.setting.level_off = next_random(state) % 8 == 0;
		round_trip(&transfer, basis, source);
		free(basis.data);
		free(source.data);
	}
	transfer_end(&transfer);
}

UNIT_TEST(random_edits)
{
	static const enum sum_algorithm sums[] = { SUM_MD5, SUM_XXH128, SUM_XXH64, SUM_XXH3, SUM_SHA1, SUM_MD4, SUM_MD4_OLD };
	uint32_t random = 20260101;

	for (int round = 0; round < 9; round++) {
		for (int protocol = 27; protocol <= PROTOCOL_MAX; protocol++) {
			for (int compress = COMPRESS_NONE; compress <= COMPRESS_LZ4; compress++) {
				struct setting setting = { .compress = (enum compress_algorithm)compress, .protocol = protocol,
							   .sum = sums[round % 7] };
				edit_and_transfer(setting, &random, 10);
			}
		}
	}
}

/* --- headers that no generator of ours would send, but a peer may --- */

UNIT_TEST(every_block_length_is_served)
{
	static const int32_t lengths[] = { 1, 2, 15, 16, 17, 699, 70000, 131072, 1 << 20, 40 << 20, 1 << 29 };
	struct bytes basis = random_bytes(300000, 9), source = copy_of(basis);
	struct transfer transfer;

	source.data[150000] ^= 0x55;
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct setting setting = { .block_length = lengths[i], .protocol = 29, .sum = SUM_MD4_OLD };
		transfer_start(&transfer, &setting);
		round_trip(&transfer, basis, source);
		transfer_end(&transfer);
	}
	free(basis.data);
	free(source.data);
}

UNIT_TEST(block_count_far_beyond_the_source)
{
	struct bytes basis = random_bytes(3000000, 10), source = random_bytes(1000, 11);
	struct setting setting = { .block_length = 1, .strong_length = 1 };
	struct transfer transfer;

	transfer_start(&transfer, &setting);
	round_trip(&transfer, basis, source);
	assert_int_equal(transfer.decoder.literals, 0);
	transfer_end(&transfer);
	free(basis.data);
	free(source.data);
}

UNIT_TEST(remainder_of_a_whole_block)
{
	struct bytes basis = random_bytes(2100, 12);
	struct setting setting = { 0 };
	struct transfer transfer;

	transfer_start(&transfer, &setting);
	make_sums(&transfer, basis);
	transfer.sums.head.remainder = 700;
	send_bytes(&transfer, basis);
	receive(&transfer, basis);
	expect_file(&transfer, basis);
	assert_string_equal(transfer.decoder.shape, "T0 T1 T2");
	transfer_end(&transfer);
	free(basis.data);
}

UNIT_TEST(short_last_block_stands_only_at_the_end)
{
	struct bytes basis = random_bytes(1000, 13), source = bytes_of(1300);
	struct setting setting = { 0 };
	struct transfer transfer;

	/* The last 300 bytes, then everything again. */
	memcpy(source.data, basis.data + 700, 300);
	memcpy(source.data + 300, basis.data, 1000);
	transfer_start(&transfer, &setting);
	round_trip(&transfer, basis, source);
	assert_string_equal(transfer.decoder.shape, "L300 T0 T1");
	source.length = 300;
	round_trip(&transfer, basis, source);
	assert_string_equal(transfer.decoder.shape, "T1");
	transfer_end(&transfer);
	free(basis.data);
	free(source.data);
}

/* A weak sum that agrees is not enough. */
UNIT_TEST(forged_weak_sums_are_not_matched)
{
	struct bytes basis = random_bytes(70000, 14), source = random_bytes(70000, 15);
	struct setting setting = { .block_length = 100 };
	struct transfer transfer;

	transfer_start(&transfer, &setting);
	make_sums(&transfer, basis);
	for (int i = 0; i < 700; i++)
		transfer.sums.weak[i] = rolling_compute(source.data + 100 * i, 100);
	send_bytes(&transfer, source);
	receive(&transfer, basis);
	expect_file(&transfer, source);
	assert_int_equal(transfer.decoder.blocks, 0);
	assert_int_equal(transfer.stats.false_alarms, 700);
	transfer_end(&transfer);
	free(basis.data);
	free(source.data);
}

/* Weak sums alone prove nothing: without strong ones, true as the weak ones may be, everything is literal (S-032). */
UNIT_TEST(without_strong_sums_nothing_matches)
{
	struct bytes source = random_bytes(70000, 16);

	for (int in_place = 0; in_place < 2; in_place++) {
		struct setting setting = { .block_length = 100, .in_place = in_place };
		struct transfer transfer;

		transfer_start(&transfer, &setting);
		make_sums(&transfer, source);
		transfer.sums.head.strong_length = 0;
		free(transfer.sums.strong);
		transfer.sums.strong = NULL;
		send_bytes(&transfer, source);
		receive(&transfer, source);
		expect_file(&transfer, source);
		assert_int_equal(transfer.decoder.blocks, 0);
		transfer_end(&transfer);
	}
	free(source.data);
}

/* The short last block is forged to have the sums of a window of full length, right where it is expected. */
UNIT_TEST(short_last_block_is_not_taken_for_a_full_one)
{
	struct bytes basis = random_bytes(1000, 22), source = random_bytes(1500, 23);
	uint8_t strong[DIGEST_MAX_LENGTH];

	memcpy(source.data, basis.data, 700);
	for (int in_place = 0; in_place < 2; in_place++) {
		struct setting setting = { .in_place = in_place };
		struct transfer transfer;

		transfer_start(&transfer, &setting);
		struct block_digest how = block_digest_of(&transfer.setting);

		make_sums(&transfer, basis);
		transfer.sums.weak[1] = rolling_compute(source.data + 700, 700);
		block_digest_compute(&how, source.data + 700, 700, strong);
		memcpy(transfer.sums.strong + transfer.setting.strong_length, strong, (size_t)transfer.setting.strong_length);
		/* A full block with that weak sum makes the search look there at all. */
		transfer.sums.weak[0] = transfer.sums.weak[1];
		send_bytes(&transfer, source);
		receive(&transfer, basis);
		expect_file(&transfer, source);
		transfer_end(&transfer);
	}
	free(basis.data);
	free(source.data);
}

/* Equal weak sums whose blocks would reach over the end of the source (doc/protocol/08-security.md S-032): the memory checker
 * watches. */
UNIT_TEST(no_look_outside_of_the_source)
{
	static const size_t sizes[] = { 0, 1, 99, 100, 101, 699, 700, 701, 1399, 1400, 131071 };
	struct setting setting = { .strong_length = 1 };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		for (int32_t remainder = 0; remainder <= 700; remainder += 100) {
			struct bytes source = filled(sizes[i], 0);
			struct transfer transfer;

			transfer_start(&transfer, &setting);
			transfer.sums.head = (struct sum_head){ 5000, 700, 1, remainder };
			transfer.sums.weak = calloc(5000, sizeof(uint32_t));
			transfer.sums.strong = calloc(5000, 1);
			for (int block = 0; block < 5000; block++)
				transfer.sums.strong[block] = (uint8_t)block;
			send_bytes(&transfer, source);
			assert_int_equal(transfer.stats.literal_bytes + transfer.stats.matched_bytes, sizes[i]);
			transfer_end(&transfer);
			free(source.data);
		}
	}
}

/* --- bounded work, doc/protocol/08-security.md S-056 --- */

/*
 * The source is sent against `count` forged blocks, all with the weak sum that every window of it has; the one at `true_at`
 * (if it is one) with the right strong sum too. The bound: so many candidates for each byte and block, so many at least.
 */
enum { CANDIDATES_PER_BYTE = 2, CANDIDATES_FREE = 2 << 20 };

static uint64_t forge_chain(int32_t block_length, size_t size, int32_t count, int32_t true_at, bool in_place)
{
	struct setting setting = { .block_length = block_length, .strong_length = 16, .in_place = in_place };
	struct bytes source = filled(size, 7);
	struct transfer transfer;
	uint8_t strong[DIGEST_MAX_LENGTH];

	transfer_start(&transfer, &setting);
	struct block_digest how = block_digest_of(&transfer.setting);

	transfer.sums.head = (struct sum_head){ count, block_length, 16, 0 };
	transfer.sums.weak = calloc((size_t)count, sizeof(uint32_t));
	transfer.sums.strong = calloc((size_t)count, 16);
	for (int32_t i = 0; i < count; i++) {
		transfer.sums.weak[i] = rolling_compute(source.data, (size_t)block_length);
		memcpy(transfer.sums.strong + 16 * (size_t)i, &i, sizeof i);
	}
	block_digest_compute(&how, source.data, (size_t)block_length, strong);
	if (true_at >= 0)
		memcpy(transfer.sums.strong + 16 * (size_t)true_at, strong, 16);
	send_bytes(&transfer, source);
	assert_int_equal(transfer.stats.literal_bytes + transfer.stats.matched_bytes, size);
	assert_in_range(transfer.stats.candidates, 0, CANDIDATES_PER_BYTE * (size + (size_t)count) + CANDIDATES_FREE);
	/* Strong sums are the dear part where blocks are long. */
	if (true_at < 0)
		assert_in_range(transfer.stats.hash_hits * (uint64_t)block_length, 0, 20 * (size + (size_t)count) + (20 << 20));
	transfer_end(&transfer);
	free(source.data);
	return transfer.stats.candidates;
}

UNIT_TEST(long_chains_cost_linear_work)
{
	forge_chain(1, 3000000, 20000, -1, false);
	forge_chain(700, 3000000, 20000, -1, false);
	forge_chain(1, 3000000, 20000, -1, true);
	forge_chain(131072, 3000000, 20000, -1, false);
	/* Matches do not make the search before them free. */
	forge_chain(1, 3000000, 20000, 1000, false);
	forge_chain(1, 3000000, 20000, 19000, true);
	/* And no single offset takes more than 1024. */
	assert_in_range(forge_chain(1000, 1000, 20000, -1, false), 1, 1024);
}

/* A sparse image is an honest long chain. */
UNIT_TEST(zeros_are_matched_with_few_looks)
{
	struct bytes zeros = filled(32 << 20, 0);
	struct transfer transfer;

	for (int in_place = 0; in_place < 2; in_place++) {
		struct setting setting = { .block_length = 1024, .in_place = in_place };
		transfer_start(&transfer, &setting);
		round_trip(&transfer, zeros, zeros);
		assert_int_equal(transfer.decoder.literals, 0);
		assert_in_range(transfer.stats.candidates, 0, 2 * transfer.stats.matches);
		transfer_end(&transfer);
	}
	free(zeros.data);
}

/* One distinct block somewhere behind a hundred thousand equal ones is found. */
UNIT_TEST(equal_blocks_hide_nothing)
{
	struct setting setting = { .block_length = 32 };
	struct bytes basis = filled(100000 * 32, 0), source = filled(200000, 0);
	struct transfer transfer;

	memcpy(basis.data + 99999 * 32, "a block unlike the zeros before", 32);
	memcpy(source.data + 12345, "a block unlike the zeros before", 32);
	transfer_start(&transfer, &setting);
	round_trip(&transfer, basis, source);
	assert_in_range(transfer.decoder.literals, 0, 100);
	transfer_end(&transfer);
	free(basis.data);
	free(source.data);
}
