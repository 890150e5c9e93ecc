/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client as receiver. */
#ifndef CLIENT_PULL_H
#define CLIENT_PULL_H

#include "client.h"

/* From `paths` of the remote side into the last operand, or to a listing if no operand is local. Returns the exit code. */
int client_pull(struct options *options, const struct remote *remote, const struct args *paths);

/* What is special about a session with a server that sends. */
struct pull_terms {
	const struct args *asked; /* paths of the source arguments, as the list has them; NULL: whatever comes */
	bool is_ourselves;        /* the other end of a local run */
	struct batch *batch;      /* to be written; NULL: none */
};

/* The session behind the connection, and its end. destination NULL: list. Returns the exit code. */
int client_pull_session(struct options *options, struct connection *connection, const struct pull_terms *terms,
			const char *destination);

#endif
