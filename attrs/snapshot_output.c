/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bytes of a snapshot on their way out. */
#include "attrs/snapshot_output.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attrs/snapshot_sum.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/temp.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/threads.h"

#define BUFFER_SIZE (256 << 10)
#define LONG_RUN (16 << 10)     /* shorter ones are cheaper copied than written alone */

struct snapshot_output {
	int fd;                  /* -1: only the sum is wanted */
	int error;
	uint64_t position;       /* in the file, without what waits in the buffer and the run */
	XXH3_state_t *sum;
	unsigned char *buffer;
	size_t used;
	const unsigned char *run; /* lent, comes after the buffer */
	uint64_t run_length;
};

struct snapshot_output *output_new(int fd, uint64_t offset)
{
	struct snapshot_output *output = xcalloc(1, sizeof *output);

	output->fd = fd;
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
	if (output->fd < 0)
		XXH3_64bits_update(output->sum, bytes, length);
	else if (!output->error && fs_write_all_at(output->fd, bytes, length, output->position) < 0)
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

/* --- getting room for the file while processors have little else to do --- */

struct snapshot_room {
	int fd;                  /* -1: taken */
	uint64_t bytes;
	bool is_waited_for;      /* the thread has to be */
	pthread_t thread;
};

/* Whether there is room enough is for the writing to say. What is too much goes when the file gets its real length. */
static void *get_room(void *room_void)
{
	const struct snapshot_room *room = room_void;

	if (ftruncate(room->fd, (off_t)room->bytes) == 0)
		(void)fs_preallocate(room->fd, room->bytes);
	return NULL;
}

struct snapshot_room *snapshot_room_new(const char *path, uint64_t bytes)
{
	char name[256];
	int dir_fd = fs_operator_parent(path, FS_FOLLOW, name);

	if (dir_fd < 0)
		return NULL;
	int fd = fs_unnamed_create(dir_fd, 0600);

	close(dir_fd);
	if (fd < 0)
		return NULL;
	struct snapshot_room *room = xmalloc(sizeof *room);

	*room = (struct snapshot_room){ .fd = fd, .bytes = bytes };
	room->is_waited_for = thread_start(&room->thread, get_room, room);
	return room;
}

int snapshot_room_take(struct snapshot_room *room)
{
	int fd = room ? room->fd : -1;

	if (fd < 0)
		return -1;
	if (room->is_waited_for)
		pthread_join(room->thread, NULL);
	room->fd = -1;
	return fd;
}

void snapshot_room_free(struct snapshot_room *room)
{
	fs_close(snapshot_room_take(room));
	free(room);
}
