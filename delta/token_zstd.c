/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zstd: one stream for the whole session (protocol/03 section 6.5). */
#include <stdlib.h>
#include <zstd.h>

#include "delta/token_private.h"
#include "lib/alloc.h"
#include "lib/exit.h"

struct zstd_stream {
	struct token_writer *writer;
	ZSTD_CCtx *context;
	char out[TOKEN_CHUNK_MAX];
};

static void *zstd_new(struct token_writer *writer)
{
	struct zstd_stream *stream = xcalloc(1, sizeof *stream);

	stream->writer = writer;
	stream->context = ZSTD_createCCtx();
	if (!stream->context)
		die(EXIT_MALLOC, "[sender] cannot initialise the zstd compressor");
	ZSTD_CCtx_setParameter(stream->context, ZSTD_c_compressionLevel, token_session(writer)->compress_level);
	/* A library without threads says no, and compresses all the same. */
	ZSTD_CCtx_setParameter(stream->context, ZSTD_c_nbWorkers, token_session(writer)->compress_threads);
	return stream;
}

static void zstd_free(void *state)
{
	struct zstd_stream *stream = state;

	ZSTD_freeCCtx(stream->context);
	free(stream);
}

/* The stream goes on from file to file; its level cannot change inside a frame, so nothing is lowered either. */
static void zstd_start_file(void *state, int level_off)
{
	(void)state;
	(void)level_off;
}

static void run(struct zstd_stream *stream, const void *data, size_t length, ZSTD_EndDirective how)
{
	ZSTD_inBuffer input = { data, length, 0 };
	size_t left;

	do {
		ZSTD_outBuffer output = { stream->out, sizeof stream->out, 0 };
		left = ZSTD_compressStream2(stream->context, &output, &input, how);
		if (ZSTD_isError(left))
			die(EXIT_STREAMIO, "[sender] zstd: %s", ZSTD_getErrorName(left));
		if (output.pos)
			token_write_chunk(stream->writer, stream->out, output.pos);
	} while (input.pos < input.size || (how == ZSTD_e_flush && left));
}

static void zstd_literal(void *state, const void *data, size_t length)
{
	run(state, data, length, ZSTD_e_continue);
}

static void zstd_sync(void *state)
{
	run(state, "", 0, ZSTD_e_flush);
}

const struct token_codec *token_codec_zstd(void)
{
	static const struct token_codec codec = { zstd_new, zstd_free, zstd_start_file, zstd_literal, zstd_sync, NULL };

	return &codec;
}
