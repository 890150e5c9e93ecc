/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The daemon's listening sockets: bound here, or handed over by systemd (doc/protocol/07-daemon.md sections 4.5 and 4.6). */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include <stdbool.h>

#include "lib/vec.h"

typedef VEC(int) listen_sockets;

struct listen_request {
	const char *address;        /* "": every address */
	int port, backlog;
	int family;                 /* 0, 4, 6 */
	const char *socket_options; /* "" for none */
	bool verbose;               /* log what could not be bound even if something else could */
};

/* Bind and listen. Nothing could be bound, or listening failed: logged, false. */
bool listen_open(const struct listen_request *request, listen_sockets *sockets);
/* Bind only: without listening, no client can connect. */
bool listen_bind(const struct listen_request *request, listen_sockets *sockets);
/* Take over the sockets of LISTEN_FDS, if they are meant for this process. Returns how many there were. */
int listen_from_systemd(listen_sockets *sockets);
/* Tell systemd (NOTIFY_SOCKET) something; nothing happens where nobody listens. */
void listen_notify(const char *state);

#endif
