/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client of a remote session: where the other side is, how it is reached, what it is told (protocol/01, protocol/06 section 6). */
#ifndef CLIENT_H
#define CLIENT_H

#include "options.h"
#include "wire/session.h"

/* A remote operand taken apart. */
struct remote {
	enum { REMOTE_SHELL, REMOTE_DAEMON, REMOTE_DAEMON_OVER_SHELL } kind;
	char *user, *host;  /* NULL: none given */
	int port;           /* 0: the default */
	char *path;         /* of a shell: as typed behind the colon; of a daemon: "module/path", "" lists modules */
};
bool remote_parse(struct remote *remote, const char *operand); /* false: a local path */
void remote_free(struct remote *remote);

/* An open connection to a server process, up to the point where the session's set-up begins. */
struct connection {
	struct wire *wire;
	int protocol;       /* daemon: agreed upon in the greeting; shell: 0, versions are still to be exchanged */
	bool is_daemon;
	int shell_pid;      /* the remote shell, to be waited for (protocol/01 10.10); 0: none */
};

/*
 * Connect: run the remote shell with the server's command line, or dial the daemon (directly, by proxy, by RSYNC_CONNECT_PROG), log in to
 * the module (greeting, early input, MOTD, password) and send it the arguments. `paths`: what follows the "." word. A module listing
 * (no module named) is printed and ends the process. Failures end it with stock's texts and codes.
 */
void client_connect(struct connection *connection, struct options *options, const struct remote *remote, const struct args *paths,
		    bool we_send);

/* The option words that tell a server what to do (protocol/01 section 6), without program name and paths. */
void options_server_words(const struct options *options, bool we_send, int protocol, struct args *words);

/* A run with a remote operand: push or pull. Returns the exit code. */
int client_main(struct options *options);

#endif
