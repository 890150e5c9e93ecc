/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sockets: local ones by name, reached through /proc as no call on them knows directory descriptors; and options by name. */
#include "fs/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/walk.h"
#include "lib/alloc.h"
#include "lib/log.h"

/* --- local sockets by name --- */

#define BACKLOG 16

static int address_of(int dir_fd, const char *name, struct sockaddr_un *address)
{
	char dir[FS_PROC_PATH_SIZE];

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!fs_proc_path(dir_fd, dir))
		return fs_fail(EOPNOTSUPP);
	int length = snprintf(address->sun_path, sizeof address->sun_path, "%s/%s", dir, name);

	return length < (int)sizeof address->sun_path ? 0 : fs_fail(ENAMETOOLONG);
}

static int connect_at(int dir_fd, const char *name, int flags)
{
	struct sockaddr_un address;
	struct fs_stat st;

	if (address_of(dir_fd, name, &address) < 0 || fs_lstat_at(dir_fd, name, &st) < 0)
		return -1;
	if (!S_ISSOCK(st.mode))
		return fs_fail(ENOTSOCK);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
		fs_close(fd);
		return -1;
	}
	return fd;
}

int fs_socket_connect(const char *path, int flags)
{
	char name[256];
	int dir_fd = fs_operator_parent(path, 0, name), fd = dir_fd < 0 ? -1 : connect_at(dir_fd, name, flags);

	fs_close(dir_fd);
	return fd;
}

/* What a daemon that crashed has left. */
static int remove_stale(int dir_fd, const char *name)
{
	int fd = connect_at(dir_fd, name, SOCK_NONBLOCK);

	fs_close(fd);
	if (fd >= 0 || errno == EAGAIN)
		return fs_fail(EADDRINUSE);
	if (errno == ENOTSOCK)
		return fs_fail(EEXIST);
	if (errno == ECONNREFUSED)
		return fs_unlink_at(dir_fd, name);
	return errno == ENOENT ? 0 : -1;
}

static int open_socket(struct fs_own_name *file)
{
	struct sockaddr_un address;
	struct fs_stat st;

	if (remove_stale(file->dir_fd, file->name) < 0 || address_of(file->dir_fd, file->name, &address) < 0)
		return -1;
	file->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (file->fd < 0)
		return -1;
	mode_t mask = umask(0177);
	int result = bind(file->fd, (const struct sockaddr *)&address, sizeof address);

	umask(mask); /* which never fails */
	if (result < 0 || listen(file->fd, BACKLOG) < 0 || fs_lstat_at(file->dir_fd, file->name, &st) < 0)
		return -1;
	file->dev = st.dev;
	file->ino = st.ino;
	file->owner = getpid();
	return 0;
}

int fs_socket_listen(struct fs_own_name *file, const char *path)
{
	*file = (struct fs_own_name)FS_OWN_NAME_INIT;
	file->dir_fd = fs_operator_parent(path, 0, file->name);
	if (file->dir_fd >= 0 && open_socket(file) == 0)
		return 0;
	fs_own_name_close(file);
	return -1;
}

/* --- options by name --- */

static const struct {
	const char *name;
	int level, option;
	int fixed; /* the only value, or 0: the text has one (default 1) */
} socket_options[] = {
	{ "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 0 },
	{ "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 0 },
	{ "SO_BROADCAST", SOL_SOCKET, SO_BROADCAST, 0 },
	{ "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 0 },
	{ "IPTOS_LOWDELAY", IPPROTO_IP, IP_TOS, IPTOS_LOWDELAY },
	{ "IPTOS_THROUGHPUT", IPPROTO_IP, IP_TOS, IPTOS_THROUGHPUT },
	{ "SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 0 },
	{ "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 0 },
	{ "SO_SNDLOWAT", SOL_SOCKET, SO_SNDLOWAT, 0 },
	{ "SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 0 },
	{ "SO_SNDTIMEO", SOL_SOCKET, SO_SNDTIMEO, 0 },
	{ "SO_RCVTIMEO", SOL_SOCKET, SO_RCVTIMEO, 0 },
};

static void apply_option(int fd, char *word)
{
	const size_t count = sizeof socket_options / sizeof socket_options[0];
	char *value = strchr(word, '=');
	int number = value ? atoi(value + 1) : 1, result;
	size_t i;

	if (value)
		*value = 0;
	for (i = 0; i < count && strcmp(socket_options[i].name, word); i++)
		;
	if (i == count) {
		log_error("Unknown socket option %s", word);
		return;
	}
	if (value && socket_options[i].fixed)
		log_error("syntax error -- %s does not take a value", word);
	if (socket_options[i].fixed)
		number = socket_options[i].fixed;
	int option = socket_options[i].option, level = socket_options[i].level;
	struct timeval seconds = { number, 0 };

	if (level == SOL_SOCKET && (option == SO_SNDTIMEO || option == SO_RCVTIMEO))
		result = setsockopt(fd, level, option, &seconds, sizeof seconds);
	else
		result = setsockopt(fd, level, option, &number, sizeof number);
	if (result < 0)
		log_errno(L_ERROR, errno, "failed to set socket option %s", word);
}

void socket_options_apply(int fd, const char *options)
{
	char *copy = xstrdup(options), *rest, *word;
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	for (word = strtok_r(copy, " \t,", &rest); word; word = strtok_r(NULL, " \t,", &rest))
		apply_option(fd, word);
	free(copy);
}
