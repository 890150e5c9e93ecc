/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The role of the receiver at a server. */
#ifndef SERVER_RECEIVE_H
#define SERVER_RECEIVE_H

#include <stdint.h>

#include "server.h"

/* The names that the client wants to have of a file that lies here; the file is closed. */
void server_send_names(struct server *server);
/* What this build cannot do for a client that sends becomes a startup_error, unless there is one already. */
void server_check_receiving(struct server *server);
/* The role of the receiver, after the set-up: the exit code, and the size of all files listed. `message` takes the peer's
 * messages about the session as such; its context is the server. */
int server_receive(struct server *server, wire_message_handler *message, uint64_t *total_size);

#endif
