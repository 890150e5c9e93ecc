/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Resolving a path component by component below held descriptors: the portable form of resolver R1 and the only form of
 * resolver R2 (doc/protocol/08-security.md sections 4.2 and 4.3), under which a symlink at any component is followed only if it
 * is owned by uid 0 or the effective uid. Inside fs/ only, but for the flags, fs_owner_open, fs_path_of and fs_leads_inside:
 * what the operator names is opened by fs/operator.h, what lies below a root by fs/root.h.
 *
 * Every step opens one name relative to a descriptor without following it, so what was looked at is what is used: no rename
 * of a component can redirect the walk.
 */
#ifndef FS_WALK_H
#define FS_WALK_H

#include <stdbool.h>
#include <sys/types.h>

/* --- "/proc/self/fd/N": a held object, for system calls that take no descriptor of its kind --- */

#define FS_PROC_PATH_SIZE 32

/* Is /proc the proc file system? In a chroot it may be a directory that anybody has put there, with whatever below it. */
bool fs_has_proc(void);
/* The name of an open descriptor, which no other place makes; false, and path is "", where /proc is something else. */
bool fs_proc_path(int fd, char path[FS_PROC_PATH_SIZE]);

/* --- the walk --- */

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

/* --- opening by the owners of links --- */

/* Among the flags of open(2) below: links are followed whoever owns them (--insecure-links). */
#define FS_ANY_LINKS (1 << 30)
/* A pipe or socket, which has no path to lie anywhere, is ENOENT (--confine-root; doc/protocol/09-since-3.5.0.md
 * section 5.1). */
#define FS_NO_ANONYMOUS (1 << 29)
/* The caller reports a link of another user itself, or goes on without: no hint is logged. */
#define FS_SILENT (1 << 28)

/* openat(2) by R2; O_CLOEXEC is added. A link of another user gets a line that says so, unless FS_SILENT. -1 with errno. */
int fs_owner_open(int dir_fd, const char *path, int flags, mode_t mode);

/* fs_walk by one of its R2 rules, with that line. Of the flags FS_SILENT and O_NOFOLLOW count. */
int fs_owner_walk(int dir_fd, const char *path, enum fs_walk_rule rule, int flags, struct fs_walk_end *end);

/* The path of an open directory as this process sees it, malloc'ed; NULL if /proc does not say. */
char *fs_path_of(int fd);

/* Are two open descriptors the same object? */
bool fs_is_same_directory(int a, int b);

/* Does the object behind an open descriptor lie in (or equal) the directory `dir`, an absolute path? Goes by /proc. */
bool fs_leads_inside(int fd, const char *dir);

#endif
