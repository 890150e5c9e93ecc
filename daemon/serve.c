/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Applies the module's settings to the options of the client, then runs the server. */
#include "daemon/serve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/commands.h"
#include "daemon/roots.h"
#include "daemon/session.h"
#include "daemon/talk.h"
#include "delta/skip_list.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "server.h"
#include "ui/itemize.h"
#include "ui/levels.h"
#include "wire/setup.h"

/* --- the module's part of the log --- */

struct session_log {
	const struct daemon_session *session;
	char *format;       /* of transfer lines */
	bool ended;         /* the closing lines have been written */
};

/* A line about a file, with what the roles know of neither the client nor the module. */
static void log_file_line(const struct session_log *log, struct format_values *values)
{
	const struct daemon_session *session = log->session;
	struct strbuf line = STRBUF_INIT;

	values->address = session->peer.address;
	values->host = session->module->reverse_lookup ? session->peer.name : "UNDETERMINED";
	values->module = session->module->name;
	values->module_path = session->place.path;
	values->user = session->user;
	format_expand(log->format, values, &line);
	log_msg(L_LOG, "%s", strbuf_text(&line));
	strbuf_free(&line);
}

static void log_transfer(void *context, const struct transfer_record *record)
{
	const struct session_log *log = context;
	const struct daemon_session *session = log->session;
	const struct entry *entry = record->entry;
	struct format_values values = {
		.look = { .flags = record->flags, .mode = entry->mode, .times_kept = session->options.times, .sends = true,
			  .unknown = !session_caps_of(session->protocol).item_flags },
		.name = record->name, .shown = record->shown, .link = record->link, .link_is_hard = record->link_is_hard,
		.length = entry->size, .transferred = record->written, .checksum_bytes = record->sums, .mtime = entry->mtime,
		.uid = session->options.owner ? entry->uid : 0, .gid = entry->gid, .group_not_kept = !session->options.group,
		.digest = record->digest, .digest_length = record->digest_length, .pid = (int)getpid(), .operation = "send",
	};

	log_file_line(log, &values);
}

static void note_received(void *context)
{
	const struct session_log *log = context;

	board_count_file(log->session->board);
}

static void note_transfer(void *context, enum item_stage stage)
{
	const struct session_log *log = context;

	board_set_state(log->session->board, BOARD_SENDING);
	if (stage == ITEM_ENDS)
		board_count_file(log->session->board);
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
	struct session_log *log = context;
	const struct attr_source *source = &log->session->source;

	(void)code;
	log->ended = true;
	board_set_state(log->session->board, BOARD_ENDING);
	board_set_count(log->session->board, BOARD_STALE, source->stale);
	board_set_count(log->session->board, BOARD_MISSING, source->missing);
	/* The list no longer matches the real tree: its owner should hear of it. */
	if (source->stale || source->missing)
		log_msg(L_LOG, "module %s: %" PRIu64 " stale and %" PRIu64 " missing files, the attr %s needs a refresh",
			log->session->module->name, source->stale, source->missing,
			source->kind == ATTRS_SNAPSHOT ? "snapshot" : "tree");
	log_msg(L_LOG, "sent %" PRIu64 " bytes  received %" PRIu64 " bytes  total size %" PRIu64, written, read, total_size);
}

/* Exit hook: a session that broke off. */
static void log_broken_end(void *context, int code)
{
	struct session_log *log = context;
	const struct wire *wire = log->session->wire;

	if (!log->ended && log->session->options.sender)
		log_end(log, wire_bytes_written(wire), wire_bytes_read(wire), 0, code);
}

static struct session_log *session_log_new(struct daemon_session *session)
{
	const char *override = session->daemon_options->log_file_format;
	struct session_log *log = xcalloc(1, sizeof *log);

	log->session = session;
	if (session->options.dry_run || (override ? !*override : !session->module->transfer_logging))
		return log;
	log->format = override ? xstrdup(override) : config_text(session->module->log_format);
	session->options.log_format_has_i |= format_uses(log->format, 'i');
	return log;
}

/* --- forced settings and clamps --- */

static void apply_module_settings(struct daemon_session *session)
{
	const struct module *module = session->module;
	struct options *options = &session->options;
	uint32_t limit = session->daemon_options->bwlimit;

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
}

/* The module's changes of modes are applied after the client's, and to modes that the client does not set, too. */
static void add_chmod(struct daemon_session *session)
{
	const struct module *module = session->module;
	struct options *options = &session->options;
	char *text = config_text(options->sender ? module->outgoing_chmod : module->incoming_chmod);
	bool good = !*text || chmod_parse(&options->chmod, text);

	if (*text && good && !options->sender)
		good = chmod_parse(&options->incoming_chmod, text);
	if (!good)
		session_set_refusal(session, xstrdup("the module is misconfigured"), EXIT_UNSUPPORTED);
	free(text);
}

static struct skip_list *dont_compress(struct daemon_session *session)
{
	char *patterns = config_text(session->module->dont_compress);
	struct skip_list *list = NULL;

	if (*patterns) {
		list = skip_list_new();
		skip_list_add_daemon(list, patterns);
	}
	free(patterns);
	return list;
}

/* The module's settings for files that it receives. */
static void apply_receiving_settings(struct daemon_session *session)
{
	struct options *options = &session->options;
	const char *temp_dir = session->module->temp_dir, *given = options->partial_dir;
	char *clean;

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

/* May data flow in this direction (doc/protocol/07-daemon.md section 5.21)? */
static void check_direction(struct daemon_session *session)
{
	const char *why = NULL, *names = session->options.files_from;

	if (!session->options.sender && session->read_only)
		why = "ERROR: module is read only";
	else if (!session->options.sender && place_is_read_only(session))
		why = "ERROR: module is listed from an attr tree or snapshot and is read only";
	else if (session->module->write_only && (session->options.sender || (names && strcmp(names, "-") != 0)))
		/* A list of names in the module would be sent to the client that pushes them. */
		why = "ERROR: module is write only";
	if (why && !session->refusal)
		session_set_refusal(session, xstrdup(why), EXIT_SYNTAX);
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

void daemon_serve(struct daemon_session *session)
{
	struct module_session *module = xcalloc(1, sizeof *module);
	struct server *server = xcalloc(1, sizeof *server);
	struct session_log *log;

	apply_module_settings(session);
	add_chmod(session);
	check_direction(session);
	if (!session->options.sender)
		apply_receiving_settings(session);
	log = session_log_new(session);
	*module = (struct module_session){
		.dest = {
			.name = session->module->name, .hidden = session->hidden, .write_only = session->module->write_only,
			.has_own_temp_dir = session->has_own_temp_dir,
			.log_item = log->format ? log_received : NULL, .log_deletion = log_deletion, .received = note_received,
			.logs_items = log->format && format_uses(log->format, 'i'),
			.logs_operations = log->format && format_uses(log->format, 'o'), .context = log,
		},
		.source = &session->source, .dont_compress = dont_compress(session),
		.read_only = place_is_read_only(session),
		.numeric_ids = !session->options.numeric_ids && session_hides_names(session),
		.munge_symlinks = place_munges_symlinks(session),
		.ignore_nonreadable = session->module->ignore_nonreadable, .ignore_errors = session->module->ignore_errors,
		.open_noatime = session->options.open_noatime, .charset = session->module->charset,
		.log_transfer = log->format ? log_transfer : NULL, .transfer = note_transfer, .log_end = log_end,
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
	exit_push_hook(log_broken_end, log);
	if (!session->refusal && session->options.sender && !(module->read_only && session->options.remove_source_files))
		log_msg(L_LOG, "building file list");
	server_run(server);
}
