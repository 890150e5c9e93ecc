/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One connection of the daemon (doc/protocol/07-daemon.md section 5): its state, and the stages it goes through, which
 * daemon/session.c calls in order. They live in daemon/peer.c, daemon/auth.c, daemon/roots.c, daemon/commands.c,
 * daemon/snapshots.c and daemon/talk.c, and talk to the client by daemon/talk.h.
 */
#ifndef DAEMON_SESSION_H
#define DAEMON_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/resource.h>

#include "attrs/source.h"
#include "daemon/commands.h"
#include "daemon/listen.h"
#include "daemon/peer.h"
#include "daemon/roots.h"
#include "filter/filter.h"
#include "lib/strbuf.h"
#include "loadparm.h"
#include "loadparm/place.h"
#include "options.h"
#include "ui/log_file.h"
#include "wire/session.h"
#include "wire/setup.h"
#include "wire/wire.h"

struct converter;
struct snapshots;

/* A limit of the operator's that the client is over; name NULL: none. */
struct session_limit {
	const char *name;
	int value;
};

/* The first members, up to `over`, are set by whoever starts the session. */
struct daemon_session {
	const struct options *daemon_options; /* of the daemon's own command line */
	struct log_file *log;
	int in_fd, out_fd;    /* of the wire */
	bool over_shell;
	bool standalone;      /* a listener has reported the configuration's notes already */
	struct snapshots *snapshots; /* the listener's (daemon/snapshots.h); NULL: there is none */
	struct guesses *guesses;  /* the listener's; NULL: there is none */
	struct board_slot *board; /* the session's state, for the listener; NULL: there is none */
	struct session_limit over;

	struct config *config;
	struct wire *wire;
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

	struct args words;    /* the option words, as the commands of the module get them */
	struct args request;  /* path words as the client sent them */
	struct options options;
	char *refusal;        /* the error that the client gets instead of being served, NULL: none */
	char *refusal_output; /* of the command that refuses it, NULL: none does */
	int refusal_code;

	char *log_format;     /* of transfer lines, NULL: there are none */
	bool log_ended;       /* the closing lines have been written */
};

#define SESSION_LINE_SIZE 1023 /* of a line that names a module, with the NUL */

noreturn void daemon_session_run(struct daemon_session *session);

#endif
