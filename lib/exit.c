/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The way out of the process: meaning of the codes, the stack of hooks, the final "rsync error" line. */
#include "lib/exit.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"

#ifndef HUAI_VERSION
#define HUAI_VERSION "dev"
#endif

enum { HOOKS_MAX = 8 };

static const struct { int code; const char *meaning; } meanings[] = {
	{ EXIT_OK, "success" },
	{ EXIT_SYNTAX, "syntax or usage error" },
	{ EXIT_PROTOCOL, "protocol incompatibility" },
	{ EXIT_FILESELECT, "errors selecting input/output files, dirs" },
	{ EXIT_UNSUPPORTED, "requested action not supported" },
	{ EXIT_STARTCLIENT, "error starting client-server protocol" },
	{ EXIT_SOCKETIO, "error in socket IO" },
	{ EXIT_FILEIO, "error in file IO" },
	{ EXIT_STREAMIO, "error in rsync protocol data stream" },
	{ EXIT_MESSAGEIO, "errors with program diagnostics" },
	{ EXIT_IPC, "error in IPC code" },
	{ EXIT_CRASHED, "sibling process crashed" },
	{ EXIT_TERMINATED, "sibling process terminated abnormally" },
	{ EXIT_SIGNAL1, "received SIGUSR1" },
	{ EXIT_SIGNAL, "received SIGINT, SIGTERM, or SIGHUP" },
	{ EXIT_WAITCHILD, "waitpid() failed" },
	{ EXIT_MALLOC, "error allocating core memory buffers" },
	{ EXIT_PARTIAL, "some files/attrs were not transferred (see previous errors)" },
	{ EXIT_VANISHED, "some files vanished before they could be transferred" },
	{ EXIT_DEL_LIMIT, "the --max-delete limit stopped deletions" },
	{ EXIT_TIMEOUT, "timeout in data send/receive" },
	{ EXIT_CONTIMEOUT, "timeout waiting for daemon connection" },
	{ 124, "remote shell failed" },
	{ 125, "remote shell killed" },
	{ 126, "remote command could not be run" },
	{ 127, "remote command not found" },
};

/*
 * The one piece of process-wide state of this file. `ending` is claimed by the first thread that ends the process; it is
 * given back by exit_push_hook, because a hook that leaves by longjmp has called the end off.
 */
static struct {
	struct { exit_hook *run; void *context; } hooks[HOOKS_MAX];
	int count;
	bool quiet, reported;
	int debug_level;
	const char *debug_suffix;
	int code, line;
	const char *file;
	atomic_int ending;
} state;

static _Thread_local bool this_thread_ends;

const char *exit_meaning(int code)
{
	for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
		if (meanings[i].code == code)
			return meanings[i].meaning;
	return "unexplained error";
}

void exit_push_hook(exit_hook *hook, void *context)
{
	atomic_store(&state.ending, 0);
	this_thread_ends = false;
	if (state.count == HOOKS_MAX)
		die(EXIT_CRASHED, "more than %d exit hooks", HOOKS_MAX);
	state.hooks[state.count].run = hook;
	state.hooks[state.count++].context = context;
}

void exit_remove_hook(exit_hook *hook, void *context)
{
	int at = state.count - 1;

	while (at >= 0 && (state.hooks[at].run != hook || state.hooks[at].context != context))
		at--;
	if (at < 0)
		return;
	memmove(&state.hooks[at], &state.hooks[at + 1], (size_t)(state.count - at - 1) * sizeof *state.hooks);
	state.count--;
}

void exit_set_quiet(bool quiet)
{
	state.quiet = quiet;
}

void exit_set_debug(int level, const char *suffix)
{
	state.debug_level = level;
	state.debug_suffix = suffix;
}

static void log_step(const char *step)
{
	log_info("[%s] _exit_cleanup(code=%d, file=%s, line=%d): %s", log_role(), state.code, state.file, state.line, step);
}

void exit_report(void)
{
	bool warning = state.code == EXIT_VANISHED;

	if (state.quiet || state.reported || state.code == EXIT_OK)
		return;
	state.reported = true;
	log_msg(warning ? L_WARNING : L_ERROR, "rsync %s: %s (code %d) at %s(%d) [%s=%s]", warning ? "warning" : "error",
		exit_meaning(state.code), state.code, state.file, state.line, log_role(), HUAI_VERSION);
}

/* One thread ends the process; a second one that wants to waits for that. */
static void claim_the_end(void)
{
	if (this_thread_ends)
		return;
	while (atomic_exchange(&state.ending, 1))
		pause();
	this_thread_ends = true;
	state.reported = false;
}

void exit_with_at(int code, const char *file, int line)
{
	claim_the_end();
	state.code = code;
	state.file = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	state.line = line;
	if (state.debug_level > 1)
		log_step("entered");
	/* A hook leaves the stack before it runs: if it dies itself, only the ones below it are still to run. */
	while (state.count > 0) {
		state.count--;
		state.hooks[state.count].run(state.hooks[state.count].context, code);
	}
	exit_report();
	if (state.debug_level) {
		char step[64];

		snprintf(step, sizeof step, "about to call exit(%d)%s", state.code, state.debug_suffix);
		log_step(step);
	}
	exit(code);
}

void die_at(int code, const char *file, int line, const char *fmt, ...)
{
	va_list args;

	/* What goes wrong because the process is ending need not be said. */
	claim_the_end();
	if (*fmt) {
		va_start(args, fmt);
		log_vmsg(L_ERROR, fmt, args);
		va_end(args);
	}
	exit_with_at(code, file, line);
}
