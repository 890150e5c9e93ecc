/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a source with pread(2) into a sliding buffer; what cannot be read becomes zero bytes. */
#include "delta/source_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/alloc.h"

struct source_file {
	int fd;                  /* -1: memory */
	const uint8_t *memory;
	uint64_t size;
	uint8_t *buffer;         /* bytes start .. start + length */
	size_t capacity, length;
	uint64_t start;
	bool failed;
	int error;
	void (*seen)(void *context, const void *data, size_t length);
	void *context;
};

struct source_file *source_file_new(int fd, uint64_t size)
{
	struct source_file *file = xcalloc(1, sizeof *file);

	file->fd = fd;
	file->size = size;
	return file;
}

struct source_file *source_file_new_memory(const void *bytes, uint64_t size)
{
	struct source_file *file = source_file_new(-1, size);

	file->memory = bytes;
	return file;
}

void source_file_free(struct source_file *file)
{
	if (!file)
		return;
	free(file->buffer);
	free(file);
}

bool source_file_failed(const struct source_file *file, int *error)
{
	*error = file->error;
	return file->failed;
}

void source_file_open_window(struct source_file *file, uint64_t start, size_t window,
			     void (*seen)(void *context, const void *data, size_t length), void *context)
{
	uint64_t rest = file->size - start;

	free(file->buffer);
	/* Most files are small. */
	file->capacity = rest < window ? (size_t)rest : window;
	file->buffer = xmalloc(file->capacity);
	file->length = 0;
	file->start = start;
	file->seen = seen;
	file->context = context;
}

/* After the first failure the rest of the file counts as zero bytes (doc/protocol/03-transfer.md section 7.8). */
static void read_at(struct source_file *file, uint64_t offset, uint8_t *out, size_t length)
{
	size_t done = 0;

	if (file->fd < 0) {
		memcpy(out, file->memory + offset, length);
		return;
	}
	while (done < length && !file->failed) {
		ssize_t got = pread(file->fd, out + done, length - done, (off_t)(offset + done));
		if (got > 0) {
			done += (size_t)got;
		} else if (got == 0 || errno != EINTR) {
			file->failed = true;
			file->error = got < 0 ? errno : 0;
		}
	}
	memset(out + done, 0, length - done);
}

static void forget(struct source_file *file, uint64_t keep)
{
	size_t gone = (size_t)(keep - file->start);

	if (!gone)
		return;
	memmove(file->buffer, file->buffer + gone, file->length - gone);
	file->length -= gone;
	file->start = keep;
}

const uint8_t *source_file_look(struct source_file *file, uint64_t keep, uint64_t offset, size_t wanted, size_t *available)
{
	uint64_t end = file->start + file->length;

	if (wanted > file->size - offset)
		wanted = (size_t)(file->size - offset);
	if (end < offset + wanted) {
		forget(file, keep);
		size_t room = file->capacity - file->length;
		uint64_t rest = file->size - end;
		size_t take = rest < room ? (size_t)rest : room;

		read_at(file, end, file->buffer + file->length, take);
		file->seen(file->context, file->buffer + file->length, take);
		file->length += take;
	}
	*available = (size_t)(file->start + file->length - offset);
	return file->buffer + (offset - file->start);
}
