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

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

/* Write one DEFLATED_DATA item, 1..TOKEN_CHUNK_MAX bytes. */
static void write_chunk(struct token_writer *writer, size_t length)
{
	struct wire *wire = writer->session->wire;

	wire_write_byte(wire, (uint8_t)(DEFLATED_DATA | length >> 8));
	wire_write_byte(wire, (uint8_t)length);
	wire_write(wire, writer->out, length);
}

/* --- zlib and zlibx, sending: as much output as may still turn out to be the marker is held back --- */

#define MARKER_LENGTH 4        /* 00 00 ff ff ends a sync flush */
#define DEFLATE_ROOM (TOKEN_CHUNK_MAX + MARKER_LENGTH)
#define WINDOW 32768           /* what the history holds */
#define STORED_MAX 65535       /* old zlib: longest piece in which a block goes into the history */

static void deflate_open(struct token_writer *writer)
{
	if (deflateInit2(&writer->zlib, writer->session->compress_level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		die(EXIT_MALLOC, "[sender] cannot initialise the zlib compressor");
}

static void deflate_close(struct token_writer *writer)
{
	deflateEnd(&writer->zlib);
}

static void deflate_start(struct token_writer *writer, int level_off)
{
	deflateReset(&writer->zlib);
	deflateParams(&writer->zlib, level_off ? 0 : writer->session->compress_level, Z_DEFAULT_STRATEGY);
	writer->used = 0;
}

/* Write the first `length` bytes of what is held back. */
static void deflate_write(struct token_writer *writer, size_t length)
{
	write_chunk(writer, length);
	writer->used -= length;
	memmove(writer->out, writer->out + length, writer->used);
}

/* Run the compressor until it has nothing more to say for this flush mode. */
static void deflate_run(struct token_writer *writer, int flush)
{
	z_stream *stream = &writer->zlib;

	do {
		if (writer->used >= DEFLATE_ROOM)
			deflate_write(writer, TOKEN_CHUNK_MAX);
		stream->next_out = writer->out + writer->used;
		stream->avail_out = (uInt)(DEFLATE_ROOM - writer->used);
		int result = deflate(stream, flush);
		if (result != Z_OK && result != Z_BUF_ERROR)
			die(EXIT_STREAMIO, "[sender] deflate returned %d", result);
		writer->used = DEFLATE_ROOM - stream->avail_out;
	} while (stream->avail_in || !stream->avail_out);
}

static void deflate_sync(struct token_writer *writer)
{
	writer->zlib.avail_in = 0;
	/* A flush that just fits would be repeated by the next call: leave it more room than its marker needs. */
	if (DEFLATE_ROOM - writer->used <= 2 * MARKER_LENGTH)
		deflate_write(writer, writer->used < TOKEN_CHUNK_MAX ? writer->used : TOKEN_CHUNK_MAX);
	deflate_run(writer, Z_SYNC_FLUSH);
	if (writer->used < MARKER_LENGTH
	    || memcmp(writer->out + writer->used - MARKER_LENGTH, "\0\0\xff\xff", MARKER_LENGTH) != 0)
		die(EXIT_STREAMIO, "[sender] the zlib compressor did not end its flush as expected");
	writer->used -= MARKER_LENGTH;
	if (writer->used > TOKEN_CHUNK_MAX)
		die(EXIT_STREAMIO, "[sender] zlib chunk of %zu bytes", writer->used);
	if (writer->used)
		deflate_write(writer, writer->used);
}

static void deflate_encode(struct token_writer *writer, const void *data, size_t length)
{
	if (!length)
		deflate_sync(writer);
	while (length) {
		uInt piece = length > 1 << 30 ? 1 << 30 : (uInt)length;
		writer->zlib.next_in = (Bytef *)data;
		writer->zlib.avail_in = piece;
		deflate_run(writer, Z_NO_FLUSH);
		data = (const char *)data + piece;
		length -= piece;
	}
}

/* Below protocol 31 every piece of a long block is its beginning. */
static void deflate_block(struct token_writer *writer, const void *data, size_t length)
{
	const size_t longest = writer->session->caps.zlib_repeats ? STORED_MAX : SIZE_MAX;

	while (length) {
		size_t piece = length < longest ? length : longest;
		/* Only the last window matters, and the compressor takes no more. */
		size_t last = piece < WINDOW ? piece : WINDOW;

		if (deflateSetDictionary(&writer->zlib, (const Bytef *)data + piece - last, (uInt)last) != Z_OK)
			die(EXIT_STREAMIO, "[sender] the zlib compressor did not take a block into its history");
		length -= piece;
	}
}

/* --- zlib and zlibx, receiving --- */

#define INFLATE_ROOM 65536

static void inflate_open(struct token_reader *reader)
{
	if (reader->session->caps.zlib_repeats)
		reader->block_head = xmalloc(STORED_MAX);
	if (inflateInit2(&reader->zlib, -15) != Z_OK)
		die(EXIT_MALLOC, "[%s] cannot initialise the zlib decompressor", log_role());
}

static void inflate_close(struct token_reader *reader)
{
	inflateEnd(&reader->zlib);
	free(reader->block_head);
}

static void inflate_start(struct token_reader *reader)
{
	inflateReset(&reader->zlib);
	reader->block_length = 0;
}

static void inflate_see_history(struct token_reader *reader, const uint8_t *data, size_t length)
{
	static const uint8_t unknown[WINDOW];
	size_t last = length < WINDOW ? length : WINDOW;

	if (inflateSetDictionary(&reader->zlib, data ? data + length - last : unknown, (uInt)last) != Z_OK)
		die(EXIT_STREAMIO, "the zlib decompressor did not take a block into its history [%s]", log_role());
}

/* Below protocol 31: the block as a whole is known now. Of its full pieces, all the same, one fills the window. */
static void inflate_next_block(struct token_reader *reader)
{
	size_t rest = (size_t)(reader->block_length % STORED_MAX);

	if (reader->block_length >= STORED_MAX)
		inflate_see_history(reader, reader->block_head, STORED_MAX);
	if (rest)
		inflate_see_history(reader, reader->block_head, rest);
	reader->block_length = 0;
}

static void inflate_see_block(struct token_reader *reader, const void *data, size_t length)
{
	if (!length)
		return;
	if (!reader->block_head) {
		inflate_see_history(reader, data, length);
		return;
	}
	if (reader->block_length < STORED_MAX) {
		size_t room = STORED_MAX - (size_t)reader->block_length, take = length < room ? length : room;
		uint8_t *to = reader->block_head + reader->block_length;

		if (data)
			memcpy(to, data, take);
		else
			memset(to, 0, take);
	}
	reader->block_length += length;
}

static void inflate_chunk(struct token_reader *reader, size_t length)
{
	inflate_next_block(reader);
	reader->zlib.next_in = reader->chunk;
	reader->zlib.avail_in = (uInt)length;
}

/* One call of inflate. */
static size_t inflate_some(struct token_reader *reader)
{
	z_stream *stream = &reader->zlib;

	stream->next_out = reader->out;
	stream->avail_out = INFLATE_ROOM;
	int result = inflate(stream, Z_NO_FLUSH);

	if (result != Z_OK && result != Z_BUF_ERROR)
		die(EXIT_STREAMIO, "inflate returned %d (%u bytes) [%s]", result, stream->avail_in, log_role());
	reader->chunk_open = !stream->avail_out;
	return INFLATE_ROOM - stream->avail_out;
}

static void inflate_sync(struct token_reader *reader)
{
	static const uint8_t marker[] = { 0, 0, 0xff, 0xff };

	if (!inflateSyncPoint(&reader->zlib))
		die(EXIT_STREAMIO, "decompressor lost sync! [%s]", log_role());
	reader->zlib.next_in = (Bytef *)(uintptr_t)marker;
	reader->zlib.avail_in = sizeof marker;
	if (inflate_some(reader) || reader->zlib.avail_in)
		die(EXIT_STREAMIO, "decompressor lost sync! [%s]", log_role());
}

/* --- zstd: goes on from file to file; its level cannot change inside a frame, so nothing is lowered either --- */

#define ZSTD_READER_ROOM (128 * 1024)

static void zstd_open_writer(struct token_writer *writer)
{
	writer->zstd = ZSTD_createCCtx();
	if (!writer->zstd)
		die(EXIT_MALLOC, "[sender] cannot initialise the zstd compressor");
	ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, writer->session->compress_level);
	/* A library without threads says no, and compresses all the same. */
	ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_nbWorkers, writer->session->compress_threads);
}

