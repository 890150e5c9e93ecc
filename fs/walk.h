/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Resolving a path component by component below held descriptors: the portable form of resolver R1 and the only form of
 * resolver R2 (doc/protocol/08-security.md sections 4.2 and 4.3). Inside fs/ only.
 *
 * Every step opens one name relative to a descriptor without following it, so what was looked at is what is used: no rename
 * of a component can redirect the walk.
 */
#ifndef FS_WALK_H
#define FS_WALK_H

#include <stdbool.h>
#include <sys/types.h>

#define FS_NAME_SIZE 256 /* NAME_MAX and a NUL */

enum fs_walk_rule {
	FS_WALK_BENEATH, /* R1: never above the start; absolute paths and targets are refused */
	FS_WALK_OWNER,   /* R2: a link of root or of the effective uid may lead anywhere */
	FS_WALK_ROOTED,  /* R2 in a process whose root directory is the start: "/" and ".." never lead above it */
};

/* Where a walk ended: the last component is still to be opened, as openat(dir_fd, leaf, flags | O_NOFOLLOW). */
struct fs_walk_end {
	int dir_fd;               /* O_PATH, owned by the caller */
	char leaf[FS_NAME_SIZE];  /* "." if the path ends in ".", ".." or has no component */
	bool directory;           /* the path ends in a slash: anything else than a directory is ENOTDIR */
	bool foreign_link;        /* R2, after a failure: because of a link of another user */
	bool kernel_link;         /* R2: leaf is a link of the proc file system, which only the kernel can follow */
};

/*
 * Resolve `path` from the directory `start_fd` (may be AT_FDCWD under FS_WALK_OWNER) up to its last component, which is
 * resolved as well if it is a symlink and `follow` is set. 0, or -1 with errno: ELOOP for whatever the rule forbids.
 */
int fs_walk(int start_fd, const char *path, enum fs_walk_rule rule, bool follow, struct fs_walk_end *end);

/* Open what the walk found and close end->dir_fd. */
int fs_walk_open(struct fs_walk_end *end, int flags, mode_t mode);

#endif
