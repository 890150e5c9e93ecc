/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For tests of attr snapshots: a small tree that has everything, its snapshot in memory, and places in it to be changed. */
#ifndef SNAPSHOT_SUPPORT_H
#define SNAPSHOT_SUPPORT_H

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "attrs/image.h"
#include "lib/alloc.h"
#include "testsuite/unit/snapshot_memory.h"

/* Where the lower `part` bytes of a number of `size` bytes begin. */
static inline size_t lower_bytes(size_t size, size_t part)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : size - part;
}

/* --- the tree --- */

struct sample_node {
	const char *path;
	unsigned mode;       /* octal, with type */
	uint64_t size;
	const char *target;  /* symlinks */
	uint64_t ino;        /* hard-linked: the group; directories: an error */
	uint32_t major, minor;
};

enum { SAMPLE_DEV = 77, SAMPLE_MOUNT_DEV = 78 };

static const struct sample_node sample_nodes[] = {
	{ "\xc3\xa4\x01\xff", 0100600, 3, NULL, 0, 0, 0 },
	{ "a", 0100644, 1000, NULL, 0, 0, 0 },
	{ "bin.old", 0100644, 0, NULL, 0, 0, 0 },
	{ "disk", 060660, 0, NULL, 0, 8, 17 },
	{ "fifo", 010644, 0, NULL, 0, 0, 0 },
	{ "hard1", 0100644, 5, NULL, 501, 0, 0 },
	{ "hardlink", 0120777, 4, "/abs", 502, 0, 0 },
	{ "hardnull", 020666, 0, NULL, 503, 1, 3 },
	{ "link", 0120777, 9, "sub/hello", 0, 0, 0 },
	{ "null", 020666, 0, NULL, 0, 1, 3 },
	{ "socket", 0140755, 0, NULL, 0, 0, 0 },
	{ "bin", 040755, 4096, NULL, 0, 0, 0 },
	{ "bin/sh", 0104755, 123456, NULL, 0, 0, 0 },
	{ "empty", 040700, 4096, NULL, 0, 0, 0 },
	{ "mount", 040755, 4096, NULL, 0, 0, 0 },
	{ "mount/file", 0100444, 1, NULL, 0, 0, 0 },
	{ "secret", 040700, 4096, NULL, 13, 0, 0 },
	{ "sub", 041777, 4096, NULL, 0, 0, 0 },
	{ "sub/deep", 040755, 4096, NULL, 0, 0, 0 },
	{ "sub/deep/er", 040755, 4096, NULL, 0, 0, 0 },
	{ "sub/deep/er/bottom", 0100644, 7, NULL, 0, 0, 0 },
	{ "sub/deep/er/up", 0120777, 8, "../../..", 0, 0, 0 },
	{ "sub/hard2", 0100644, 5, NULL, 501, 0, 0 },
	{ "sub/hello", 0100644, 12, NULL, 0, 0, 0 },
	{ "sub/x.d", 040755, 4096, NULL, 0, 0, 0 },
	{ "sub/x", 040755, 4096, NULL, 0, 0, 0 },
	{ "sub/x/last", 0100644, 0, NULL, 0, 0, 0 },
	{ "sub/y", 0100600, 0, NULL, 0, 0, 0 },
	{ "sub/z1", 0120777, 1, "y", 0, 0, 0 },
	{ "sub/z2", 0120777, 2, "y1", 0, 0, 0 },
};
enum { SAMPLE_NODES = sizeof sample_nodes / sizeof *sample_nodes };

