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

/*
 * One decompressor. A chunk is followed by calls of `literal` until one gives 0; `sync` comes before a block or the end if
 * there have been chunks since the last one. Broken data ends the process with EXIT_STREAMIO.
 */
struct token_decoder {
	void *(*new)(struct session *session);
	void (*free)(void *state);
	void (*start_file)(void *state);                                  /* NULL: files need no start */
	void (*chunk)(void *state, const uint8_t *data, size_t length); /* 1..TOKEN_CHUNK_MAX bytes, valid until used up */
	size_t (*literal)(void *state, const uint8_t **data);             /* valid until the next call */
	void (*sync)(void *state);                                        /* NULL: nothing to be done */
	void (*next_block)(void *state);                                  /* NULL: blocks are no part of the history */
	void (*see_block)(void *state, const void *data, size_t length);
};

/* One method. Literals arrive in order. What is NULL is not needed. */
struct token_codec {
	size_t writer_room;
	void (*open_writer)(struct token_writer *writer);
	void (*close_writer)(struct token_writer *writer);
	void (*start_writing)(struct token_writer *writer, int level_off); /* a file */
	/* length 0: what is held back, before a block or the end if there have been literals since the last one. */
	void (*encode)(struct token_writer *writer, const void *data, size_t length);
	void (*write_block)(struct token_writer *writer, const void *data, size_t length); /* blocks are part of the history */
	struct token_decoder decoder;
};

const struct token_codec *token_codec_of(enum compress_algorithm algorithm); /* NULL for none */

#endif
