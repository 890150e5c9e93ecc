/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Temp files and the registry that removes them on every exit (a documented exception to "no globals"). A file is written
 * under a temp name in the directory of its destination and renamed over it when complete. Thread-safe.
 */
#ifndef FS_TEMP_H
#define FS_TEMP_H

#include <stddef.h>
#include <sys/types.h>

#define FS_TEMP_NAME_SIZE 256

struct fs_temp {
	int fd;                       /* open for reading and writing, mode 0600 */
	int dir_fd;                   /* not owned; must stay open until commit or discard */
	char name[FS_TEMP_NAME_SIZE]; /* ".NAME.XXXXXX", protocol/03 section 7.4 */
	int slot;                     /* place in the registry */
};

/* Create a temp file for `name` in dir_fd: O_EXCL|O_CREAT|O_NOFOLLOW, random suffix from getrandom. -1 with errno. */
int fs_temp_create(struct fs_temp *temp, int dir_fd, const char *name);
/* Reserve just a unique name (for symlinks, devices, hard links made under it); fd is -1. */
int fs_temp_reserve(struct fs_temp *temp, int dir_fd, const char *name);
/* Rename over `name` in the same directory and close; on failure the temp file is removed, -1 with errno. */
int fs_temp_commit(struct fs_temp *temp, const char *name);
void fs_temp_discard(struct fs_temp *temp);

/* Unlink every registered temp file; async-signal-safe. Registered as exit hook by fs_temp_install. */
void fs_temp_remove_all(void);
void fs_temp_install(void);

#endif
