/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The options of sockets that an operator or a user may name: --sockopts, "socket options" (doc/protocol/07-daemon.md
 * section 4.5).
 */
#ifndef FS_SOCKET_OPTIONS_H
#define FS_SOCKET_OPTIONS_H

/*
 * Set TCP_NODELAY, as what goes out is gathered here and not in the kernel, then what the "NAME=VALUE, ..." string says; what
 * of that cannot be applied is logged.
 */
void socket_options_apply(int fd, const char *options);

#endif
