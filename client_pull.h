/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client as receiver. */
#ifndef CLIENT_PULL_H
#define CLIENT_PULL_H

#include "client.h"

/* From `paths` of the remote side into the last operand, or to a listing if no operand is local. Returns the exit code. */
int client_pull(struct options *options, const struct remote *remote, const struct args *paths);

#endif
