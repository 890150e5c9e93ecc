/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Filling an image from a tree of which somebody has seen most already: a run that has just brought it up to date. Directories
 * that are known are taken from there, the others are scanned.
 */
#ifndef ATTRS_IMAGE_KNOWN_H
#define ATTRS_IMAGE_KNOWN_H

#include "attrs/image_scan.h"

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
