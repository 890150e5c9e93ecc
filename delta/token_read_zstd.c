/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zstd, receiving: one stream for the whole session, with the library's own limit on the window (protocol/03 section 6.5). */
#include <stdlib.h>
#include <zstd.h>

#include "delta/token_private.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

#define OUT_SIZE (128 * 1024)

struct zstd_stream {
	ZSTD_DCtx *context;
	ZSTD_inBuffer input;
	bool drained; /* the last chunk has given all it has */
	uint8_t out[OUT_SIZE];
};

static void *zstd_new(struct session *session)
{
	struct zstd_stream *stream = xcalloc(1, sizeof *stream);

	(void)session;
	stream->context = ZSTD_createDCtx();
	if (!stream->context)
		die(EXIT_MALLOC, "[%s] cannot initialise the zstd decompressor", log_role());
	return stream;
}

static void zstd_free(void *state)
{
	struct zstd_stream *stream = state;

	ZSTD_freeDCtx(stream->context);
	free(stream);
}

static void zstd_chunk(void *state, const uint8_t *data, size_t length)
{
	struct zstd_stream *stream = state;

	stream->input = (ZSTD_inBuffer){ data, length, 0 };
	stream->drained = false;
}

/* A chunk may hold only a part of a block, or a header: then nothing comes out of it. */
static size_t zstd_literal(void *state, const uint8_t **data)
{
	struct zstd_stream *stream = state;
	ZSTD_outBuffer output = { stream->out, OUT_SIZE, 0 };

	*data = stream->out;
	while (!stream->drained && !output.pos) {
		size_t result = ZSTD_decompressStream(stream->context, &output, &stream->input);

		if (ZSTD_isError(result))
			die(EXIT_STREAMIO, "ZSTD decomp returned %s (%zu bytes) [%s]", ZSTD_getErrorName(result),
			    stream->input.size - stream->input.pos, log_role());
		stream->drained = stream->input.pos == stream->input.size && output.pos < output.size;
	}
	return output.pos;
}

const struct token_decoder *token_decoder_zstd(void)
{
	static const struct token_decoder decoder = { zstd_new, zstd_free, NULL, zstd_chunk, zstd_literal, NULL, NULL, NULL };

	return &decoder;
}
