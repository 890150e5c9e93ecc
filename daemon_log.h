/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a daemon writes its log: a file, or syslog (protocol/07 section 4.8). daemon_log_sink gives it the shape of a log
 * sink; a session that also talks to a client wraps that sink and calls it for the log's part.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/log.h"
#include "lib/strbuf.h"

struct daemon_log {
	struct strbuf file; /* empty: syslog */
	int fd;             /* of the file, -1 while closed */
	struct strbuf tag;  /* of syslog */
	int facility;
	bool syslog_open;
};

/* Log to `file` ("" for syslog). Nothing is opened before the first message or daemon_log_open. */
void daemon_log_init(struct daemon_log *log, const char *file, const char *tag, int facility);
/* Go over to another destination; nothing happens if it is the same. */
void daemon_log_switch(struct daemon_log *log, const char *file, const char *tag, int facility);
/* Open now, while paths and syslog's socket can still be reached (before chroot); a file that cannot be opened is reported
 * and syslog takes its place. */
void daemon_log_open(struct daemon_log *log);
/* Close the file: the listener does so between connections, so that the file can be rotated by a rename. */
void daemon_log_close(struct daemon_log *log);

struct log_sink daemon_log_sink(struct daemon_log *log);

/*
 * One message as a log shows it, appended to `out`: without its final newline, cut at 2047 bytes, bytes that could forge a line
 * or drive a terminal as \#ooo (S-117).
 */
void daemon_log_escape(struct strbuf *out, const char *text, size_t length);

#endif
