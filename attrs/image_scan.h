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

/* Running digests, 16 bytes long: the functions of delta/digest.h, which attrs/ does not stand on. `start` begins one anew. */
struct image_digester {
	void *(*new)(void);
	void (*start)(void *digest, enum attr_digest which);
	void (*update)(void *digest, const void *data, size_t length);
	void (*finish)(void *digest, uint8_t out[16]);
	void (*free)(void *digest);
};

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
	const struct image_digester *digester; /* image_add_digests only */
};

/* Scan the whole tree below the source's root. 0; -1 with errno if the root cannot be looked at or the scan was stopped. Errors
 * of single directories and names are logged, and collected in image->io_error. */
int image_scan_all(struct image *image, const struct image_scan *scan);

/*
 * The same result with less work: a directory is read only if its device, inode, mtime or ctime differ from what `old` says;
 * else its entries become views of `old`, which must outlive the image. The attributes of directories themselves are looked at
 * in any case, and those of hard links whose group has gained or lost a name. Right for trees whose files are only ever changed
 * by renaming new ones into place, and for the filters that `old` was made with. With scan->enter a changed directory is read
 * with all below it, for its merge files may have changed; where links are followed, everything is read. *reread: directories
 * read.
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

/*
 * Give every regular file the digests that image->digests asks for: taken from `old` (NULL: none) where size, mtime, ctime and
 * inode are the same, else read. Files that cannot be read (logged) or change meanwhile stay without; the list lacks nothing,
 * so image->io_error is left alone. *reused, *computed: files. Turns views into built entries where something is missing.
 * scan->options are not used. 0, or -1 with ECANCELED.
 */
int image_add_digests(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reused,
		      uint64_t *computed);

#endif
