/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The token stream of doc/protocol/03-transfer.md section 6, receiving side: plain, zlib, zlibx, zstd and lz4. */
#ifndef DELTA_TOKEN_READ_H
#define DELTA_TOKEN_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/session.h"

enum token_kind { TOKEN_END, TOKEN_LITERAL, TOKEN_BLOCK };

struct token {
	enum token_kind kind;
	const uint8_t *data;  /* LITERAL: valid until the next call, and as long as nothing else is done with the connection */
	size_t length;        /* LITERAL: 1..128 KiB */
	int32_t block;        /* BLOCK: >= 0; the caller knows how many there are */
};

struct token_reader; /* one for a session: zstd keeps its context from file to file */

struct token_reader *token_reader_new(struct session *session);
void token_reader_free(struct token_reader *reader);
/*
 * The next token of the current file; after TOKEN_END the next file begins. What a peer must not send ends the process with
 * EXIT_STREAMIO or EXIT_PROTOCOL as doc/protocol/03-transfer.md section 6.8 says; a few compressed bytes never become unbounded
 * memory.
 */
void token_read(struct token_reader *reader, struct token *token);
/* Old zlib: the bytes of the block that was just named belong to the history. Other methods ignore it. */
bool token_reader_wants_block_data(const struct token_reader *reader);
/* The bytes of that block, from its start, in as many pieces as the caller likes. NULL: they are not known (the file is thrown
 * away); zero bytes take their place. */
void token_reader_see_block(struct token_reader *reader, const void *data, size_t length);

#endif
