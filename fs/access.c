/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Read permission, asked of the kernel. */
#include "fs/access.h"

#include <fcntl.h>
#include <unistd.h>

bool fs_is_readable_at(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0;
}

bool fs_is_readable(const struct fs_root *root, const char *path)
{
	int fd = fs_open(root, path, O_PATH, 0);
	bool readable = fd >= 0 && faccessat(fd, "", R_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;

	if (fd >= 0)
		close(fd);
	return readable;
}
