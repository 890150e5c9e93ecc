/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A source that is made of a basis by instructions in the input, block sums of the basis of which some are forged, and any
 * shape of session: what the tokens say must be the source.
 */
#include "catch_die.h"

#include <string.h>

#include "delta/block_sums.h"
#include "delta/match.h"
#include "testsuite/unit/delta_decode.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

enum { SOURCE_MAX = 1 << 16, STRONG_LENGTH = 8, SEED = 99 };

struct input {
	const uint8_t *data;
	size_t length;
};

struct round {
	struct input input;
	struct session session;
	struct sum_head head;
	bool in_place;
	uint8_t *basis, *source;
	size_t basis_size, source_size;
	bool finished; /* nothing in here may die() */
};

static uint8_t take(struct input *input)
{
	if (!input->length)
		return 0;
	input->length--;
	return *input->data++;
}

static size_t take_number(struct input *input, size_t limit)
{
	size_t number = take(input);

	number |= (size_t)take(input) << 8;
	return limit ? number % limit : 0;
}

static void choose_session(struct round *round)
{
	static const int32_t lengths[] = { 1, 2, 5, 16, 17, 64, 700, 1 << 17 };
	uint8_t shape = take(&round->input), kind = take(&round->input);

	session_set_protocol(&round->session, 27 + kind % 6);
	round->session.compress = (enum compress_algorithm)(shape % 5);
	round->session.compress_level = shape & 0x80 ? 1 : 6;
	round->session.seed = SEED;
	round->in_place = shape & 0x40;
	round->head.block_length = lengths[kind >> 5];
	round->head.strong_length = STRONG_LENGTH;
}

/* The basis is the first part of the input, said several times so that long runs and equal blocks are cheap to come by. */
static void make_basis(struct round *round)
{
	struct input *input = &round->input;
	size_t times = 1 + take(input) % 8, piece = take_number(input, input->length + 1);

	if (piece > input->length)
		piece = input->length;
	round->basis_size = piece * times;
	if (round->basis_size > SOURCE_MAX)
		round->basis_size = piece;
	round->basis = malloc(round->basis_size + 1);
	for (size_t at = 0; at < round->basis_size; at += piece)
		memcpy(round->basis + at, input->data, piece);
	input->data += piece;
	input->length -= piece;
}

static void make_source(struct round *round)
{
	struct input *input = &round->input;
	uint8_t *source = malloc(SOURCE_MAX);
	size_t used = 0;

	while (input->length) {
		uint8_t what = take(input);
		size_t length = take_number(input, what & 1 ? 4096 : 64);

		if (length > SOURCE_MAX - used)
			break;
		if (what & 1) {
			size_t from = take_number(input, round->basis_size);
			if (length > round->basis_size - from)
				length = round->basis_size - from;
			memcpy(source + used, round->basis + from, length);
		} else {
			memset(source + used, take(input), length);
		}
		used += length;
	}
	round->source_size = used;
	round->source = malloc(used ? used : 1);
	memcpy(round->source, source, used);
	free(source);
}

/* True sums; then, as `forged` says, weak sums that belong to other places, and blocks that no basis has. */
static void make_sums(struct round *round, struct block_sums *sums, const struct block_digest *how, uint8_t forged)
{
	size_t length = (size_t)round->head.block_length, real = (round->basis_size + length - 1) / length;
	size_t count = real + (forged & 0x80 ? forged & 0x7f : 0);
	uint8_t strong[DIGEST_MAX_LENGTH];

	round->head.count = (int32_t)count;
	round->head.remainder = (int32_t)(round->basis_size % length);
	sums->head = round->head;
	sums->weak = calloc(count + 1, sizeof *sums->weak);
	sums->strong = calloc(count + 1, STRONG_LENGTH);
	for (size_t i = 0; i < count; i++) {
		size_t rest = i < real ? round->basis_size - i * length : 0, here = rest < length ? rest : length;
		const uint8_t *data = round->basis + (i < real ? i * length : 0);

		sums->weak[i] = rolling_compute(data, here);
		memset(strong, (int)(i | 1), sizeof strong);
		if (i < real)
			block_digest_compute(how, data, here, strong);
		memcpy(sums->strong + i * STRONG_LENGTH, strong, STRONG_LENGTH);
		if (forged && i % (forged % 7u + 2) == 1)
			sums->weak[i] = rolling_compute(round->source,
							round->source_size < length ? round->source_size : length);
	}
}

static void require(bool good)
{
	if (!good)
		abort();
}

static void check(struct round *round, const uint8_t *stream, size_t length, const struct match_stats *stats)
{
	struct decoder decoder;

	decoder_init(&decoder, round->session.compress, round->session.protocol);
	require(decode_file(&decoder, stream, length, &round->head, round->basis, round->basis_size, round->in_place));
	require(decoder.pos == length && decoder.out_length == round->source_size);
	require(!round->source_size || !memcmp(decoder.out, round->source, round->source_size));
	require(stats->literal_bytes == decoder.literals && stats->matches == decoder.blocks);
	decoder_free(&decoder);
}

static void run(void *context)
{
	struct round *round = context;
	uint8_t digest[DIGEST_MAX_LENGTH], forged;
	struct match_stats stats = { 0 };
	struct block_sums sums;
	size_t length;

	choose_session(round);
	forged = take(&round->input);
	make_basis(round);
	make_source(round);
	struct match_request request = {
		.memory = round->source, .size = round->source_size, .sums = &sums,
		.block = { SUM_MD5, SEED, true }, .file_sum = SUM_XXH64, .seed = SEED, .in_place = round->in_place,
	};

	make_sums(round, &sums, &request.block, forged);
	round->session.wire = wire_new_memory(NULL, 0);
	struct token_writer *tokens = token_writer_new(&round->session);

	token_start_file(tokens, forged & 1);
	require(match_file(&request, tokens, &stats, digest) == 8);
	const uint8_t *stream = wire_test_output(round->session.wire, &length);

	check(round, stream, length, &stats);
	token_writer_free(tokens);
	wire_free(round->session.wire);
	block_sums_free(&sums);
	free(round->basis);
	free(round->source);
	round->finished = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct round round = { .input = { data, size } };

	catch_die(run, &round);
	require(round.finished);
	return 0;
}
