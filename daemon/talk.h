/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Talking to the client while the session is a dialogue of lines. A stage that refuses the client says why in the log and
 * answers with session_refuse.
 */
#ifndef DAEMON_TALK_H
#define DAEMON_TALK_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/resource.h>

#include "daemon/session.h"

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

/* From now on the signals that end a process are taken only where the session waits. */
/* Those that end it. */
sigset_t session_ending_signals(void);
void session_take_signals(struct daemon_session *session);
/* Keep the client waiting, even if it has gone; a signal that ends the process ends the pause. */
void session_pause(struct daemon_session *session, int64_t nanoseconds);

#endif
