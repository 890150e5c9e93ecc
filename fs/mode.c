/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changing permission bits of a name without ever following a symlink; the umask. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/file.h"
#include "fs/proc.h"
#include "fs/root.h"

/* Linux 6.6; headers are often older than the kernel. New system calls have one number on all architectures but alpha. */
#if !defined(SYS_fchmodat2) && !defined(__alpha__)
#define SYS_fchmodat2 452
#endif

static int chmod_nofollow(int dir_fd, const char *name, mode_t mode)
{
#ifdef SYS_fchmodat2
	return (int)syscall(SYS_fchmodat2, dir_fd, name, mode, AT_SYMLINK_NOFOLLOW);
#else
	(void)dir_fd, (void)name, (void)mode;
	return fs_fail(ENOSYS);
#endif
}

/*
 * Older kernels: a held descriptor says what the object is. It can be changed through proc; without proc only an object that
 * may be opened without side effects, and then the opened one must be the same object.
 */
static int chmod_held(int held, int dir_fd, const char *name, mode_t mode)
{
	struct fs_stat st, opened;
	char path[FS_PROC_PATH_SIZE];

	if (fs_stat_at_fd(held, &st) < 0)
		return -1;
	if (S_ISLNK(st.mode))
		return fs_fail(ELOOP);
	if (fs_proc_path(held, path))
		return chmod(path, mode);
	if (!S_ISREG(st.mode) && !S_ISDIR(st.mode))
		return fs_fail(EOPNOTSUPP);
	int fd = fs_open_at(dir_fd, name, O_RDONLY, 0);

	if (fd < 0)
		return -1;
	int result = fs_stat_at_fd(fd, &opened) < 0 ? -1
		     : opened.ino != st.ino || opened.dev != st.dev ? fs_fail(ELOOP) : fchmod(fd, mode);
	int error = errno;

	close(fd);
	errno = error;
	return result;
}

int fs_chmod_at(int dir_fd, const char *name, mode_t mode)
{
	if (chmod_nofollow(dir_fd, name, mode & 07777) == 0)
		return 0;
	if (errno == EOPNOTSUPP)
		return fs_fail(ELOOP);
	if (errno != ENOSYS && errno != EPERM)
		return -1;
	/* EPERM is also what container sandboxes answer to system calls that they do not know. */
	int held = fs_open_at(dir_fd, name, O_PATH, 0);

	if (held < 0)
		return -1;
	int result = chmod_held(held, dir_fd, name, mode & 07777);
	int error = errno;

	close(held);
	errno = error;
	return result;
}

/* Setting the umask to learn it would leave other threads without one for a moment; proc tells it. */
mode_t fs_umask(void)
{
	FILE *status = fs_has_proc() ? fopen("/proc/thread-self/status", "re") : NULL;
	char line[256];
	mode_t mask = 0;
	bool found = false;

	while (status && !found && fgets(line, sizeof line, status)) {
		found = !strncmp(line, "Umask:", 6);
		if (found)
			mask = (mode_t)strtoul(line + 6, NULL, 8);
	}
	if (status)
		fclose(status);
	if (!found) {
		mask = umask(077);
		umask(mask);
	}
	return mask & 0777;
}
