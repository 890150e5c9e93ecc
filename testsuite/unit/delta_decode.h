/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * For tests and fuzzing: what a receiver does with a token stream (doc/protocol/03-transfer.md sections 5.3, 6 and 7.1),
 * written apart from the sending side and stricter than a receiver has to be. A decoder lives for a session, as zstd's history
 * does.
 */
#ifndef TESTSUITE_DELTA_DECODE_H
#define TESTSUITE_DELTA_DECODE_H

#include <lz4.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "wire/request.h"

#define DECODE_RUN_MAX 32768 /* longest literal run or lz4 chunk that stock sends or takes */

struct decoder {
	enum compress_algorithm method;
	int protocol;
	z_stream inflater;
	ZSTD_DCtx *zstd;
	/* The stream. */
	const uint8_t *in;
	size_t length, pos;
	/* The file. */
	const struct sum_head *head;
	const uint8_t *basis;
	size_t basis_size;
	bool in_place;
	bool *kept;              /* in place: this block still holds its bytes because it was written where it was */
	uint8_t *image;          /* in place: the destination file as it is now */
	uint8_t *out;            /* the new file */
	size_t out_length, out_capacity;
	char *shape;             /* "L700 T0 T1", literals of adjacent runs added up */
	size_t literal_run;      /* literal bytes not in `shape` yet */
	size_t blocks, literals; /* block references; literal bytes */
	const char *error;       /* NULL while all is well */
};

static inline void decoder_init(struct decoder *decoder, enum compress_algorithm method, int protocol)
{
	*decoder = (struct decoder){ .method = method, .protocol = protocol };
	inflateInit2(&decoder->inflater, -15);
	decoder->zstd = ZSTD_createDCtx();
}

static inline void decoder_free(struct decoder *decoder)
{
	inflateEnd(&decoder->inflater);
	ZSTD_freeDCtx(decoder->zstd);
	free(decoder->kept);
	free(decoder->image);
	free(decoder->out);
	free(decoder->shape);
}

static inline void decode_fail(struct decoder *decoder, const char *why)
{
	if (!decoder->error)
		decoder->error = why;
}

static inline const uint8_t *decode_take(struct decoder *decoder, size_t length)
{
	static const uint8_t nothing[1 << 16];
	const uint8_t *bytes = decoder->in + decoder->pos;

	if (length > decoder->length - decoder->pos) {
		decode_fail(decoder, "the stream ends too soon");
		return nothing;
	}
	decoder->pos += length;
	return bytes;
}

static inline uint32_t decode_number(struct decoder *decoder, int bytes)
{
	const uint8_t *from = decode_take(decoder, (size_t)bytes);
	uint32_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint32_t)from[i] << (8 * i);
	return value;
}

/* --- the new file --- */

static inline void decode_shape(struct decoder *decoder, char letter, size_t number)
{
	size_t used = decoder->shape ? strlen(decoder->shape) : 0;

	if (used > 4096)
		return;
	decoder->shape = realloc(decoder->shape, used + 32);
	snprintf(decoder->shape + used, 32, "%s%c%zu", used ? " " : "", letter, number);
}

static inline void decode_end_literal(struct decoder *decoder)
{
	if (decoder->literal_run)
		decode_shape(decoder, 'L', decoder->literal_run);
	decoder->literal_run = 0;
}

static inline void decode_put(struct decoder *decoder, const void *data, size_t length)
{
	size_t end = decoder->out_length + length;

	if (end > decoder->out_capacity) {
		decoder->out_capacity = 2 * end;
		decoder->out = realloc(decoder->out, decoder->out_capacity);
		if (decoder->in_place)
			decoder->image = realloc(decoder->image, decoder->out_capacity + decoder->basis_size);
	}
	if (!length)
		return;
	memcpy(decoder->out + decoder->out_length, data, length);
	if (decoder->in_place)
		memcpy(decoder->image + decoder->out_length, data, length);
	decoder->out_length = end;
}

static inline void decode_literal(struct decoder *decoder, const void *data, size_t length)
{
	decode_put(decoder, data, length);
	decoder->literals += length;
	decoder->literal_run += length;
}

