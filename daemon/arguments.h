/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The request of a client: its words, the options in them, and paths inside the module. */
#ifndef DAEMON_ARGUMENTS_H
#define DAEMON_ARGUMENTS_H

#include "options.h"

struct budget;
struct daemon_session;

/* Read the client's words, parse the options, fill options.operands with module-relative paths. On a refused or bad option
 * `refusal` is set. */
void arguments_receive(struct daemon_session *session);
/* One path word: the module's name in front is dropped, and the rest made relative; wildcards stay. Malloc'ed. */
char *argument_clean(const char *word, const char *module);
/* Split a word where old clients have joined several with " MODULE/"; appends the cleaned pieces, at most ARGS_MAX_COUNT. */
void argument_split(struct args *pieces, const char *word, const char *module, struct budget *budget);

/* The path words as logs show them: joined by spaces, cut after the one that passes 1024 bytes; malloc'ed. */
char *session_request(const struct daemon_session *session);

#endif
