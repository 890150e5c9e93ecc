/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Failing the way system calls do, and closing descriptors; for all rooms, by fs/file.h. */
#ifndef FS_ERROR_H
#define FS_ERROR_H

#include <errno.h>
#include <unistd.h>

static inline int fs_fail(int error)
{
	errno = error;
	return -1;
}

/* Close a descriptor, if it is one (not -1); errno stays. */
static inline void fs_close(int fd)
{
	const int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
}

#endif
