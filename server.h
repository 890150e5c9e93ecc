/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The server side of one session, from set-up to goodbye, shared by the daemon and the remote-shell server. */
#ifndef SERVER_H
#define SERVER_H

#include "attrs/source.h"
#include "fs/chmod.h"
#include "fs/ids.h"
#include "options.h"
#include "wire/session.h"

/* What a daemon module adds to a session. NULL in struct server for a remote-shell server. */
struct module_session {
	const char *name;
	struct attr_source *source;      /* attribute and content roots, opened before the session */
	struct filter_list *hidden;      /* the module's own rules, or NULL */
	struct chmod_rules *outgoing_chmod;
	struct skip_list *dont_compress;
	bool numeric_ids;                /* forced: framing stays, names are empty */
	bool munge_symlinks, ignore_nonreadable, ignore_errors, open_noatime;
	const char *charset;             /* "" if none */
	/* One line for each file sent, and the final "sent N bytes" (protocol/07 8.3); NULL functions: no logging. */
	void (*log_transfer)(void *context, const char *path, const struct entry *entry, uint32_t item_flags, uint64_t literal);
	void *log_context;
};

struct server {
	struct session session;
	struct options *options;
	struct module_session *module;   /* NULL: remote shell */
	struct fs_ids *ids;
	const char *startup_error;       /* daemon: complete the set-up, then send this and end with startup_code */
	int startup_code;
};

/* --server on stdin and stdout over a remote shell. Returns the exit code. */
int server_main(struct options *options);

/* From the version exchange (remote shell) or the argument list (daemon) on: set-up, multiplexing, filter list, role.
 * Does not return: ends with the session's exit code. */
void server_run(struct server *server);

#endif
