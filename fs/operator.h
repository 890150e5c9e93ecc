/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Paths that the operator names (configuration, lock, log, motd, filter files, module roots): resolver R2 of protocol/08
 * section 4.3. A symlink at any component is followed only if the link is owned by uid 0 or the effective uid; else ELOOP.
 */
#ifndef FS_OPERATOR_H
#define FS_OPERATOR_H

#include <stdbool.h>
#include <sys/types.h>

/* open(2) by R2; O_CLOEXEC is added. Returns a descriptor or -1 with errno. */
int fs_operator_open(const char *path, int flags, mode_t mode);

/* Does the physical directory `inner_fd` lie inside (or equal) `outer_fd`? Walks ".." comparing device and inode. */
bool fs_is_inside(int inner_fd, int outer_fd);

#endif
