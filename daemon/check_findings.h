/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the parts of --config-check do with one value: look at what it names, try what it would do, note what is wrong. */
#ifndef DAEMON_CHECK_FINDINGS_H
#define DAEMON_CHECK_FINDINGS_H

#include <stdbool.h>

#include "daemon/session.h"
#include "daemon/snapshots.h"
#include "lib/strbuf.h"
#include "loadparm.h"

struct check {
	const struct options *options;
	const struct config *config;
	const struct snapshots *snapshots;
	const char *file;
	struct config_problems problems;
};

/* The daemon as a whole (module NULL), or a module in its own process; the session is one that has no client. */
struct subject {
	struct check *check;
	const struct module *module;
	struct daemon_session session;
	bool has_identity;
};

/* A problem at the line of the value, or at the module's header if it has its default, or of the file as a whole. */
void check_complain(struct subject *subject, const char *value, enum config_severity severity, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A problem for each line of what has been said, "WHAT: LINE" (what NULL: "LINE"); uses `said` up. */
void check_complain_of(struct subject *subject, const char *value, enum config_severity severity, const char *what,
		       struct strbuf *said);

/* The value as a session would have it; NULL if that depends on the client, or if it is not set. */
char *check_known_text(const char *value);
bool check_may_read(const char *path);
/* Complains if the file that the value names could not be written to. */
void check_writable(struct subject *subject, const char *value, const char *what, enum config_severity severity);

/* What the work would log, in lines: a process does it, and may end in it. */
void check_try(void (*work)(const void *context), const void *context, struct strbuf *said);

#endif
