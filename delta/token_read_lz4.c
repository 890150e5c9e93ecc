/* SPDX-License-Identifier: GPL-3.0-or-later */
/* lz4, receiving: every chunk is an independent block (protocol/03 section 6.6). */
#include <lz4.h>
#include <stdlib.h>

#include "delta/token_private.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

#define OUT_SIZE 32912 /* what stock has room for */

struct lz4_state {
	size_t length; /* decoded and not yet handed on */
	uint8_t out[OUT_SIZE];
};

static void *lz4_new(struct session *session)
{
	(void)session;
	return xcalloc(1, sizeof(struct lz4_state));
}

static void lz4_free(void *state)
{
	free(state);
}

/* A block of no bytes is refused too: other readers take it for the end of the file. */
static void lz4_chunk(void *state, const uint8_t *data, size_t length)
{
	struct lz4_state *lz4 = state;
	int result = LZ4_decompress_safe((const char *)data, (char *)lz4->out, (int)length, OUT_SIZE);

	if (result <= 0)
		die(EXIT_STREAMIO, "uncompress failed: %d [%s]", result, log_role());
	lz4->length = (size_t)result;
}

static size_t lz4_literal(void *state, const uint8_t **data)
{
	struct lz4_state *lz4 = state;
	size_t length = lz4->length;

	*data = lz4->out;
	lz4->length = 0;
	return length;
}

const struct token_decoder *token_decoder_lz4(void)
{
	static const struct token_decoder decoder = { lz4_new, lz4_free, NULL, lz4_chunk, lz4_literal, NULL, NULL, NULL };

	return &decoder;
}
