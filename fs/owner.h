/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Resolver R2 itself (doc/protocol/08-security.md section 4.3): a symlink at any component is followed only if it is owned by
 * uid 0 or the effective uid. What the operator names is opened by fs/operator.h, what lies below a root by fs/root.h.
 */
#ifndef FS_OWNER_H
#define FS_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "fs/walk.h"

/* Among the flags of open(2) below: links are followed whoever owns them (--insecure-links). */
#define FS_ANY_LINKS (1 << 30)
/* A pipe or socket, which has no path to lie anywhere, is ENOENT (--confine-root; doc/protocol/09-since-3.5.0.md
 * section 5.1). */
#define FS_NO_ANONYMOUS (1 << 29)
/* The caller reports a link of another user itself, or goes on without: no hint is logged. */
#define FS_SILENT (1 << 28)

/* openat(2) by R2; O_CLOEXEC is added. A link of another user gets a line that says so, unless FS_SILENT. -1 with errno. */
int fs_owner_open(int dir_fd, const char *path, int flags, mode_t mode);

/* fs_walk by one of its R2 rules, with that line. Of the flags FS_SILENT and O_NOFOLLOW count. Inside fs/ only. */
int fs_owner_walk(int dir_fd, const char *path, enum fs_walk_rule rule, int flags, struct fs_walk_end *end);

/* The path of an open directory as this process sees it, malloc'ed; NULL if /proc does not say. */
char *fs_path_of(int fd);

/* Does the object behind an open descriptor lie in (or equal) the directory `dir`, an absolute path? Goes by /proc. */
bool fs_leads_inside(int fd, const char *dir);

#endif
