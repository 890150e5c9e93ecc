/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The dialogue of a session with its client: lines, refusals, the deadline, and signals while it waits. */
#include "daemon/talk.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"

#define MUCH_TRAFFIC (1 << 20)

/* --- lines and refusals --- */

void session_end(int code)
{
	exit_set_quiet(true);
	exit_with(code);
}

void session_say(struct daemon_session *session, const char *text)
{
	wire_write(session->wire, text, strlen(text));
}

void session_read_line(struct daemon_session *session, char *line, size_t size)
{
	bool bad;

	if (!wire_read_line(session->wire, line, size, '\n', '\n', &bad))
		session_end(EXIT_STARTCLIENT);
}

void session_refuse(struct daemon_session *session, const char *fmt, ...)
{
	struct strbuf text = STRBUF_INIT;
	va_list args;

	va_start(args, fmt);
	strbuf_add_string(&text, "@ERROR: ");
	strbuf_vaddf(&text, fmt, args);
	strbuf_add_char(&text, '\n');
	va_end(args);
	session_say(session, strbuf_text(&text));
	wire_flush(session->wire);
	/* A command that waits for the end takes 255 for a session that never began. */
	session_end(session->commands.post_xfer ? 255 : EXIT_STARTCLIENT);
}

void session_refuse_crowd(struct daemon_session *session, const struct session_limit *over)
{
	log_error("%s (%d) reached by %s (%s)", over->name, over->value, session->peer.name, session->peer.address);
	session_refuse(session, "max connections (%d) reached -- try again later", over->value);
}

/* --- the handshake deadline: a fixed moment, whatever trickles in (S-046, S-047) --- */

static void deadline_passed(void *context)
{
	(void)context;
	die(EXIT_TIMEOUT, "[Receiver] daemon handshake timeout -- exiting");
}

void session_set_deadline(struct daemon_session *session, int timeout)
{
	int seconds = timeout > 0 && timeout < HANDSHAKE_SECONDS ? timeout : HANDSHAKE_SECONDS;

	wire_set_deadline(session->wire, clock_nanoseconds() + seconds * CLOCK_SECOND, deadline_passed, NULL);
}

void session_clear_deadline(struct daemon_session *session)
{
	wire_set_deadline(session->wire, 0, NULL, NULL);
}

rlim_t session_set_limit(int resource, rlim_t limit)
{
	struct rlimit now;
	rlim_t before;

	if (getrlimit(resource, &now) < 0)
		return limit;
	before = now.rlim_cur;
	now.rlim_cur = limit;
	setrlimit(resource, &now);
	return before;
}

/* --- signals: taken where the session waits, so that the session ends in an orderly way --- */

sigset_t session_ending_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	return set;
}

static void check_signals(void *session_void)
{
	struct daemon_session *session = session_void;
	const struct timespec now = { 0, 0 };
	sigset_t set = session_ending_signals();

	if (sigtimedwait(&set, NULL, &now) > 0)
		exit_with(EXIT_SIGNAL);
	/*
	 * With hundreds of long transfers at a time, a client with a small request need not wait for a turn after all of them.
	 * The priority is one among the daemon's processes, where each service has its own share of the processors.
	 */
	if (board_traffic(session->board) >= MUCH_TRAFFIC && !atomic_exchange(&session->makes_way, true))
		setpriority(PRIO_PROCESS, 0, session->low_priority);
}

void session_take_signals(struct daemon_session *session)
{
	sigset_t set = session_ending_signals();

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	wire_set_wait_hook(session->wire, check_signals, session);
}

void session_pause(struct daemon_session *session, int64_t nanoseconds)
{
	const struct timespec pause = { nanoseconds / CLOCK_SECOND, nanoseconds % CLOCK_SECOND };
	sigset_t set = session_ending_signals();

	if (nanoseconds && sigtimedwait(&set, NULL, &pause) > 0)
		exit_with(EXIT_SIGNAL);
	session_clear_deadline(session);
}
