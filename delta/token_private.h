/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the token writers of the compressors share (protocol/03 section 6.2). */
#ifndef DELTA_TOKEN_PRIVATE_H
#define DELTA_TOKEN_PRIVATE_H

#include <stdbool.h>

#include "delta/token.h"
#include "lib/strbuf.h"

#define TOKEN_CHUNK_MAX 16383 /* bytes of one DEFLATED_DATA item */

/* One compressor. `state` is its own; literals arrive in order, `sync` before a block or the end if any have arrived. */
struct token_codec {
	void *(*new)(struct token_writer *writer);
	void (*free)(void *state);
	void (*start_file)(void *state, int level_off);
	void (*literal)(void *state, const void *data, size_t length);
	void (*sync)(void *state);
	void (*block)(void *state, const void *data, size_t length); /* NULL: blocks are no part of the history */
};

const struct token_codec *token_codec_zlib(void);  /* old: with blocks in the history */
const struct token_codec *token_codec_zlibx(void);
const struct token_codec *token_codec_zstd(void);
const struct token_codec *token_codec_lz4(void);

/* One DEFLATED_DATA item, 1..TOKEN_CHUNK_MAX bytes. */
void token_write_chunk(struct token_writer *writer, const void *data, size_t length);

#endif
