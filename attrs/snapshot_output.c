/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bytes of a snapshot on their way out. */
#include "attrs/snapshot_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attrs/snapshot_sum.h"
#include "fs/file.h"
#include "lib/alloc.h"
#include "lib/exit.h"

#define BUFFER_SIZE (256 << 10)
#define LONG_RUN (16 << 10)     /* shorter ones are cheaper copied than written alone */

struct snapshot_output {
	const struct snapshot_target *target;
	int error;
	uint64_t position;       /* in the target, without what waits in the buffer and the run */
	XXH3_state_t *sum;
	unsigned char *buffer;
	size_t used;
	const unsigned char *run; /* lent, comes after the buffer */
	uint64_t run_length;
};

struct snapshot_output *output_new(const struct snapshot_target *target, uint64_t offset)
{
	struct snapshot_output *output = xcalloc(1, sizeof *output);

	output->target = target;
	output->position = offset;
	output->buffer = xmalloc(BUFFER_SIZE);
	output->sum = XXH3_createState();
	if (!output->sum)
		die(EXIT_MALLOC, "out of memory: the state of a checksum");
	XXH3_64bits_reset(output->sum);
	return output;
}

void output_free(struct snapshot_output *output)
{
	XXH3_freeState(output->sum);
	free(output->buffer);
	free(output);
}

static void write_out(struct snapshot_output *output, const unsigned char *bytes, size_t length)
{
	const struct snapshot_target *target = output->target;

	if (!target)
		XXH3_64bits_update(output->sum, bytes, length);
	else if (target->fd < 0)
		memcpy(target->memory + output->position, bytes, length);
	else if (!output->error && fs_write_all_at(target->fd, bytes, length, output->position) < 0)
		output->error = errno;
	output->position += length;
}

static void flush_buffer(struct snapshot_output *output)
{
	if (output->used)
		write_out(output, output->buffer, output->used);
	output->used = 0;
}

static void copy_in(struct snapshot_output *output, const unsigned char *bytes, size_t length)
{
	if (output->used + length > BUFFER_SIZE)
		flush_buffer(output);
	memcpy(output->buffer + output->used, bytes, length);
	output->used += length;
}

static void flush_run(struct snapshot_output *output)
{
	uint64_t left = output->run_length;

	output->run_length = 0;
	if (left && left < LONG_RUN) {
		copy_in(output, output->run, left);
		return;
	}
	if (left)
		flush_buffer(output);
	while (left) {
		size_t step = left < BUFFER_SIZE ? left : BUFFER_SIZE;

		write_out(output, output->run, step);
		output->run += step;
		left -= step;
	}
}

void *output_room(struct snapshot_output *output, size_t size)
{
	flush_run(output);
	if (output->used + size > BUFFER_SIZE)
		flush_buffer(output);
	output->used += size;
	return output->buffer + output->used - size;
}

void output_lend(struct snapshot_output *output, const void *bytes, uint64_t length)
{
	if (output->run_length && output->run + output->run_length == bytes) {
		output->run_length += length;
		return;
	}
	flush_run(output);
	output->run = bytes;
	output->run_length = length;
}

void output_put(struct snapshot_output *output, const void *bytes, size_t length)
{
	if (length < LONG_RUN) {
		flush_run(output);
		copy_in(output, bytes, length);
		return;
	}
	output_lend(output, bytes, length);
	flush_run(output);
}

void output_zeros(struct snapshot_output *output, uint64_t length)
{
	static const unsigned char zeros[OUTPUT_ROOM_MAX];

	while (length) {
		size_t step = length < sizeof zeros ? length : sizeof zeros;

		output_put(output, zeros, step);
		length -= step;
	}
}

int output_end(struct snapshot_output *output)
{
	flush_run(output);
	flush_buffer(output);
	return output->error;
}

uint64_t output_sum(const struct snapshot_output *output)
{
	return XXH3_64bits_digest(output->sum);
}
