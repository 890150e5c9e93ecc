/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Operator-named paths: links are trusted by their owner. */
#include "fs/operator.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/file.h"
#include "fs/walk.h"

int fs_operator_open(const char *path, int flags, mode_t mode)
{
	return fs_owner_open(AT_FDCWD, path, flags, mode);
}

int fs_operator_open_in(int root_fd, const char *path, int flags)
{
	struct fs_walk_end end;

	if (!*path)
		return fs_fail(ENOENT);
	if (fs_owner_walk(root_fd, path, FS_WALK_ROOTED, flags, &end) < 0)
		return -1;
	return fs_walk_open(&end, flags, 0);
}

int fs_operator_parent(const char *path, int flags, char leaf[256])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char parent[PATH_MAX];
	struct fs_walk_end end;

	if (!*path)
		return fs_fail(ENOENT);
	if (flags & FS_ANY_LINKS) {
		if (strlen(path) >= sizeof parent || strlen(name) >= 256)
			return fs_fail(ENAMETOOLONG);
		if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
			return fs_fail(EISDIR);
		strcpy(leaf, name);
		memcpy(parent, path, (size_t)(name - path));
		parent[name - path] = '\0';
		return fs_operator_open(*parent ? parent : ".", O_PATH | O_DIRECTORY | FS_ANY_LINKS, 0);
	}
	if (fs_owner_walk(AT_FDCWD, path, FS_WALK_OWNER, flags & FS_FOLLOW ? 0 : O_NOFOLLOW, &end) < 0)
		return -1;
	if (end.directory || end.kernel_link || !strcmp(end.leaf, ".")) {
		close(end.dir_fd);
		return fs_fail(end.kernel_link ? EINVAL : EISDIR);
	}
	strcpy(leaf, end.leaf);
	return end.dir_fd;
}

bool fs_may(int fd, int how)
{
	return faccessat(fd, "", how, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

bool fs_operator_may_write(const char *path)
{
	char leaf[256];
	int fd = fs_operator_open(path, O_PATH, 0), how = W_OK;
	struct fs_stat st;

	if (fd >= 0 && fs_stat_at_fd(fd, &st) == 0 && S_ISDIR(st.mode)) {
		close(fd);
		errno = EISDIR;
		return false;
	}
	if (fd < 0 && errno == ENOENT) {
		fd = fs_operator_parent(path, FS_FOLLOW, leaf);
		how |= X_OK;
	}
	if (fd < 0)
		return false;
	bool ok = fs_may(fd, how);

	fs_close(fd);
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
	int result = fd < 0 ? -1 : fs_read_all(fd, limit, out);

	fs_close(fd);
	return result;
}

void fs_own_name_remove(struct fs_own_name *file)
{
	struct fs_stat st;

	if (file->fd >= 0 && file->owner == getpid() && fs_lstat_at(file->dir_fd, file->name, &st) == 0 && st.dev == file->dev
	    && st.ino == file->ino)
		fs_unlink_at(file->dir_fd, file->name);
	fs_own_name_close(file);
}

void fs_own_name_close(struct fs_own_name *file)
{
	fs_close(file->fd);
	fs_close(file->dir_fd);
	*file = (struct fs_own_name)FS_OWN_NAME_INIT;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

bool fs_is_inside(int inner_fd, int outer_fd)
{
	struct stat outer, here, below;

	if (fstat(outer_fd, &outer) < 0 || fstat(inner_fd, &here) < 0)
		return false;
	int fd = fcntl(inner_fd, F_DUPFD_CLOEXEC, 0);

	while (fd >= 0 && !is_same(&here, &outer)) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		close(fd);
		below = here;
		/* At the top ".." stays put. */
		if (up >= 0 && (fstat(up, &here) < 0 || is_same(&here, &below))) {
			close(up);
			return false;
		}
		fd = up;
	}
	fs_close(fd);
	return fd >= 0;
}

int fs_enter_chroot(int dir_fd)
{
	if (fchdir(dir_fd) < 0 || chroot(".") < 0)
		return -1;
	return chdir("/");
}
