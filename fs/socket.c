/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Local sockets by name. Calls on sockets know no directory descriptors: the way leads through /proc. */
#include "fs/socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/proc.h"

#define BACKLOG 16

static int address_of(int dir_fd, const char *name, struct sockaddr_un *address)
{
	char dir[FS_PROC_PATH_SIZE];
	int length;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!fs_proc_path(dir_fd, dir))
		return fs_fail(EOPNOTSUPP);
	length = snprintf(address->sun_path, sizeof address->sun_path, "%s/%s", dir, name);
	return length < (int)sizeof address->sun_path ? 0 : fs_fail(ENAMETOOLONG);
}

static int close_failed(int fd)
{
	int error = errno;

	close(fd);
	return fs_fail(error);
}

static int connect_at(int dir_fd, const char *name, int flags)
{
	struct sockaddr_un address;
	struct fs_stat st;
	int fd;

	if (address_of(dir_fd, name, &address) < 0 || fs_lstat_at(dir_fd, name, &st) < 0)
		return -1;
	if (!S_ISSOCK(st.mode))
		return fs_fail(ENOTSOCK);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return close_failed(fd);
	return fd;
}

int fs_socket_connect(const char *path, int flags)
{
	char name[256];
	int dir_fd = fs_operator_parent(path, name), fd, error;

	if (dir_fd < 0)
		return -1;
	fd = connect_at(dir_fd, name, flags);
	error = errno;
	close(dir_fd);
	errno = error;
	return fd;
}

/* What a daemon that crashed has left. */
static int remove_stale(int dir_fd, const char *name)
{
	int fd = connect_at(dir_fd, name, SOCK_NONBLOCK);

	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno == EAGAIN)
		return fs_fail(EADDRINUSE);
	if (errno == ENOTSOCK)
		return fs_fail(EEXIST);
	if (errno == ECONNREFUSED)
		return fs_unlink_at(dir_fd, name);
	return errno == ENOENT ? 0 : -1;
}

static int bind_privately(int fd, const struct sockaddr_un *address)
{
	mode_t mask = umask(0177);
	int result = bind(fd, (const struct sockaddr *)address, sizeof *address), error = errno;

	umask(mask);
	errno = error;
	return result;
}

static int open_socket(struct fs_socket *file)
{
	struct sockaddr_un address;
	struct fs_stat st;

	if (remove_stale(file->dir_fd, file->name) < 0 || address_of(file->dir_fd, file->name, &address) < 0)
		return -1;
	file->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (file->fd < 0 || bind_privately(file->fd, &address) < 0 || listen(file->fd, BACKLOG) < 0 ||
	    fs_lstat_at(file->dir_fd, file->name, &st) < 0)
		return -1;
	file->dev = st.dev;
	file->ino = st.ino;
	file->owner = getpid();
	return 0;
}

int fs_socket_listen(struct fs_socket *file, const char *path)
{
	int error;

	*file = (struct fs_socket)FS_SOCKET_INIT;
	file->dir_fd = fs_operator_parent(path, file->name);
	if (file->dir_fd < 0)
		return -1;
	if (open_socket(file) == 0)
		return 0;
	error = errno;
	fs_socket_close(file);
	return fs_fail(error);
}

void fs_socket_remove(struct fs_socket *file)
{
	struct fs_stat st;

	if (file->fd >= 0 && file->owner == getpid() && fs_lstat_at(file->dir_fd, file->name, &st) == 0 &&
	    st.dev == file->dev && st.ino == file->ino)
		fs_unlink_at(file->dir_fd, file->name);
	fs_socket_close(file);
}

void fs_socket_close(struct fs_socket *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->dir_fd >= 0)
		close(file->dir_fd);
	*file = (struct fs_socket)FS_SOCKET_INIT;
}
