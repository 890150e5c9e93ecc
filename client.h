/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The client of a remote session: where the other side is, how it is reached, its command line (doc/protocol/01-session.md,
 * doc/protocol/06-command-line.md section 6).
 *
 *     if (remote_operands(options, &remote, &paths, &we_send)) {
 *             client_connect(&connection, options, &remote, &paths, we_send);
 *             ... set-up, transfer ...
 *             code = client_disconnect(&connection, code);
 *     }
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "lib/charset.h"
#include "options.h"
#include "options/remote.h"
#include "wire/session.h"

/* An open connection to a server process, up to the point where the session's set-up begins. */
struct connection {
	struct wire *wire;
	int protocol;       /* daemon: agreed upon in the greeting; shell: 0, versions are still to be exchanged */
	int peer_version;   /* daemon: the one that it would have liked */
	bool is_daemon;
	int shell_pid;      /* the remote shell, to be waited for (doc/protocol/01-session.md section 10.10); 0: none */
	int in_fd, out_fd;  /* the wire's; may be one descriptor */
	bool ignores_shell; /* how that ends says nothing: a daemon is being spoken to */
};

/*
 * Connect: run the remote shell with the server's command line, or dial the daemon (directly, by proxy, by
 * RSYNC_CONNECT_PROG), log in to the module (greeting, early input, MOTD, password) and send it the arguments. A module
 * listing (no module named) is printed and ends the process. Failures end it with stock's texts and codes. The log's role
 * becomes "sender" or "Receiver". The wire has its limits (--timeout, --bwlimit, --stop-at), but no message handler yet.
 *
 * From then on until client_disconnect, the process ends only after the remote shell has been looked after; *connection must
 * live.
 */
void client_connect(struct connection *connection, struct options *options, const struct remote *remote,
		    const struct args *paths, bool we_send);

/* Of our half of --iconv=LOCAL,REMOTE; NULL without. Ends the process if the system does not know it. */
struct charset *client_charset(const struct options *options);

/* Set the session up that the connection is for, up to multiplexing; what the role knows of it has been filled in. */
void client_set_up(struct session *session, const struct connection *connection, const struct options *options);

/* A connection that somebody else has made: as client_connect leaves it. */
void client_adopt(struct connection *connection, const struct options *options);

/* Close, wait for the remote shell, and free the wire. Returns the code to end with: the larger one of `code` and the
 * shell's. */
int client_disconnect(struct connection *connection, int code);

#endif
