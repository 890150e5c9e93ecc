/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Has a directory of an older snapshot changed? `st`: what its name in the tree stands for now. */
#ifndef ATTRS_IMAGE_LOOK_H
#define ATTRS_IMAGE_LOOK_H

#include "attrs/image_scan.h"

bool image_is_same_dir(const struct attr_snapshot *old, uint32_t dir, const struct fs_stat *st);
/* Other names in it, or it is another one. */
bool image_dir_has_changed(const struct attr_snapshot *old, uint32_t dir, const struct fs_stat *st);
/* The entry that a scan would make of it now; `entry` is the old one. */
struct entry image_fresh_entry(const struct image_scan *scan, const struct entry *entry, const struct fs_stat *st,
			       uint64_t parent_dev);
bool image_is_same_entry(const struct entry *a, const struct entry *b);
/* Look at all of them at once, in several threads: of each whether it, its entry and all below are as they were (free() it).
 * What is not, mount points among it, has to be looked at in its own time. */
uint8_t *image_find_whole(const struct image_scan *scan, const struct attr_snapshot *old);

#endif
