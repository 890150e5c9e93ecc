/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Talking to the client while the session is a dialogue of lines: a stage that refuses the client says why in the log and
 * answers with session_refuse. Then its request: its words, the options in them, and paths inside the module.
 */
#ifndef DAEMON_TALK_H
#define DAEMON_TALK_H

#include <signal.h>
#include <stddef.h>
#include <stdnoreturn.h>
#include <sys/resource.h>

#include "daemon/session.h"
#include "options.h"

struct budget;

/* Lines of the text phase. If the client sends no whole line of fewer than `size` bytes, the session ends. */
void session_say(struct daemon_session *session, const char *text);
void session_read_line(struct daemon_session *session, char *line, size_t size);

/* End without a message: the client has got one, or must not get any. */
noreturn void session_end(int code);
/* Answer "@ERROR: TEXT" and end. */
noreturn void session_refuse(struct daemon_session *session, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
noreturn void session_refuse_crowd(struct daemon_session *session, const struct session_limit *over);

#define HANDSHAKE_SECONDS 60 /* that a client has at most, of time and of the processor */

/* The handshake ends after so many seconds (0 or more than HANDSHAKE_SECONDS: after those), whatever trickles in. */
void session_set_deadline(struct daemon_session *session, int timeout);
void session_clear_deadline(struct daemon_session *session);

/* Sets the soft limit; returns what it was. */
rlim_t session_set_limit(int resource, rlim_t limit);

/* The signals that end a process. */
sigset_t session_ending_signals(void);
/* From now on they are taken only where the session waits. */
void session_take_signals(struct daemon_session *session);

/* Read the client's words, parse the options, fill options.operands with module-relative paths. On a refused or bad option
 * `refusal` is set. */
void arguments_receive(struct daemon_session *session);
/*
 * Split a path word where old clients have joined several with " MODULE/", and append the cleaned pieces, at most
 * ARGS_MAX_COUNT: the module's name in front is dropped, and the rest made relative; wildcards stay.
 */
void argument_split(struct args *pieces, const char *word, const char *module, struct budget *budget);

/* The client gets this error (malloc'ed) instead of being served, and the session ends with the code. */
void session_set_refusal(struct daemon_session *session, char *error, int code);

/* The path words as logs show them: joined by spaces, cut after the one that passes 1024 bytes; malloc'ed. */
char *session_request(const struct daemon_session *session);

#endif
