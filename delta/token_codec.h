/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The contract between the token stream (token.c) and its compressors (doc/protocol/03-transfer.md section 6.2). */
#ifndef DELTA_TOKEN_CODEC_H
#define DELTA_TOKEN_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "wire/session.h"

#define TOKEN_CHUNK_MAX 16383 /* bytes of one DEFLATED_DATA item */
#define TOKEN_WINDOW 32768    /* of zlib: what its history holds */
#define TOKEN_STORED_MAX 65535 /* old zlib: longest piece in which a block goes into the history */

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

/* One compressor. `state` is its own; literals arrive in order, `sync` before a block or the end if any have arrived. */
struct token_encoder {
	void *(*new)(struct session *session);
	void (*free)(void *state);
	void (*start_file)(void *state, int level_off); /* NULL: files need no start */
	void (*literal)(void *state, const void *data, size_t length);
	void (*sync)(void *state);                                   /* NULL: nothing is held back */
	void (*block)(void *state, const void *data, size_t length); /* NULL: blocks are no part of the history */
};

/* Write one DEFLATED_DATA item, 1..TOKEN_CHUNK_MAX bytes. */
static inline void token_write_chunk(struct session *session, const void *data, size_t length)
{
	struct wire *wire = session->wire;

	wire_write_byte(wire, (uint8_t)(DEFLATED_DATA | length >> 8));
	wire_write_byte(wire, (uint8_t)length);
	wire_write(wire, data, length);
}

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

struct token_codec {
	struct token_encoder encoder;
	struct token_decoder decoder;
};

const struct token_codec *token_codec_of(enum compress_algorithm algorithm); /* NULL for none */

#endif
