/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Log files and syslog. */
#include "ui/log_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "fs/operator.h"

#define MESSAGE_MAX 2047

static void set_destination(struct log_file *log, const char *file, const char *tag, int facility)
{
	strbuf_reset(&log->file);
	strbuf_add_string(&log->file, file);
	strbuf_reset(&log->tag);
	strbuf_add_string(&log->tag, tag);
	log->facility = facility;
}

void log_file_init(struct log_file *log, const char *file, const char *tag, int facility)
{
	*log = (struct log_file){ .file = STRBUF_INIT, .fd = -1, .tag = STRBUF_INIT };
	set_destination(log, file, tag, facility);
}

void log_file_close(struct log_file *log)
{
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
}

void log_file_switch(struct log_file *log, const char *file, const char *tag, int facility)
{
	if (!strcmp(strbuf_text(&log->file), file) && !strcmp(strbuf_text(&log->tag), tag) && log->facility == facility)
		return;
	log_file_close(log);
	if (log->syslog_open)
		closelog();
	log->syslog_open = false;
	set_destination(log, file, tag, facility);
	log_file_open(log);
}

static void open_syslog(struct log_file *log)
{
	openlog(strbuf_text(&log->tag), LOG_PID | LOG_NDELAY, log->facility);
	log->syslog_open = true;
}

void log_file_open(struct log_file *log)
{
	mode_t mask;
	int error;

	if (log->fd >= 0 || log->syslog_open)
		return;
	if (!log->file.length) {
		open_syslog(log);
		return;
	}
	mask = umask(022);
	umask(mask | 022);
	log->fd = fs_operator_open(strbuf_text(&log->file),
				   O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK | log->link_flag, 0644);
	error = errno;
	umask(mask);
	if (log->fd >= 0) {
		/* Opening a FIFO that nobody reads must not hold a daemon up; what is written waits for its reader. */
		fcntl(log->fd, F_SETFL, O_APPEND);
		return;
	}
	open_syslog(log);
	log_errno(L_WARNING, error, "failed to open log-file %s", strbuf_text(&log->file));
	log_info("Ignoring \"log file\" setting.");
}

void log_file_escape(struct strbuf *out, const char *text, size_t length)
{
	const char *end;

	if (length && text[length - 1] == '\n')
		length--;
	if (length > MESSAGE_MAX)
		length = MESSAGE_MAX;
	for (end = text + length; text < end; text++) {
		unsigned char c = (unsigned char)*text;
		bool control = (c < ' ' && c != '\t') || (c >= 0x7f && c < 0xa0);

		/* A backslash that would make the rest look like an escape is escaped itself. */
		if (control
		    || (end - text >= 5 && text[0] == '\\' && text[1] == '#' && isdigit((unsigned char)text[2])
			&& isdigit((unsigned char)text[3]) && isdigit((unsigned char)text[4])))
			strbuf_addf(out, "\\#%03o", c);
		else
			strbuf_add_char(out, (char)c);
	}
}

static void emit(void *context, enum log_kind kind, const char *text, size_t length)
{
	bool notice = kind == L_INFO || kind == L_LOG;
	struct strbuf escaped = STRBUF_INIT;
	struct log_file *log = context;

	if (kind == L_CLIENT)
		return;
	log_file_open(log);
	log_file_escape(&escaped, text, length);
	if (log->fd >= 0) {
		struct strbuf line = STRBUF_INIT;
		time_t now = time(NULL);
		char stamp[32];
		struct tm tm;
		ssize_t done;

		localtime_r(&now, &tm);
		strftime(stamp, sizeof stamp, "%Y/%m/%d %H:%M:%S", &tm);
		strbuf_addf(&line, "%s [%d] %s\n", stamp, (int)getpid(), strbuf_text(&escaped));
		/* One write: lines of concurrent sessions do not mix. A full disk must not end a session. */
		do
			done = write(log->fd, line.data, line.length);
		while (done < 0 && errno == EINTR);
		strbuf_free(&line);
	} else
		syslog(log->facility | (notice ? LOG_INFO : LOG_WARNING), "%s", strbuf_text(&escaped));
	strbuf_free(&escaped);
}

struct log_sink log_file_sink(struct log_file *log)
{
	return (struct log_sink){ emit, log };
}

void log_file_copy(struct log_file *log, const char *file, int link_flag)
{
	log_file_init(log, file, "rsyncd", LOG_DAEMON);
	log->link_flag = link_flag;
	log_file_open(log);
	log_set_copy(log_file_sink(log));
}
