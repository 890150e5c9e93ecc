/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For tests: a transfer of one file after another, from block sums through matching and tokens to a receiver. */
#ifndef TESTSUITE_DELTA_SUPPORT_H
#define TESTSUITE_DELTA_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delta/block_sums.h"
#include "delta/match.h"
#include "testsuite/unit/delta_decode.h"
#include "testsuite/unit/unit.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

#define SEED 12345

/* --- one transfer --- */

struct bytes {
	uint8_t *data;
	size_t length;
};

/* Everything about a transfer that a test may want to choose; zero is an ordinary one. */
struct setting {
	enum compress_algorithm compress;
	int protocol;
	enum sum_algorithm sum;
	int32_t block_length;
	int strong_length;
	bool in_place, level_off;
};

struct transfer {
	struct setting setting;
	struct session session;
	struct token_writer *tokens;
	struct decoder decoder;
	struct block_sums sums;
	struct match_stats stats;
	uint8_t digest[DIGEST_MAX_LENGTH];
	int digest_length;
	size_t streamed; /* bytes of the output that were decoded */
};

static inline void transfer_start(struct transfer *transfer, const struct setting *setting)
{
	*transfer = (struct transfer){ .setting = *setting };
	if (!transfer->setting.protocol)
		transfer->setting.protocol = 32;
	if (transfer->setting.sum == SUM_NONE)
		transfer->setting.sum = SUM_MD5;
	if (!transfer->setting.block_length)
		transfer->setting.block_length = 700;
	if (!transfer->setting.strong_length)
		transfer->setting.strong_length = digest_length(transfer->setting.sum) < 8 ? 1 : 8;
	transfer->session = (struct session){
		.wire = wire_new_memory(NULL, 0), .compress = setting->compress,
		.compress_level = setting->compress == COMPRESS_ZSTD ? 3 : 6, .seed = SEED,
	};
	session_set_protocol(&transfer->session, transfer->setting.protocol);
	transfer->tokens = token_writer_new(&transfer->session);
	decoder_init(&transfer->decoder, setting->compress, transfer->setting.protocol);
}

static inline void transfer_end(struct transfer *transfer)
{
	token_writer_free(transfer->tokens);
	wire_free(transfer->session.wire);
	decoder_free(&transfer->decoder);
	block_sums_free(&transfer->sums);
}

static inline struct block_digest block_digest_of(const struct setting *setting)
{
	return (struct block_digest){ setting->sum, SEED, true };
}

/* What a generator sends about its basis (doc/protocol/03-transfer.md section 3). */
static inline void make_sums(struct transfer *transfer, struct bytes basis)
{
	const struct setting *setting = &transfer->setting;
	struct sum_head *head = &transfer->sums.head;
	struct block_digest how = block_digest_of(setting);
	size_t length = (size_t)setting->block_length;
	uint8_t strong[DIGEST_MAX_LENGTH];

	block_sums_free(&transfer->sums);
	*head = (struct sum_head){ (int32_t)((basis.length + length - 1) / length), setting->block_length,
				   setting->strong_length, (int32_t)(basis.length % length) };
	transfer->sums.weak = malloc(sizeof(uint32_t) * (size_t)head->count + 1);
	transfer->sums.strong = malloc((size_t)setting->strong_length * (size_t)head->count + 1);
	for (size_t i = 0; i < (size_t)head->count; i++) {
		size_t rest = basis.length - i * length, here = rest < length ? rest : length;
		transfer->sums.weak[i] = rolling_compute(basis.data + i * length, here);
		block_digest_compute(&how, basis.data + i * length, here, strong);
		memcpy(transfer->sums.strong + i * (size_t)setting->strong_length, strong, (size_t)setting->strong_length);
	}
}

/* Send the source against the sums that stand in the transfer. */
static inline void send_source(struct transfer *transfer, struct match_request *request)
{
	const struct setting *setting = &transfer->setting;

	request->sums = &transfer->sums;
	request->block = block_digest_of(setting);
	request->file_sum = setting->sum;
	request->seed = SEED;
	request->in_place = setting->in_place;
	token_start_file(transfer->tokens, setting->level_off);
	transfer->stats = (struct match_stats){ 0 };
	transfer->digest_length = match_file(request, transfer->tokens, &transfer->stats, transfer->digest);
}

