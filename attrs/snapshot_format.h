/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bytes of an attr snapshot, as attr-snapshot(5) documents them. Everything has the byte order of the machine that made
 * it, which shows in the version, and is naturally aligned, so a mapping is used as it is. Only the reader (snapshot*.c) and
 * the writer (snapshot_write.c) include this.
 *
 *	header | table of contents (one record per chunk) | chunks, each at a multiple of 64, zero bytes between
 *
 * Directories stand in the order of a depth-first walk, parents before children; directory 0 is the root. Entries of one
 * directory lie together in wire order (attrs/entry.h), directories in the order of their own records; so do the names and
 * the side records. Each of the three chunks is covered by the directories without gap or overlap, which is what makes the
 * check simple: entry 0 is "." itself, the names begin with ".\0" for it, and directory 0's entries and names follow.
 *
 * Chunks stand in the order of the table of contents; an empty one has any legal offset. The directories of a directory's
 * entries stand in the order of the entries: the first is dir + 1, the next the subtree_end of the one before. Side records
 * are in the order of the entries that have one: entry.side counts up from 1 without a gap.
 */
#ifndef ATTRS_SNAPSHOT_FORMAT_H
#define ATTRS_SNAPSHOT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "attrs/entry.h"

#define SNAPSHOT_MAGIC "attrsnap"
#define SNAPSHOT_VERSION 1
#define SNAPSHOT_ALIGNMENT 64
#define SNAPSHOT_CHUNKS_MAX 64
#define SNAPSHOT_TIME_UNIT INT64_C(1000000000) /* of a directory's ctime: 1 s */

struct snapshot_header {
	char magic[8];
	uint32_t version;
	uint32_t chunk_count;    /* 1..SNAPSHOT_CHUNKS_MAX */
	uint64_t file_size;
	uint64_t sum;            /* XXH3 (64 bits, seed 0) of header and table of contents with this field zero */
};

enum { SNAPSHOT_REQUIRED = 1 }; /* a reader that does not know the chunk must refuse the file */

struct snapshot_chunk {
	char tag[8];             /* ASCII, padded with zero bytes */
	uint64_t offset, length; /* of the content, from the start of the file */
	uint64_t sum;            /* XXH3 (64 bits, seed 0) of the content */
	uint32_t flags;          /* SNAPSHOT_REQUIRED */
	uint32_t reserved;       /* 0 */
};

/* The chunks, in the order of the file. */
enum snapshot_chunk_id {
	CHUNK_FACTS,   /* struct snapshot_facts and its texts, no padding */
	CHUNK_DIRS,    /* struct snapshot_dir[] */
	CHUNK_ENTRIES, /* struct entry[]: root and reserved flags 0, `dir` the directory's record */
	CHUNK_SIDES,   /* struct snapshot_side[] */
	CHUNK_NAMES,   /* per directory: names in order, then symlink targets in order, each with a NUL */
	CHUNK_DEVICES, /* uint64_t[]: st_dev values that directories refer to */
	/* From here on one may be absent. The next four have one record for each entry. */
	CHUNK_ATIMES,  /* int64_t[]: 0 for directories */
	CHUNK_ORIGINS, /* struct snapshot_origin[]: with digests */
	CHUNK_XXH128,  /* 16 bytes each, as the wire carries the digest */
	CHUNK_MD5,     /* 16 bytes each */
	CHUNK_OWNERS,  /* names of users and groups: struct snapshot_owner, name, NUL, padding to 4 */
	CHUNK_IDS
};

struct snapshot_facts {
	uint64_t generation;     /* 1 for the first, one more than the file it replaced */
	int64_t made;            /* seconds since the epoch: when the scan began */
	uint32_t made_nsec;
	uint32_t flags;          /* enum snapshot_fact */
	uint64_t root_dev, root_ino; /* of the tree's root; both 0: unknown, fits any module */
	uint64_t entry_count;    /* as long as the entries chunk, "." included */
	uint64_t content_bytes;  /* sum of the sizes of regular files, modulo 2^64 */
	uint32_t dir_count;
	uint32_t io_error;       /* IOERR_* that the scan met: the list may lack something */
	/* Of the texts that follow, each with a NUL: root path, version of the writer, its options. */
	uint16_t root_length, version_length, options_length;
	uint16_t reserved;       /* 0 */
};

enum snapshot_fact {
	SNAPSHOT_FOLLOWED_LINKS = 0x01, /* -L and the like: an entry may stand for what a symlink points to */
};

struct snapshot_dir {
	uint64_t names;          /* where its names begin; entry.name and a symlink's target count from here */
	uint64_t ino;
	int64_t ctime;           /* nanoseconds since the epoch; 0: not known, or not to be relied upon */
	uint32_t first_entry;    /* index of its first entry */
	uint32_t count;          /* entries */
	uint32_t leading;        /* of these, the first so many are not directories */
	uint32_t parent;         /* 0 for the root */
	uint32_t parent_entry;   /* index in the parent's entries; 0 for the root */
	uint32_t subtree_end;    /* the first directory after it that does not lie in it */
	uint32_t first_side;     /* entry.side counts from here, from 1 */
	uint16_t device;         /* index into the devices chunk */
	uint16_t error;          /* errno of the scan if it could not be read, 0: all is well */
};

struct snapshot_side {
	uint32_t a, b;           /* symlink: offset and length of the target; device: major and minor; else 0 */
	uint64_t ino;            /* ENTRY_HARD_LINKED: with the directory's device, the key of the group; else 0 */
};

struct snapshot_owner {
	uint32_t id;
	uint16_t is_group;
	uint16_t length;         /* 1..255 */
};

struct snapshot_origin {
	uint64_t ino;
	int64_t ctime;
	uint32_t ctime_nsec;
	uint32_t digests;        /* enum attr_digest: which digests below are valid; regular files only */
};

enum { SNAPSHOT_DIGEST = 16 }; /* bytes of a digest */

static const struct snapshot_chunk_kind {
	char tag[8];
	uint32_t record; /* bytes of a record; 1: there are none */
} snapshot_chunk_kinds[CHUNK_IDS] = {
	[CHUNK_FACTS] = { "facts", 1 },
	[CHUNK_DIRS] = { "dirs", sizeof(struct snapshot_dir) },
	[CHUNK_ENTRIES] = { "entries", sizeof(struct entry) },
	[CHUNK_SIDES] = { "sides", sizeof(struct snapshot_side) },
	[CHUNK_NAMES] = { "names", 1 },
	[CHUNK_DEVICES] = { "devices", sizeof(uint64_t) },
	[CHUNK_ATIMES] = { "atimes", sizeof(int64_t) },
	[CHUNK_ORIGINS] = { "origins", sizeof(struct snapshot_origin) },
	[CHUNK_XXH128] = { "xxh128", SNAPSHOT_DIGEST },
	[CHUNK_MD5] = { "md5", SNAPSHOT_DIGEST },
	[CHUNK_OWNERS] = { "owners", 1 },
};

static inline bool snapshot_chunk_is_required(enum snapshot_chunk_id id)
{
	return id < CHUNK_ATIMES;
}

_Static_assert(sizeof(struct entry) == 48, "entries are part of the format");
_Static_assert(sizeof(struct snapshot_header) == 32 && sizeof(struct snapshot_chunk) == 40, "the format has no padding");
_Static_assert(sizeof(struct snapshot_dir) == 56 && sizeof(struct snapshot_side) == 16, "the format has no padding");
_Static_assert(sizeof(struct snapshot_facts) == 72 && sizeof(struct snapshot_origin) == 24, "the format has no padding");

#endif