static void zstd_close_writer(struct token_writer *writer)
{
	ZSTD_freeCCtx(writer->zstd);
}

static void zstd_encode(struct token_writer *writer, const void *data, size_t length)
{
	ZSTD_inBuffer input = { data, length, 0 };
	size_t left;

	do {
		ZSTD_outBuffer output = { writer->out, TOKEN_CHUNK_MAX, 0 };
		left = ZSTD_compressStream2(writer->zstd, &output, &input, length ? ZSTD_e_continue : ZSTD_e_flush);
		if (ZSTD_isError(left))
			die(EXIT_STREAMIO, "[sender] zstd: %s", ZSTD_getErrorName(left));
		if (output.pos)
			write_chunk(writer, output.pos);
	} while (input.pos < input.size || (!length && left));
}

static void zstd_open_reader(struct token_reader *reader)
{
	reader->zstd = ZSTD_createDCtx();
	if (!reader->zstd)
		die(EXIT_MALLOC, "[%s] cannot initialise the zstd decompressor", log_role());
}

static void zstd_close_reader(struct token_reader *reader)
{
	ZSTD_freeDCtx(reader->zstd);
}

static void zstd_chunk(struct token_reader *reader, size_t length)
{
	reader->zstd_input = (ZSTD_inBuffer){ reader->chunk, length, 0 };
}

