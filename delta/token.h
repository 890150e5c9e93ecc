/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The token stream of doc/protocol/03-transfer.md section 6, plain and compressed with zlib, zlibx, zstd or lz4. Sending
 * side.
 */
#ifndef DELTA_TOKEN_H
#define DELTA_TOKEN_H

#include <stdint.h>
#include <stddef.h>

#include "wire/session.h"

struct token_writer; /* one for a session: zstd keeps its context from file to file */

struct token_writer *token_writer_new(struct session *session);
void token_writer_free(struct token_writer *writer);

/* Start a file. level_off: this file's content should not be compressed (--skip-compress, dont compress): least effort. */
void token_start_file(struct token_writer *writer, int level_off);
void token_literal(struct token_writer *writer, const void *data, size_t length);
/* Block number `block`; data: its bytes (needed by old zlib's history; may be NULL for other methods). */
void token_block(struct token_writer *writer, int32_t block, const void *data, size_t length);
void token_end_file(struct token_writer *writer);
/* Does token_block want its data? (old zlib) */
int token_wants_block_data(const struct token_writer *writer);
struct session *token_session(struct token_writer *writer);

#endif
