/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The token stream: plain, and the framing that all compressors share (doc/protocol/03-transfer.md sections 6.1 and 6.2). */
#include "delta/token.h"

#include <stdlib.h>

#include "delta/token_codec.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

/* --- writing --- */

#define PLAIN_RUN_MAX 32768 /* as stock's runs; readers take any length */
#define PLAIN_RUNS 8        /* written together: as many as wire_write_pieces takes */
#define RUN_MAX 65536       /* blocks in one run */

struct token_writer *token_writer_new(struct session *session)
{
	const struct token_codec *codec = token_codec_of(session->compress);
	struct token_writer *writer = xcalloc(1, sizeof *writer + (codec ? codec->writer_room : 0));

	writer->session = session;
	writer->codec = codec;
	if (codec && codec->open_writer)
		codec->open_writer(writer);
	return writer;
}

void token_writer_free(struct token_writer *writer)
{
	if (!writer)
		return;
	if (writer->codec && writer->codec->close_writer)
		writer->codec->close_writer(writer);
	free(writer);
}

struct session *token_session(struct token_writer *writer)
{
	return writer->session;
}

void token_start_file(struct token_writer *writer, int level_off)
{
	writer->base = writer->run_length = 0;
	writer->unsynced = false;
	if (writer->codec && writer->codec->start_writing)
		writer->codec->start_writing(writer, level_off);
}

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

static void flush(struct token_writer *writer)
{
	if (writer->unsynced)
		writer->codec->encode(writer, "", 0);
	writer->unsynced = false;
}

void token_literal(struct token_writer *writer, const void *data, size_t length)
{
	struct wire *wire = writer->session->wire;
	const char *next = data;

	if (length && writer->codec) {
		write_run(writer);
		writer->codec->encode(writer, data, length);
		writer->unsynced = true;
		return;
	}
	while (length >= PLAIN_RUN_MAX) {
		/* Full runs are sent together: a system call for each would cost as much as its bytes do. */
		static const uint8_t head[4] = { 0, PLAIN_RUN_MAX >> 8 };
		struct iovec pieces[2 * PLAIN_RUNS];
		size_t runs = length / PLAIN_RUN_MAX < PLAIN_RUNS ? length / PLAIN_RUN_MAX : PLAIN_RUNS;

		for (size_t i = 0; i < runs; i++) {
			pieces[2 * i] = (struct iovec){ (void *)(uintptr_t)head, sizeof head };
			pieces[2 * i + 1] = (struct iovec){ (void *)(uintptr_t)(next + i * PLAIN_RUN_MAX), PLAIN_RUN_MAX };
		}
		wire_write_pieces(wire, pieces, (int)(2 * runs));
		next += runs * PLAIN_RUN_MAX;
		length -= runs * PLAIN_RUN_MAX;
	}
	if (!length)
		return;
	wire_write_int(wire, (int32_t)length);
	wire_write(wire, next, length);
}

void token_block(struct token_writer *writer, int32_t block, const void *data, size_t length)
{
	if (!writer->codec) {
		wire_write_int(writer->session->wire, -1 - block);
		return;
	}
	flush(writer);
	if (writer->run_length && (block != writer->run_start + writer->run_length || writer->run_length == RUN_MAX))
		write_run(writer);
	if (!writer->run_length)
		writer->run_start = block;
	writer->run_length++;
	if (writer->codec->write_block)
		writer->codec->write_block(writer, data, length);
}

void token_end_file(struct token_writer *writer)
{
	if (!writer->codec) {
		wire_write_int(writer->session->wire, 0);
		return;
	}
	flush(writer);
	write_run(writer);
	wire_write_byte(writer->session->wire, END_FLAG);
}

/* --- reading --- */

#define LITERAL_MAX (128 * 1024)
#define BLOCK_NUMBER_MAX 0x7ffffffe

struct token_reader *token_reader_new(struct session *session)
{
	const struct token_codec *codec = token_codec_of(session->compress);
	struct token_reader *reader = xcalloc(1, sizeof *reader + (codec ? codec->reader_room : 0));

	reader->session = session;
	reader->codec = codec;
	if (codec && codec->open_reader)
		codec->open_reader(reader);
	return reader;
}

