/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The contract between the token stream (token.c) and its compressors (doc/protocol/03-transfer.md section 6.2). */
#ifndef DELTA_TOKEN_CODEC_H
#define DELTA_TOKEN_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>
#include <zstd.h>

#include "wire/session.h"

#define TOKEN_CHUNK_MAX 16383 /* bytes of one DEFLATED_DATA item */

/* The flag byte of an item of a compressed stream. */
enum token_flag {
	END_FLAG = 0x00,
	TOKEN_LONG = 0x20,
	TOKENRUN_LONG = 0x21,
	DEFLATED_DATA = 0x40,
	TOKEN_REL = 0x80,
	TOKENRUN_REL = 0xc0,
};
#define TOKEN_REL_MAX 63

struct token_writer {
	struct session *session;
	const struct token_codec *codec; /* NULL: plain */
	int32_t base;       /* last block written in this file */
	int32_t run_start;  /* blocks not yet written */
	int32_t run_length;
	bool unsynced;      /* literals since the last block */
	/* The compressor's own. */
	z_stream zlib;
	ZSTD_CCtx *zstd;
	size_t used;        /* zlib: output not yet written */
	uint8_t out[];      /* codec->writer_room bytes */
};

struct token_reader {
	struct session *session;
	const struct token_codec *codec; /* NULL: plain */
	size_t literal_left; /* plain: of the current run */
	int32_t base;        /* the last block named in this file */
	uint32_t run_left;   /* blocks behind it that belong to the same item */
	bool inside_file;
	bool chunk_open;     /* the decompressor may have literals that were not handed on */
	bool unsynced;       /* chunks since the last block */
	uint8_t chunk[TOKEN_CHUNK_MAX];
	/* The decompressor's own. */
	z_stream zlib;
	uint64_t block_length; /* zlib whose pieces repeat: bytes seen of the current block ... */
	uint8_t *block_head;   /* ... and the first of them */
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer zstd_input;
	size_t decoded;        /* lz4: bytes of `out` */
	uint8_t out[];         /* codec->reader_room bytes */
};

/*
 * One method. Literals arrive in order. A chunk, 1..TOKEN_CHUNK_MAX bytes, is followed by calls of `decode` until one leaves
 * chunk_open unset. Broken data ends the process with EXIT_STREAMIO. What is NULL is not needed.
 */
struct token_codec {
	size_t writer_room, reader_room;
	void (*open_writer)(struct token_writer *writer);
	void (*close_writer)(struct token_writer *writer);
	void (*start_writing)(struct token_writer *writer, int level_off); /* a file */
	/* length 0: what is held back, before a block or the end if there have been literals since the last one. */
	void (*encode)(struct token_writer *writer, const void *data, size_t length);
	void (*write_block)(struct token_writer *writer, const void *data, size_t length); /* blocks are part of the history */
	void (*open_reader)(struct token_reader *reader);
	void (*close_reader)(struct token_reader *reader);
	void (*start_reading)(struct token_reader *reader); /* a file */
	void (*take_chunk)(struct token_reader *reader, size_t length);
	size_t (*decode)(struct token_reader *reader); /* literals to `out`, valid until the next call */
	void (*sync)(struct token_reader *reader);     /* before a block or the end, if there have been chunks since the last */
	void (*next_block)(struct token_reader *reader);
	void (*see_block)(struct token_reader *reader, const void *data, size_t length);
};

const struct token_codec *token_codec_of(enum compress_algorithm algorithm); /* NULL for none */

#endif