/* Both sides put the bytes of a matched block into the history of old zlib. */
static inline void decode_history(struct decoder *decoder, const uint8_t *data, size_t length)
{
	bool repeat = decoder->protocol < 31;
	uint8_t scratch[4096];

	while (length) {
		size_t piece = length < 65535 ? length : 65535;
		uint8_t header[5] = { 0, (uint8_t)piece, (uint8_t)(piece >> 8), (uint8_t)~piece, (uint8_t)(~piece >> 8) };
		z_stream *stream = &decoder->inflater;

		for (int part = 0; part < 2; part++) {
			stream->next_in = part ? (Bytef *)(uintptr_t)data : header;
			stream->avail_in = part ? (uInt)piece : sizeof header;
			do {
				stream->next_out = scratch;
				stream->avail_out = sizeof scratch;
				int result = inflate(stream, Z_SYNC_FLUSH);
				if (result != Z_OK && result != Z_BUF_ERROR) {
					decode_fail(decoder, "inflate does not take a block");
					return;
				}
			} while (stream->avail_in || !stream->avail_out);
		}
		length -= piece;
		if (!repeat)
			data += piece;
	}
}

static inline void decode_block(struct decoder *decoder, uint32_t block)
{
	const struct sum_head *head = decoder->head;
	size_t length = (size_t)head->block_length, offset = block * length;
	uint8_t *copy;

	if (decoder->error || block >= (uint32_t)head->count) {
		decode_fail(decoder, "block index out of range");
		return;
	}
	if (block == (uint32_t)head->count - 1 && head->remainder)
		length = (size_t)head->remainder;
	if (offset + length > decoder->basis_size) {
		decode_fail(decoder, "block outside of the basis");
		return;
	}
	if (decoder->in_place && offset < decoder->out_length && !decoder->kept[block])
		decode_fail(decoder, "block that has been overwritten");
	if (decoder->in_place && offset == decoder->out_length)
		decoder->kept[block] = true;
	decode_end_literal(decoder);
	decode_shape(decoder, 'T', block);
	decoder->blocks++;
	copy = malloc(length);
	memcpy(copy, decoder->in_place ? decoder->image + offset : decoder->basis + offset, length);
	decode_put(decoder, copy, length);
	if (decoder->method == COMPRESS_ZLIB)
		decode_history(decoder, copy, length);
	free(copy);
}

/* --- streams --- */

static inline void decode_plain(struct decoder *decoder)
{
	int32_t token;

	while (!decoder->error && (token = (int32_t)decode_number(decoder, 4)) != 0) {
		if (token < 0) {
			decode_block(decoder, (uint32_t)(-1 - token));
			continue;
		}
		if (token > DECODE_RUN_MAX)
			decode_fail(decoder, "literal run longer than stock's");
		else
			decode_literal(decoder, decode_take(decoder, (size_t)token), (size_t)token);
	}
}

static inline void decode_inflate(struct decoder *decoder, const uint8_t *data, size_t length, bool is_marker)
{
	z_stream *stream = &decoder->inflater;
	uint8_t out[4096];

	stream->next_in = (Bytef *)(uintptr_t)data;
	stream->avail_in = (uInt)length;
	do {
		stream->next_out = out;
		stream->avail_out = sizeof out;
		int result = inflate(stream, Z_NO_FLUSH);
		if (result != Z_OK && result != Z_BUF_ERROR) {
			decode_fail(decoder, is_marker ? "decompressor lost sync" : "inflate fails");
			return;
		}
		if (is_marker && stream->avail_out < sizeof out)
			decode_fail(decoder, "output that was not flushed");
		decode_literal(decoder, out, sizeof out - stream->avail_out);
	} while (stream->avail_in || !stream->avail_out);
}

static inline void decode_zstd(struct decoder *decoder, const uint8_t *data, size_t length)
{
	ZSTD_inBuffer input = { data, length, 0 };
	ZSTD_outBuffer output;
	uint8_t out[4096];

	do {
		output = (ZSTD_outBuffer){ out, sizeof out, 0 };
		if (ZSTD_isError(ZSTD_decompressStream(decoder->zstd, &output, &input))) {
			decode_fail(decoder, "zstd fails");
			return;
		}
		decode_literal(decoder, out, output.pos);
	} while (input.pos < input.size || output.pos == output.size);
}

