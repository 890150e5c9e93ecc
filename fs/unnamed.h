/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files that are complete before they have a name: no reader of the directory ever sees one that is being written, and
 * nothing is left behind by a crash.
 */
#ifndef FS_UNNAMED_H
#define FS_UNNAMED_H

#include <sys/types.h>

/* An empty file without a name on the file system of the held directory, open for reading and writing. -1 with errno:
 * EOPNOTSUPP where the file system cannot. */
int fs_unnamed_create(int dir_fd, mode_t mode);
/* Give it a name that is not taken (EEXIST). */
int fs_unnamed_publish(int fd, int dir_fd, const char *name);

#endif
