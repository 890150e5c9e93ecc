/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For tests of attr snapshots: one in memory that is no longer than it, so that a sanitizer sees what is read beyond. */
#ifndef SNAPSHOT_MEMORY_H
#define SNAPSHOT_MEMORY_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "attrs/snapshot_check.h"
#include "attrs/snapshot_write.h"
#include "fs/file.h"
#include "lib/alloc.h"

/* What attr_snapshot_write makes of the image, aligned; to be freed. */
static inline void *snapshot_bytes(const struct image *image, uint64_t generation, struct fs_ids *ids, size_t *length)
{
	char path[] = "/tmp/snapshot.XXXXXX";
	int placeholder = mkstemp(path);
	struct strbuf why = STRBUF_INIT;
	uint64_t size;
	void *bytes;

	if (placeholder < 0 || attr_snapshot_write(image, path, generation, ids, &size, &why) < 0)
		abort();
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*length = (size_t)size;
	if (fd < 0 || posix_memalign(&bytes, SNAPSHOT_ALIGNMENT, *length) || fs_read_full(fd, bytes, *length) != (ssize_t)size)
		abort();
	close(fd);
	close(placeholder);
	unlink(path);
	strbuf_free(&why);
	return bytes;
}

/* As attr_snapshot_open; the bytes must be aligned and stay. No identity. */
static inline struct attr_snapshot *snapshot_from_memory(const void *bytes, size_t length, struct strbuf *why)
{
	struct attr_snapshot *snapshot = xcalloc(1, sizeof *snapshot);

	snapshot->bytes = bytes;
	snapshot->length = length;
	if (attr_snapshot_check(snapshot, why))
		return snapshot;
	attr_snapshot_close(snapshot);
	errno = EINVAL;
	return NULL;
}

#endif
