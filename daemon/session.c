/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One connection of the daemon, from the first byte to the hand-over to the server (doc/protocol/07-daemon.md section 5.1). */
#include "daemon/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/auth.h"
#include "daemon/roots.h"
#include "daemon/serve.h"
#include "daemon/snapshots.h"
#include "daemon/talk.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/exit.h"

#define EARLY_INPUT_MAX 5120
#define FIRST_PROTOCOL_WITH_EXIT 25
#define MAKES_WAY_BY 10  /* of the nice value: a tenth of the processor time, if others want it */

/* --- limits of those who have not been let in yet --- */

/* Whom the listener has dismissed it kills, too. */
static void reach(struct daemon_session *session, enum board_step step)
{
	if (!board_reach(session->board, step))
		session_end(EXIT_SIGNAL);
}

/*
 * Limits the processor time of unknown clients: more of it than a handshake can need ends the process. Its memory, passwords
 * too, stays in no core file (S-125).
 */
static void limit_handshake(struct daemon_session *session)
{
	struct rlimit limit;

	session->core_size = session_set_limit(RLIMIT_CORE, 0);
	session->processor_seconds = RLIM_INFINITY;
	if (getrlimit(RLIMIT_CPU, &limit) == 0)
		session->processor_seconds = limit.rlim_cur;
	if (session->processor_seconds > HANDSHAKE_SECONDS)
		session_set_limit(RLIMIT_CPU, HANDSHAKE_SECONDS);
}

/* --- stages 1 to 6: configuration and peer --- */

/* A log file of the daemon's command line takes the place of what the module says. */
static void switch_log(struct daemon_session *session, const struct module *module)
{
	const char *override = session->daemon_options->log_file;
	char *file = config_text(module->log_file), *tag = config_text(module->syslog_tag);

	log_file_switch(session->log, override ? override : file, tag, module->syslog_facility);
	free(file);
	free(tag);
}

static void load_configuration(struct daemon_session *session)
{
	const struct options *options = session->daemon_options;
	struct config_problems problems = CONFIG_PROBLEMS_INIT;

	session->config =
		config_load(options->config_file, options->dparams.items, options->dparams.count, CONFIG_SESSION, &problems);
	if (session->config && !options->log_file)
		switch_log(session, &session->config->defaults);
	config_problems_report(&problems, session->standalone ? CONFIG_ERROR : CONFIG_NOTE);
	if (!session->config)
		die(EXIT_SYNTAX, "the configuration in %s cannot be used", options->config_file);
}

static void identify_peer(struct daemon_session *session)
{
	const struct config_globals *globals = &session->config->globals;
	struct peer *peer = &session->peer;

	if (session->over_shell)
		peer_from_shell(peer);
	else
		peer_from_socket(peer, session->in_fd);
	if (globals->proxy_protocol && !session->over_shell && !peer_from_proxy(peer, globals, session->wire))
		session_end(EXIT_STARTCLIENT);
	if (session->config->any_reverse_lookup)
		peer_look_up_name(peer);
	snprintf(peer->name, sizeof peer->name, "%s",
		 session->config->defaults.reverse_lookup || !strcmp(peer->real_name, "UNKNOWN") ? peer->real_name
												    : "UNDETERMINED");
}

/* The log is open by then, so that it can lie outside; so are attr snapshots, which a listener would have opened. */
static void become_daemon(struct daemon_session *session)
{
	log_file_open(session->log);
	if (!session->snapshots && *session->config->globals.daemon_chroot) {
		session->snapshots = snapshots_new(session->daemon_options);
		snapshots_refresh(session->snapshots);
	}
	if (!identity_assume_daemon(&session->config->globals))
		session_end(EXIT_STARTCLIENT);
}

/* --- stages 7 and 8: greeting, command or module --- */

static void exchange_greetings(struct daemon_session *session, char *line)
{
	int version = session->daemon_options->max_protocol;
	char *path = config_text(session->config->globals.motd_file);
	struct strbuf text = STRBUF_INIT;

	wire_write(session->wire, line, greeting_format(line, SESSION_LINE_SIZE, version));

	if (*path) {
		if (fs_operator_read(path, O_NONBLOCK, 1 << 20, &text) < 0)
			strbuf_reset(&text);
		strbuf_add_char(&text, '\n');
		wire_write(session->wire, text.data, text.length);
	}
	strbuf_free(&text);
	free(path);
	wire_flush(session->wire);
	session_read_line(session, line, SESSION_LINE_SIZE);
	switch (greeting_parse(&session->greeting, line)) {
	case GREETING_OK:
		break;
	case GREETING_MALFORMED:
		session_refuse(session, "protocol startup error");
	case GREETING_NO_SUBPROTOCOL:
		session_refuse(session, "your client omitted the subprotocol value: %s", line);
	case GREETING_NO_DIGESTS:
		session_refuse(session, "your client omitted the digest name list: %s", line);
	}
	session->digests = session->greeting.digests ? xstrdup(session->greeting.digests) : NULL;
	session->protocol = greeting_negotiate(&session->greeting, version);
}

