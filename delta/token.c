/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The token stream: plain, and the framing that all compressors share (doc/protocol/03-transfer.md sections 6.1 and 6.2). */
#include "delta/token.h"

#include <stdlib.h>

#include "delta/token_codec.h"
#include "delta/token_lz4.h"
#include "delta/token_zlib.h"
#include "delta/token_zstd.h"
#include "lib/alloc.h"

#define PLAIN_RUN_MAX 32768 /* as stock's runs; readers take any length */
#define PLAIN_RUNS 8        /* written together: as many as wire_write_pieces takes */
#define RUN_MAX 65536       /* blocks in one run */

struct token_writer {
	struct session *session;
	const struct token_encoder *encoder; /* NULL: plain */
	void *state;
	int32_t base;       /* last block written in this file */
	int32_t run_start;  /* blocks not yet written */
	int32_t run_length;
	bool unsynced;      /* literals since the last block */
};

static const struct token_encoder *encoder_of(enum compress_algorithm algorithm)
{
	switch (algorithm) {
	case COMPRESS_ZLIB:
		return token_encoder_zlib();
	case COMPRESS_ZLIBX:
		return token_encoder_zlibx();
	case COMPRESS_ZSTD:
		return token_encoder_zstd();
	case COMPRESS_LZ4:
		return token_encoder_lz4();
	case COMPRESS_NONE:
		break;
	}
	return NULL;
}

struct token_writer *token_writer_new(struct session *session)
{
	struct token_writer *writer = xcalloc(1, sizeof *writer);

	writer->session = session;
	writer->encoder = encoder_of(session->compress);
	if (writer->encoder)
		writer->state = writer->encoder->new(session);
	return writer;
}

void token_writer_free(struct token_writer *writer)
{
	if (!writer)
		return;
	if (writer->encoder)
		writer->encoder->free(writer->state);
	free(writer);
}

struct session *token_session(struct token_writer *writer)
{
	return writer->session;
}

int token_wants_block_data(const struct token_writer *writer)
{
	return writer->encoder && writer->encoder->block;
}

void token_start_file(struct token_writer *writer, int level_off)
{
	writer->base = writer->run_length = 0;
	writer->unsynced = false;
	if (writer->encoder)
		writer->encoder->start_file(writer->state, level_off);
}

/* --- plain --- */

/* Full runs are sent together: a system call for each would cost as much as its bytes do. Returns the bytes taken. */
static size_t plain_full_runs(struct wire *wire, const char *data, size_t length)
{
	static const uint8_t head[4] = { 0, PLAIN_RUN_MAX >> 8 };
	struct iovec pieces[2 * PLAIN_RUNS];
	size_t runs = length / PLAIN_RUN_MAX < PLAIN_RUNS ? length / PLAIN_RUN_MAX : PLAIN_RUNS;

	for (size_t i = 0; i < runs; i++) {
		pieces[2 * i] = (struct iovec){ (void *)(uintptr_t)head, sizeof head };
		pieces[2 * i + 1] = (struct iovec){ (void *)(uintptr_t)(data + i * PLAIN_RUN_MAX), PLAIN_RUN_MAX };
	}
	wire_write_pieces(wire, pieces, (int)(2 * runs));
	return runs * PLAIN_RUN_MAX;
}

static void plain_literal(struct wire *wire, const char *data, size_t length)
{
	while (length >= PLAIN_RUN_MAX) {
		size_t done = plain_full_runs(wire, data, length);
		data += done;
		length -= done;
	}
	if (!length)
		return;
	wire_write_int(wire, (int32_t)length);
	wire_write(wire, data, length);
}

/* --- compressed --- */

static void write_run(struct token_writer *writer)
{
	struct wire *wire = writer->session->wire;
	int32_t step = writer->run_start - writer->base, more = writer->run_length - 1;

	if (!writer->run_length)
		return;
	if (step >= 0 && step <= TOKEN_REL_MAX) {
		wire_write_byte(wire, (uint8_t)((more ? TOKENRUN_REL : TOKEN_REL) | step));
	} else {
		wire_write_byte(wire, more ? TOKENRUN_LONG : TOKEN_LONG);
		wire_write_int(wire, writer->run_start);
	}
	if (more)
		wire_write_short(wire, (uint16_t)more);
	writer->base = writer->run_start + more;
	writer->run_length = 0;
}

static void sync(struct token_writer *writer)
{
	if (writer->unsynced)
		writer->encoder->sync(writer->state);
	writer->unsynced = false;
}

void token_literal(struct token_writer *writer, const void *data, size_t length)
{
	if (!length)
		return;
	if (!writer->encoder) {
		plain_literal(writer->session->wire, data, length);
		return;
	}
	write_run(writer);
	writer->encoder->literal(writer->state, data, length);
	writer->unsynced = true;
}

void token_block(struct token_writer *writer, int32_t block, const void *data, size_t length)
{
	if (!writer->encoder) {
		wire_write_int(writer->session->wire, -1 - block);
		return;
	}
	sync(writer);
	if (writer->run_length && (block != writer->run_start + writer->run_length || writer->run_length == RUN_MAX))
		write_run(writer);
	if (!writer->run_length)
		writer->run_start = block;
	writer->run_length++;
	if (writer->encoder->block)
		writer->encoder->block(writer->state, data, length);
}

void token_end_file(struct token_writer *writer)
{
	if (!writer->encoder) {
		wire_write_int(writer->session->wire, 0);
		return;
	}
	sync(writer);
	write_run(writer);
	wire_write_byte(writer->session->wire, END_FLAG);
}
