/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How fast a source is read, searched and said: MB per second of CPU time, with nothing but memory around it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "delta/block_sums.h"
#include "delta/match.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

enum { SIZE = 256 << 20, BLOCK = 16384, STRONG = 3, SEED = 1 };

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void report(const char *what, double start)
{
	printf("%-44s %8.0f MB/s\n", what, SIZE / 1e6 / (cpu_seconds() - start));
}

static void fill(uint8_t *data, uint64_t seed)
{
	for (size_t i = 0; i < SIZE; i += sizeof seed) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(data + i, &seed, sizeof seed);
	}
}

static void bench_sums(const uint8_t *data)
{
	static const struct {
		const char *name;
		enum sum_algorithm algorithm;
	} sums[] = { { "xxh128 of blocks", SUM_XXH128 }, { "md5 of blocks", SUM_MD5 }, { "md4 of blocks", SUM_MD4 },
		     { "sha1 of blocks", SUM_SHA1 } };
	uint8_t out[DIGEST_MAX_LENGTH];
	uint32_t all = 0;
	double start = cpu_seconds();

	for (size_t i = 0; i < SIZE; i += BLOCK)
		all += rolling_compute(data + i, BLOCK);
	report(all ? "weak sums of blocks" : "weak sums of zeros", start);
	for (size_t s = 0; s < sizeof sums / sizeof *sums; s++) {
		struct block_digest how = { sums[s].algorithm, SEED, true };
		start = cpu_seconds();
		for (size_t i = 0; i < SIZE; i += BLOCK)
			block_digest_compute(&how, data + i, BLOCK, out);
		report(sums[s].name, start);
	}
}

static void make_sums(struct block_sums *sums, const uint8_t *data, const struct block_digest *how)
{
	int32_t count = SIZE / BLOCK;
	uint8_t strong[DIGEST_MAX_LENGTH];

	sums->head = (struct sum_head){ count, BLOCK, STRONG, 0 };
	sums->weak = malloc((size_t)count * sizeof *sums->weak);
	sums->strong = malloc((size_t)count * STRONG);
	for (int32_t i = 0; i < count; i++) {
		const uint8_t *block = data + (size_t)i * BLOCK;
		sums->weak[i] = rolling_compute(block, BLOCK);
		block_digest_compute(how, block, BLOCK, strong);
		memcpy(sums->strong + (size_t)i * STRONG, strong, STRONG);
	}
}

static void bench_match(const char *what, const uint8_t *source, const uint8_t *basis, enum sum_algorithm sum)
{
	struct session session = { .wire = wire_new_memory(NULL, 0), .compress = COMPRESS_NONE };
	struct token_writer *tokens;
	struct block_sums sums = { .head = { 0 } };
	struct match_stats stats = { 0 };
	uint8_t digest[DIGEST_MAX_LENGTH];
	struct match_request request = {
		.memory = source, .size = SIZE, .sums = &sums,
		.block = { sum, SEED, true }, .file_sum = sum, .seed = SEED,
	};

	if (basis)
		make_sums(&sums, basis, &request.block);
	double start = cpu_seconds();

	session_set_protocol(&session, PROTOCOL_MAX);
	tokens = token_writer_new(&session);
	token_start_file(tokens, 0);
	match_file(&request, tokens, &stats, digest);
	report(what, start);
	block_sums_free(&sums);
	token_writer_free(tokens);
	wire_free(session.wire);
}

int main(void)
{
	uint8_t *source = malloc(SIZE), *basis = malloc(SIZE);

	fill(source, 88172645463325252u);
	fill(basis, 362436069u);
	bench_sums(source);
	bench_match("whole file, xxh128", source, NULL, SUM_XXH128);
	bench_match("unchanged, xxh128", source, source, SUM_XXH128);
	bench_match("nothing in common, xxh128", source, basis, SUM_XXH128);
	/* Every place moves by one. */
	memmove(basis, source + 1, SIZE - 1);
	bench_match("one byte inserted, xxh128", source, basis, SUM_XXH128);
	free(source);
	free(basis);
	return 0;
}
