/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text phase of a client at a daemon (doc/protocol/07-daemon.md). */
#ifndef CLIENT_LOGIN_H
#define CLIENT_LOGIN_H

#include "client.h"

/* Exchange greetings: sets the protocol, returns the daemon's digest names, malloc'ed; NULL: it has not given any. */
char *daemon_greet(struct connection *connection, const struct options *options);
/* The rest of the text phase, up to the "@RSYNCD: OK". Ends the process if that is not reached. */
void daemon_log_in(struct connection *connection, const struct options *options, const struct remote *remote,
		const char *digests);

#endif
