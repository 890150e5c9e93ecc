/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the operator configured: rsyncd.conf (protocol/07 sections 2 and 3). */
#ifndef LOADPARM_H
#define LOADPARM_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/strbuf.h"

enum tristate { UNSET = -1, NO = 0, YES = 1 };

/* One module with all defaults filled in; strings are owned by the configuration, "" where the default is empty. */
struct module {
	char *name;
	char *path, *comment;
	char *real_file_prefix;     /* ours: "" or an absolute path; then `path` is an attr tree */
	enum tristate use_chroot, munge_symlinks, numeric_ids;
	bool list, read_only, write_only, ignore_errors, ignore_nonreadable, transfer_logging, reverse_lookup, forward_lookup;
	enum tristate open_noatime;
	char *uid, *gid, *charset, *dont_compress, *refuse_options;
	char *hosts_allow, *hosts_deny;
	char *filter, *exclude, *include, *exclude_from, *include_from;
	char *log_file, *log_format, *syslog_tag;
	int syslog_facility;        /* LOG_DAEMON ... */
	char *lock_file, *outgoing_chmod, *name_converter;
	int max_connections, max_verbosity, timeout;
};

struct config {
	/* globals */
	char *address, *motd_file, *pid_file, *socket_options, *daemon_uid, *daemon_gid, *daemon_chroot;
	int port, listen_backlog;
	bool any_reverse_lookup; /* reverse lookup is on somewhere: look up before any chroot */
	struct module defaults;  /* the global section's values of module parameters */
	struct module *modules;
	size_t module_count;
};

/* A problem of the file: where and what. */
struct config_problem {
	char *file;
	int line;
	char *text;
};
struct config_problems {
	struct config_problem *items;
	size_t count;
};

/*
 * Read `path`. All problems are collected (syntax, unknown parameters: stock's message; parameters that rsyncd.conf(5) has
 * and this build has not: "PARAMETER is not supported by this build"; a real file prefix that is relative, missing or not a
 * directory; malformed security-relevant values, S-114). Returns NULL if there is any that forbids serving.
 * `dparams`: "NAME=VALUE" overrides for the global section.
 */
struct config *config_load(const char *path, char *const *dparams, size_t dparam_count, struct config_problems *problems);
void config_free(struct config *config);
void config_problems_free(struct config_problems *problems);

/* Exact name match; NULL. */
const struct module *config_find_module(const struct config *config, const char *name);

/* %VAR% expansion of a parameter's value (protocol/07 2.10) through getenv. false: undefined variable, *text unchanged. */
bool config_expand(const char *value, struct strbuf *out);

#endif
