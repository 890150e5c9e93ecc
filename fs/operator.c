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
#include "fs/proc.h"
#include "fs/walk.h"
#include "lib/alloc.h"
#include "lib/log.h"

#define OWN_FLAGS (FS_ANY_LINKS | FS_NO_ANONYMOUS | FS_SILENT)

/* fs_walk, and the hint at what it refused. */
static int walk(int dir_fd, const char *path, enum fs_walk_rule rule, int flags, struct fs_walk_end *end)
{
	int result = fs_walk(dir_fd, path, rule, !(flags & O_NOFOLLOW), end);

	if (result < 0 && end->foreign_link && !(flags & FS_SILENT)) {
		log_error("refusing to follow a symlink owned by an untrusted user; use --insecure-links locally or \"insecure "
			  "links = yes\" in a daemon module ONLY if every path component is trusted");
		errno = ELOOP;
	}
	return result;
}

/* What the kernel's link leads to is a pipe, a socket or the like: its text is no path. */
static bool is_anonymous(const struct fs_walk_end *end)
{
	char first;

	return end->kernel_link && readlinkat(end->dir_fd, end->leaf, &first, 1) == 1 && first != '/';
}

static int open_from(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct fs_walk_end end;

	if (flags & FS_ANY_LINKS)
		return openat(dir_fd, path, (flags & ~OWN_FLAGS) | O_CLOEXEC, mode);
	if (!*path)
		return fs_fail(ENOENT);
	if (walk(dir_fd, path, FS_WALK_OWNER, flags, &end) < 0)
		return -1;
	bool is_pipe = is_anonymous(&end);

	if (flags & FS_NO_ANONYMOUS && is_pipe) {
		close(end.dir_fd);
		return fs_fail(ENOENT);
	}
	int fd = fs_walk_open(&end, flags & ~OWN_FLAGS, mode);

	/* Who holds the other end of a descriptor of ours is waited for, as with "-". */
	if (fd >= 0 && is_pipe && flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int fs_operator_open(const char *path, int flags, mode_t mode)
{
	return open_from(AT_FDCWD, path, flags, mode);
}

int fs_operator_open_at(int dir_fd, const char *path, int flags)
{
	return open_from(dir_fd, path, flags, 0);
}

int fs_operator_open_in(int root_fd, const char *path, int flags)
{
	struct fs_walk_end end;

	if (!*path)
		return fs_fail(ENOENT);
	if (walk(root_fd, path, FS_WALK_ROOTED, flags, &end) < 0)
		return -1;
	return fs_walk_open(&end, flags, 0);
}

static int parent_of(const char *path, bool follow, char leaf[256])
{
	struct fs_walk_end end;

	if (!*path)
		return fs_fail(ENOENT);
	if (walk(AT_FDCWD, path, FS_WALK_OWNER, follow ? 0 : O_NOFOLLOW, &end) < 0)
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

int fs_operator_parent_with(const char *path, int flags, char leaf[256])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char parent[PATH_MAX];

	if (!(flags & FS_ANY_LINKS))
		return fs_operator_parent(path, leaf);
	if (!*path || strlen(path) >= sizeof parent || strlen(name) >= 256)
		return fs_fail(*path ? ENAMETOOLONG : ENOENT);
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return fs_fail(EISDIR);
	strcpy(leaf, name);
	memcpy(parent, path, (size_t)(name - path));
	parent[name - path] = '\0';
	return fs_operator_open(*parent ? parent : ".", O_PATH | O_DIRECTORY | FS_ANY_LINKS, 0);
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
	char link[FS_PROC_PATH_SIZE];
	ssize_t length = fs_proc_path(fd, link) ? readlink(link, name, size - 1) : -1;

	if (length <= 0 || *name != '/')
		return false;
	name[length] = '\0';
	return true;
}

char *fs_path_of(int fd)
{
	char name[PATH_MAX];

	return name_of(fd, name, sizeof name) ? xstrdup(name) : NULL;
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
