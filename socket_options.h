/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The options of sockets that an operator or a user may name: --sockopts, "socket options" (protocol/07 section 4.5). */
#ifndef SOCKET_OPTIONS_H
#define SOCKET_OPTIONS_H

/* Apply a "NAME=VALUE, ..." string to a socket; what cannot be applied is logged. */
void socket_options_apply(int fd, const char *options);

#endif
