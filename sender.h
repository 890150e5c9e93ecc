/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sender: answers every request of the generator, in order (protocol/03). */
#ifndef SENDER_H
#define SENDER_H

#include "flist.h"
#include "server.h"

/* Send the list and serve all requests up to the goodbye. `arguments`: source arguments. */
void sender_run(struct server *server, struct filter_list *user_rules);

#endif
