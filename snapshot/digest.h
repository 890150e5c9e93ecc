/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Digests of contents in an image. */
#ifndef SNAPSHOT_DIGEST_H
#define SNAPSHOT_DIGEST_H

#include "attrs/image_scan.h"

/*
 * Give every regular file the digests that image->digests asks for: taken from `old` (NULL: none) where size, mtime, ctime and
 * inode are the same, else read. Files that cannot be read (logged) or change meanwhile stay without; the list lacks nothing,
 * so image->io_error is left alone. *reused, *computed: files. Turns views into built entries where something is missing.
 * scan->options are not used, the source's open_noatime is. 0, or -1 with ECANCELED.
 */
int image_add_digests(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reused,
		      uint64_t *computed);

#endif
