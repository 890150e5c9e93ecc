/* SPDX-License-Identifier: GPL-3.0-or-later */
/* lz4: every chunk is an independent block (protocol/03 section 6.6). */
#include <lz4.h>
#include <stdlib.h>

#include "delta/token_private.h"
#include "lib/alloc.h"

struct lz4_state {
	struct token_writer *writer;
	char out[LZ4_COMPRESSBOUND(TOKEN_CHUNK_MAX)];
};

static void *lz4_new(struct token_writer *writer)
{
	struct lz4_state *state = xcalloc(1, sizeof *state);

	state->writer = writer;
	return state;
}

static void lz4_free(void *state)
{
	free(state);
}

static void lz4_start_file(void *state, int level_off)
{
	(void)state;
	(void)level_off;
}

/* Input that does not shrink may need more than a chunk holds: then half of it at a time. */
static void lz4_literal(void *lz4_state, const void *literal, size_t length)
{
	struct lz4_state *state = lz4_state;
	const char *data = literal;

	while (length) {
		int piece = length < TOKEN_CHUNK_MAX ? (int)length : TOKEN_CHUNK_MAX;
		int packed = LZ4_compress_default(data, state->out, piece, (int)sizeof state->out);

		while (packed > TOKEN_CHUNK_MAX) {
			piece /= 2;
			packed = LZ4_compress_default(data, state->out, piece, (int)sizeof state->out);
		}
		token_write_chunk(state->writer, state->out, (size_t)packed);
		data += piece;
		length -= (size_t)piece;
	}
}

static void lz4_sync(void *state)
{
	(void)state;
}

const struct token_codec *token_codec_lz4(void)
{
	static const struct token_codec codec = { lz4_new, lz4_free, lz4_start_file, lz4_literal, lz4_sync, NULL };

	return &codec;
}
