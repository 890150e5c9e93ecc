/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the parts of --config-check share. */
#ifndef DAEMON_CHECK_PRIVATE_H
#define DAEMON_CHECK_PRIVATE_H

#include "daemon_serve.h"
#include "daemon_snapshots.h"
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

/* daemon_check_describe.c: on standard output, but with --quiet. */
void check_describe_daemon(const struct check *check);
void check_describe_module(const struct subject *subject);

#endif
