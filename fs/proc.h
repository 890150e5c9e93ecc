/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Naming a held object by "/proc/self/fd/N", for system calls that take no descriptor of its kind. Inside fs/ only. */
#ifndef FS_PROC_H
#define FS_PROC_H

#include <stdbool.h>

#define FS_PROC_PATH_SIZE 32

/* Is /proc the proc file system? In a chroot it may be a directory that anybody has put there, with whatever below it. */
bool fs_has_proc(void);
/* The name of an open descriptor, which no other place makes; false, and path is "", where /proc is something else. */
bool fs_proc_path(int fd, char path[FS_PROC_PATH_SIZE]);

#endif
