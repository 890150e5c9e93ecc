/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Landlock: the kernel's own border around a process, on top of the resolvers of this room. What it forbids stays forbidden
 * whatever the process is talked into. By raw system calls: no library has them.
 */
#ifndef FS_LANDLOCK_H
#define FS_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

#define FS_LANDLOCK_RENAMES 2  /* version that lets names move between directories; older ones always forbid it */
#define FS_LANDLOCK_ALL 6      /* version from which on everything that we ask for is there */

/* A directory or file that stays reachable. */
struct fs_reachable {
	int fd;        /* O_PATH will do */
	bool writable; /* a directory's entries and contents may be changed */
};

/* The version of Landlock that the kernel has; 0: none. */
int fs_landlock_version(void);

/*
 * From now on this thread, and what it starts, may read files beneath the reachable ones and change what is beneath the
 * writable ones; open nothing else, bind or connect no TCP socket, and signal no process outside. Descriptors that are open
 * already work as before. Needs PR_SET_NO_NEW_PRIVS. -1 with errno; then nothing is confined.
 */
int fs_landlock_confine(int version, const struct fs_reachable *reachable, size_t count);

#endif
