/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A local stream socket with a name that the operator chose (resolver R2 up to its directory). */
#ifndef FS_SOCKET_H
#define FS_SOCKET_H

#include <stdint.h>
#include <sys/types.h>

struct fs_socket {
	int fd;          /* non-blocking, listening; -1: there is none */
	int dir_fd;
	char name[256];
	uint64_t dev, ino;
	pid_t owner;
};

#define FS_SOCKET_INIT { -1, -1, "", 0, 0, 0 }

/*
 * Listen at `path` with mode 0600, in the place of a socket that nobody listens at any more. -1 with errno: EADDRINUSE if
 * somebody does, EEXIST if it is not a socket, ENAMETOOLONG if the last component is longer than some 80 bytes. Changes the
 * process's umask for a moment: not for processes with threads.
 */
int fs_socket_listen(struct fs_socket *socket, const char *path);
void fs_socket_remove(struct fs_socket *socket); /* only in the process that made it; closes in any */
void fs_socket_close(struct fs_socket *socket);  /* in a child: the name stays */

/* A connection to the socket at `path`, or -1 with errno. flags: SOCK_NONBLOCK or 0. */
int fs_socket_connect(const char *path, int flags);

/* --- options that an operator or a user may name: --sockopts, "socket options" (doc/protocol/07-daemon.md section 4.5) --- */

/*
 * Set TCP_NODELAY, as what goes out is gathered here and not in the kernel, then what the "NAME=VALUE, ..." string says; what
 * of that cannot be applied is logged.
 */
void socket_options_apply(int fd, const char *options);

#endif
