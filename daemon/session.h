/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One connection of the daemon (protocol/07 section 5): its state, and the stages it goes through. The stages live in
 * daemon/peer.c, daemon/auth.c, daemon/slots.c, daemon/identity.c, daemon/rules.c, daemon/commands.c, daemon/roots.c and
 * daemon/arguments.c; daemon/session.c calls them in order. They talk to the client by daemon/talk.h.
 */
#ifndef DAEMON_SESSION_H
#define DAEMON_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "attrs/source.h"
#include "daemon/board.h"
#include "daemon/commands.h"
#include "daemon/hosts.h"
#include "daemon/peer.h"
#include "filter/filter.h"
#include "lib/strbuf.h"
#include "loadparm.h"
#include "loadparm/place.h"
#include "options.h"
#include "ui/log_file.h"
#include "wire/greeting.h"
#include "wire/session.h"
#include "wire/wire.h"

/* The user and groups that a module's files are read as. */
struct identity {
	bool set_uid, set_gid;
	uid_t uid;
	VEC(gid_t) gids;      /* the first is the primary group */
};

struct converter;
struct snapshots;

struct daemon_session {
	const struct options *daemon_options; /* of the daemon's own command line */
	struct log_file *log;
	struct config *config;
	struct wire *wire;
	int in_fd;            /* of the wire; over a shell there is another one for what goes out */
	bool over_shell;
	bool standalone;      /* a listener has reported the configuration's notes already */
	struct snapshots *snapshots; /* the listener's (daemon/snapshots.h); NULL: there is none */
	struct guesses *guesses;  /* the listener's; NULL: there is none */
	struct board_slot *board; /* told what the session does; NULL: there is no listener */
	atomic_bool makes_way;    /* has lowered its priority */
	int low_priority;

	rlim_t processor_seconds; /* that the process may use once the client has been let in */
	rlim_t core_size;         /* of the listener's core files, and so of the commands' */

	struct peer peer;
	struct greeting greeting;
	char *digests;        /* that the client has listed, NULL: none */
	struct strbuf early_input;
	int protocol;         /* 0: not one that we speak */

	const struct module *module;
	char *user;           /* who has logged in, "" if nobody had to */
	bool read_only;       /* of the module, or as the user's rule has it */
	bool has_own_temp_dir; /* --temp-dir is the operator's: the module's rules do not hold for it */
	struct identity identity;
	struct module_place place;
	struct fs_root outer; /* of the place, until the process has entered it */
	struct attr_source source;
	struct filter_list *hidden;
	struct commands commands;
	struct converter *converter;
	int slot_fd;          /* holds the lock of the connection slot */

	struct args words;    /* the option words, as the name converter is told them */
	struct args request;  /* path words as the client sent them */
	struct options options;
	char *refusal;        /* what the client is to be told instead of being served, NULL: nothing */
	char *refusal_output; /* of the command that refuses it, NULL: none does */
	int refusal_code;
};

/* A limit of the operator's that the client is over; name NULL: none. */
struct session_limit {
	const char *name;
	int value;
};

#define SESSION_LINE_SIZE 1023 /* of a line that names a module, with the NUL */

/* --- daemon/auth.c --- */
/* Challenge the client if the module asks for users; sets `user`, and `read_only` if the user's rule says so. */
void session_authenticate(struct daemon_session *session);
/* Why nobody could log in to the module, as far as that lies with its secrets file; NULL. */
const char *auth_secrets_problem(const struct module *module);

/* --- daemon/slots.c --- */
/* Take the connection's place in the module, as far as they are limited; `slot_fd` holds it. */
void session_claim_slot(struct daemon_session *session);

/* --- daemon/identity.c --- */
/* The daemon's own root, group and user. false: it has been logged why that is impossible. */
bool identity_assume_daemon(const struct config_globals *globals);
void identity_resolve(struct daemon_session *session);
/* The same without a session. false: what is wrong, as the log and (another strbuf) the client are told. */
bool identity_find(const struct module *module, struct identity *identity, struct strbuf *log, struct strbuf *told);
/* Become it for good. Returns the call that has failed with errno, NULL for none. */
const char *identity_take(const struct identity *identity);
void identity_assume(struct daemon_session *session);

/* --- daemon/roots.c --- */
void place_resolve(struct daemon_session *session);  /* path and chroot decision */
void roots_open(struct daemon_session *session);     /* attribute and content side, before any privilege goes */
bool roots_enter_daemon(const char *path);            /* of the whole daemon, before anything of a module */
void roots_enter(struct daemon_session *session);    /* chroot, change directory, munge check */
void roots_confine(struct daemon_session *session);  /* the sandbox around what is left: daemon/sandbox.h */
bool place_munges_symlinks(const struct daemon_session *session);
/* Are the names of users and groups kept from clients, whatever they ask for? */
bool session_hides_names(const struct daemon_session *session);
bool place_is_read_only(const struct daemon_session *session);

/* --- daemon/rules.c --- */
/* What the module hides, into `hidden`. Ends the process if there is something wrong with it. */
void rules_load(struct daemon_session *session);
/* The same of one parameter only; its name and its value in the module, rules or their file; NULL beyond the last one. */
void rules_load_parameter(struct daemon_session *session, size_t index);
const char *rules_parameter(const struct module *module, size_t index, const char **value, bool *is_file);

/* --- daemon/session.c --- */
struct session_start {
	const struct options *options;
	struct log_file *log;
	int in_fd, out_fd;
	bool over_shell, standalone;
	struct snapshots *snapshots;
	struct session_limit over;
	struct board_slot *board;
	struct guesses *guesses;
};
noreturn void daemon_session_run(const struct session_start *start);

#endif
