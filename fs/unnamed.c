/* SPDX-License-Identifier: GPL-3.0-or-later */
/* O_TMPFILE and linkat. */
#include "fs/unnamed.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fs/proc.h"

int fs_unnamed_create(int dir_fd, mode_t mode)
{
	int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);

	/* What kernels and file systems without the feature make of the flags. */
	if (fd < 0 && (errno == EISDIR || errno == EINVAL || errno == ENOENT))
		errno = EOPNOTSUPP;
	return fd;
}

int fs_unnamed_publish(int fd, int dir_fd, const char *name)
{
	char self[FS_PROC_PATH_SIZE];

	if (linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) == 0)
		return 0;
	/* Without CAP_DAC_READ_SEARCH older kernels want the way through proc. */
	if ((errno != ENOENT && errno != EPERM) || !fs_proc_path(fd, self))
		return -1;
	return linkat(AT_FDCWD, self, dir_fd, name, AT_SYMLINK_FOLLOW);
}
