/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Host specifications: operands that name a machine and a path there (doc/protocol/06-command-line.md section 6). */
#ifndef OPTIONS_REMOTE_H
#define OPTIONS_REMOTE_H

#include <stdbool.h>

#include "options.h"

/* A remote operand taken apart. The strings are malloc'ed. */
struct remote {
	enum { REMOTE_SHELL, REMOTE_DAEMON, REMOTE_DAEMON_OVER_SHELL } kind;
	char *user;         /* NULL: none given; "" is one, too */
	char *host;         /* without brackets; "": left out, as in ":path" and "::module" */
	int port;           /* 0: the default */
	char *path;         /* of a shell: as typed behind the colon; of a daemon: "module/path", "" lists modules */
};

/*
 * "host:path", "user@host::module/path", "rsync://user@host:port/module/path", hosts in brackets. False: a local path, and
 * *remote is untouched. Whether a daemon is reached over a remote shell is not in the operand: kind is never
 * REMOTE_DAEMON_OVER_SHELL here.
 */
bool remote_parse(struct remote *remote, const char *operand);
void remote_free(struct remote *remote);
/* Is it remote at all? */
bool argument_is_remote(const char *argument);

/*
 * Which of the operands are remote. False: none. Else *remote is the other side, `paths` what its server gets behind
 * the "." word, still without any quoting: all sources of a pull, the destination of a push. The local operands are then the
 * last (a pull; none if there is one operand only) or all but the last (a push). Operands that do not go together end the
 * process.
 */
bool remote_operands(const struct options *options, struct remote *remote, struct args *paths, bool *we_send);

/* The run goes to no daemon: options that only mean something there end the process (doc/protocol/09-since-3.5.0.md
 * section 4.1). */
void remote_check_no_daemon(const struct options *options);

#endif
