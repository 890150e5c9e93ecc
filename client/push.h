/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The client as sender: local files to a server (doc/protocol/03-transfer.md; doc/protocol/01-session.md section 10 for the
 * end).
 */
#ifndef CLIENT_PUSH_H
#define CLIENT_PUSH_H

#include "client.h"

/* Connect and send what the operands before the last name; `paths`: the destination, as remote_operands gave it. Returns the
 * exit code. */
int client_push(struct options *options, const struct remote *remote, const struct args *paths);

#endif
