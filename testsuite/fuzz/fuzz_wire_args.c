/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzzes the text phase: greeting line, argument words in all three forms. The first byte chooses the form. */
#include "catch_die.h"

#include <string.h>

#include "testsuite/unit/wire_memory.h"
#include "wire/args.h"
#include "wire/session.h"
#include "wire/setup.h"

struct run { struct wire *wire; struct args args; uint8_t form; };

static void read_all(void *context)
{
	struct run *run = context;
	struct greeting greeting;
	char line[1024];
	bool too_bad;

	if (run->form & 4 && wire_read_line(run->wire, line, sizeof line, '\n', -1, &too_bad) &&
	    greeting_parse(&greeting, line) == GREETING_OK) {
		int version = greeting_negotiate(&greeting, PROTOCOL_MAX);

		if (version && (version < 27 || version > PROTOCOL_MAX))
			abort();
		if (greeting.digests && greeting.digests > line + strlen(line))
			abort();
	}
	args_read(run->wire, &run->args, run->form & 1);
	args_unescape_options(&run->args);
	if (run->form & 2)
		args_read_secluded(run->wire, &run->args);
	if (run->args.count > ARGS_MAX_COUNT)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run = { 0 };

	if (!size)
		return 0;
	run.form = data[0];
	run.wire = wire_new_memory(data + 1, size - 1);
	catch_die(read_all, &run);
	for (size_t i = 0; i < run.args.count; i++)
		if (strlen(run.args.items[i]) > ARGS_MAX_LENGTH)
			abort();
	if (run.args.items && run.args.items[run.args.count])
		abort();
	args_free(&run.args);
	wire_free(run.wire);
	return 0;
}
