/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Filling an image from an older snapshot, and from the tree only where that no longer holds. */
#ifndef ATTRS_IMAGE_REFRESH_H
#define ATTRS_IMAGE_REFRESH_H

#include "attrs/image_scan.h"

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

#endif
