/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Operator-named paths: links are trusted by their owner. */
#include "fs/operator.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/file.h"
#include "fs/walk.h"

static int open_from(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct fs_walk_end end;

	if (flags & FS_ANY_LINKS)
		return openat(dir_fd, path, (flags & ~FS_ANY_LINKS) | O_CLOEXEC, mode);
	if (!*path)
		return fs_fail(ENOENT);
	if (fs_walk(dir_fd, path, FS_WALK_OWNER, !(flags & O_NOFOLLOW), &end) < 0)
		return -1;
	return fs_walk_open(&end, flags, mode);
}

int fs_operator_open(const char *path, int flags, mode_t mode)
{
	return open_from(AT_FDCWD, path, flags, mode);
}

int fs_operator_open_at(int dir_fd, const char *path, int flags)
{
	return open_from(dir_fd, path, flags, 0);
}

static int parent_of(const char *path, bool follow, char leaf[256])
{
	struct fs_walk_end end;

	if (!*path)
		return fs_fail(ENOENT);
	if (fs_walk(AT_FDCWD, path, FS_WALK_OWNER, follow, &end) < 0)
		return -1;
	if (end.directory || end.kernel_link || !strcmp(end.leaf, ".")) {
		close(end.dir_fd);
		return fs_fail(end.kernel_link ? EINVAL : EISDIR);
	}
	strcpy(leaf, end.leaf);
	return end.dir_fd;
}

int fs_operator_parent(const char *path, char leaf[256])
{
	return parent_of(path, false, leaf);
}

int fs_operator_target(const char *path, char leaf[256])
{
	return parent_of(path, true, leaf);
}

bool fs_may(int fd, int how)
{
	return faccessat(fd, "", how, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

bool fs_operator_may_write(const char *path)
{
	char leaf[256];
	int fd = fs_operator_open(path, O_PATH, 0), how = W_OK, error;
	struct fs_stat st;
	bool ok;

	if (fd >= 0 && fs_stat_at_fd(fd, &st) == 0 && S_ISDIR(st.mode)) {
		close(fd);
		errno = EISDIR;
		return false;
	}
	if (fd < 0 && errno == ENOENT) {
		fd = fs_operator_target(path, leaf);
		how |= X_OK;
	}
	if (fd < 0)
		return false;
	ok = fs_may(fd, how);
	error = errno;
	close(fd);
	errno = error;
	return ok;
}

int fs_operator_root(struct fs_root *root, const char *path)
{
	int fd = fs_operator_open(path, O_PATH | O_DIRECTORY, 0);

	if (fd < 0)
		return -1;
	fs_root_adopt(root, fd);
	return 0;
}

int fs_operator_read(const char *path, int flags, size_t limit, struct strbuf *out)
{
	int fd = fs_operator_open(path, O_RDONLY | flags, 0);

	if (fd < 0)
		return -1;
	int result = fs_read_all(fd, limit, out);
	int error = errno;

	close(fd);
	errno = error;
	return result;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* The parent of the directory `fd`, which is closed, and its identity; -1 at the top, where ".." stays put. */
static int climb(int fd, struct stat *here)
{
	struct stat parent;
	int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

	close(fd);
	if (up < 0)
		return -1;
	if (fstat(up, &parent) < 0 || is_same(&parent, here)) {
		close(up);
		return -1;
	}
	*here = parent;
	return up;
}

bool fs_is_inside(int inner_fd, int outer_fd)
{
	struct stat outer, here;

	if (fstat(outer_fd, &outer) < 0 || fstat(inner_fd, &here) < 0)
		return false;
	int fd = fcntl(inner_fd, F_DUPFD_CLOEXEC, 0);

	while (fd >= 0 && !is_same(&here, &outer))
		fd = climb(fd, &here);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool name_of(int fd, char *name, size_t size)
{
	char link[64];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, name, size - 1);

	if (length <= 0 || *name != '/')
		return false;
	name[length] = '\0';
	return true;
}

bool fs_leads_inside(int fd, const char *dir)
{
	int dir_fd = fs_operator_open(dir, O_PATH | O_DIRECTORY, 0);
	char inner[PATH_MAX], outer[PATH_MAX];
	bool known = dir_fd >= 0 && name_of(fd, inner, sizeof inner) && name_of(dir_fd, outer, sizeof outer);
	size_t length = known ? strlen(outer) : 0;

	if (dir_fd >= 0)
		close(dir_fd);
	if (known && outer[length - 1] == '/')
		length--;
	return known && !strncmp(inner, outer, length) && (!inner[length] || inner[length] == '/');
}

int fs_enter_chroot(int dir_fd)
{
	if (fchdir(dir_fd) < 0 || chroot(".") < 0)
		return -1;
	return chdir("/");
}
