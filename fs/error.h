/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Failing the way system calls do; only for the files of this room. */
#ifndef FS_ERROR_H
#define FS_ERROR_H

#include <errno.h>
#include <unistd.h>

static inline int fs_fail(int error)
{
	errno = error;
	return -1;
}

/* Close on a path that has failed already: its errno stays. */
static inline void fs_close_quietly(int fd)
{
	int error = errno;

	close(fd);
	errno = error;
}

#endif
