/* SPDX-License-Identifier: GPL-3.0-or-later */
/* lz4: every chunk is an independent block (doc/protocol/03-transfer.md section 6.6). */
#include "delta/token_lz4.h"

#include <lz4.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

/* --- sending --- */

struct lz4_encoder {
	struct session *session;
	char out[LZ4_COMPRESSBOUND(TOKEN_CHUNK_MAX)];
};

static void *lz4_encoder_new(struct session *session)
{
	struct lz4_encoder *state = xcalloc(1, sizeof *state);

	state->session = session;
	return state;
}

/* Input that does not shrink may need more than a chunk holds: then half of it at a time. */
static void lz4_encoder_literal(void *lz4_encoder, const void *literal, size_t length)
{
	struct lz4_encoder *state = lz4_encoder;
	const char *data = literal;

	while (length) {
		int piece = length < TOKEN_CHUNK_MAX ? (int)length : TOKEN_CHUNK_MAX;
		int packed = LZ4_compress_default(data, state->out, piece, (int)sizeof state->out);

		while (packed > TOKEN_CHUNK_MAX) {
			piece /= 2;
			packed = LZ4_compress_default(data, state->out, piece, (int)sizeof state->out);
		}
		token_write_chunk(state->session, state->out, (size_t)packed);
		data += piece;
		length -= (size_t)piece;
	}
}

/* --- receiving --- */

#define OUT_SIZE 32912 /* what stock has room for */

struct lz4_decoder {
	size_t length; /* decoded and not yet handed on */
	uint8_t out[OUT_SIZE];
};

static void *lz4_decoder_new(struct session *session)
{
	(void)session;
	return xcalloc(1, sizeof(struct lz4_decoder));
}

/* A block of no bytes is refused too: other readers take it for the end of the file. */
static void lz4_decoder_chunk(void *state, const uint8_t *data, size_t length)
{
	struct lz4_decoder *lz4 = state;
	int result = LZ4_decompress_safe((const char *)data, (char *)lz4->out, (int)length, OUT_SIZE);

	if (result <= 0)
		die(EXIT_STREAMIO, "uncompress failed: %d [%s]", result, log_role());
	lz4->length = (size_t)result;
}

static size_t lz4_decoder_literal(void *state, const uint8_t **data)
{
	struct lz4_decoder *lz4 = state;
	size_t length = lz4->length;

	*data = lz4->out;
	lz4->length = 0;
	return length;
}

const struct token_codec *token_codec_lz4(void)
{
	static const struct token_codec codec = {
		.encoder = {
			.new = lz4_encoder_new, .free = free, .literal = lz4_encoder_literal,
		},
		.decoder = {
			.new = lz4_decoder_new, .free = free, .chunk = lz4_decoder_chunk, .literal = lz4_decoder_literal,
		},
	};

	return &codec;
}
