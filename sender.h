/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sender: answers every request of the generator, in order (protocol/03). */
#ifndef SENDER_H
#define SENDER_H

#include "flist.h"
#include "server.h"

/* Read the names that are wanted (arguments, --files-from), send the list, serve all requests up to the goodbye. */
void sender_run(struct server *server, struct flist *list, struct filter_list *user_rules);

/* What server.c does with messages that do not concern a sender. */
void server_message(struct server *server, enum message_code code, const uint8_t *payload, size_t length);

#endif
