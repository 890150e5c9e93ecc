/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zlib and zlibx: raw deflate with sync flushes whose marker is cut off (protocol/03 sections 6.3 and 6.4). */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "delta/token_private.h"
#include "lib/alloc.h"
#include "lib/exit.h"

#define MARKER_LENGTH 4        /* 00 00 ff ff ends a sync flush */

struct deflater {
	struct token_writer *writer;
	z_stream stream;
	int level;
	bool pieces_repeat;  /* protocol < 31: every piece of a long block is its beginning */
	/* Output not yet written: as much as may still turn out to be the marker is held back. */
	unsigned char out[TOKEN_CHUNK_MAX + MARKER_LENGTH];
	size_t used;
};

static void *zlib_new(struct token_writer *writer)
{
	struct deflater *deflater = xcalloc(1, sizeof *deflater);
	struct session *session = token_session(writer);

	deflater->writer = writer;
	deflater->level = session->compress_level;
	deflater->pieces_repeat = session->protocol < 31;
	if (deflateInit2(&deflater->stream, deflater->level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		die(EXIT_MALLOC, "[sender] cannot initialise the zlib compressor");
	return deflater;
}

static void zlib_free(void *state)
{
	struct deflater *deflater = state;

	deflateEnd(&deflater->stream);
	free(deflater);
}

static void zlib_start_file(void *state, int level_off)
{
	struct deflater *deflater = state;

	deflateReset(&deflater->stream);
	deflateParams(&deflater->stream, level_off ? 0 : deflater->level, Z_DEFAULT_STRATEGY);
	deflater->used = 0;
}

static void write_full_chunk(struct deflater *deflater)
{
	if (deflater->used < sizeof deflater->out)
		return;
	token_write_chunk(deflater->writer, deflater->out, TOKEN_CHUNK_MAX);
	deflater->used -= TOKEN_CHUNK_MAX;
	memmove(deflater->out, deflater->out + TOKEN_CHUNK_MAX, deflater->used);
}

/* Run the compressor until it has nothing more to say for this flush mode. */
static void run(struct deflater *deflater, int flush)
{
	z_stream *stream = &deflater->stream;

	do {
		write_full_chunk(deflater);
		stream->next_out = deflater->out + deflater->used;
		stream->avail_out = (uInt)(sizeof deflater->out - deflater->used);
		int result = deflate(stream, flush);
		if (result != Z_OK && result != Z_BUF_ERROR)
			die(EXIT_STREAMIO, "[sender] deflate returned %d", result);
		deflater->used = sizeof deflater->out - stream->avail_out;
	} while (stream->avail_in || !stream->avail_out);
}

static void zlib_literal(void *state, const void *data, size_t length)
{
	struct deflater *deflater = state;

	while (length) {
		uInt piece = length > 1 << 30 ? 1 << 30 : (uInt)length;
		deflater->stream.next_in = (Bytef *)data;
		deflater->stream.avail_in = piece;
		run(deflater, Z_NO_FLUSH);
		data = (const char *)data + piece;
		length -= piece;
	}
}

/* A flush that just fits would be repeated by the next call: leave it more room than its marker needs. */
static void make_room_for_marker(struct deflater *deflater)
{
	size_t ready = deflater->used < TOKEN_CHUNK_MAX ? deflater->used : TOKEN_CHUNK_MAX;

	if (sizeof deflater->out - deflater->used > 2 * MARKER_LENGTH)
		return;
	token_write_chunk(deflater->writer, deflater->out, ready);
	deflater->used -= ready;
	memmove(deflater->out, deflater->out + ready, deflater->used);
}

static void zlib_sync(void *state)
{
	struct deflater *deflater = state;

	deflater->stream.avail_in = 0;
	make_room_for_marker(deflater);
	run(deflater, Z_SYNC_FLUSH);
	if (deflater->used < MARKER_LENGTH
	    || memcmp(deflater->out + deflater->used - MARKER_LENGTH, "\0\0\xff\xff", MARKER_LENGTH) != 0)
		die(EXIT_STREAMIO, "[sender] the zlib compressor did not end its flush as expected");
	deflater->used -= MARKER_LENGTH;
	if (deflater->used > TOKEN_CHUNK_MAX)
		die(EXIT_STREAMIO, "[sender] zlib chunk of %zu bytes", deflater->used);
	if (deflater->used)
		token_write_chunk(deflater->writer, deflater->out, deflater->used);
	deflater->used = 0;
}

static void put_into_history(struct deflater *deflater, const void *data, size_t length)
{
	/* Only the last window matters, and the compressor takes no more. */
	if (length > TOKEN_WINDOW) {
		data = (const char *)data + length - TOKEN_WINDOW;
		length = TOKEN_WINDOW;
	}
	if (deflateSetDictionary(&deflater->stream, data, (uInt)length) != Z_OK)
		die(EXIT_STREAMIO, "[sender] the zlib compressor did not take a block into its history");
}

static void zlib_block(void *state, const void *data, size_t length)
{
	struct deflater *deflater = state;

	if (!deflater->pieces_repeat) {
		put_into_history(deflater, data, length);
		return;
	}
	while (length) {
		size_t piece = length < TOKEN_STORED_MAX ? length : TOKEN_STORED_MAX;
		put_into_history(deflater, data, piece);
		length -= piece;
	}
}

const struct token_codec *token_codec_zlib(void)
{
	static const struct token_codec codec = { zlib_new, zlib_free, zlib_start_file, zlib_literal, zlib_sync, zlib_block };

	return &codec;
}

const struct token_codec *token_codec_zlibx(void)
{
	static const struct token_codec codec = { zlib_new, zlib_free, zlib_start_file, zlib_literal, zlib_sync, NULL };

	return &codec;
}
