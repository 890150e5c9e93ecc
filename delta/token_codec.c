/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The compressors of the token stream: zlib and zlibx, raw deflate with sync flushes whose marker does not travel
 * (doc/protocol/03-transfer.md sections 6.3 and 6.4); zstd, one stream for the whole session, read with the library's own limit
 * on the window (6.5); lz4, where every chunk is an independent block (6.6).
 */
#include "delta/token_codec.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

/* --- zlib and zlibx, sending --- */

#define MARKER_LENGTH 4        /* 00 00 ff ff ends a sync flush */

struct deflater {
	struct session *session;
	z_stream stream;
	int level;
	bool pieces_repeat;  /* below protocol 31 every piece of a long block is its beginning */
	/* Output not yet written: as much as may still turn out to be the marker is held back. */
	unsigned char out[TOKEN_CHUNK_MAX + MARKER_LENGTH];
	size_t used;
};

static void *deflater_new(struct session *session)
{
	struct deflater *deflater = xcalloc(1, sizeof *deflater);

	deflater->session = session;
	deflater->level = session->compress_level;
	deflater->pieces_repeat = session->caps.zlib_repeats;
	if (deflateInit2(&deflater->stream, deflater->level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		die(EXIT_MALLOC, "[sender] cannot initialise the zlib compressor");
	return deflater;
}

static void deflater_free(void *state)
{
	struct deflater *deflater = state;

	deflateEnd(&deflater->stream);
	free(deflater);
}

static void deflater_start_file(void *state, int level_off)
{
	struct deflater *deflater = state;

	deflateReset(&deflater->stream);
	deflateParams(&deflater->stream, level_off ? 0 : deflater->level, Z_DEFAULT_STRATEGY);
	deflater->used = 0;
}

/* Run the compressor until it has nothing more to say for this flush mode. */
static void deflater_run(struct deflater *deflater, int flush)
{
	z_stream *stream = &deflater->stream;

	do {
		if (deflater->used >= sizeof deflater->out) {
			token_write_chunk(deflater->session, deflater->out, TOKEN_CHUNK_MAX);
			deflater->used -= TOKEN_CHUNK_MAX;
			memmove(deflater->out, deflater->out + TOKEN_CHUNK_MAX, deflater->used);
		}
		stream->next_out = deflater->out + deflater->used;
		stream->avail_out = (uInt)(sizeof deflater->out - deflater->used);
		int result = deflate(stream, flush);
		if (result != Z_OK && result != Z_BUF_ERROR)
			die(EXIT_STREAMIO, "[sender] deflate returned %d", result);
		deflater->used = sizeof deflater->out - stream->avail_out;
	} while (stream->avail_in || !stream->avail_out);
}

static void deflater_literal(void *state, const void *data, size_t length)
{
	struct deflater *deflater = state;

	while (length) {
		uInt piece = length > 1 << 30 ? 1 << 30 : (uInt)length;
		deflater->stream.next_in = (Bytef *)data;
		deflater->stream.avail_in = piece;
		deflater_run(deflater, Z_NO_FLUSH);
		data = (const char *)data + piece;
		length -= piece;
	}
}

static void deflater_sync(void *state)
{
	struct deflater *deflater = state;

	size_t ready = deflater->used < TOKEN_CHUNK_MAX ? deflater->used : TOKEN_CHUNK_MAX;

	deflater->stream.avail_in = 0;
	/* A flush that just fits would be repeated by the next call: leave it more room than its marker needs. */
	if (sizeof deflater->out - deflater->used <= 2 * MARKER_LENGTH) {
		token_write_chunk(deflater->session, deflater->out, ready);
		deflater->used -= ready;
		memmove(deflater->out, deflater->out + ready, deflater->used);
	}
	deflater_run(deflater, Z_SYNC_FLUSH);
	if (deflater->used < MARKER_LENGTH
	    || memcmp(deflater->out + deflater->used - MARKER_LENGTH, "\0\0\xff\xff", MARKER_LENGTH) != 0)
		die(EXIT_STREAMIO, "[sender] the zlib compressor did not end its flush as expected");
	deflater->used -= MARKER_LENGTH;
	if (deflater->used > TOKEN_CHUNK_MAX)
		die(EXIT_STREAMIO, "[sender] zlib chunk of %zu bytes", deflater->used);
	if (deflater->used)
		token_write_chunk(deflater->session, deflater->out, deflater->used);
	deflater->used = 0;
}

static void deflater_see_history(struct deflater *deflater, const void *data, size_t length)
{
	/* Only the last window matters, and the compressor takes no more. */
	if (length > TOKEN_WINDOW) {
		data = (const char *)data + length - TOKEN_WINDOW;
		length = TOKEN_WINDOW;
	}
	if (deflateSetDictionary(&deflater->stream, data, (uInt)length) != Z_OK)
		die(EXIT_STREAMIO, "[sender] the zlib compressor did not take a block into its history");
}

static void deflater_block(void *state, const void *data, size_t length)
{
	struct deflater *deflater = state;

	if (!deflater->pieces_repeat) {
		deflater_see_history(deflater, data, length);
		return;
	}
	while (length) {
		size_t piece = length < TOKEN_STORED_MAX ? length : TOKEN_STORED_MAX;
		deflater_see_history(deflater, data, piece);
		length -= piece;
	}
}

/* --- zlib and zlibx, receiving --- */

#define INFLATE_ROOM 65536

struct inflater {
	z_stream stream;
	bool drained;            /* the last chunk has given all it has */
	bool pieces_repeat;      /* below protocol 31 every piece of a long block is its beginning */
	uint64_t block_length;   /* pieces_repeat: bytes seen of the current block ... */
	uint8_t *block_head;     /* ... and the first of them, up to TOKEN_STORED_MAX */
	uint8_t out[INFLATE_ROOM];
};

static void *inflater_new(struct session *session)
{
	struct inflater *inflater = xcalloc(1, sizeof *inflater);

	inflater->pieces_repeat = session->caps.zlib_repeats;
	if (inflater->pieces_repeat)
		inflater->block_head = xmalloc(TOKEN_STORED_MAX);
	if (inflateInit2(&inflater->stream, -15) != Z_OK)
		die(EXIT_MALLOC, "[%s] cannot initialise the zlib decompressor", log_role());
	return inflater;
}

static void inflater_free(void *state)
{
	struct inflater *inflater = state;

	inflateEnd(&inflater->stream);
	free(inflater->block_head);
	free(inflater);
}

static void inflater_start_file(void *state)
{
	struct inflater *inflater = state;

	inflateReset(&inflater->stream);
	inflater->block_length = 0;
}

/* --- the history --- */

static void inflater_see_history(struct inflater *inflater, const uint8_t *data, size_t length)
{
	static const uint8_t unknown[TOKEN_WINDOW];
	size_t last = length < TOKEN_WINDOW ? length : TOKEN_WINDOW;

	if (inflateSetDictionary(&inflater->stream, data ? data + length - last : unknown, (uInt)last) != Z_OK)
		die(EXIT_STREAMIO, "the zlib decompressor did not take a block into its history [%s]", log_role());
}

/* Below protocol 31: the block as a whole is known now. Of its full pieces, all the same, one fills the window. */
static void inflater_next_block(void *state)
{
	struct inflater *inflater = state;
	size_t rest = (size_t)(inflater->block_length % TOKEN_STORED_MAX);

	if (inflater->block_length >= TOKEN_STORED_MAX)
		inflater_see_history(inflater, inflater->block_head, TOKEN_STORED_MAX);
	if (rest)
		inflater_see_history(inflater, inflater->block_head, rest);
	inflater->block_length = 0;
}

static void inflater_see_block(void *state, const void *data, size_t length)
{
	struct inflater *inflater = state;

	if (!length)
		return;
	if (!inflater->pieces_repeat) {
		inflater_see_history(inflater, data, length);
		return;
	}
	if (inflater->block_length < TOKEN_STORED_MAX) {
		size_t room = TOKEN_STORED_MAX - (size_t)inflater->block_length, take = length < room ? length : room;
		uint8_t *to = inflater->block_head + inflater->block_length;

		if (data)
			memcpy(to, data, take);
		else
			memset(to, 0, take);
	}
	inflater->block_length += length;
}

/* --- literals --- */

static void inflater_chunk(void *state, const uint8_t *data, size_t length)
{
	struct inflater *inflater = state;

	inflater_next_block(inflater);
	inflater->stream.next_in = (Bytef *)(uintptr_t)data;
	inflater->stream.avail_in = (uInt)length;
	inflater->drained = false;
}

/* One call of inflate; returns the bytes that came out. */
static size_t inflate_some(struct inflater *inflater)
{
	z_stream *stream = &inflater->stream;

	stream->next_out = inflater->out;
	stream->avail_out = INFLATE_ROOM;
	int result = inflate(stream, Z_NO_FLUSH);

	if (result != Z_OK && result != Z_BUF_ERROR)
		die(EXIT_STREAMIO, "inflate returned %d (%u bytes) [%s]", result, stream->avail_in, log_role());
	inflater->drained = stream->avail_out > 0;
	return INFLATE_ROOM - stream->avail_out;
}

static size_t inflater_literal(void *state, const uint8_t **data)
{
	struct inflater *inflater = state;

	*data = inflater->out;
	return inflater->drained ? 0 : inflate_some(inflater);
}

static void inflater_sync(void *state)
{
	static const uint8_t marker[] = { 0, 0, 0xff, 0xff };
	struct inflater *inflater = state;

	if (!inflateSyncPoint(&inflater->stream))
		die(EXIT_STREAMIO, "decompressor lost sync! [%s]", log_role());
	inflater->stream.next_in = (Bytef *)(uintptr_t)marker;
	inflater->stream.avail_in = sizeof marker;
	if (inflate_some(inflater) || inflater->stream.avail_in)
		die(EXIT_STREAMIO, "decompressor lost sync! [%s]", log_role());
}

static const struct token_codec *codec_zlib(void)
{
	static const struct token_codec codec = {
		.encoder = {
			.new = deflater_new, .free = deflater_free, .start_file = deflater_start_file,
			.literal = deflater_literal, .sync = deflater_sync, .block = deflater_block,
		},
		.decoder = {
			.new = inflater_new, .free = inflater_free, .start_file = inflater_start_file,
			.chunk = inflater_chunk, .literal = inflater_literal, .sync = inflater_sync,
			.next_block = inflater_next_block, .see_block = inflater_see_block,
		},
	};

	return &codec;
}

static const struct token_codec *codec_zlibx(void)
{
	static const struct token_codec codec = {
		.encoder = {
			.new = deflater_new, .free = deflater_free, .start_file = deflater_start_file,
			.literal = deflater_literal, .sync = deflater_sync,
		},
		.decoder = {
			.new = inflater_new, .free = inflater_free, .start_file = inflater_start_file,
			.chunk = inflater_chunk, .literal = inflater_literal, .sync = inflater_sync,
		},
	};

	return &codec;
}

/* --- zstd, sending --- */

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

/* --- zstd, receiving --- */

#define ZSTD_READER_ROOM (128 * 1024)

struct zstd_decoder {
	ZSTD_DCtx *context;
	ZSTD_inBuffer input;
	bool drained; /* the last chunk has given all it has */
	uint8_t out[ZSTD_READER_ROOM];
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
	ZSTD_outBuffer output = { decoder->out, ZSTD_READER_ROOM, 0 };

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

static const struct token_codec *codec_zstd(void)
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

/* --- lz4, sending --- */

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

/* --- lz4, receiving --- */

#define LZ4_READER_ROOM 32912 /* what stock has room for */

struct lz4_decoder {
	size_t length; /* decoded and not yet handed on */
	uint8_t out[LZ4_READER_ROOM];
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
	int result = LZ4_decompress_safe((const char *)data, (char *)lz4->out, (int)length, LZ4_READER_ROOM);

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

static const struct token_codec *codec_lz4(void)
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

const struct token_codec *token_codec_of(enum compress_algorithm algorithm)
{
	switch (algorithm) {
	case COMPRESS_ZLIB:
		return codec_zlib();
	case COMPRESS_ZLIBX:
		return codec_zlibx();
	case COMPRESS_ZSTD:
		return codec_zstd();
	case COMPRESS_LZ4:
		return codec_lz4();
	case COMPRESS_NONE:
		break;
	}
	return NULL;
}
