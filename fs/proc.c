/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is the proc file system there, and nothing in its place? */
#include "fs/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A mount point cannot be renamed away, so what holds now holds for the call that uses the path. */
bool fs_has_proc(void)
{
	struct statfs fs;
	int error = errno;
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool is_proc = proc >= 0 && fstatfs(proc, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;

	if (proc >= 0)
		close(proc);
	errno = error;
	return is_proc;
}

bool fs_proc_path(int fd, char path[FS_PROC_PATH_SIZE])
{
	bool is_proc = fs_has_proc();

	*path = '\0';
	if (is_proc)
		snprintf(path, FS_PROC_PATH_SIZE, "/proc/self/fd/%d", fd);
	return is_proc;
}
