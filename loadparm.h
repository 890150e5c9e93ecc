/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The configuration of a daemon: rsyncd.conf (doc/protocol/07-daemon.md sections 2 and 3).
 *
 *   config_load(path, dparams, n, CONFIG_CHECK, &problems)     at start-up and for --config-check: everything is looked at
 *   config_load(path, dparams, n, CONFIG_LISTENER, &problems)  what the listener needs: the text before the first "["
 *   config_load(path, dparams, n, CONFIG_SESSION, &problems)   in every connection's own process
 *
 * String values are as written; config_expand replaces their %VAR% references when they are used.
 */
#ifndef LOADPARM_H
#define LOADPARM_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/vec.h"
#include "loadparm/grammar.h"

/* While the attr snapshot of a module cannot be used, clients are listed the tree itself, or they are refused. */
enum snapshot_fallback { SNAPSHOT_FALLBACK_WALK, SNAPSHOT_FALLBACK_REFUSE };

/* Parameters with rules about names, in the order in which they count. */
enum module_rules { RULES_FILTER, RULES_INCLUDE_FROM, RULES_INCLUDE, RULES_EXCLUDE_FROM, RULES_EXCLUDE, MODULE_RULES };

/* One module with all defaults filled in; strings are owned by the configuration, "" where the default is empty. */
struct module {
	char *name;
	char *path, *comment;
	char *real_file_prefix;     /* ours: "" or an absolute path; then `path` is an attr tree */
	char *attr_snapshot;        /* ours: "" or an absolute path: the file that `path` is listed from */
	int attr_snapshot_max_age;  /* seconds, 0: none */
	enum snapshot_fallback attr_snapshot_fallback;
	enum tristate use_chroot, munge_symlinks, numeric_ids;
	bool insecure_links;        /* links that anybody has made are followed wherever they lead */
	bool list, read_only, write_only, ignore_errors, ignore_nonreadable, transfer_logging, reverse_lookup, forward_lookup;
	bool fake_super;
	enum tristate open_noatime;
	char *uid, *gid, *charset, *dont_compress, *refuse_options;
	char *hosts_allow, *hosts_deny;
	char *auth_users, *secrets_file, *auth_digest;
	bool strict_modes;
	char *rules[MODULE_RULES];
	char *log_file, *log_format, *syslog_tag;
	int syslog_facility;        /* LOG_DAEMON ... */
	char *lock_file, *incoming_chmod, *outgoing_chmod, *temp_dir, *name_converter;
	char *early_exec, *pre_xfer_exec, *post_xfer_exec;
	int max_connections, max_verbosity, timeout;
	int max_connections_per_host; /* ours; 0: any number */
	size_t memory_limit;        /* ours; bytes that a session may remember for its client */
	int cpu_limit;              /* ours; seconds of matching names with what the client asked for, 0: any number */
	bool disabled;              /* has a malformed value (S-114): nobody may use it */
};

/* The parameters that belong to the daemon as a whole. */
struct config_globals {
	char *address, *motd_file, *pid_file, *metrics_file, *control_socket, *socket_options;
	char *daemon_chroot, *daemon_uid, *daemon_gid;
	bool proxy_protocol;
	char *proxy_protocol_hosts;
	int port, listen_backlog;
	int max_connections_per_host, max_connection_rate; /* ours; of one host, and in a minute; 0: any number */
	int minimum_rate;           /* ours; bytes a minute that keep a session from making room for others; 0: none does */
};

/* The place of a value in the text. */
struct config_place {
	const char *value; /* a string of a module or of the globals, or a module's name: the very pointer */
	const char *file;
	int line;          /* 0: not in a file */
};

struct config {
	struct config_globals globals;
	struct module defaults;     /* the global section's values of module parameters */
	VEC(struct module) modules; /* in the order of their first header */
	bool any_reverse_lookup;    /* on somewhere: look the peer up before any chroot */
	VEC(struct config_place) places;
	VEC(char *) files;          /* every file and directory that was read, owned by `strings` */
	VEC(char *) strings;        /* owns every string above */
};

enum config_severity {
	CONFIG_REMARK,  /* all is well with the file; something that it names is not there yet */
	CONFIG_NOTE,    /* the line has no effect; stock logs and goes on, so do we */
	CONFIG_UNSERVED, /* as things are, a module is not served as it should be; the daemon starts, things may change */
	CONFIG_ERROR,   /* a start-up error; in a running daemon it disables the module it stands in */
	CONFIG_FATAL,   /* the file cannot be understood: nothing is served */
};

/* A problem of the file: where and what. */
struct config_problem {
	char *file;
	int line;       /* 0: the file as a whole */
	enum config_severity severity;
	char *text;
};
struct config_problems {
	VEC(struct config_problem) list;
};
#define CONFIG_PROBLEMS_INIT { VEC_INIT }

void config_problem_add(struct config_problems *problems, const char *file, int line, enum config_severity severity,
			const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The worst severity in the list, -1 if it is empty. */
int config_problems_worst(const struct config_problems *problems);
/* Log the problems that are at least this bad, as "FILE:LINE: TEXT", and forget all of them. */
void config_problems_report(struct config_problems *problems, enum config_severity least);
void config_problems_free(struct config_problems *problems);

enum config_mode { CONFIG_CHECK, CONFIG_LISTENER, CONFIG_SESSION };

/*
 * Read `path`; all problems are collected: syntax, unknown parameters, malformed values (S-114). Only CONFIG_CHECK looks at
 * the directories of real file prefixes: a session must not wait for another module's disks. Returns NULL if a problem is
 * CONFIG_FATAL.
 * dparams: "NAME=VALUE" overrides for the global section.
 */
struct config *config_load(const char *path, char *const *dparams, size_t dparam_count, enum config_mode mode,
			   struct config_problems *problems);
void config_free(struct config *config);

/* The place of a value; NULL for a default. */
const struct config_place *config_place_of(const struct config *config, const char *value);

/* Exact name match, the last one defined wins; NULL. */
const struct module *config_find_module(const struct config *config, const char *name);

#endif
