/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Directory names by getdents64, without the locks and the copies of readdir. */
#include "fs/dir.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/alloc.h"

/* A directory of some 900 names in one call. */
#define BUFFER_SIZE 65536

/* What the kernel fills in. */
struct record {
	uint64_t ino;
	int64_t offset;
	uint16_t length; /* of the whole record */
	uint8_t type;
	char name[];
};

void fs_dir_start(struct fs_dir *dir, int fd)
{
	dir->fd = fd;
	dir->buffer = xmalloc(BUFFER_SIZE);
	dir->used = dir->length = 0;
}

static int refill(struct fs_dir *dir)
{
	long got = syscall(SYS_getdents64, dir->fd, dir->buffer, BUFFER_SIZE);

	if (got <= 0)
		return (int)got;
	dir->used = 0;
	dir->length = (size_t)got;
	return 1;
}

static int is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

int fs_dir_next(struct fs_dir *dir, struct fs_dirent *entry)
{
	for (;;) {
		if (dir->used == dir->length) {
			int result = refill(dir);
			if (result <= 0)
				return result;
		}
		const struct record *record = (const void *)(dir->buffer + dir->used);

		dir->used += record->length;
		if (is_dot(record->name))
			continue;
		entry->name = record->name;
		entry->name_length = strlen(record->name);
		entry->type = record->type;
		return 1;
	}
}

void fs_dir_finish(struct fs_dir *dir)
{
	free(dir->buffer);
	close(dir->fd);
	dir->buffer = NULL;
	dir->fd = -1;
}
