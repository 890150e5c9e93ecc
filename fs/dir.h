/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a directory's names through its descriptor. */
#ifndef FS_DIR_H
#define FS_DIR_H

#include <stddef.h>

struct fs_dir {
	int fd; /* owned */
	char *buffer;
	size_t used, length;
};

struct fs_dirent {
	const char *name;     /* valid until the next fs_dir_next */
	size_t name_length;
	unsigned char type;   /* DT_REG ... DT_UNKNOWN */
};

void fs_dir_start(struct fs_dir *dir, int fd); /* takes over the descriptor */
/* 1: *entry filled ("." and ".." are left out); 0: end; -1: error, errno set. Order is the file system's. */
int fs_dir_next(struct fs_dir *dir, struct fs_dirent *entry);
void fs_dir_finish(struct fs_dir *dir); /* frees and closes */

#endif
