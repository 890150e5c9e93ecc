/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the parts of --config-check share. */
#ifndef DAEMON_CHECK_PRIVATE_H
#define DAEMON_CHECK_PRIVATE_H

#include "daemon/listen.h"
#include "daemon/serve.h"
#include "daemon/snapshots.h"
#include "loadparm.h"

struct check {
	const struct options *options;
	const struct config *config;
	const struct snapshots *snapshots;
	const char *file;
	struct config_problems problems;
};

/* A module in its own process; the session is one that has no client. */
struct subject {
	struct check *check;
	const struct module *module;
	struct daemon_session session;
	bool has_identity;
};

/* daemon/check_listener.c */
void check_listener(struct check *check);
void check_motd(struct check *check);

/* daemon/check_describe.c: on standard output, but with --quiet. */
void check_describe_daemon(const struct check *check);
void check_describe_module(const struct subject *subject);

/* daemon/check_try.c: what a session or the listener would say to it, in lines. */
void check_try_rules(const struct daemon_session *session, size_t parameter, struct strbuf *said);
void check_try_refused_options(const char *options, struct strbuf *said);
void check_try_socket_options(const char *options, struct strbuf *said);
void check_try_binding(const struct listen_request *request, struct strbuf *said);

#endif
