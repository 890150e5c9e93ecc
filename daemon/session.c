/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One connection of the daemon, from the first byte to the hand-over to the server, with the module's settings applied to the
 * options of the client (doc/protocol/07-daemon.md section 5.1).
 */
#include "daemon/session.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/auth.h"
#include "daemon/commands.h"
#include "daemon/roots.h"
#include "daemon/snapshots.h"
#include "daemon/talk.h"
#include "delta/skip_list.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "server.h"
#include "ui/itemize.h"
#include "ui/levels.h"
#include "wire/setup.h"

#define EARLY_INPUT_MAX 5120
#define FIRST_PROTOCOL_WITH_EXIT 25
#define MAKES_WAY_BY 10  /* of the nice value: a tenth of the processor time, if others want it */

/* Whom the listener has dismissed it kills, too. */
static void reach(struct daemon_session *session, enum board_step step)
{
	if (!board_reach(session->board, step))
		session_end(EXIT_SIGNAL);
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

static void meet_client(struct daemon_session *session)
{
	const struct options *options = session->daemon_options;
	struct config_problems problems = CONFIG_PROBLEMS_INIT;
	struct peer *peer = &session->peer;
	const struct config *config;
	struct rlimit limit;

	/*
	 * Limits the processor time of unknown clients: more of it than a handshake can need ends the process. Its memory,
	 * passwords too, stays in no core file (S-125).
	 */
	session->core_size = session_set_limit(RLIMIT_CORE, 0);
	session->processor_seconds = RLIM_INFINITY;
	if (getrlimit(RLIMIT_CPU, &limit) == 0)
		session->processor_seconds = limit.rlim_cur;
	if (session->processor_seconds > HANDSHAKE_SECONDS)
		session_set_limit(RLIMIT_CPU, HANDSHAKE_SECONDS);

	session->config =
		config_load(options->config_file, options->dparams.items, options->dparams.count, CONFIG_SESSION, &problems);
	config = session->config;
	if (config && !options->log_file)
		switch_log(session, &config->defaults);
	config_problems_report(&problems, session->standalone ? CONFIG_ERROR : CONFIG_NOTE);
	if (!config)
		die(EXIT_SYNTAX, "the configuration in %s cannot be used", options->config_file);
	if (!session->over_shell)
		session_set_deadline(session, config->defaults.timeout);

	if (session->over_shell)
		peer_from_shell(peer);
	else
		peer_from_socket(peer, session->in_fd);
	if (config->globals.proxy_protocol && !session->over_shell && !peer_from_proxy(peer, &config->globals, session->wire))
		session_end(EXIT_STARTCLIENT);
	if (config->any_reverse_lookup)
		peer_look_up_name(peer);
	snprintf(peer->name, sizeof peer->name, "%s",
		 config->defaults.reverse_lookup || !strcmp(peer->real_name, "UNKNOWN") ? peer->real_name : "UNDETERMINED");
	board_set_text(session->board, BOARD_ADDRESS, peer->address);

	/* The log is open by then, so that it can lie outside; so are attr snapshots, which a listener would have opened. */
	log_file_open(session->log);
	if (!session->snapshots && *config->globals.daemon_chroot) {
		session->snapshots = snapshots_new(options);
		snapshots_refresh(session->snapshots);
	}
	if (!identity_assume_daemon(&config->globals))
		session_end(EXIT_STARTCLIENT);
	log_msg(L_LOG, "connect from %s (%s)", peer->name, peer->address);
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

static void choose_module(struct daemon_session *session, char *line)
{
	const char early[] = "#early_input=";
	const struct peer *peer = &session->peer;
	struct strbuf text = STRBUF_INIT;

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
	if (!*line || !strcmp(line, "#list")) {
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
	if (*line == '#')
		session_refuse(session, "Unknown command '%s'", line);
	session->module = config_find_module(session->config, line);
	if (!session->module) {
		log_msg(L_LOG, "unknown module '%s' tried from %s (%s)", line, peer->name, peer->address);
		session_refuse(session, "Unknown module '%s'", line);
	}
	board_set_text(session->board, BOARD_MODULE, session->module->name);
	reach(session, BOARD_CHOSEN);
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

/* --- the module's part of the log --- */

/* A line about a file, with what the roles know of neither the client nor the module. */
static void log_file_line(const struct daemon_session *session, struct format_values *values)
{
	struct strbuf line = STRBUF_INIT;

	values->address = session->peer.address;
	values->host = session->module->reverse_lookup ? session->peer.name : "UNDETERMINED";
	values->module = session->module->name;
	values->module_path = session->place.path;
	values->user = session->user;
	format_expand(session->log_format, values, &line);
	log_msg(L_LOG, "%s", strbuf_text(&line));
	strbuf_free(&line);
}

static void log_transfer(void *context, const struct transfer_record *record)
{
	const struct daemon_session *session = context;
	const struct entry *entry = record->entry;
	struct format_values values = {
		.look = { .flags = record->flags, .mode = entry->mode, .times_kept = session->options.times, .sends = true,
			  .unknown = !session_caps_of(session->protocol).item_flags },
		.name = record->name, .shown = record->shown, .link = record->link, .link_is_hard = record->link_is_hard,
		.length = entry->size, .transferred = record->written, .checksum_bytes = record->sums, .mtime = entry->mtime,
		.uid = session->options.owner ? entry->uid : 0, .gid = entry->gid, .group_not_kept = !session->options.group,
		.digest = record->digest, .digest_length = record->digest_length, .pid = (int)getpid(), .operation = "send",
	};

	log_file_line(session, &values);
}

static void note_received(void *context)
{
	const struct daemon_session *session = context;

	board_count_file(session->board);
}

static void note_transfer(void *context, enum item_stage stage)
{
	const struct daemon_session *session = context;

	board_set_state(session->board, BOARD_SENDING);
	if (stage == ITEM_ENDS)
		board_count_file(session->board);
}

static void log_received(void *context, struct format_values *values)
{
	values->look.unknown = false;
	log_file_line(context, values);
}

static void log_deletion(void *context, const char *path, bool is_dir)
{
	(void)context;
	log_msg(L_LOG, "deleting %s%s", path, is_dir ? "/" : "");
}

static void log_end(void *context, uint64_t written, uint64_t read, uint64_t total_size, int code)
{
	struct daemon_session *session = context;
	const struct attr_source *source = &session->source;

	(void)code;
	session->log_ended = true;
	board_set_state(session->board, BOARD_ENDING);
	board_set_count(session->board, BOARD_STALE, source->stale);
	board_set_count(session->board, BOARD_MISSING, source->missing);
	/* The list no longer matches the real tree: its owner should hear of it. */
	if (source->stale || source->missing)
		log_msg(L_LOG, "module %s: %" PRIu64 " stale and %" PRIu64 " missing files, the attr %s needs a refresh",
			session->module->name, source->stale, source->missing,
			source->kind == ATTRS_SNAPSHOT ? "snapshot" : "tree");
	log_msg(L_LOG, "sent %" PRIu64 " bytes  received %" PRIu64 " bytes  total size %" PRIu64, written, read, total_size);
}

/* Exit hook: a session that broke off. */
static void log_broken_end(void *context, int code)
{
	const struct daemon_session *session = context;

	if (!session->log_ended && session->options.sender)
		log_end(context, wire_bytes_written(session->wire), wire_bytes_read(session->wire), 0, code);
}

/* --- forced settings and clamps --- */

static void apply_module_settings(struct daemon_session *session)
{
	const struct module *module = session->module;
	struct options *options = &session->options;
	uint32_t limit = session->daemon_options->bwlimit;
	char *chmod;

	options->server = true;
	options->quiet = 0;
	options->stderr_mode = STDERR_ERRORS;
	options->ignore_errors |= module->ignore_errors;
	if (module->open_noatime != UNSET)
		options->open_noatime = module->open_noatime == YES;
	if (module->timeout > 0 && (!options->timeout || options->timeout > module->timeout))
		options->timeout = module->timeout;
	if (limit && (!options->bwlimit || options->bwlimit > limit))
		options->bwlimit = limit;
	if (options->iconv)
		options->iconv = module->charset;
	options->insecure_links = module->insecure_links;
	ui_levels_clamp(&options->levels, module->max_verbosity);
	if (options->verbose > module->max_verbosity)
		options->verbose = module->max_verbosity;
	/* A client may not choose how a module keeps its attributes (doc/protocol/05-xattrs-acls.md section 5.4.1). */
	if (module->fake_super) {
		options->super = SUPER_FAKE;
		options->xattrs = options->xattrs > 0;
	} else if (options->super == SUPER_FAKE) {
		options->super = SUPER_YES;
	}
	/* The module's changes of modes are applied after the client's, and to modes that the client does not set, too. */
	chmod = config_text(options->sender ? module->outgoing_chmod : module->incoming_chmod);
	if (*chmod
	    && (!chmod_parse(&options->chmod, chmod) || (!options->sender && !chmod_parse(&options->incoming_chmod, chmod))))
		session_set_refusal(session, xstrdup("the module is misconfigured"), EXIT_UNSUPPORTED);
	free(chmod);
}

/* May data flow in this direction (doc/protocol/07-daemon.md section 5.21)? And the settings for files that are received. */
static void apply_direction(struct daemon_session *session)
{
	struct options *options = &session->options;
	const char *why = NULL, *names = options->files_from;
	const char *temp_dir = session->module->temp_dir, *given = options->partial_dir;
	char *clean;

	if (!options->sender && session->read_only)
		why = "ERROR: module is read only";
	else if (!options->sender && place_is_read_only(session))
		why = "ERROR: module is listed from an attr tree or snapshot and is read only";
	else if (session->module->write_only && (options->sender || (names && strcmp(names, "-") != 0)))
		/* A list of names in the module would be sent to the client that pushes them. */
		why = "ERROR: module is write only";
	if (why && !session->refusal)
		session_set_refusal(session, xstrdup(why), EXIT_SYNTAX);
	if (options->sender)
		return;
	if (!*temp_dir && session->daemon_options->temp_dir)
		temp_dir = session->daemon_options->temp_dir;
	session->has_own_temp_dir = !options->temp_dir && *temp_dir;
	if (session->has_own_temp_dir)
		options->temp_dir = config_text(temp_dir);
	/* A relative one is walked to from each directory: it must not climb. */
	if (given && *given != '/') {
		clean = xmalloc(strlen(given) + 2);
		fs_clean_path(clean, given);
		options->partial_dir = strcmp(clean, ".") ? clean : NULL;
		options->has_partial_dir = options->partial_dir != NULL;
	}
	if (!session->refusal && options->only_send_attrs)
		session_set_refusal(session, xstrdup("rsync: --only-send-attrs cannot be sent to a module"), EXIT_UNSUPPORTED);
}

static const char *stored_name(const void *context, bool group, uint32_t id)
{
	return attr_snapshot_owner(context, group, id);
}

static char *no_name(void *context, const char *kind, const char *text)
{
	(void)context, (void)kind, (void)text;
	return NULL;
}

/* Where this process finds no name for an id, the one that the snapshot's maker found is better than none. Where nobody wants
 * names, not even that of id 0 is looked for in the tree that the process is rooted in: a listing leaves it alone. */
static struct fs_ids *names_of_ids(struct daemon_session *session, bool numeric)
{
	bool snapshot = session->source.kind == ATTRS_SNAPSHOT;
	struct fs_ids *ids;

	if (session->converter)
		return fs_ids_new(converter_ask, session->converter);
	if (snapshot && numeric && session->place.chroot)
		return fs_ids_new(no_name, NULL);
	ids = fs_ids_new(NULL, NULL);
	if (snapshot)
		fs_ids_set_fallback(ids, stored_name, session->source.snapshot);
	return ids;
}

/* The module's settings on top of the client's options (doc/protocol/07-daemon.md section 5.20), then server_run. */
static noreturn void serve(struct daemon_session *session)
{
	struct module_session *module = xcalloc(1, sizeof *module);
	struct server *server = xcalloc(1, sizeof *server);
	const char *override = session->daemon_options->log_file_format, *format;
	char *patterns = config_text(session->module->dont_compress);
	struct skip_list *dont_compress = *patterns ? skip_list_new() : NULL;

	apply_module_settings(session);
	apply_direction(session);
	if (!session->options.dry_run && (override ? *override : session->module->transfer_logging)) {
		session->log_format = override ? xstrdup(override) : config_text(session->module->log_format);
		session->options.log_format_has_i |= format_uses(session->log_format, 'i');
	}
	format = session->log_format;
	if (dont_compress)
		skip_list_add_daemon(dont_compress, patterns);
	free(patterns);
	*module = (struct module_session){
		.dest = {
			.name = session->module->name, .hidden = session->hidden, .write_only = session->module->write_only,
			.has_own_temp_dir = session->has_own_temp_dir,
			.log_item = format ? log_received : NULL, .log_deletion = log_deletion, .received = note_received,
			.logs_items = format && format_uses(format, 'i'), .logs_operations = format && format_uses(format, 'o'),
			.context = session,
		},
		.source = &session->source, .dont_compress = dont_compress,
		.read_only = place_is_read_only(session),
		.numeric_ids = !session->options.numeric_ids && session_hides_names(session),
		.munge_symlinks = place_munges_symlinks(session),
		.ignore_nonreadable = session->module->ignore_nonreadable, .ignore_errors = session->module->ignore_errors,
		.open_noatime = session->options.open_noatime, .charset = session->module->charset,
		.log_transfer = format ? log_transfer : NULL, .transfer = note_transfer, .log_end = log_end,
	};
	session->source.open_noatime = session->options.open_noatime;
	session->source.fake_super = session->options.super == SUPER_FAKE;
	server->session = (struct session){
		.wire = session->wire, .is_server = true, .is_daemon = true, .is_sender = session->options.sender,
	};
	/* Where the scan could not look, a live walk could not either, and the client must not take the list for all there is.
	 * What vanished meanwhile is gone and missing from the list as it should be. */
	if (session->source.kind == ATTRS_SNAPSHOT)
		server->session.io_error = attr_snapshot_facts(session->source.snapshot)->io_error & IOERR_GENERAL;
	session_set_protocol(&server->session, session->protocol);
	server->options = &session->options;
	server->module = module;
	server->ids = names_of_ids(session, module->numeric_ids);
	server->startup_error = session->refusal;
	server->startup_error_is_bare = session->refusal_output != NULL;
	server->startup_output = session->refusal_output;
	server->startup_code = session->refusal_code;
	board_set_state(session->board, session->options.sender ? BOARD_LISTING : BOARD_RECEIVING);
	exit_push_hook(log_broken_end, session);
	if (!session->refusal && session->options.sender && !(module->read_only && session->options.remove_source_files))
		log_msg(L_LOG, "building file list");
	server_run(server);
}

/* --- all of them --- */

void daemon_session_run(struct daemon_session *session)
{
	char line[SESSION_LINE_SIZE];

	log_set_role("Receiver");
	log_set_sink(log_file_sink(session->log));
	session->wire = wire_new(session->in_fd, session->out_fd);
	wire_settings(session->wire)->meter = board_meter(session->board);
	session->low_priority = getpriority(PRIO_PROCESS, 0) + MAKES_WAY_BY;
	session_take_signals(session);

	meet_client(session);
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
	/* After the handshake has taken its time, a new one begins for the module's users. */
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
	serve(session);
}
