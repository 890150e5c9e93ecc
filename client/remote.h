/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which machine the operands of a client name. */
#ifndef CLIENT_REMOTE_H
#define CLIENT_REMOTE_H

#include <stdbool.h>

#include "options.h"
#include "options/remote.h"
#include "wire/args.h"

/*
 * Which of the operands are remote. False: none. Else *remote is the other side, `paths` what its server is to be told behind
 * the "." word, still without any quoting: all sources of a pull, the destination of a push. The local operands are then the
 * last (a pull; none if there is one operand only) or all but the last (a push). Operands that do not go together end the
 * process.
 */
bool remote_operands(const struct options *options, struct remote *remote, struct args *paths, bool *we_send);

/* The run goes to no daemon: options that only mean something there end the process (doc/protocol/09-since-3.5.0.md
 * section 4.1). */
void remote_check_no_daemon(const struct options *options);

#endif
