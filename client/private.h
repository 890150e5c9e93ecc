/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files behind client.h share: the steps of making a connection. */
#ifndef CLIENT_PRIVATE_H
#define CLIENT_PRIVATE_H

#include "client.h"

/* --- client/words.c --- */

/* How many of the server's words stay visible when arguments are secluded: up to the cluster and --iconv (protocol/01 5.4). */
size_t server_words_visible(const struct args *words);
/* Put backslashes before what the shell at the other end would take for something else, as far as --old-args lets us. */
void server_words_escape(const struct options *options, struct args *words);
/* One word, malloc'ed; in a path, wildcards are meant. */
char *server_word_escape(const char *word, bool is_path);

/* "LABEL: WORD WORD ...  (N args)", for -vv. */
void tell_words(const struct options *options, const char *label, const struct args *words);

/* --- client.c --- */

/* A connection that somebody else has made: as client_connect leaves it. */
void client_adopt(struct connection *connection, const struct options *options);

/* --- client/shell.c --- */

/* Start the remote shell; what it runs is `words` behind the rsync path, as they are. Sets in_fd, out_fd, shell_pid. */
void shell_start(struct connection *connection, const struct options *options, const struct remote *remote,
		const struct args *words);
/* Does the end of the session with this code leave the shell with nothing more to do? */
bool shell_has_finished(int code);
/* Wait for it as long as the circumstances of the end allow. The larger one of `code` and what it ended with. */
int shell_end(struct connection *connection, int code);

/* --- client/socket.c --- */

/* A connected socket, at the latest when --contimeout is over. */
int socket_dial(const struct options *options, const struct remote *remote);

/* --- client/login.c, client/auth.c --- */

/* Exchange greetings: sets the protocol, returns the daemon's digest names, malloc'ed; NULL: it has not given any. */
char *daemon_greet(struct connection *connection, const struct options *options);
/* The rest of the text phase, up to the "@RSYNCD: OK". Ends the process if that is not reached. */
void daemon_log_in(struct connection *connection, const struct options *options, const struct remote *remote,
		const char *digests);
/* "USER RESPONSE\n" to a challenge; `digests` is the daemon's list or NULL. */
void daemon_answer(struct wire *wire, const struct options *options, const struct remote *remote, const char *digests,
		int protocol,
		   const char *challenge);

#endif