static noreturn void list_modules(struct daemon_session *session)
{
	const struct peer *peer = &session->peer;
	struct strbuf text = STRBUF_INIT;

	log_msg(L_LOG, "module-list request from %s (%s)", peer->name, peer->address);
	for (size_t i = 0; i < session->config->modules.count; i++) {
		const struct module *module = &session->config->modules.items[i];
		char *comment = config_text(module->comment);

		if (module->list)
			strbuf_addf(&text, "%-15s\t%s\n", module->name, comment);
		free(comment);
	}
	if (session->greeting.version >= FIRST_PROTOCOL_WITH_EXIT)
		strbuf_add_string(&text, "@RSYNCD: EXIT\n");
	session_say(session, strbuf_text(&text));
	wire_flush(session->wire);
	session_end(EXIT_OK);
}

static void choose_module(struct daemon_session *session, char *line)
{
	const char early[] = "#early_input=";

	session_read_line(session, line, SESSION_LINE_SIZE);
	if (!strncmp(line, early, strlen(early))) {
		char bytes[EARLY_INPUT_MAX];
		long length = strtol(line + strlen(early), NULL, 10);

		if (length < 1 || length > EARLY_INPUT_MAX)
			session_refuse(session, "invalid early_input length");
		wire_read(session->wire, bytes, (size_t)length);
		strbuf_add(&session->early_input, bytes, (size_t)length);
		session_read_line(session, line, SESSION_LINE_SIZE);
	}
	if (session->over.name)
		session_refuse_crowd(session, &session->over);
	if (!*line || !strcmp(line, "#list"))
		list_modules(session);
	if (*line == '#')
		session_refuse(session, "Unknown command '%s'", line);
	session->module = config_find_module(session->config, line);
	if (!session->module) {
		log_msg(L_LOG, "unknown module '%s' tried from %s (%s)", line, session->peer.name, session->peer.address);
		session_refuse(session, "Unknown module '%s'", line);
	}
	board_set_text(session->board, BOARD_MODULE, session->module->name);
	reach(session, BOARD_CHOSEN);
}

/* --- stages 9 to 11: may it come in? --- */

/* After the handshake has taken its time, a new one begins for the module's users. */
static void authenticate(struct daemon_session *session)
{
	session->user = xstrdup("");
	session->read_only = session->module->read_only;
	session_set_deadline(session, session->module->timeout);
	board_set_state(session->board, BOARD_AUTHENTICATION);
	session_authenticate(session);
	board_set_state(session->board, BOARD_HANDSHAKE);
	board_set_text(session->board, BOARD_USER, session->user);
	reach(session, BOARD_ADMITTED);
	session_clear_deadline(session);
	setenv("RSYNC_USER_NAME", session->user, 1);
}

/* --- stages 20 to 23: the request --- */

static void receive_request(struct daemon_session *session)
{
	struct budget *budget = wire_budget(session->wire);
	char *request;

	/* A client may lower the limit of memory. */
	budget_lower(budget, session->module->memory_limit, "\"memory limit per session\" in rsyncd.conf");
	budget->work_seconds = session->module->cpu_limit;
	budget->work_setting = "\"cpu limit per session\" in rsyncd.conf";
	budget->look = wire_check_peer;
	budget->context = session->wire;
	session_say(session, "@RSYNCD: OK\n");
	wire_flush(session->wire);
	session_set_deadline(session, session->module->timeout);
	arguments_receive(session);
	session_clear_deadline(session);
	reach(session, BOARD_REQUESTED);
	hook_finish_pre_xfer(session);
	converter_deliver(session);
	request = session_request(session);
	if (session->request.count)
		log_msg(L_LOG, "rsync %s %s from %s%s%s (%s)", session->options.sender ? "on" : "to", request, session->user,
			*session->user ? "@" : "", session->peer.name, session->peer.address);
	free(request);
}

void daemon_session_run(struct daemon_session *session)
{
	char line[SESSION_LINE_SIZE];

	log_set_role("Receiver");
	log_set_sink(log_file_sink(session->log));
	session->wire = wire_new(session->in_fd, session->out_fd);
	wire_set_meter(session->wire, board_meter(session->board));
	session->low_priority = getpriority(PRIO_PROCESS, 0) + MAKES_WAY_BY;
	session_take_signals(session);

	limit_handshake(session);
	load_configuration(session);
	if (!session->over_shell)
		session_set_deadline(session, session->config->defaults.timeout);
	identify_peer(session);
	board_set_text(session->board, BOARD_ADDRESS, session->peer.address);
	become_daemon(session);
	log_msg(L_LOG, "connect from %s (%s)", session->peer.name, session->peer.address);
	exchange_greetings(session, line);
	choose_module(session, line);
	session_clear_deadline(session);
	/* Held open for the session: the conversion's tables could not be loaded from inside the module. */
	if (*session->module->charset && !charset_new(session->module->charset))
		die(EXIT_UNSUPPORTED, "module %s: charset \"%s\" is not known to this system", session->module->name,
		    session->module->charset);
	session_check_access(session);
	if (!session->protocol) {
		log_error("protocol %d of the client is not supported", session->greeting.version);
		session_refuse(session, "protocol version %d is not supported", session->greeting.version);
	}
	authenticate(session);
	session_set_limit(RLIMIT_CPU, session->processor_seconds);
	session_claim_slot(session);
	identity_resolve(session);
	place_resolve(session);
	rules_load(session);
	switch_log(session, session->module);
	log_file_open(session->log);
	commands_expand(session);
	hook_fork_post_xfer(session);
	hook_run_early(session);
	hook_start_pre_xfer(session);
	converter_start(session);
	roots_open(session);
	roots_enter(session);
	identity_assume(session);
	roots_confine(session);
	receive_request(session);
	daemon_serve(session);
}
