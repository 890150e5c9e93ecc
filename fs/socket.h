/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A local stream socket with a name that the operator chose (resolver R2 up to its directory). */
#ifndef FS_SOCKET_H
#define FS_SOCKET_H

#include "fs/operator.h"

/*
 * Listen at `path` with mode 0600, in the place of a socket that nobody listens at any more. -1 with errno: EADDRINUSE if
 * somebody does, EEXIST if it is not a socket, ENAMETOOLONG if the last component is longer than some 80 bytes. Changes the
 * process's umask for a moment: not for processes with threads. The descriptor is non-blocking.
 */
int fs_socket_listen(struct fs_own_name *socket, const char *path);

/* A connection to the socket at `path`, or -1 with errno. flags: SOCK_NONBLOCK or 0. */
int fs_socket_connect(const char *path, int flags);

/* --- options that an operator or a user may name: --sockopts, "socket options" (doc/protocol/07-daemon.md section 4.5) --- */

/*
 * Set TCP_NODELAY, as what goes out is gathered here and not in the kernel, then what the "NAME=VALUE, ..." string says; what
 * of that cannot be applied is logged.
 */
void socket_options_apply(int fd, const char *options);

#endif