/* A chunk may hold only a part of a block, or a header: then nothing comes out of it. */
static size_t zstd_decode(struct token_reader *reader)
{
	ZSTD_inBuffer *input = &reader->zstd_input;
	ZSTD_outBuffer output = { reader->out, ZSTD_READER_ROOM, 0 };

	while (reader->chunk_open && !output.pos) {
		size_t result = ZSTD_decompressStream(reader->zstd, &output, input);

		if (ZSTD_isError(result))
			die(EXIT_STREAMIO, "ZSTD decomp returned %s (%zu bytes) [%s]", ZSTD_getErrorName(result),
			    input->size - input->pos, log_role());
		reader->chunk_open = input->pos < input->size || output.pos == output.size;
	}
	return output.pos;
}

/* --- lz4 --- */

#define LZ4_WRITER_ROOM LZ4_COMPRESSBOUND(TOKEN_CHUNK_MAX)
#define LZ4_READER_ROOM 32912 /* what stock has room for */

/* Input that does not shrink may need more than a chunk holds: then half of it at a time. */
static void lz4_encode(struct token_writer *writer, const void *literal, size_t length)
{
	const char *data = literal;

	while (length) {
		int piece = length < TOKEN_CHUNK_MAX ? (int)length : TOKEN_CHUNK_MAX;
		int packed = LZ4_compress_default(data, (char *)writer->out, piece, LZ4_WRITER_ROOM);

		while (packed > TOKEN_CHUNK_MAX) {
			piece /= 2;
			packed = LZ4_compress_default(data, (char *)writer->out, piece, LZ4_WRITER_ROOM);
		}
		write_chunk(writer, (size_t)packed);
		data += piece;
		length -= (size_t)piece;
	}
}

/* A block of no bytes is refused too: other readers take it for the end of the file. */
static void lz4_chunk(struct token_reader *reader, size_t length)
{
	int result = LZ4_decompress_safe((const char *)reader->chunk, (char *)reader->out, (int)length, LZ4_READER_ROOM);

	if (result <= 0)
		die(EXIT_STREAMIO, "uncompress failed: %d [%s]", result, log_role());
	reader->decoded = (size_t)result;
}

static size_t lz4_decode(struct token_reader *reader)
{
	reader->chunk_open = false;
	return reader->decoded;
}

const struct token_codec *token_codec_of(enum compress_algorithm algorithm)
{
	static const struct token_codec codecs[] = {
		/* The old method has blocks in its history, too. */
		[COMPRESS_ZLIB] = {
			.writer_room = DEFLATE_ROOM, .open_writer = deflate_open, .close_writer = deflate_close,
			.start_writing = deflate_start, .encode = deflate_encode, .write_block = deflate_block,
			.reader_room = INFLATE_ROOM, .open_reader = inflate_open, .close_reader = inflate_close,
			.start_reading = inflate_start, .take_chunk = inflate_chunk, .decode = inflate_some,
			.sync = inflate_sync, .next_block = inflate_next_block, .see_block = inflate_see_block,
		},
		[COMPRESS_ZLIBX] = {
			.writer_room = DEFLATE_ROOM, .open_writer = deflate_open, .close_writer = deflate_close,
			.start_writing = deflate_start, .encode = deflate_encode,
			.reader_room = INFLATE_ROOM, .open_reader = inflate_open, .close_reader = inflate_close,
			.start_reading = inflate_start, .take_chunk = inflate_chunk, .decode = inflate_some,
			.sync = inflate_sync,
		},
		[COMPRESS_ZSTD] = {
			.writer_room = TOKEN_CHUNK_MAX, .open_writer = zstd_open_writer, .close_writer = zstd_close_writer,
			.encode = zstd_encode,
			.reader_room = ZSTD_READER_ROOM, .open_reader = zstd_open_reader, .close_reader = zstd_close_reader,
			.take_chunk = zstd_chunk, .decode = zstd_decode,
		},
		[COMPRESS_LZ4] = {
			.writer_room = LZ4_WRITER_ROOM, .encode = lz4_encode,
			.reader_room = LZ4_READER_ROOM, .take_chunk = lz4_chunk, .decode = lz4_decode,
		},
	};

	return algorithm == COMPRESS_NONE ? NULL : &codecs[algorithm];
}
