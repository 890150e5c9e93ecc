/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The connection of a client to a daemon. */
#ifndef CLIENT_SOCKET_H
#define CLIENT_SOCKET_H

#include "client.h"

/* A connected socket, at the latest when --contimeout is over. */
int socket_dial(const struct options *options, const struct remote *remote);

#endif
