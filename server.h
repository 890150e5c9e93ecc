/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The server side of one session, from set-up to goodbye, shared by the daemon and the remote-shell server.
 *
 * The process's log sink is wrapped for the session: what a client has to know goes through the stream, and what was the sink
 * before (a daemon's log, standard error) gets its share (doc/protocol/01-session.md section 9.4,
 * doc/protocol/06-command-line.md section 8.1).
 */
#ifndef SERVER_H
#define SERVER_H

#include <stdnoreturn.h>

#include "attrs/source.h"
#include "dest/paths.h"
#include "filter/filter.h"
#include "fs/chmod.h"
#include "fs/ids.h"
#include "lib/log.h"
#include "options.h"
#include "receiver/report.h"
#include "sender.h"
#include "wire/args.h"
#include "wire/session.h"

/* The cost of the wildcards in all operands of one client. */
struct expansion_cost {
	struct budget *budget;  /* NULL: nobody's */
	uint64_t names;         /* that have been held against patterns so far */
};

/*
 * Append what `pattern` matches below the attribute root, without what `hidden` (NULL: nothing) hides; or the pattern.
 * EXIT_PROTOCOL for too many names, on the way (4 million) or in `out`; whoever is not there any more is left, and so is a
 * client over its budget.
 */
void operand_expand(struct attr_source *source, struct filter_list *hidden, const char *pattern, struct expansion_cost *cost,
		    struct args *out);

/* The settings that a daemon module adds to a session. */
struct module_session {
	struct dest_module dest;         /* its name and rules, and the log of received items; server.c sets the root */
	struct attr_source *source;      /* attribute and content roots, opened before the session */
	struct skip_list *dont_compress;
	bool read_only;                  /* no --remove-source-files; what cannot be written is read-only too */
	bool numeric_ids;                /* forced: framing stays, names are empty */
	bool munge_symlinks, ignore_nonreadable, ignore_errors, open_noatime;
	const char *charset;             /* "" if none */
	/* All of these with dest.context. One line for each file sent, and with dest.logs_items for each item that changes
	 * otherwise; never in dry runs (doc/protocol/07-daemon.md section 8.3). NULL: no logging. */
	void (*log_transfer)(void *context, const struct transfer_record *record);
	void (*transfer)(void *context, enum item_stage stage); /* a file begins or has been sent; NULL: nobody wants to know */
	/* The end of a session that came to its end: byte counts and exit code, before the process exits. NULL: nothing. */
	void (*log_end)(void *context, uint64_t written, uint64_t read, uint64_t total_size, int code);
};

struct server {
	/* wire, is_daemon and, in a daemon, protocol are set by the caller; the rest by server_run */
	struct session session;
	struct options *options;
	struct module_session *module;   /* NULL: remote shell */
	struct fs_ids *ids;
	const char *startup_error;       /* daemon: complete the set-up, then send this and end with startup_code */
	bool startup_error_is_bare;      /* no "rsync: " in front of it */
	const char *startup_output;      /* daemon: what a command of the module has to say about it, line by line; or NULL */
	int startup_code;

	/* private to server.c */
	struct filter_list *rules;       /* of this side's command line; those of the client follow them */
	struct item_lines lines;         /* of a remote shell's server: for its own log */
	int names_fd;                    /* the --files-from file of this side, if there is one */
	struct log_sink below;           /* the sink before the session */
	bool stream_broken;              /* no message reaches the peer any more */
	int end_code;                    /* once the session is ending in an error */
	bool finished;                   /* the goodbye has been said: nothing more goes to the client */
};

/* --server on stdin and stdout over a remote shell. Does not return. */
noreturn void server_main(struct options *options);

/* From the version exchange (remote shell) or the argument list (daemon) on: set-up, multiplexing, filter list, role.
 * Does not return: ends with the session's exit code. */
noreturn void server_run(struct server *server);

#endif
