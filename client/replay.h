/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The replay of a batch (doc/protocol/03-transfer.md section 12.3): a pull from a file. */
#ifndef CLIENT_REPLAY_H
#define CLIENT_REPLAY_H

#include "options.h"

/* options->read_batch into the last operand. Options that the batch says otherwise are changed. Returns the exit code. */
int client_replay(struct options *options);

#endif
