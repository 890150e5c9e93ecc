/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * zstd: one stream for the whole session, read with the library's own limit on the window (doc/protocol/03-transfer.md
 * section 6.5).
 */
#include "delta/token_zstd.h"

#include <stdlib.h>
#include <zstd.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

/* --- sending --- */

struct zstd_encoder {
	struct session *session;
	ZSTD_CCtx *context;
	char out[TOKEN_CHUNK_MAX];
};

static void *zstd_encoder_new(struct session *session)
{
	struct zstd_encoder *encoder = xcalloc(1, sizeof *encoder);

	encoder->session = session;
	encoder->context = ZSTD_createCCtx();
	if (!encoder->context)
		die(EXIT_MALLOC, "[sender] cannot initialise the zstd compressor");
	ZSTD_CCtx_setParameter(encoder->context, ZSTD_c_compressionLevel, session->compress_level);
	/* A library without threads says no, and compresses all the same. */
	ZSTD_CCtx_setParameter(encoder->context, ZSTD_c_nbWorkers, session->compress_threads);
	return encoder;
}

static void zstd_encoder_free(void *state)
{
	struct zstd_encoder *encoder = state;

	ZSTD_freeCCtx(encoder->context);
	free(encoder);
}

static void zstd_encoder_run(struct zstd_encoder *encoder, const void *data, size_t length, ZSTD_EndDirective how)
{
	ZSTD_inBuffer input = { data, length, 0 };
	size_t left;

	do {
		ZSTD_outBuffer output = { encoder->out, sizeof encoder->out, 0 };
		left = ZSTD_compressStream2(encoder->context, &output, &input, how);
		if (ZSTD_isError(left))
			die(EXIT_STREAMIO, "[sender] zstd: %s", ZSTD_getErrorName(left));
		if (output.pos)
			token_write_chunk(encoder->session, encoder->out, output.pos);
	} while (input.pos < input.size || (how == ZSTD_e_flush && left));
}

static void zstd_encoder_literal(void *state, const void *data, size_t length)
{
	zstd_encoder_run(state, data, length, ZSTD_e_continue);
}

static void zstd_encoder_sync(void *state)
{
	zstd_encoder_run(state, "", 0, ZSTD_e_flush);
}

/* --- receiving --- */

#define OUT_SIZE (128 * 1024)

struct zstd_decoder {
	ZSTD_DCtx *context;
	ZSTD_inBuffer input;
	bool drained; /* the last chunk has given all it has */
	uint8_t out[OUT_SIZE];
};

static void *zstd_decoder_new(struct session *session)
{
	struct zstd_decoder *decoder = xcalloc(1, sizeof *decoder);

	(void)session;
	decoder->context = ZSTD_createDCtx();
	if (!decoder->context)
		die(EXIT_MALLOC, "[%s] cannot initialise the zstd decompressor", log_role());
	return decoder;
}

static void zstd_decoder_free(void *state)
{
	struct zstd_decoder *decoder = state;

	ZSTD_freeDCtx(decoder->context);
	free(decoder);
}

static void zstd_decoder_chunk(void *state, const uint8_t *data, size_t length)
{
	struct zstd_decoder *decoder = state;

	decoder->input = (ZSTD_inBuffer){ data, length, 0 };
	decoder->drained = false;
}

/* A chunk may hold only a part of a block, or a header: then nothing comes out of it. */
static size_t zstd_decoder_literal(void *state, const uint8_t **data)
{
	struct zstd_decoder *decoder = state;
	ZSTD_outBuffer output = { decoder->out, OUT_SIZE, 0 };

	*data = decoder->out;
	while (!decoder->drained && !output.pos) {
		size_t result = ZSTD_decompressStream(decoder->context, &output, &decoder->input);

		if (ZSTD_isError(result))
			die(EXIT_STREAMIO, "ZSTD decomp returned %s (%zu bytes) [%s]", ZSTD_getErrorName(result),
			    decoder->input.size - decoder->input.pos, log_role());
		decoder->drained = decoder->input.pos == decoder->input.size && output.pos < output.size;
	}
	return output.pos;
}

const struct token_codec *token_codec_zstd(void)
{
	static const struct token_codec codec = {
		.encoder = {
			/* Goes on from file to file; its level cannot change inside a frame, so nothing is lowered either. */
			.new = zstd_encoder_new, .free = zstd_encoder_free, .literal = zstd_encoder_literal,
			.sync = zstd_encoder_sync,
		},
		.decoder = {
			.new = zstd_decoder_new, .free = zstd_decoder_free, .chunk = zstd_decoder_chunk,
			.literal = zstd_decoder_literal,
		},
	};

	return &codec;
}
