/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Connections without descriptors, for tests and fuzzing: they read from memory, and what they write is collected. */
#ifndef TESTSUITE_WIRE_MEMORY_H
#define TESTSUITE_WIRE_MEMORY_H

#include <string.h>

#include "lib/alloc.h"
#include "wire/internal.h"

static inline struct wire *wire_new_memory(const void *input, size_t length)
{
	struct wire *wire = wire_new_file(-1);

	wire->failed = false;
	/* No byte more than there is: reading past the end is found. */
	wire->in_capacity = length ? length : 1;
	wire->in = xrealloc_array(wire->in, wire->in_capacity, 1);
	if (length)
		memcpy(wire->in, input, length);
	wire_input_grew(wire, length);
	wire->received = length;
	return wire;
}

static inline const uint8_t *wire_test_output(struct wire *wire, size_t *length)
{
	wire_flush(wire);
	*length = wire->collected.length;
	return (const uint8_t *)strbuf_text(&wire->collected);
}

#endif
