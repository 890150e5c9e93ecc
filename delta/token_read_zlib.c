/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zlib and zlibx, receiving: raw inflate, fed the marker that the sender has cut off (protocol/03 sections 6.3 and 6.4). */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "delta/token_private.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

#define OUT_SIZE 65536

struct inflater {
	z_stream stream;
	bool drained;            /* the last chunk has given all it has */
	bool pieces_repeat;      /* protocol < 31: every piece of a long block is its beginning */
	uint64_t block_length;   /* pieces_repeat: bytes seen of the current block ... */
	uint8_t *block_head;     /* ... and the first of them, up to TOKEN_STORED_MAX */
	uint8_t out[OUT_SIZE];
};

static void *zlib_new(struct session *session)
{
	struct inflater *inflater = xcalloc(1, sizeof *inflater);

	inflater->pieces_repeat = session->protocol < 31;
	if (inflater->pieces_repeat)
		inflater->block_head = xmalloc(TOKEN_STORED_MAX);
	if (inflateInit2(&inflater->stream, -15) != Z_OK)
		die(EXIT_MALLOC, "[%s] cannot initialise the zlib decompressor", log_role());
	return inflater;
}

static void zlib_free(void *state)
{
	struct inflater *inflater = state;

	inflateEnd(&inflater->stream);
	free(inflater->block_head);
	free(inflater);
}

static void zlib_start_file(void *state)
{
	struct inflater *inflater = state;

	inflateReset(&inflater->stream);
	inflater->block_length = 0;
}

/* --- the history --- */

static void put_into_history(struct inflater *inflater, const uint8_t *data, size_t length)
{
	static const uint8_t unknown[TOKEN_WINDOW];
	size_t last = length < TOKEN_WINDOW ? length : TOKEN_WINDOW;

	if (inflateSetDictionary(&inflater->stream, data ? data + length - last : unknown, (uInt)last) != Z_OK)
		die(EXIT_STREAMIO, "the zlib decompressor did not take a block into its history [%s]", log_role());
}

/* Below protocol 31: the block as a whole is known now. Of its full pieces, all the same, one fills the window. */
static void finish_block(struct inflater *inflater)
{
	size_t rest = (size_t)(inflater->block_length % TOKEN_STORED_MAX);

	if (inflater->block_length >= TOKEN_STORED_MAX)
		put_into_history(inflater, inflater->block_head, TOKEN_STORED_MAX);
	if (rest)
		put_into_history(inflater, inflater->block_head, rest);
	inflater->block_length = 0;
}

static void zlib_next_block(void *state)
{
	finish_block(state);
}

static void zlib_see_block(void *state, const void *data, size_t length)
{
	struct inflater *inflater = state;

	if (!length)
		return;
	if (!inflater->pieces_repeat) {
		put_into_history(inflater, data, length);
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

static void zlib_chunk(void *state, const uint8_t *data, size_t length)
{
	struct inflater *inflater = state;

	finish_block(inflater);
	inflater->stream.next_in = (Bytef *)(uintptr_t)data;
	inflater->stream.avail_in = (uInt)length;
	inflater->drained = false;
}

/* One call of inflate; returns the bytes that came out. */
static size_t inflate_some(struct inflater *inflater)
{
	z_stream *stream = &inflater->stream;
	int result;

	stream->next_out = inflater->out;
	stream->avail_out = OUT_SIZE;
	result = inflate(stream, Z_NO_FLUSH);
	if (result != Z_OK && result != Z_BUF_ERROR)
		die(EXIT_STREAMIO, "inflate returned %d (%u bytes) [%s]", result, stream->avail_in, log_role());
	inflater->drained = stream->avail_out > 0;
	return OUT_SIZE - stream->avail_out;
}

static size_t zlib_literal(void *state, const uint8_t **data)
{
	struct inflater *inflater = state;

	*data = inflater->out;
	return inflater->drained ? 0 : inflate_some(inflater);
}

static void zlib_sync(void *state)
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

const struct token_decoder *token_decoder_zlib(void)
{
	static const struct token_decoder decoder = { zlib_new, zlib_free, zlib_start_file, zlib_chunk, zlib_literal, zlib_sync,
						      zlib_next_block, zlib_see_block };

	return &decoder;
}

const struct token_decoder *token_decoder_zlibx(void)
{
	static const struct token_decoder decoder = { zlib_new, zlib_free, zlib_start_file, zlib_chunk, zlib_literal, zlib_sync,
						      NULL, NULL };

	return &decoder;
}
