/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The directories that an operator's arguments have led to (doc/protocol/09-since-3.5.0.md section 6.2). An argument may lead
 * through any symlink; which directory it has come to is noted by device and inode, and whatever is opened below it later
 * begins in that directory: a symlink that was exchanged in between is ELOOP. One directory is held open at a time.
 *
 * They belong to one root (fs/root.h), whose `anchors` they are, and to one thread.
 */
#ifndef FS_ANCHORS_H
#define FS_ANCHORS_H

#include <stdbool.h>

#include "fs/root.h"

struct fs_anchors;

struct fs_anchors *fs_anchors_new(void);
void fs_anchors_free(struct fs_anchors *anchors); /* may be NULL */

/* Note the directory `path` below the root, reached through every symlink; follow: also through a last one. A path that is
 * noted already stays as it was. -1 with errno if there is no such directory. */
int fs_anchors_add(struct fs_anchors *anchors, const struct fs_root *root, const char *path, bool follow);

/* Where the resolution of *path begins if it leads below a noted directory; only with `follow` also if it names that itself.
 * True: *fd is that directory, not the caller's to close, or -1 with errno, and *path is what is left of the path. With
 * root->owned the way there must consist of links of root and of the effective user. */
bool fs_anchors_begin(struct fs_anchors *anchors, const struct fs_root *root, bool follow, const char **path, int *fd);

#endif
