/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening by the owners of links, and asking where an open object lies. */
#include "fs/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/proc.h"
#include "lib/alloc.h"
#include "lib/log.h"

#define OWN_FLAGS (FS_ANY_LINKS | FS_NO_ANONYMOUS | FS_SILENT)

int fs_owner_walk(int dir_fd, const char *path, enum fs_walk_rule rule, int flags, struct fs_walk_end *end)
{
	int result = fs_walk(dir_fd, path, rule, !(flags & O_NOFOLLOW), end);

	if (result < 0 && end->foreign_link && !(flags & FS_SILENT)) {
		log_error("refusing to follow a symlink owned by an untrusted user; use --insecure-links locally or \"insecure "
			  "links = yes\" in a daemon module ONLY if every path component is trusted");
		errno = ELOOP;
	}
	return result;
}

/* A pipe, a socket or the like, to which no path leads. A named FIFO lies on the file system that names it. */
static bool is_anonymous(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0
	       && (fs.f_type == PIPEFS_MAGIC || fs.f_type == SOCKFS_MAGIC || fs.f_type == ANON_INODE_FS_MAGIC
		   || fs.f_type == NSFS_MAGIC);
}

/*
 * Whoever has the descriptor may put something else in its place at any time, so the link is followed once: what it led to
 * is held, judged, and opened by its own descriptor.
 */
static int open_kernel_link(struct fs_walk_end *end, int flags, mode_t mode)
{
	char name[FS_PROC_PATH_SIZE];
	int held = fs_walk_open(end, (flags & ~(OWN_FLAGS | O_NOFOLLOW)) | O_PATH, 0), fd;

	if (held < 0)
		return -1;
	bool has_no_path = is_anonymous(held);

	if (flags & FS_NO_ANONYMOUS && has_no_path)
		fd = fs_fail(ENOENT);
	else if (flags & O_PATH)
		return held;
	else if (!fs_proc_path(held, name))
		fd = fs_fail(ELOOP);
	else
		fd = open(name, (flags & ~(OWN_FLAGS | O_NOFOLLOW)) | O_CLOEXEC, mode);
	fs_close(held);
	/* Who holds the other end of a descriptor of ours is waited for, as with "-". */
	if (fd >= 0 && has_no_path && flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int fs_owner_open(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct fs_walk_end end;

	if (flags & FS_ANY_LINKS)
		return openat(dir_fd, path, (flags & ~OWN_FLAGS) | O_CLOEXEC, mode);
	if (!*path)
		return fs_fail(ENOENT);
	if (fs_owner_walk(dir_fd, path, FS_WALK_OWNER, flags, &end) < 0)
		return -1;
	if (end.kernel_link)
		return open_kernel_link(&end, flags, mode);
	return fs_walk_open(&end, flags & ~OWN_FLAGS, mode);
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
	int dir_fd = fs_owner_open(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	char inner[PATH_MAX], outer[PATH_MAX];
	bool known = dir_fd >= 0 && name_of(fd, inner, sizeof inner) && name_of(dir_fd, outer, sizeof outer);
	size_t length = known ? strlen(outer) : 0;

	if (dir_fd >= 0)
		close(dir_fd);
	if (known && outer[length - 1] == '/')
		length--;
	return known && !strncmp(inner, outer, length) && (!inner[length] || inner[length] == '/');
}
