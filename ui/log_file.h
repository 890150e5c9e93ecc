/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a log is written: a file, or syslog (doc/protocol/06-command-line.md section 14, doc/protocol/07-daemon.md
 * section 4.8). log_file_sink gives it the shape of a log sink; a session that also talks to a client wraps that sink and calls
 * it for the log's part.
 */
#ifndef UI_LOG_FILE_H
#define UI_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/log.h"
#include "lib/strbuf.h"

struct log_file {
	struct strbuf file; /* empty: syslog */
	int fd;             /* of the file, -1 while closed */
	int link_flag;      /* FS_ANY_LINKS, or 0, as log_file_init sets it */
	struct strbuf tag;  /* of syslog */
	int facility;
	bool syslog_open;
};

/* Log to `file` ("" for syslog). Nothing is opened before the first message or log_file_open. */
void log_file_init(struct log_file *log, const char *file, const char *tag, int facility);
/* Go over to another destination; nothing happens if it is the same. */
void log_file_switch(struct log_file *log, const char *file, const char *tag, int facility);
/* Open now, while paths and syslog's socket can still be reached (before chroot); a file that cannot be opened is reported
 * and syslog takes its place. */
void log_file_open(struct log_file *log);
/* Close the file: the listener does so between connections, so that the file can be rotated by a rename. */
void log_file_close(struct log_file *log);

/* For the rest of the process: every message goes to `file` as well. link_flag: FS_ANY_LINKS or 0. */
void log_file_copy(struct log_file *log, const char *file, int link_flag);

struct log_sink log_file_sink(struct log_file *log);

/*
 * One message as a log shows it, appended to `out`: without its final newline, cut at 2047 bytes, bytes that could forge a line
 * or drive a terminal as \#ooo (S-117).
 */
void log_file_escape(struct strbuf *out, const char *text, size_t length);

#endif
