/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Digests of contents in an image. */
#ifndef ATTRS_IMAGE_DIGEST_H
#define ATTRS_IMAGE_DIGEST_H

#include "attrs/image_scan.h"

struct file_digest; /* delta/digest.h, which attrs/ does not stand on */

/* Running digests, 16 bytes long. `start` begins one anew. */
struct image_digester {
	struct file_digest *(*new)(void);
	void (*start)(struct file_digest *digest, enum attr_digest which);
	void (*update)(struct file_digest *digest, const void *data, size_t length);
	void (*finish)(struct file_digest *digest, uint8_t out[16]);
	void (*free)(struct file_digest *digest);
};

/*
 * Give every regular file the digests that image->digests asks for: taken from `old` (NULL: none) where size, mtime, ctime and
 * inode are the same, else read. Files that cannot be read (logged) or change meanwhile stay without; the list lacks nothing,
 * so image->io_error is left alone. *reused, *computed: files. Turns views into built entries where something is missing.
 * scan->options are not used, the source's open_noatime is. 0, or -1 with ECANCELED.
 */
int image_add_digests(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reused,
		      uint64_t *computed);

#endif