static inline void decode_lz4(struct decoder *decoder, const uint8_t *data, size_t length)
{
	char out[DECODE_RUN_MAX];
	int got = LZ4_decompress_safe((const char *)data, out, (int)length, sizeof out);

	if (got <= 0)
		decode_fail(decoder, "lz4 fails or is empty");
	else
		decode_literal(decoder, out, (size_t)got);
}

static inline void decode_chunk(struct decoder *decoder, uint8_t flag)
{
	size_t length = (size_t)(flag & 0x3f) << 8 | decode_number(decoder, 1);
	const uint8_t *data = decode_take(decoder, length);

	if (!length)
		decode_fail(decoder, "empty chunk");
	else if (decoder->method == COMPRESS_ZSTD)
		decode_zstd(decoder, data, length);
	else if (decoder->method == COMPRESS_LZ4)
		decode_lz4(decoder, data, length);
	else
		decode_inflate(decoder, data, length, false);
}

/* One of the four forms of block reference; `base` is the last block before it and after it. */
static inline void decode_run(struct decoder *decoder, uint8_t flag, uint32_t *base)
{
	static const uint8_t known[] = { 0x20, 0x21 };
	bool relative = flag & 0x80, more = relative ? flag & 0x40 : flag & 1;
	uint32_t start, extra;

	if (!relative && !memchr(known, flag, sizeof known)) {
		decode_fail(decoder, "unknown flag byte");
		return;
	}
	start = relative ? *base + (flag & 0x3f) : decode_number(decoder, 4);
	extra = more ? decode_number(decoder, 2) : 0;
	if (more && !extra)
		decode_fail(decoder, "run of one");
	if (!relative && start - *base <= 63)
		decode_fail(decoder, "long form where the short one does");
	for (uint32_t i = 0; i <= extra && !decoder->error; i++)
		decode_block(decoder, start + i);
	*base = start + extra;
}

static inline void decode_compressed(struct decoder *decoder)
{
	static const uint8_t marker[4] = { 0, 0, 0xff, 0xff };
	bool deflated = decoder->method == COMPRESS_ZLIB || decoder->method == COMPRESS_ZLIBX;
	bool open = false;
	uint32_t base = 0;

	inflateReset(&decoder->inflater);
	while (!decoder->error) {
		uint8_t flag = (uint8_t)decode_number(decoder, 1);

		if ((flag & 0xc0) == 0x40) {
			decode_chunk(decoder, flag);
			open = true;
			continue;
		}
		if (open && deflated)
			decode_inflate(decoder, marker, sizeof marker, true);
		open = false;
		if (!flag)
			return;
		decode_run(decoder, flag, &base);
	}
}

/*
 * Decode one file from the start of `in`. Afterwards `out`, `shape`, `blocks` and `literals` say what came, `pos` how much of
 * the stream it was, `error` what was wrong with it. The destination file of an update in place starts as the basis.
 */
static inline bool decode_file(struct decoder *decoder, const uint8_t *in, size_t length, const struct sum_head *head,
			       const uint8_t *basis, size_t basis_size, bool in_place)
{
	decoder->in = in;
	decoder->length = length;
	decoder->pos = decoder->out_length = decoder->blocks = decoder->literals = decoder->literal_run = 0;
	decoder->error = NULL;
	decoder->head = head;
	decoder->basis = basis;
	decoder->basis_size = basis_size;
	decoder->in_place = in_place;
	free(decoder->shape);
	decoder->shape = NULL;
	free(decoder->kept);
	decoder->kept = calloc((size_t)head->count + 1, 1);
	free(decoder->image);
	decoder->image = calloc(decoder->out_capacity + basis_size + 1, 1);
	if (basis_size)
		memcpy(decoder->image, basis, basis_size);
	if (decoder->method == COMPRESS_NONE)
		decode_plain(decoder);
	else
		decode_compressed(decoder);
	decode_end_literal(decoder);
	return !decoder->error;
}

#endif
