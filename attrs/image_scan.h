/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Filling an image from a tree with several threads, whole or where an older snapshot no longer holds, and digests of contents.
 * Each thread has scan options of its own, because filter rules keep a position in the tree.
 *
 * The state of a directory (image_dir) is that from before its names were read. Where a later look could not tell whether
 * something has changed since, because the last change was too recent or something could not be read, its ctime is 0: the next
 * refresh reads it again.
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
	int threads;                      /* 1..IMAGE_THREADS_MAX, the calling thread among them */
	/* One for each thread. links, devices, specials, hard_links and origins are set by the scan. */
	struct scan_options *options[IMAGE_THREADS_MAX];
	/* Called in thread `thread` before it scans a directory: merge files are read. NULL: there are none. */
	void (*enter)(void *context, int thread, const char *transfer_dir);
	/* Called in any thread with every built entry (--chmod and the like). NULL: nothing to do. */
	void (*adjust)(void *context, struct entry *entry);
	/* Called in the calling thread when image_refresh_dirs has looked at all that may be unchanged, which is most of its
	 * work: what is left does not keep all processors busy. NULL: nothing to do. */
	void (*looked)(void *context);
	void *context;
	_Atomic uint64_t *done;           /* entries so far, for progress (digests: files read); NULL: nobody wants to know */
	atomic_bool *stop;                /* set: give up soon (ECANCELED); may be NULL */
	/* A directory that changed less than so many nanoseconds ago may change again without a new ctime; 0: two seconds. */
	int64_t settle_ns;
	const struct image_digester *digester; /* image_add_digests only (attrs/image_digest.h) */
};

/* Scan the whole tree below the source's root. 0; -1 with errno if the root cannot be looked at or the scan was stopped. Errors
 * of single directories and names are logged, and collected in image->io_error. */
int image_scan_all(struct image *image, const struct image_scan *scan);

/*
 * Filling an image from a tree of which somebody has seen most already: a run that has just brought it up to date. Directories
 * that are known are taken from there, the others are scanned.
 */
struct image_known {
	/*
	 * Called in any thread, once for each directory whose entry has a tag (entry.dir, given with the entries of the
	 * directory above it; 0: none). `path` is below the root, "" for it. true: *list (empty before) has what a scan would
	 * make of it, in wire order, and *st is the directory's state from before its names were read. false: it is not known
	 * after all.
	 */
	bool (*give)(void *context, uint32_t tag, const char *path, struct entries *list, struct fs_stat *st);
	void *context;
	uint32_t root_tag;
};

/* As image_scan_all. *read: directories that were scanned. */
int image_scan_known(struct image *image, const struct image_scan *scan, const struct image_known *known, uint64_t *read);

#endif
