/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The commands of a module, in the order in which a session calls these. */
#ifndef DAEMON_COMMANDS_H
#define DAEMON_COMMANDS_H

#include <sys/types.h>

struct daemon_session;

/* The commands of the module, ready for a shell; NULL where there is none. */
struct commands {
	char *early, *pre_xfer, *post_xfer, *converter;
	/* of a pre-xfer command that waits for the request */
	pid_t pre_xfer_pid;
	int request_fd, output_fd;
};

/* Expand all commands of the module, before any of them runs: a value that a shell could act on ends the session. */
void commands_expand(struct daemon_session *session);
/* From here on the session is a process of its own; this one runs the command at its end. */
void hook_fork_post_xfer(struct daemon_session *session);
void hook_run_early(struct daemon_session *session);
void hook_start_pre_xfer(struct daemon_session *session);
/* Start the name converter if the module has one; it waits for converter_deliver before it runs the command. */
void converter_start(struct daemon_session *session);

/* Run it now that the request is known; its failure becomes the session's `refusal`. */
void hook_finish_pre_xfer(struct daemon_session *session);
void converter_deliver(struct daemon_session *session);

/* The conversion callback of fs_ids_new. */
char *converter_ask(void *converter, const char *kind, const char *text);

#endif