void token_reader_free(struct token_reader *reader)
{
	if (!reader)
		return;
	if (reader->codec && reader->codec->close_reader)
		reader->codec->close_reader(reader);
	free(reader);
}

bool token_reader_wants_block_data(const struct token_reader *reader)
{
	return reader->codec && reader->codec->see_block;
}

void token_reader_see_block(struct token_reader *reader, const void *data, size_t length)
{
	if (token_reader_wants_block_data(reader))
		reader->codec->see_block(reader, data, length);
}

static void give_block(struct token_reader *reader, struct token *token)
{
	token->kind = TOKEN_BLOCK;
	token->block = reader->base;
	if (reader->codec->next_block)
		reader->codec->next_block(reader);
}

/* What is behind the chunks, or stands without any: a block or the end. */
static void read_item(struct token_reader *reader, uint8_t flag, struct token *token)
{
	if (reader->unsynced && reader->codec->sync)
		reader->codec->sync(reader);
	reader->unsynced = false;
	if (flag == END_FLAG) {
		token->kind = TOKEN_END;
		reader->inside_file = false;
		return;
	}
	/* An item that names blocks: `base` becomes the first, run_left counts those behind it. */
	struct wire *wire = reader->session->wire;
	bool is_relative = flag & TOKEN_REL;
	bool is_run = is_relative ? (flag & TOKENRUN_REL) == TOKENRUN_REL : flag == TOKENRUN_LONG;
	int32_t step = flag & TOKEN_REL_MAX;

	if (!is_relative && flag != TOKEN_LONG && flag != TOKENRUN_LONG)
		die(EXIT_PROTOCOL, "invalid token flag 0x%02x in compressed stream [%s]", flag, log_role());
	bool fits = !is_relative || step <= BLOCK_NUMBER_MAX - reader->base;

	if (fits) {
		reader->base = is_relative ? reader->base + step : wire_read_int(wire);
		reader->run_left = is_run ? wire_read_short(wire) : 0;
	}
	if (!fits || reader->base < 0 || reader->base > BLOCK_NUMBER_MAX || (is_run && !reader->run_left)
	    || reader->run_left > (uint32_t)(BLOCK_NUMBER_MAX - reader->base))
		die(EXIT_PROTOCOL, "invalid token number in compressed stream [%s]", log_role());
	give_block(reader, token);
}

static void read_compressed(struct token_reader *reader, struct token *token)
{
	if (!reader->inside_file) {
		reader->inside_file = true;
		reader->unsynced = false;
		reader->base = 0;
		if (reader->codec->start_reading)
			reader->codec->start_reading(reader);
	}
	if (reader->run_left) {
		reader->run_left--;
		reader->base++;
		give_block(reader, token);
		return;
	}
	for (;;) {
		/* Literals of the chunk that was read last. */
		token->length = reader->chunk_open ? reader->codec->decode(reader) : 0;
		if (token->length) {
			token->kind = TOKEN_LITERAL;
			token->data = reader->out;
			return;
		}
		struct wire *wire = reader->session->wire;
		uint8_t flag = wire_read_byte(wire);

		if ((flag & TOKENRUN_REL) != DEFLATED_DATA) {
			read_item(reader, flag, token);
			return;
		}
		size_t length = (size_t)(flag & ~DEFLATED_DATA) << 8 | wire_read_byte(wire);

		if (!length)
			die(EXIT_STREAMIO, "Invalid literal token with no data [%s]", log_role());
		wire_read(wire, reader->chunk, length);
		reader->codec->take_chunk(reader, length);
		reader->chunk_open = reader->unsynced = true;
	}
}

void token_read(struct token_reader *reader, struct token *token)
{
	struct wire *wire = reader->session->wire;

	if (reader->codec) {
		read_compressed(reader, token);
		return;
	}
	if (!reader->literal_left) {
		int32_t value = wire_read_int(wire);

		if (value <= 0) {
			token->kind = value ? TOKEN_BLOCK : TOKEN_END;
			token->block = -(value + 1);
			return;
		}
		reader->literal_left = (size_t)value;
	}
	size_t most = reader->literal_left < LITERAL_MAX ? reader->literal_left : LITERAL_MAX;

	token->kind = TOKEN_LITERAL;
	token->data = wire_read_piece(wire, most, &token->length);
	reader->literal_left -= token->length;
}
