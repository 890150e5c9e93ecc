/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Naming a held object by "/proc/self/fd/N", for system calls that take no descriptor of its kind. Inside fs/ only. */
#ifndef FS_PROC_H
#define FS_PROC_H

#include <stdbool.h>

#define FS_PROC_PATH_SIZE 32

/* false where /proc is not the proc file system: in a chroot it may be a directory that anybody has put there. */
bool fs_proc_path(int fd, char path[FS_PROC_PATH_SIZE]);

#endif
