/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The place of a module and its border, in the order in which a session calls these; the users and groups that the daemon and
 * its modules run as.
 */
#ifndef DAEMON_ROOTS_H
#define DAEMON_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "filter/filter.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "loadparm.h"

struct daemon_session;

void place_resolve(struct daemon_session *session);  /* path and chroot decision */
/* Reads the module's rules into `hidden`. A faulty rule ends the process. */
void rules_load(struct daemon_session *session);
void roots_open(struct daemon_session *session);     /* attribute and content side, before any privilege goes */
void roots_enter(struct daemon_session *session);    /* chroot, change directory, munge check */
void roots_confine(struct daemon_session *session);  /* the sandbox around what is left: daemon/sandbox.h */

/* A parameter with rules of a module, or with the name of their file. */
struct rules_parameter {
	const char *name;
	bool is_file;
	enum filter_style style;
};
const struct rules_parameter *rules_parameter(enum module_rules which);
/* The rules of one parameter only. */
void rules_load_parameter(struct daemon_session *session, enum module_rules which);

bool place_munges_symlinks(const struct daemon_session *session);
bool place_is_read_only(const struct daemon_session *session);
/* Are names of users and groups never sent to the clients of the module? */
bool session_hides_names(const struct daemon_session *session);

/* The user and groups that a module's files are read as. */
struct identity {
	bool set_uid, set_gid;
	uid_t uid;
	VEC(gid_t) gids;      /* the first is the primary group */
};

/* All digits and an id: (uid_t)-1 means "leave it" to the system calls and is not one. */
bool identity_parse(const char *text, uint32_t *id);

/* The daemon's own root, group and user. false: it has been logged why that is impossible. */
bool identity_assume_daemon(const struct config_globals *globals);

/* All groups that the user database gives to a user with this primary group; malloc'ed. */
gid_t *groups_of_user(const char *name, gid_t gid, size_t *count);

void identity_resolve(struct daemon_session *session);
/* Does the same without a session. Returns false with the reason for the log and, in another strbuf, for the client. */
bool identity_find(const struct module *module, struct identity *identity, struct strbuf *log, struct strbuf *answer);

void identity_assume(struct daemon_session *session);
/* Become it for good. Returns the call that has failed with errno, NULL for none. */
const char *identity_take(const struct identity *identity);

#endif
