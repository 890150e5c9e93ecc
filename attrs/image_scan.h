/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Filling an image from a tree with several threads, whole or where an older snapshot no longer holds.
 * Each thread has scan options of its own, because filter rules keep a position in the tree.
 *
 * The state of a directory (image_dir) is that from before its names were read. Where a later look could not see whether
 * something has changed since, because the last change was too recent or something could not be read, its ctime is 0: the next
 * refresh reads it again.
 */
#ifndef ATTRS_IMAGE_SCAN_H
#define ATTRS_IMAGE_SCAN_H

#include <stdatomic.h>

#include "attrs/image.h"
#include "attrs/source.h"

enum { IMAGE_THREADS_MAX = 64 };
#define IMAGE_NO_OLD UINT32_MAX /* no directory of an older snapshot */

/* What a scan needs of its caller. */
struct image_scan {
	struct attr_source *source;       /* live or attr tree; shared by the threads, not changed by scans */
	int threads;                      /* 1..IMAGE_THREADS_MAX, the calling thread among them */
	/* One for each thread. links, hard_links and origins are set by the scan. */
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
};

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

/* Scan the whole tree below the source's root, but for what is known (NULL: nothing). *read: directories that were scanned. 0;
 * -1 with errno if the root cannot be looked at or the scan was stopped. Errors of single directories and names are logged, and
 * collected in image->io_error. */
int image_scan_all(struct image *image, const struct image_scan *scan, const struct image_known *known, uint64_t *read);

/* Is the last change of an object so long ago that another one gives it another ctime? `now`: before it was looked at. */
bool image_is_settled(const struct image_scan *scan, const struct fs_stat *st, const struct timespec *now);
bool image_is_stopped(const struct image_scan *scan);
void image_count_done(const struct image_scan *scan, uint64_t count);

/*
 * An image from an older snapshot, and from the tree only where that no longer holds. The same result with less work: a
 * directory is read only if its device, inode, mtime or ctime differ from what `old` says; else its entries become views of
 * `old`, which must outlive the image. The attributes of directories themselves are looked at in any case, and those of hard
 * links whose group has gained or lost a name. Right for trees whose files are only ever changed by renaming new ones into
 * place, and for the filters that `old` was made with. With scan->enter a changed directory is read with all below it, for its
 * merge files may have changed; where links are followed, everything is read. *reread: directories read.
 */
int image_refresh_dirs(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reread);

/*
 * Another way: only the named paths (below the root, "" for it) are looked at again, a directory with all below it, anything
 * else with the other names of its directory; everything else becomes views of `old`, except for the attributes of the
 * directories on the way. A path that is gone is dropped; one whose parent is new is read from that parent on. Of a hard-linked
 * file that has gained or lost a name, the caller names the other ones too.
 */
int image_refresh_paths(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old,
			const char *const *paths, size_t count, uint64_t *reread);

#endif
