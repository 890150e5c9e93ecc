/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the module's owner decided is laid over what the client asked for; then the server takes over. */
#include "daemon_serve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "delta/token.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "server.h"
#include "ui/itemize.h"
#include "ui/levels.h"

/* --- transfer lines --- */

struct transfer_log {
	const struct daemon_session *session;
	char *format;
};

static void log_transfer(void *context, const char *path, const struct entry *entry, uint32_t item_flags, uint64_t literal)
{
	const struct transfer_log *log = context;
	const struct daemon_session *session = log->session;
	const bool named = session->module->reverse_lookup;
	struct strbuf line = STRBUF_INIT;
	const struct format_values values = {
		.look = { .flags = item_flags, .mode = entry->mode, .times_kept = session->options.times, .sends = true,
			  .unknown = session->protocol < 29 },
		.name = path, .shown = path, .length = entry->size, .transferred = literal, .mtime = entry->mtime,
		.uid = entry->uid, .gid = entry->gid, .address = session->peer.address,
		.host = named ? session->peer.name : "UNDETERMINED", .module = session->module->name,
		.module_path = session->place.path, .user = "", .pid = (int)getpid(), .operation = "send",
	};

	format_expand(log->format, &values, &line);
	log_msg(L_LOG, "%s", strbuf_text(&line));
	strbuf_free(&line);
}

/* NULL if the module's transfers are not logged. */
static struct transfer_log *transfer_log_new(struct daemon_session *session)
{
	const char *override = session->daemon_options->log_file_format;
	struct transfer_log *log;

	if (session->options.dry_run || (override ? !*override : !session->module->transfer_logging))
		return NULL;
	log = xcalloc(1, sizeof *log);
	log->session = session;
	log->format = override ? xstrdup(override) : session_expand(session, session->module->log_format);
	session->options.log_format_has_i |= format_uses(log->format, 'i');
	return log;
}

/* The module's attr tree no longer says what the real tree holds: its owner should hear of it. */
static void log_staleness(void *context, int code)
{
	const struct daemon_session *session = context;
	const struct attr_source *source = &session->source;

	(void)code;
	if (source->stale || source->missing)
		log_msg(L_LOG, "module %s: %" PRIu64 " stale and %" PRIu64 " missing files, the attr tree needs a refresh",
			session->module->name, source->stale, source->missing);
}

/* --- forced settings and clamps --- */

static void clamp_verbosity(struct options *options, int max_verbosity)
{
	ui_levels_clamp(&options->levels, max_verbosity);
	if (options->verbose > max_verbosity)
		options->verbose = max_verbosity;
}

static bool force_numeric_ids(const struct daemon_session *session)
{
	enum tristate numeric = session->module->numeric_ids;

	if (session->options.numeric_ids)
		return false;
	if (session->place.chroot)
		return numeric != NO && !session->converter;
	return numeric == YES;
}

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
	clamp_verbosity(options, module->max_verbosity);
}

static struct chmod_rules *outgoing_chmod(struct daemon_session *session)
{
	char *text = session_expand(session, session->module->outgoing_chmod);
	struct chmod_rules *rules = NULL;

	if (*text && !chmod_parse(&rules, text))
		session->refusal = xstrdup("rsync: the module is misconfigured"), session->refusal_code = EXIT_UNSUPPORTED;
	free(text);
	return rules;
}

static struct skip_list *dont_compress(struct daemon_session *session)
{
	char *patterns = session_expand(session, session->module->dont_compress);
	struct skip_list *list = NULL;

	if (*patterns) {
		list = skip_list_new();
		skip_list_add_daemon(list, patterns);
	}
	free(patterns);
	return list;
}

/* May the client do this to the module (protocol/07 section 5.21)? */
static void check_role(struct daemon_session *session)
{
	const struct module *module = session->module;
	const struct options *options = &session->options;
	bool read_only = module->read_only || session->source.kind == ATTRS_ATTR_TREE;
	const char *why = NULL;

	if (!options->sender)
		why = read_only ? "ERROR: module is read only" : "ERROR: this build of rsync-huai cannot receive files";
	else if (module->write_only)
		why = "ERROR: module is write only";
	else if (read_only && options->remove_sent_files)
		why = "ERROR: --remove-sent-files cannot be used with a read-only module";
	else if (read_only && options->remove_source_files)
		why = "ERROR: --remove-source-files cannot be used with a read-only module";
	if (!why || session->refusal)
		return;
	session->refusal = xstrdup(why);
	session->refusal_code = EXIT_SYNTAX;
}

void daemon_serve(struct daemon_session *session)
{
	struct module_session *module = xcalloc(1, sizeof *module);
	struct server *server = xcalloc(1, sizeof *server);
	struct transfer_log *transfers;

	apply_module_settings(session);
	check_role(session);
	transfers = transfer_log_new(session);
	*module = (struct module_session){
		.name = session->module->name, .source = &session->source, .hidden = session->hidden,
		.outgoing_chmod = outgoing_chmod(session), .dont_compress = dont_compress(session),
		.numeric_ids = force_numeric_ids(session), .munge_symlinks = place_munges_symlinks(session),
		.ignore_nonreadable = session->module->ignore_nonreadable, .ignore_errors = session->module->ignore_errors,
		.open_noatime = session->options.open_noatime, .charset = session->module->charset,
		.log_transfer = transfers ? log_transfer : NULL, .log_context = transfers,
	};
	session->source.open_noatime = session->options.open_noatime;
	server->session = (struct session){
		.wire = session->wire, .protocol = session->protocol, .is_server = true, .is_daemon = true,
		.is_sender = session->options.sender,
	};
	server->options = &session->options;
	server->module = module;
	server->ids = fs_ids_new(session->converter ? converter_ask : NULL, session->converter);
	server->startup_error = session->refusal;
	server->startup_code = session->refusal_code;
	exit_push_hook(log_staleness, session);
	server_run(server);
	exit_with(EXIT_CRASHED); /* server_run does not return */
}
