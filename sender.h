/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sender: answers every request of the generator, in order (protocol/03). */
#ifndef SENDER_H
#define SENDER_H

#include "flist.h"
#include "server.h"

/* Read the names that are wanted (arguments, --files-from), send the list, serve all requests up to the goodbye. */
void sender_run(struct server *server, struct flist *list, struct filter_list *user_rules);

/* Open a --files-from file of this side, before the session starts: a daemon's client is told of a failure when it can be,
 * a remote shell's at once. */
void sender_open_names(struct server *server);

/* What server.c does with messages that do not concern a sender. */
void server_message(struct server *server, enum message_code code, const uint8_t *payload, size_t length);

#endif
