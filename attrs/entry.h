/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The one representation of file-list entries (design rule 1): fixed-size records, a name pool and side records, linked by
 * offsets and never by pointers, so that the same bytes can be built by a walk or mapped from a file.
 *
 * A `struct entries` holds the entries of ONE directory, in wire order (doc/protocol/02-file-list.md section 5.1:
 * non-directories before directories, each by bytes, a directory comparing as if its name ended in "/"). Names are single
 * components, except that the first list may hold names that start with "/" (--relative).
 */
#ifndef ATTRS_ENTRY_H
#define ATTRS_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "attrs/snapshot.h"

struct fs_stat;

enum entry_flag {
	ENTRY_TOP_DIR = 0x01,    /* directory named by an argument (XMIT_TOP_DIR) */
	ENTRY_NO_CONTENT = 0x02, /* directory whose contents are not part of the transfer; with TOP_DIR: implied parent */
	/* A hole: lost against an equal name (doc/protocol/02-file-list.md section 5.4); keeps its index */
	ENTRY_DUPLICATE = 0x04,
	ENTRY_HARD_LINKED = 0x08,/* link count > 1: side record has dev and ino */
	ENTRY_HIDDEN = 0x10,     /* directory that is walked through but not listed (-R --no-implied-dirs below 30) */
	ENTRY_SENT = 0x20,       /* transferred once already: the next request is a redo */
	ENTRY_MOUNT = 0x40,      /* mount point under -x */
	ENTRY_PRUNED = 0x80,     /* -m: a hole that counts as not listed at all */
	ENTRY_ALSO_LISTED = 0x100, /* directory: no implied parent whatever TOP and NO_CONTENT say, an equal one was none */
};

/* 48 bytes. */
struct entry {
	uint64_t size;       /* st_size as listed; 0 for devices and specials */
	int64_t mtime;       /* seconds since the epoch */
	uint32_t mtime_nsec; /* 0..999999999 */
	uint16_t mode;       /* type and permission bits; 0: "delete this missing argument" */
	uint16_t flags;      /* enum entry_flag */
	uint32_t uid, gid;
	uint32_t name;       /* offset of the NUL-terminated name in the pool */
	uint16_t name_length;
	uint16_t root;       /* which source argument's base directory it was found below (flist_root) */
	uint32_t side;       /* index + 1 of the side record, 0: none */
	uint32_t dir;        /* directories that the list enters: the flist's directory node (never 0); else 0 */
};

/* What only some entries have. */
struct entry_side {
	uint64_t dev, ino;       /* ENTRY_HARD_LINKED */
	int64_t atime;           /* -U */
	uint32_t rdev_major, rdev_minor;
	uint32_t target;         /* symlinks: offset of the NUL-terminated target in the pool */
	uint32_t target_length;
	uint32_t acls, xattrs;   /* -A (receiver), -X: numbers of those that were sent (flist/xattr.c) or have come, 0: none */
	uint64_t real_size;      /* --only-send-attrs: the size that the content says */
	int64_t ctime;           /* scan_options.origins: with dev and ino, what distinguishes one content from another */
	uint32_t ctime_nsec;
	uint32_t digest;         /* images: index + 1 of the content digests (attrs/image.h), 0: none */
};

struct entries {
	struct entry *items;
	uint32_t count, capacity;
	char *pool;
	uint32_t pool_used, pool_capacity;
	struct entry_side *sides;
	uint32_t side_count, side_capacity;
	/* A view of one directory of a snapshot (attrs/snapshot.h): items and pool lie in its read-only mapping, nothing of
	 * them is ever written to, side records are expanded on demand, and `root` stands for that of every entry. */
	const struct attr_snapshot *snapshot; /* NULL: built here, all of it writable */
	uint32_t snapshot_dir;
	uint16_t root;
	size_t counted;           /* bytes that a session's budget knows of (flist.c) */
};

void entries_init(struct entries *list);
void entries_free(struct entries *list);
/* Bytes that it takes; of a view, those that are not in the mapping. */
size_t entries_memory(const struct entries *list);

/* Append a zeroed entry with a copy of the name; the pointer is valid until the next append. EXIT_MALLOC past 4 GiB pools. */
struct entry *entries_add(struct entries *list, const char *name, size_t name_length);
/* The entry's side record, made (zeroed) if it has none. Valid until the next call for another entry. */
struct entry_side *entries_side(struct entries *list, struct entry *entry);
/* Take back the entry that was just added. */
void entries_remove_last(struct entries *list);
void entries_set_target(struct entries *list, struct entry *entry, const char *target, size_t length);
/* What a stat says of every entry; size: 0 for devices and specials. */
void entry_set_stat(struct entry *entry, const struct fs_stat *st);
/* Append bytes and a NUL to the pool, right behind what was added before; returns their offset. */
uint32_t entries_add_bytes(struct entries *list, const void *bytes, size_t length);

static inline const char *entry_name(const struct entries *list, const struct entry *entry)
{
	return list->pool + entry->name;
}

/* The side record of an entry that was built here; entry_any_side (attrs/snapshot.h) has that of any entry. */
static inline const struct entry_side *entry_side_of(const struct entries *list, const struct entry *entry)
{
	return entry->side ? &list->sides[entry->side - 1] : NULL;
}

/* Of a symlink: its target, NUL-terminated. */
static inline const char *entry_target(const struct entries *list, const struct entry *entry)
{
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(list, entry, &expanded);

	return side ? list->pool + side->target : "";
}

static inline uint16_t entry_root(const struct entries *list, const struct entry *entry)
{
	return list->snapshot ? list->root : entry->root;
}

static inline bool entry_is_dir(const struct entry *entry) { return S_ISDIR(entry->mode); }
static inline bool entry_is_regular(const struct entry *entry) { return S_ISREG(entry->mode); }
static inline bool entry_is_symlink(const struct entry *entry) { return S_ISLNK(entry->mode); }
static inline bool entry_is_device(const struct entry *entry) { return S_ISCHR(entry->mode) || S_ISBLK(entry->mode); }
static inline bool entry_is_special(const struct entry *entry) { return S_ISFIFO(entry->mode) || S_ISSOCK(entry->mode); }

/* One that stands for the directory that it is in. */
static inline bool entry_is_dot(const struct entries *list, const struct entry *entry)
{
	return entry->name_length == 1 && entry_name(list, entry)[0] == '.';
}

/* A directory that is there only because something below it was named (--relative). */
static inline bool entry_is_implied(const struct entry *entry)
{
	return (entry->flags & (ENTRY_TOP_DIR | ENTRY_NO_CONTENT | ENTRY_ALSO_LISTED)) == (ENTRY_TOP_DIR | ENTRY_NO_CONTENT);
}

/* Stable sort into wire order; the array is then as large as needed and no larger. */
void entries_sort(struct entries *list);
/* The same into another list, empty so far, in which nothing is larger than needed; `list` is cleared. */
void entries_sort_into(struct entries *list, struct entries *to);
/* Mark the losers among equal names of a sorted list (doc/protocol/02-file-list.md section 5.4 rules 1 to 4): a directory wins
 * over another kind, the first over later ones, class flags of directories are merged into the winner, and hidden ones go. One
 * scan of one directory has none. */
void entries_mark_duplicates(struct entries *list);
/* Order of two entries of one directory at protocol >= 29: <0, 0, >0. */
int entry_compare(const struct entries *a_list, const struct entry *a, const struct entries *b_list, const struct entry *b);
/* Binary search by name and kind in a sorted list: index or -1. */
int32_t entries_find(const struct entries *list, const char *name, bool is_dir);

#endif
