/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Filling an image from a tree with several threads, whole or where an older snapshot no longer holds, and digests of contents.
 * Each thread has scan options of its own, because filter rules keep a position in the tree.
 */
#ifndef ATTRS_IMAGE_SCAN_H
#define ATTRS_IMAGE_SCAN_H

#include <stdatomic.h>

#include "attrs/image.h"
#include "attrs/source.h"

enum { IMAGE_THREADS_MAX = 64 };

/* What a scan needs of its caller. */
struct image_scan {
	struct attr_source *source;       /* live or attr tree; shared by the threads, not changed by scans */
	int threads;                      /* 1..IMAGE_THREADS_MAX */
	/* One for each thread. links, devices, specials, hard_links and origins are set by the scan. */
	struct scan_options *options[IMAGE_THREADS_MAX];
	/* Called in thread `thread` before it scans a directory: merge files are read. NULL: nothing to do. */
	void (*enter)(void *context, int thread, const char *transfer_dir);
	/* Called in any thread with every built entry (--chmod and the like). NULL: nothing to do. */
	void (*adjust)(void *context, struct entry *entry);
	void *context;
	_Atomic uint64_t *done;           /* entries so far, for progress; NULL: nobody wants to know */
	atomic_bool *stop;                /* set: give up soon (ECANCELED); may be NULL */
};

/* Scan the whole tree below the source's root. 0; -1 with errno if the root cannot be looked at or the scan was stopped. Errors of
 * single directories and names are logged, and collected in image->io_error. */
int image_scan_all(struct image *image, const struct image_scan *scan);

/*
 * The same result with less work: a directory is read only if its device, inode, mtime or ctime differ from what `old` says;
 * else its entries become views of `old`, which must outlive the image. Right for trees whose files are only ever changed by
 * renaming new ones into place. *reread: directories read.
 */
int image_refresh_dirs(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reread);

/*
 * Another way: only the named paths (below the root, "" for it) are looked at again, directories among them with all below
 * them; everything else becomes views of `old`. A path that is gone is dropped; one whose parent is new is read from that
 * parent on.
 */
int image_refresh_paths(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old,
			const char *const *paths, size_t count, uint64_t *reread);

/*
 * Give every regular file the digests that image->digests asks for: taken from `old` (NULL: none) where size, mtime, ctime and
 * inode are the same, else read. Files that cannot be read stay without (logged, IOERR_GENERAL). *reused, *computed: files. Turns
 * views into built entries where something is missing. scan->options[0..] are not used.
 */
int image_add_digests(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reused,
		      uint64_t *computed);

#endif
