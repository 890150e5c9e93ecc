/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client as receiver. */
#ifndef CLIENT_PULL_H
#define CLIENT_PULL_H

#include "client.h"

/* From `paths` of the remote side into the last operand, or to a listing if no operand is local. Returns the exit code. */
int client_pull(struct options *options, const struct remote *remote, const struct args *paths);

/* A local run by the protocol, for options that mean something only between two ends: a child of this process sends, this one
 * receives or lists. Operands as of receiver_main. Returns the exit code. */
int client_local(struct options *options);

/* The replay of a batch (doc/protocol/03-transfer.md section 12.3): options->read_batch into the last operand. Options that the
 * batch has otherwise are changed. Returns the exit code. */
int client_replay(struct options *options);

#endif