static inline void send_bytes(struct transfer *transfer, struct bytes source)
{
	struct match_request request = { .memory = source.data, .size = source.length };

	send_source(transfer, &request);
}

/* Decode what was written since the last time. */
static inline void receive(struct transfer *transfer, struct bytes basis)
{
	size_t length;
	const uint8_t *stream = wire_test_output(transfer->session.wire, &length);

	decode_file(&transfer->decoder, stream + transfer->streamed, length - transfer->streamed, &transfer->sums.head,
		    basis.data, basis.length, transfer->setting.in_place);
	if (transfer->decoder.error)
		fail_msg("%s", transfer->decoder.error);
	transfer->streamed += transfer->decoder.pos;
	assert_int_equal(transfer->streamed, length);
}

static inline void expect_file(const struct transfer *transfer, struct bytes source)
{
	uint8_t digest[DIGEST_MAX_LENGTH];
	struct file_digest *running = file_digest_new();

	assert_int_equal(transfer->decoder.out_length, source.length);
	if (source.length)
		assert_memory_equal(transfer->decoder.out, source.data, source.length);
	file_digest_start(running, transfer->setting.sum, SEED);
	file_digest_update(running, source.data, source.length);
	assert_int_equal(file_digest_finish(running, digest), transfer->digest_length);
	assert_memory_equal(digest, transfer->digest, (size_t)transfer->digest_length);
	file_digest_free(running);
	assert_int_equal(transfer->stats.literal_bytes, transfer->decoder.literals);
	assert_int_equal(transfer->stats.literal_bytes + transfer->stats.matched_bytes, source.length);
	assert_int_equal(transfer->stats.matches, transfer->decoder.blocks);
}

static inline void round_trip(struct transfer *transfer, struct bytes basis, struct bytes source)
{
	make_sums(transfer, basis);
	send_bytes(transfer, source);
	receive(transfer, basis);
	expect_file(transfer, source);
}

/* --- contents --- */

static inline struct bytes bytes_of(size_t length)
{
	/* Of exactly this size, so that a memory checker sees a step outside. */
	return (struct bytes){ malloc(length ? length : 1), length };
}

static inline uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static inline struct bytes random_bytes(size_t length, uint32_t seed)
{
	struct bytes bytes = bytes_of(length);

	for (size_t i = 0; i < length; i++)
		bytes.data[i] = (uint8_t)(next_random(&seed) >> 8);
	return bytes;
}

static inline struct bytes numbered_lines(void)
{
	struct bytes bytes = bytes_of(100000);
	char line[16];

	for (int i = 0; i < 10000; i++) {
		snprintf(line, sizeof line, "%09d\n", i);
		memcpy(bytes.data + 10 * i, line, 10);
	}
	return bytes;
}

static inline struct bytes copy_of(struct bytes bytes)
{
	struct bytes copy = bytes_of(bytes.length);

	memcpy(copy.data, bytes.data, bytes.length);
	return copy;
}

static inline struct bytes filled(size_t length, uint8_t byte)
{
	struct bytes bytes = bytes_of(length);

	memset(bytes.data, byte, length);
	return bytes;
}

/* "ABX": one random block of `length` bytes for each capital letter, small letters stand for themselves. */
static inline struct bytes spelled(const char *text, size_t length)
{
	struct bytes bytes = bytes_of(strlen(text) * length), letter;

	bytes.length = 0;
	for (; *text; text++) {
		if (*text >= 'a') {
			bytes.data[bytes.length++] = (uint8_t)*text;
			continue;
		}
		letter = random_bytes(length, 77u * (uint8_t)*text);
		memcpy(bytes.data + bytes.length, letter.data, length);
		bytes.length += length;
		free(letter.data);
	}
	return bytes;
}

#endif
