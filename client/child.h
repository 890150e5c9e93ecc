/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A local run by the protocol: for options that mean something only between two ends. */
#ifndef CLIENT_CHILD_H
#define CLIENT_CHILD_H

#include "options.h"

/*
 * The operands as of receiver_main. A child becomes the server that sends, this process pulls from it;
 * people are shown a local run. Returns the exit code.
 */
int client_local(struct options *options);

#endif
