/* SPDX-License-Identifier: GPL-3.0-or-later */
/* May this process read an object? For the daemon's "ignore nonreadable". */
#ifndef FS_ACCESS_H
#define FS_ACCESS_H

#include <stdbool.h>

#include "fs/root.h"

/* By the effective ids; a final symlink is not followed. */
bool fs_is_readable_at(int dir_fd, const char *name);
bool fs_is_readable(const struct fs_root *root, const char *path);

#endif
