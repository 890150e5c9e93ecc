/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzzes the demultiplexer: arbitrary frames, read in arbitrary steps, with a handler that answers. */
#include "catch_die.h"

#include <string.h>

#include "testsuite/unit/wire_memory.h"
#include "wire/wire.h"

struct run { struct wire *wire; uint8_t step; int depth; };

static void handle(void *context, enum message_code code, const uint8_t *payload, size_t length)
{
	struct run *run = context;
	volatile uint8_t sum = 0;

	if (run->depth++)
		abort();
	if (length > 5119 || payload[length] != '\0')
		abort();
	for (size_t i = 0; i < length; i++)
		sum = (uint8_t)(sum + payload[i]);
	if (code == MSG_IO_ERROR && payload[0] > 7)
		abort();
	if (code == MSG_SUCCESS)
		wire_send_message(run->wire, MSG_INFO, payload, length);
	else if (code == MSG_ERROR_EXIT)
		wire_send_message(run->wire, MSG_ERROR_EXIT, NULL, 0);
	else
		wire_write(run->wire, payload, length);
	run->depth--;
}

static void read_all(void *context)
{
	struct run *run = context;
	uint8_t buf[256];

	for (;;) {
		wire_read(run->wire, buf, run->step);
		if (run->step < 4)
			wire_read_varint(run->wire);
		if (wire_input_ready(run->wire))
			wire_read_byte(run->wire);
	}
}

static void drain(void *context)
{
	wire_drain(((struct run *)context)->wire, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run = { 0 };
	size_t length;

	if (!size)
		return 0;
	run.step = data[0] & 0x3f ? data[0] & 0x3f : 1;
	run.wire = wire_new_memory(data + 1, size - 1);
	wire_settings(run.wire)->protocol = data[0] & 0x40 ? 29 : 33;
	wire_settings(run.wire)->is_server = data[0] & 0x80;
	wire_settings(run.wire)->is_sender = data[0] & 0x20;
	wire_set_message_handler(run.wire, handle, &run);
	wire_set_mux_in(run.wire, true);
	wire_set_mux_out(run.wire, true);
	catch_die(read_all, &run);
	run.depth = 0;
	catch_die(drain, &run);
	wire_test_output(run.wire, &length);
	if (wire_settings(run.wire)->timeout < 0 || wire_settings(run.wire)->timeout > 86400)
		abort();
	wire_free(run.wire);
	return 0;
}
