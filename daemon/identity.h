/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The users and groups that the daemon and its modules run as. */
#ifndef DAEMON_IDENTITY_H
#define DAEMON_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/strbuf.h"
#include "lib/vec.h"
#include "loadparm.h"

struct daemon_session;

/* The user and groups that a module's files are read as. */
struct identity {
	bool set_uid, set_gid;
	uid_t uid;
	VEC(gid_t) gids;      /* the first is the primary group */
};

/* The daemon's own root, group and user. false: it has been logged why that is impossible. */
bool identity_assume_daemon(const struct config_globals *globals);

void identity_resolve(struct daemon_session *session);
/* Does the same without a session. Returns false with the reason for the log and, in another strbuf, for the client. */
bool identity_find(const struct module *module, struct identity *identity, struct strbuf *log, struct strbuf *answer);

void identity_assume(struct daemon_session *session);
/* Become it for good. Returns the call that has failed with errno, NULL for none. */
const char *identity_take(const struct identity *identity);

#endif
