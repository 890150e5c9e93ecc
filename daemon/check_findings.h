/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The check of one value of the configuration: inspect the file that it names, try its effect, record a problem. */
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

/* Records a problem at the line of the value, or at the module's header if it has its default, or of the file as a whole. */
void check_complain(struct subject *subject, const char *value, enum config_severity severity, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Records a problem for each line of `output`, as "WHAT: LINE" (what NULL: "LINE"), and frees it. */
void check_complain_of(struct subject *subject, const char *value, enum config_severity severity, const char *what,
		       struct strbuf *output);

/* The value as a session would have it; NULL if that depends on the client, or if it is not set. */
char *check_known_text(const char *value);
bool check_may_read(const char *path);
/* Records a problem if the file that the value names could not be written to. */
void check_writable(struct subject *subject, const char *value, const char *what, enum config_severity severity);

/* Appends the lines that the work logs. It runs in a process of its own, which it may end. */
void check_try(void (*work)(const void *context), const void *context, struct strbuf *output);

#endif