static inline const char *sample_leaf(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static inline bool sample_is_in(const char *path, const struct strbuf *dir)
{
	size_t length = (size_t)(sample_leaf(path) - path);

	return length == dir->length + (length > 0) && !strncmp(path, strbuf_text(dir), dir->length);
}

/* Regular files have digests that are made of their size. */
static inline void sample_add(struct image *image, struct image_dir *dir, const struct sample_node *node)
{
	const char *name = sample_leaf(node->path);
	struct entry *entry = entries_add(&dir->entries, name, strlen(name));
	struct entry_side *side = entries_side(&dir->entries, entry);

	entry->mode = (uint16_t)node->mode;
	entry->size = node->size;
	entry->mtime = 1000000000 + (int64_t)node->size;
	entry->mtime_nsec = 123456789;
	entry->uid = 1000;
	entry->gid = node->mode & 0111 ? 100 : 0;
	side->dev = dir->dev;
	side->ino = node->ino ? node->ino : 9000 + node->size;
	side->atime = 2000000000 + (int64_t)node->size;
	side->ctime = 1500000000;
	side->ctime_nsec = 5;
	side->rdev_major = node->major;
	side->rdev_minor = node->minor;
	if (node->ino && !entry_is_dir(entry))
		entry->flags |= ENTRY_HARD_LINKED;
	if (!strcmp(name, "mount"))
		entry->flags |= ENTRY_MOUNT;
	if (node->target)
		entries_set_target(&dir->entries, entry, node->target, strlen(node->target));
	if (image->digests && entry_is_regular(entry)) {
		struct image_digest digest;

		memset(digest.xxh128, (int)node->size, sizeof digest.xxh128);
		memset(digest.md5, (int)~node->size, sizeof digest.md5);
		vec_push(&image->digest_list, digest);
		entries_side(&dir->entries, entry)->digest = (uint32_t)image->digest_list.count;
	}
}

static inline void sample_fill(struct image *image, uint32_t number)
{
	struct image_dir *dir = image->dirs.items[number];
	struct strbuf path = STRBUF_INIT;

	image_dir_path(image, number, &path);
	dir->dev = !strcmp(strbuf_text(&path), "mount") ? SAMPLE_MOUNT_DEV : SAMPLE_DEV;
	dir->ino = 100 + number;
	dir->ctime = 1400000000 + number;
	dir->ctime_nsec = number;
	for (size_t i = 0; i < SAMPLE_NODES; i++) {
		if (!strcmp(sample_nodes[i].path, strbuf_text(&path)) && sample_nodes[i].ino)
			dir->error = (int)sample_nodes[i].ino;
		if (sample_is_in(sample_nodes[i].path, &path))
			sample_add(image, dir, &sample_nodes[i]);
	}
	image_add_children(image, number);
	strbuf_free(&path);
}

static inline char *sample_owner(void *context, const char *kind, const char *text)
{
	(void)context;
	if (!strcmp(kind, "uid") && !strcmp(text, "1000"))
		return xstrdup("alice");
	if (!strcmp(kind, "gid"))
		return xstrdup(!strcmp(text, "100") ? "users" : "root");
	return NULL;
}

/* --- its snapshot --- */

struct sample {
	unsigned char *bytes; /* aligned, to be freed */
	size_t length;
};

/* digests: enum attr_digest. The plain one has no owners, no atimes and no digests: all that may be left out. */
static inline struct sample sample_new(unsigned digests, bool is_plain)
{
	struct image *image = image_new();
	struct fs_ids *ids = fs_ids_new(sample_owner, NULL);
	struct sample sample;

	image->made = (struct timespec){ 1700000000, 42 };
	image->root_dev = SAMPLE_DEV;
	image->root_ino = 100;
	image->root_path = xstrdup("/srv/mirror");
	image->options = xstrdup("-aH");
	image->io_error = is_plain ? 0 : 1;
	image->has_atimes = !is_plain;
	image->digests = digests;
	image->root.items[0].uid = 1000;
	for (uint32_t i = 0; i < image->dirs.count; i++)
		sample_fill(image, i);
	sample.bytes = snapshot_bytes(image, 9, is_plain ? NULL : ids, &sample.length);
	image_free(image);
	fs_ids_free(ids);
	return sample;
}

/* Zeros, and not one byte of memory more than `length`: a sanitizer sees what is read beyond. */
static inline struct sample sample_room(size_t length)
{
	struct sample sample = { NULL, length };
	void *memory;

	if (posix_memalign(&memory, SNAPSHOT_ALIGNMENT, length ? length : 1))
		abort();
	sample.bytes = memset(memory, 0, length);
	return sample;
}

/* The first bytes of another. */
static inline struct sample sample_copy(const struct sample *from, size_t length)
{
	struct sample to = sample_room(length);

	memcpy(to.bytes, from->bytes, length);
	return to;
}

/* --- places in it; only for whole samples --- */

static inline struct snapshot_header *sample_header(const struct sample *sample)
{
	return (void *)sample->bytes;
}

/* Record of the table of contents; NULL: there is no such chunk. */
static inline struct snapshot_chunk *sample_chunk(const struct sample *sample, const char *tag)
{
	struct snapshot_chunk *chunks = (void *)(sample->bytes + sizeof(struct snapshot_header));

	for (uint32_t i = 0; i < sample_header(sample)->chunk_count; i++)
		if (!strncmp(chunks[i].tag, tag, sizeof chunks[i].tag))
			return &chunks[i];
	return NULL;
}

static inline void *sample_content(const struct sample *sample, const char *tag)
{
	return sample->bytes + sample_chunk(sample, tag)->offset;
}

/* Index of an entry in the file; 0, the root, for what is not there. */
static inline uint64_t sample_entry(const struct sample *sample, const char *path)
{
	const struct snapshot_dir *dir = sample_content(sample, "dirs");
	const struct entry *entries = sample_content(sample, "entries");
	const char *names = sample_content(sample, "names");
	size_t length = strcspn(path, "/");

	for (uint32_t i = 0; i < dir->count;) {
		const struct entry *entry = &entries[dir->first_entry + i++];

		if (entry->name_length != length || memcmp(names + dir->names + entry->name, path, length))
			continue;
		if (!path[length])
			return (uint64_t)(entry - entries);
		dir = (const struct snapshot_dir *)sample_content(sample, "dirs") + entry->dir;
		path += length + 1;
		length = strcspn(path, "/");
		i = 0;
	}
	return 0;
}

/* Set all sums right as far as the table of contents makes sense; any bytes will do. */
static inline void sample_repair(const struct sample *sample)
{
	struct snapshot_header *header = sample_header(sample);
	struct snapshot_chunk *chunks = (void *)(header + 1);

	if (sample->length < sizeof *header || header->chunk_count > SNAPSHOT_CHUNKS_MAX ||
	    header->chunk_count > (sample->length - sizeof *header) / sizeof *chunks)
		return;
	for (uint32_t i = 0; i < header->chunk_count; i++)
		if (chunks[i].offset <= sample->length && chunks[i].length <= sample->length - chunks[i].offset)
			chunks[i].sum = XXH3_64bits(sample->bytes + chunks[i].offset, chunks[i].length);
	header->sum = 0;
	header->sum = XXH3_64bits(header, sizeof *header + header->chunk_count * sizeof *chunks);
}

#endif
