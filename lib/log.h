/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log sink: where every message of the program goes. One process-wide sink (a documented exception to "no globals"):
 * a client prints, a server wraps messages into the stream, a daemon also writes its log file. Roles only call log_*().
 */
#ifndef LIB_LOG_H
#define LIB_LOG_H

#include <stdarg.h>
#include <stddef.h>

/* Classes of text, doc/protocol/06-command-line.md section 8.1. */
enum log_kind {
	L_INFO,       /* names, notices: client stdout */
	L_WARNING,    /* stderr, does not change the exit code */
	L_ERROR,      /* stderr, does not change the exit code by itself */
	L_ERROR_XFER, /* stderr; a file was not transferred properly: the run ends with 23 */
	L_LOG,        /* log file or syslog only */
	L_CLIENT,     /* client stdout only, never logged */
};

struct log_sink {
	/* text: one message, `length` bytes, ends in '\n'; may be called from any thread (the log serialises calls). */
	void (*emit)(void *context, enum log_kind kind, const char *text, size_t length);
	void *context;
};

/* Before any call: L_INFO/L_CLIENT to stdout, the rest to stderr, L_LOG dropped. Returns the previous sink. */
struct log_sink log_set_sink(struct log_sink sink);

/* A second sink that hears every message after the first one, whatever sink is the first: a log file. emit NULL: none. */
void log_set_copy(struct log_sink copy);
/* From now on it hears of no more than warnings and errors. */
void log_copy_errors_only(void);

/* The "[ROLE]" of error lines: "client", "server", "sender", "Receiver", "generator", "receiver". Static string. */
void log_set_role(const char *role);
const char *log_role(void);

/* One message; a '\n' is added when fmt does not end in one. */
void log_msg(enum log_kind kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_vmsg(enum log_kind kind, const char *fmt, va_list args) __attribute__((format(printf, 2, 0), nonnull(2)));

/* Each line of a text as a message of its own; none of NULL. */
void log_lines(enum log_kind kind, const char *text);

#define log_info(...) log_msg(L_INFO, __VA_ARGS__)
#define log_warning(...) log_msg(L_WARNING, __VA_ARGS__)
#define log_error(...) log_msg(L_ERROR, __VA_ARGS__)

/*
 * "rsync: [ROLE] TEXT: STRERROR (ERRNO)", the error line of doc/protocol/06-command-line.md section 8.10, as `kind`. `error` is
 * an errno value.
 */
void log_errno(enum log_kind kind, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Has any L_ERROR_XFER been logged in this process? Feeds the exit code. */
int log_saw_xfer_error(void);

/*
 * Write `text` to `out` (size bytes, NUL-terminated, cut if it does not fit) with every control byte except HT, every
 * byte of 0x7f and, unless `eight_bit`, every byte >= 0x80 that is not part of a printable character of the locale
 * replaced by \#ooo (doc/protocol/06-command-line.md section 8.13). Returns the length that the whole result needs.
 */
size_t log_escape(char *out, size_t size, const char *text, size_t length, int eight_bit);

#endif
