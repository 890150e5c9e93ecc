/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reading an attr snapshot: one mapped file that holds the attributes of a whole tree (attr-snapshot(5)).
 *
 * Opening checks everything once: sums, bounds, order, names, the tree's shape. What has been opened needs no further check,
 * whatever made the file. Nothing but the pages of the mapping is used by it, and forked processes share them.
 */
#ifndef ATTRS_SNAPSHOT_H
#define ATTRS_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/strbuf.h"

struct attr_snapshot;
struct entries;
struct entry;
struct entry_side;

/* Content digests that a snapshot may hold; bits. */
enum attr_digest { ATTR_DIGEST_XXH128 = 1, ATTR_DIGEST_MD5 = 2 };

/* Which file it was: changes whenever the file is replaced. */
struct snapshot_identity {
	uint64_t dev, ino, size;
	int64_t mtime, ctime;
	uint32_t mtime_nsec, ctime_nsec;
};

/*
 * Open the operator's file (resolver R2) and check it. It must be a regular file that belongs to root or to the effective
 * user and that nobody else can write. NULL: errno (EINVAL for what is wrong inside, EPERM for the owner or the mode, else of
 * the call that failed) and, appended to `why`, a sentence without the file's name, "chunk names: entry 17 of directory 3
 * has a slash in its name". The result is immutable: threads may share it. The file must not be shortened while it is open.
 */
struct attr_snapshot *attr_snapshot_open(const char *path, struct strbuf *why);
void attr_snapshot_close(struct attr_snapshot *snapshot); /* NULL is allowed; views become invalid */

/* The identity of the file that `path` names now: 0, or -1 with errno. */
int snapshot_identity_read(const char *path, struct snapshot_identity *identity);
bool snapshot_identity_equal(const struct snapshot_identity *a, const struct snapshot_identity *b);

/* What the header says; texts live as long as the snapshot. */
struct attr_snapshot_facts {
	struct snapshot_identity identity;
	uint64_t generation;
	int64_t made;
	uint32_t made_nsec;
	uint64_t root_dev, root_ino; /* both 0: not bound to a root */
	uint64_t entry_count, content_bytes, file_size;
	uint32_t dir_count;
	int io_error;                /* IOERR_* of the scan */
	bool followed_links;         /* contents are opened through symlinks */
	bool has_atimes;
	unsigned digests;            /* enum attr_digest: which chunks are there */
	const char *root_path, *version, *options;
};
const struct attr_snapshot_facts *attr_snapshot_facts(const struct attr_snapshot *snapshot);

/* --- directories: 0 is the root, a parent's number is smaller than its children's --- */

struct snapshot_dir_facts {
	uint32_t parent, parent_entry; /* its entry is parent_entry of the parent's; both 0 for the root */
	uint32_t leading;              /* so many entries come before the first directory */
	uint32_t subtree_end;          /* directories dir + 1 .. subtree_end - 1 lie below it */
	int error;                     /* errno of the scan if its entries could not be read, else 0 */
	uint64_t dev, ino;
	int64_t ctime;
	uint32_t ctime_nsec;
};

/* The entries of a directory, as mapped, in wire order. entry.dir of a directory is its number. Nothing to free (entries_free
 * does nothing to a view). */
struct entries attr_snapshot_view(const struct attr_snapshot *snapshot, uint32_t dir);
struct snapshot_dir_facts attr_snapshot_dir(const struct attr_snapshot *snapshot, uint32_t dir);
/* The "." entry of the root as a list of one. */
struct entries attr_snapshot_root(const struct attr_snapshot *snapshot);
/* Name of a directory other than the root: that of its entry. */
const char *attr_snapshot_dir_name(const struct attr_snapshot *snapshot, uint32_t dir);
/* Path below the root, "" for it, after a reset of `out`. */
void attr_snapshot_dir_path(const struct attr_snapshot *snapshot, uint32_t dir, struct strbuf *out);

/* The side record of any entry, or NULL: a view's is expanded into *expanded, so it lives as long as both. */
const struct entry_side *entry_any_side(const struct entries *list, const struct entry *entry, struct entry_side *expanded);

/* The stored digest of a regular file's content (16 bytes, as on the wire), or NULL. `entry` is one of the view's own, not a
 * copy: here, and for entry_any_side. */
const uint8_t *attr_snapshot_digest(const struct entries *view, const struct entry *entry, enum attr_digest which);
/* The stored name of a user or a group; NULL if there is none. */
const char *attr_snapshot_owner(const struct attr_snapshot *snapshot, bool is_group, uint32_t id);

#endif
