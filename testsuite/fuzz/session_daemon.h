/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the harnesses of a daemon's sessions share: its configuration, and its clients' command lines. */
#ifndef TESTSUITE_FUZZ_SESSION_DAEMON_H
#define TESTSUITE_FUZZ_SESSION_DAEMON_H

#include "session.h"

/* The trees of session_trees, a configuration "conf" whose modules have them, secrets and passwords. */
void session_daemon_files(const struct session_plan *plan);
/* --server --daemon; plan->choice & 1: without the sandbox. */
int session_daemon_words(const struct session_plan *plan, const char **words);

/* Line plan->choice of a daemon's client, with plan->protocol. */
int session_daemon_lines(void);
int session_daemon_client_words(const struct session_plan *plan, const char **words);

#endif
