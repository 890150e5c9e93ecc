/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A whole tree in memory, on its way into a snapshot: made by a scan or by a refresh of an older snapshot
 * (image_scan.h), from an attr tree, or by a local run that has seen every file anyway; written by attr_snapshot_write.
 *
 * Directories are made in any order; the writer brings them into the order of the file. A directory's entries are built
 * (sorted by image_add_children) or a view of an older snapshot, as attr_snapshot_view gives it.
 */
#ifndef ATTRS_IMAGE_H
#define ATTRS_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "attrs/entry.h"
#include "fs/ids.h"
#include "fs/root.h"
#include "lib/strbuf.h"
#include "lib/vec.h"

struct image_dir {
	struct entries entries;  /* ENTRY_HARD_LINKED entries have dev and ino in their side records, symlinks their targets */
	uint32_t first_child, child_count; /* the directory entries' image_dirs, in order; filled by image_add_children */
	uint32_t parent, parent_entry;
	int error;               /* errno if its entries could not be read */
	uint64_t dev, ino;
	int64_t ctime;
	uint32_t ctime_nsec;
};

struct image_digest { uint8_t xxh128[16], md5[16]; };

struct image {
	VEC(struct image_dir *) dirs;   /* 0: the root */
	struct entries root;            /* its "." entry */
	struct timespec made;           /* when the scan began */
	uint64_t root_dev, root_ino;    /* both 0: not bound to a root */
	char *root_path, *options;      /* for the facts; owned; NULL: "" */
	int io_error;
	bool followed_links;
	bool has_atimes;                /* store them; a view without atimes counts as 0 */
	unsigned digests;               /* enum attr_digest: which to store */
	struct snapshot_room *room;     /* attr_snapshot_reserve */
	VEC(struct image_digest) digest_list; /* of built entries, by side->digest - 1; views bring their own */
};

/* An image with an empty root directory. */
struct image *image_new(void);
void image_free(struct image *image); /* not the snapshots that its views are of */

/* Fill one directory from what a stat says of it; for the root also its "." entry and what the image is bound to. */
void image_set_root(struct image *image, const struct fs_stat *st);
void image_dir_stat(struct image_dir *dir, const struct fs_stat *st);

/*
 * The entries of directory `dir` are complete: sort what was built, and make a directory for each directory entry
 * (dirs.items[dir]->first_child and so on). A hard-linked entry whose device is not the directory's loses its flag:
 * bind mounts of single files have no group. Once for each directory; not thread-safe: callers lock.
 */
void image_add_children(struct image *image, uint32_t dir);
/* Path below the root, "" for it, after a reset. */
void image_dir_path(const struct image *image, uint32_t dir, struct strbuf *out);

/* Copy a view's entries into a list that can be changed, in the same order; of stored digests only the origins. */
void image_copy_view(struct image *image, const struct entries *view, struct entries *out);

/* All of its entries, "." included. */
uint64_t image_count(const struct image *image);

#endif
