/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The answer to a daemon's challenge. */
#ifndef CLIENT_AUTH_H
#define CLIENT_AUTH_H

#include "client.h"

/* "USER RESPONSE\n" to a challenge; `digests` is the daemon's list or NULL. */
void daemon_answer(struct wire *wire, const struct options *options, const struct remote *remote, const char *digests,
		int protocol,
		   const char *challenge);

#endif
