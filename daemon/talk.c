/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The dialogue of a session with its client: lines, refusals, the deadline, and signals while it waits; then the request of the
 * client: its words, the options in them, and paths inside the module (doc/protocol/07-daemon.md section 5.18).
 */
#include "daemon/talk.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/session.h"
#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/refuse.h"
#include "server.h"
#include "wire/setup.h"

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
	wire_settings(session->wire)->wait_hook = check_signals;
	wire_settings(session->wire)->wait_hook_context = session;
}

/* --- one path word --- */

/* Drop the last real component of a path in the making; "." components after it go too. Never climbs above the start. */
static void drop_component(struct strbuf *path)
{
	while (path->length) {
		char *slash = strrchr(path->data, '/');
		const char *last = slash ? slash + 1 : path->data;
		bool dot = !strcmp(last, ".");

		strbuf_truncate(path, slash ? (size_t)(slash - path->data) : 0);
		if (!dot)
			return;
	}
}

/*
 * Appends a path word: the module's name in front is dropped, and the rest made relative. "." components stay: "/./" divides a
 * path for --relative, "/." at the end asks for a directory's content. So does "..".
 */
static void append_cleaned(struct args *pieces, const char *word, const char *module, struct budget *budget)
{
	const size_t name = strlen(module);
	struct strbuf path = STRBUF_INIT;
	bool is_directory = false;

	word += strncmp(word, module, name) ? 0 : name;
	if (!*word)
		return;
	while (*word) {
		size_t length = strcspn(word, "/");
		bool is_parent = length == 2 && !memcmp(word, "..", 2);

		is_directory = is_parent || word[length] == '/';
		if (is_parent) {
			drop_component(&path);
		} else if (length) {
			if (path.length)
				strbuf_add_char(&path, '/');
			strbuf_add(&path, word, length);
		}
		word += length + (word[length] == '/');
	}
	if (!path.length)
		strbuf_add_char(&path, '.');
	else if (is_directory)
		strbuf_add_char(&path, '/');
	args_append_limited(pieces, path.data, budget);
	strbuf_free(&path);
}

void argument_split(struct args *pieces, const char *word, const char *module, struct budget *budget)
{
	char *mark = xasprintf(" %s/", module), *copy = xstrdup(word), *at = copy, *next;

	while ((next = strstr(at, mark))) {
		*next = 0;
		append_cleaned(pieces, at, module, budget);
		at = next + 1;
	}
	append_cleaned(pieces, at, module, budget);
	free(copy);
	free(mark);
}

/* --- the list of words --- */

void session_set_refusal(struct daemon_session *session, char *error, int code)
{
	session->refusal = error;
	session->refusal_code = code;
}

/* A path in an option must not reveal names that the module hides (S-113). */
static bool is_hidden(struct daemon_session *session, const char *path, bool is_dir)
{
	return session->hidden && filter_hides_path(session->hidden, path, is_dir);
}

/* A directory: as a path of its own or from the destination. The receiver asks again once it knows which directory that is. */
static bool is_hidden_place(struct daemon_session *session, const char *place)
{
	const struct args *operands = &session->options.operands;

	if (!place || !*place)
		return false;
	if (*place == '/' || !operands->count)
		return is_hidden(session, place, true);
	char *below = xasprintf("%s/%s", operands->items[0], place);
	bool hidden = is_hidden(session, below, true);

	free(below);
	return hidden;
}

static bool names_hidden(struct daemon_session *session)
{
	const struct options *options = &session->options;
	bool hidden =
		(options->files_from && strcmp(options->files_from, "-") && is_hidden(session, options->files_from, false))
		|| is_hidden_place(session, options->temp_dir) || is_hidden_place(session, options->backup_dir);

	if (options->partial_dir && *options->partial_dir == '/')
		hidden |= is_hidden_place(session, options->partial_dir);
	for (size_t i = 0; i < options->alt_dest_dirs.count; i++)
		hidden |= is_hidden_place(session, options->alt_dest_dirs.items[i]);
	for (size_t i = 0; i < options->filters.count; i++)
		if (options->filters.items[i].kind == FOPT_FILE)
			hidden |= is_hidden(session, options->filters.items[i].text, false);
	return hidden;
}

void arguments_receive(struct daemon_session *session)
{
	const struct module *module = session->module;
	char *refuse = config_text(module->refuse_options);
	struct refused_options *refused = refused_options_new(refuse, *module->charset != 0);
	struct args words = { NULL, 0 }, secluded = { NULL, 0 }, *operands = &session->options.operands, *last;
	struct args pieces = { NULL, 0 }, paths = { NULL, 0 };
	struct expansion_cost cost = { .budget = wire_budget(session->wire) };
	enum options_result result;
	char *error = NULL;
	int code = 0;

	/* The visible list, then the secluded one. The second is read in any case where the client sends it: what follows on
	 * the wire is binary. */
	args_read(session->wire, &words, session_caps_of(session->protocol).nul_args);
	args_unescape_options(&words);
	args_prepend(&words, "rsyncd");
	result = options_parse(&session->options, (int)words.count, words.items, refused, &error, &code);
	for (size_t i = 0; i < words.count && strcmp(words.items[i], "."); i++)
		args_append(&session->words, words.items[i]);
	if (session->options.secluded_args) {
		args_read_secluded(session->wire, &secluded);
		for (size_t i = 0; i < secluded.count && strcmp(secluded.items[i], "."); i++)
			args_append(&session->words, secluded.items[i]);
		args_prepend(&secluded, "rsyncd");
		if (result == OPTIONS_OK)
			result = options_parse_secluded(&session->options, (int)secluded.count, secluded.items, refused, &error,
							&code);
	}
	if (result != OPTIONS_OK) {
		size_t i = 0;

		/* This does not end the request: commands of the module get it as it was. */
		session_set_refusal(session, error ? error : xstrdup("invalid options"), code ? code : EXIT_UNSUPPORTED);
		last = secluded.count ? &secluded : &words;
		args_free(operands);
		*operands = (struct args){ NULL, 0 };
		while (i < last->count && strcmp(last->items[i], "."))
			i++;
		while (++i < last->count)
			args_append(operands, last->items[i]);
	}
	args_free(&words);
	args_free(&secluded);
	/* From the words of the client to paths below the module's root. */
	session->request = *operands;
	for (size_t i = 0; i < operands->count; i++)
		if (session->options.secluded_args)
			append_cleaned(&pieces, operands->items[i], module->name, cost.budget);
		else
			argument_split(&pieces, operands->items[i], module->name, cost.budget);
	for (size_t i = 0; i < pieces.count; i++)
		operand_expand(&session->source, session->hidden, pieces.items[i], &cost, &paths);
	if (!paths.count && session->options.sender)
		args_append(&paths, ".");
	args_free_counted(&pieces, cost.budget);
	*operands = paths;
	if (!session->refusal && names_hidden(session))
		session_set_refusal(session, xstrdup("Your options have been rejected by the server."), EXIT_UNSUPPORTED);
	refused_options_free(refused);
	free(refuse);
}

char *session_request(const struct daemon_session *session)
{
	struct strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < session->request.count && text.length <= 1024; i++) {
		if (i)
			strbuf_add_char(&text, ' ');
		strbuf_add_string(&text, session->request.items[i]);
	}
	return strbuf_detach(&text);
}
