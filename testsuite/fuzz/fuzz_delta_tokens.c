/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The receiving half of the delta: token streams of every method, as they come in the input, or as our sender writes them by
 * instructions in the input and then damaged. They are made into a file, or thrown away.
 */
#include "catch_die.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "delta/patch.h"
#include "delta/token.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

enum { BASIS_SIZE = 100000, FILES_MAX = 4, STREAM_MAX = 1 << 17, OUTPUT_MAX = 64 << 20 };

struct input {
	const uint8_t *data;
	size_t length;
};

struct round {
	struct session session;
	struct sum_head head;
	struct token_reader *tokens;
	struct file_digest *digest;
	struct patch_buffer buffer;
	int basis_fd, out_fd;
	bool in_place, drain, sparse;
	int append;
};

static uint8_t take(struct input *input)
{
	if (!input->length)
		return 0;
	input->length--;
	return *input->data++;
}

static void require(bool good)
{
	if (!good)
		abort();
}

static void choose(struct round *round, struct input *input)
{
	static const int32_t lengths[] = { 1, 700, 4096, 65535, 65536, 131072 };
	uint8_t shape = take(input), kind = take(input);

	session_set_protocol(&round->session, 27 + kind % 6);
	round->session.compress = (enum compress_algorithm)(shape % 5);
	round->session.compress_level = 6;
	round->session.xfer_sum = kind & 0x40 ? SUM_XXH64 : SUM_NONE;
	round->in_place = shape & 0x20;
	round->drain = shape & 0x40;
	round->sparse = shape & 0x80;
	round->append = kind & 0x80 ? 1 + (kind >> 5 & 1) : 0;
	round->head.block_length = lengths[(kind >> 3) % 6];
	round->head.count = (BASIS_SIZE + round->head.block_length - 1) / round->head.block_length;
	round->head.remainder = BASIS_SIZE % round->head.block_length;
	round->head.strong_length = 1;
	/* Some say more of the basis than there is. */
	if (shape & 0x10)
		round->head.count++;
}

/* What a sender writes: per instruction some literal or a few blocks. */
static void write_stream(struct round *round, struct input *input, struct wire *wire)
{
	static const char zeros[1 << 17];
	struct session session = round->session;
	struct token_writer *writer;
	size_t length;

	session.wire = wire;
	writer = token_writer_new(&session);
	token_start_file(writer, 0);
	for (int i = 0; i < 50 && input->length > 8; i++) {
		uint8_t what = take(input);
		size_t amount = take(input);

		if (what & 1) {
			length = amount < input->length ? amount : input->length;
			token_literal(writer, input->data, length);
			input->data += what & 2 ? length : 0;
			input->length -= what & 2 ? length : 0;
		} else if (what & 2) {
			token_literal(writer, zeros, amount * 512);
		} else {
			for (size_t block = 0; block < (what >> 4); block++)
				token_block(writer, (int32_t)((amount + block) % (size_t)round->head.count), zeros,
					    (size_t)round->head.block_length);
		}
		if (what == 0xff) {
			token_end_file(writer);
			wire_write(wire, "digest..", 8);
			token_start_file(writer, 0);
		}
	}
	token_end_file(writer);
	wire_write(wire, "digest..", 8);
	token_writer_free(writer);
}

static void damage(struct input *input, uint8_t *stream, size_t length)
{
	while (input->length > 3 && length) {
		size_t at = take(input);

		at |= (size_t)take(input) << 8;
		stream[at % length] ^= take(input);
	}
}

static void check(const struct round *round, const struct patch_outcome *outcome)
{
	require(outcome->result <= PATCH_READ_FAILED);
	if (round->drain)
		require(outcome->result == PATCH_OK);
	else if (outcome->result <= PATCH_WRONG_DIGEST)
		require(lseek(round->out_fd, 0, SEEK_END) == (off_t)outcome->length);
	require(outcome->result == PATCH_OK || outcome->result == PATCH_WRONG_DIGEST || outcome->error);
}

static void receive(void *context)
{
	struct round *round = context;
	uint64_t bytes = 0;

	for (int i = 0; i < FILES_MAX && bytes < OUTPUT_MAX; i++) {
		struct patch_request request = {
			.session = &round->session,
			.tokens = round->tokens, .digest = round->digest, .buffer = &round->buffer,
			.head = &round->head, .basis_fd = round->basis_fd, .out_fd = round->drain ? -1 : round->out_fd,
			.size = STREAM_MAX, .in_place = round->in_place || round->append, .sparse = round->sparse,
			.append = round->append,
		};
		struct patch_outcome outcome;

		patch_file(&request, &outcome);
		check(round, &outcome);
		bytes += outcome.literal + outcome.matched;
	}
}

static void run(struct round *round, const uint8_t *stream, size_t length)
{
	round->session.wire = wire_new_memory(stream, length);
	wire_settings(round->session.wire)->protocol = round->session.protocol;
	round->tokens = token_reader_new(&round->session);
	round->digest = file_digest_new();
	round->basis_fd = memfd_create("basis", 0);
	round->out_fd = round->in_place ? dup(round->basis_fd) : memfd_create("out", 0);
	require(ftruncate(round->basis_fd, BASIS_SIZE) == 0);
	catch_die(receive, round);
	close(round->basis_fd);
	close(round->out_fd);
	file_digest_free(round->digest);
	free(round->buffer.bytes);
	token_reader_free(round->tokens);
	wire_free(round->session.wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct round round = { 0 };
	size_t length;

	if (take(&input) & 1) {
		choose(&round, &input);
		run(&round, input.data, input.length);
		return 0;
	}
	choose(&round, &input);
	struct wire *wire = wire_new_memory(NULL, 0);

	write_stream(&round, &input, wire);
	const uint8_t *written = wire_test_output(wire, &length);
	uint8_t *stream = malloc(length);

	memcpy(stream, written, length);
	wire_free(wire);
	damage(&input, stream, length);
	run(&round, stream, length);
	free(stream);
	return 0;
}
