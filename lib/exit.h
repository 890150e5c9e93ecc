/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exit codes of rsync and the one way to end the process with one of them. */
#ifndef LIB_EXIT_H
#define LIB_EXIT_H

#include <stdbool.h>
#include <stdnoreturn.h>

#include "lib/log.h"

/* doc/protocol/01-session.md section 10.9. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_SYNTAX = 1,
	EXIT_PROTOCOL = 2,
	EXIT_FILESELECT = 3,
	EXIT_UNSUPPORTED = 4,
	EXIT_STARTCLIENT = 5,
	EXIT_SOCKETIO = 10,
	EXIT_FILEIO = 11,
	EXIT_STREAMIO = 12,
	EXIT_MESSAGEIO = 13,
	EXIT_IPC = 14,
	EXIT_CRASHED = 15,
	EXIT_TERMINATED = 16,
	EXIT_SIGNAL1 = 19,
	EXIT_SIGNAL = 20,
	EXIT_WAITCHILD = 21,
	EXIT_MALLOC = 22,
	EXIT_PARTIAL = 23,
	EXIT_VANISHED = 24,
	EXIT_DEL_LIMIT = 25,
	EXIT_TIMEOUT = 30,
	EXIT_CONTIMEOUT = 35,
};

/* The text that stands in "rsync error: TEXT (code N)"; "unexplained error" for an unknown code. */
const char *exit_meaning(int code);

/*
 * Log one L_ERROR line (printf style, no final newline; an empty format logs nothing) and end the process with `code`.
 * Runs the exit handler first (see below). Never returns.
 */
#define die(code, ...) die_at((code), __FILE__, __LINE__, __VA_ARGS__)
noreturn void die_at(int code, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same with the line of log_errno for `error`. */
#define die_errno(code, error, ...) \
	do { \
		log_errno(L_ERROR, (error), __VA_ARGS__); \
		exit_with(code); \
	} while (0)

/*
 * End the process with `code` in an orderly way: exit handler, temp-file registry, final "rsync error:" line when code is
 * not 0 (see exit_set_handler), exit(). Never returns.
 */
#define exit_with(code) exit_with_at((code), __FILE__, __LINE__)
noreturn void exit_with_at(int code, const char *file, int line);

/*
 * Hooks run by exit_with in reverse order of their registration (at most 8): the temp-file registry, the session (which
 * notifies the peer), a test that longjmps away. A hook is taken off the stack before it runs: one that itself dies leaves only
 * the hooks below it to run, one that longjmps away has to be pushed again. Hooks are pushed and removed by the main
 * thread only; a second thread that ends the process while it is ending waits.
 */
typedef void exit_hook(void *context, int code);
void exit_push_hook(exit_hook *hook, void *context);
/* Others may have been pushed since; nothing if it is not there. */
void exit_remove_hook(exit_hook *hook, void *context);

/* --debug=exit: from level 1 on the end is reported, from level 2 on its beginning, too. suffix: to the last line, static. */
void exit_set_debug(int level, const char *suffix);
/* Do not print the final "rsync error:" line: the peer has said why it ends (doc/protocol/01-session.md section 10.8), or a
 * hook printed it. */
void exit_set_quiet(bool quiet);
/* For a hook that is about to close the channel on which messages travel: print the final line now (once; nothing after
 * exit_set_quiet or for code 0) instead of after the hooks. */
void exit_report(void);

#endif
