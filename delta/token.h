/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The token stream of doc/protocol/03-transfer.md section 6, plain and compressed with zlib, zlibx, zstd or lz4: writing
 * and reading.
 */
#ifndef DELTA_TOKEN_H
#define DELTA_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/session.h"

/* --- writing --- */

struct token_writer; /* one for a session: zstd keeps its context from file to file */

struct token_writer *token_writer_new(struct session *session);
void token_writer_free(struct token_writer *writer);

/* Start a file. level_off: this file's content should not be compressed (--skip-compress, dont compress): least effort. */
void token_start_file(struct token_writer *writer, int level_off);
void token_literal(struct token_writer *writer, const void *data, size_t length);
/* Block number `block`; data: its bytes (needed by old zlib's history; may be NULL for other methods). */
void token_block(struct token_writer *writer, int32_t block, const void *data, size_t length);
void token_end_file(struct token_writer *writer);
struct session *token_session(struct token_writer *writer);

/* --- reading --- */

enum token_kind { TOKEN_END, TOKEN_LITERAL, TOKEN_BLOCK };

struct token {
	enum token_kind kind;
	const uint8_t *data; /* LITERAL: valid until the next call, and as long as nothing else is done with the connection */
	size_t length;       /* LITERAL: 1..128 KiB */
	int32_t block;       /* BLOCK: >= 0; the caller knows how many there are */
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
