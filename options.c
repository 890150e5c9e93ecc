/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a command line with popt: which table applies, word after word, and what the words amount to. */
#include "options.h"

#include <errno.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "delta/skip_list.h"
#include "filter/add.h"
#include "fs/chmod.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/checks.h"
#include "options/help.h"
#include "options/refuse.h"
#include "options/table.h"
#include "ui/itemize.h"
#include "wire/setup.h"

static void options_init(struct options *options)
{
	*options = (struct options){
		.client_info = "", .max_protocol = PROTOCOL_MAX, .motd = true, .human_readable = 1, .allow_inc_recurse = true,
		.implied_dirs = true, .max_size = -1, .min_size = -1, .max_delete = -1, .whole_file = -1, .detach = true,
		.sandbox = true,
	};
	options->parse = xcalloc(1, sizeof *options->parse);
	options->said.dirs = options->said.relative = options->said.secluded = -1;
}

void options_free(struct options *options)
{
	struct option_parse *parse = options->parse;

	for (size_t i = 0; i < parse->strings.count; i++)
		free(parse->strings.items[i]);
	vec_free(&parse->strings);
	args_free(&parse->words);
	vec_free(&parse->info_words);
	vec_free(&parse->debug_words);
	free(parse->error);
	free(parse);
	vec_free(&options->filters);
	vec_free(&options->dparams);
	vec_free(&options->alt_dest_dirs);
	vec_free(&options->remote_options);
	skip_list_free(options->skip_compress);
	chmod_free(options->chmod);
	chmod_free(options->incoming_chmod);
	args_free(&options->operands);
	memset(options, 0, sizeof *options);
}

/* Carries it out if it may be used. What a kind of run does not have is refused at the end of the line, when that is known. */
static bool take_option(struct option_parse *parse, const struct option_spec *spec, const char *text)
{
	char label[OPTION_LABEL_SIZE];

	if (spec->runs == OF_DAEMON) {
		if (parse->refused || parse->in_block)
			return parse_fail(parse, EXIT_SYNTAX, "Attempt to hack rsync thwarted!");
		parse->wants_daemon = true;
		return true;
	}
	parse->spec = spec;
	parse->text = text;
	if (parse->refused && !refuse_option(parse, spec))
		return false;
	if (parse->mode == MODE_SERVER && spec->runs & OPERATOR)
		return parse_fail(parse, EXIT_UNSUPPORTED, "on remote machine: %s is not supported by this build",
				  option_label(spec, label));
	for (int kind = LOCAL; kind <= PULL; kind *= 2)
		if (!((int)spec->runs & kind) && !parse->lacking[kind])
			parse->lacking[kind] = spec;
	return spec->set(parse);
}

/* An option that the environment gives, unless the line has. */
static bool take_variable(struct option_parse *parse, bool given, const char *variable, const char *name)
{
	const char *text = parse->mode == MODE_CLIENT && !given ? getenv(variable) : NULL;

	return !text || !*text || take_option(parse, option_find(option_table(MODE_CLIENT), name, strlen(name), '\0'), text);
}

/* Words up to the end, to an error, or to one that asks for another table or for nothing more. */
static bool take_words(struct option_parse *parse, struct options *options, poptContext context)
{
	const struct option_spec *specs = option_table(parse->mode);
	const char **rest;
	int value;

	while ((value = poptGetNextOpt(context)) > 0) {
		const struct option_spec *spec = &specs[value - 1];
		char *text = spec->arg == TEXT_ARG ? poptGetOptArg(context) : NULL;

		if (spec->arg == TEXT_ARG && !text)
			die(EXIT_MALLOC, "out of memory for the argument of --%s", spec->name);
		bool good = take_option(parse, spec, text);

		free(text);
		if (!good)
			return false;
		if (parse->done || parse->wants_server || parse->wants_daemon)
			return true;
	}
	if (value < -1) {
		/* Reports a word that popt could not read; the message of a server names the machine whose command line it was.
		 */
		const char *word = poptBadOption(context, 0);
		const char *reason = poptStrerror(value);
		const char *whose = parse->mode == MODE_SERVER ? "on remote machine: " : "";

		if (parse->mode == MODE_DAEMON)
			return parse_fail(parse, EXIT_SYNTAX, "%s: %s (in daemon mode)\n%s", word, reason, OPTIONS_DAEMON_HINT);
		return parse_fail(parse, EXIT_SYNTAX, "%s%s: %s", whose, word, reason);
	}
	rest = poptGetArgs(context);
	parse->saw_end = options->server && rest && *rest && strcmp(*rest, ".") == 0;
	if (parse->saw_end)
		rest++;
	for (; rest && *rest; rest++)
		args_append(&options->operands, *rest);
	return true;
}

/* A server's options end at its first other word, and nobody's aliases apply to it (doc/protocol/06-command-line.md
 * section 1.3). */
static bool read_line(struct option_parse *parse, struct options *options, int argc, char **argv)
{
	static const unsigned int arg_info[] = {
		[NO_ARG] = POPT_ARG_NONE, [INT_ARG] = POPT_ARG_INT, [TEXT_ARG] = POPT_ARG_STRING,
	};
	const struct option_spec *specs = option_table(parse->mode);
	size_t count = option_table_count(specs);
	/* As popt wants them; `val` is the index plus one. Ended by a zeroed entry. */
	struct poptOption *table = xcalloc(count + 1, sizeof *table);
	unsigned int flags = parse->mode == MODE_SERVER ? POPT_CONTEXT_POSIXMEHARDER : 0;
	bool good, is_marked = false;

	for (size_t i = 0; i < count; i++) {
		table[i].longName = specs[i].name;
		table[i].shortName = specs[i].letter;
		table[i].argInfo = arg_info[specs[i].arg];
		table[i].arg = specs[i].arg == INT_ARG ? &parse->number : NULL;
		table[i].val = (int)i + 1;
	}
	poptContext context = poptGetContext("rsync", argc, (const char **)argv, table, flags | POPT_CONTEXT_NO_EXEC);

	if (!context)
		die(EXIT_MALLOC, "out of memory for the command line");
	if (parse->mode == MODE_CLIENT)
		poptReadDefaultConfig(context, 0);
	good = take_words(parse, options, context);
	/* In the block it comes too late: that is being read (S-110). */
	if (!parse->in_block)
		options->secluded_args = options->said.secluded > 0;
	if (options->timeout < 0)
		options->timeout = 0;
	/* Without memory for them popt drops the words that are no options, and goes on. A server's begin with ".". */
	for (int i = 1; i < argc; i++)
		is_marked |= !strcmp(argv[i], ".");
	if (good && parse->mode == MODE_SERVER && !parse->done && !parse->wants_daemon && is_marked && !parse->saw_end
	    && !options->operands.count)
		die(EXIT_MALLOC, "out of memory for the command line");
	poptFreeContext(context);
	free(table);
	return good;
}

/* Start over with the table of another mode: nothing of what was read counts. */
static struct option_parse *restart(struct options *options, enum parse_mode mode, int argc)
{
	options_free(options);
	options_init(options);
	options->parse->options = options;
	options->parse->mode = mode;
	options->parse->argc = argc;
	options->server = mode == MODE_SERVER;
	return options->parse;
}

/* Rules for names of attributes may stand in files of the source's directories, which only a sender goes through in order. */
static bool may_merge_attribute_rules(const struct options *options)
{
	for (size_t i = 0; options->xattrs && i < options->filters.count; i++) {
		const struct filter_option *filter = &options->filters.items[i];

		if (filter->kind == FOPT_SHORTCUT_F)
			return true;
		if (filter->kind == FOPT_RULE && filter->style == FILTER_NEW_STYLE && strspn(filter->text, ":.dm"))
			return true;
	}
	return false;
}

/* Refuses the options that this kind of run does not have. A local run with options that mean something between two ends only
 * goes by the protocol, as a pull from its own other end. */
static bool check_kind_of_run(struct option_parse *parse, struct options *options)
{
	char label[OPTION_LABEL_SIZE], other[OPTION_LABEL_SIZE];
	enum run_kind kind = options_kind_of_run(options);
	const struct option_spec *lacking = parse->lacking[kind], *not_pull = parse->lacking[PULL];
	const char *formats[] = { options->out_format, options->log_file ? options->log_file_format : NULL };
	bool needs_transfer = options->max_protocol < PROTOCOL_MAX
			      || (may_merge_attribute_rules(options) && !options->only_send_attrs && !options->attr_snapshot);

	if (kind != LOCAL)
		return !lacking
		       || parse_fail(parse, EXIT_UNSUPPORTED, "%s is not supported by this build in a %s",
				     option_label(lacking, label), kind == PUSH ? "push" : "pull");
	if (lacking && not_pull)
		return parse_fail(parse, EXIT_UNSUPPORTED, "%s and %s together are not supported by this build in a local run",
				  option_label(lacking, label), option_label(not_pull, other));
	/* Log formats that show what only a transfer has: the bytes that travelled, or digests. */
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		for (const char *letter = "bcC"; formats[i] && *letter; letter++)
			needs_transfer |= format_uses(formats[i], *letter);
	options->by_protocol = !not_pull && (lacking || needs_transfer);
	return true;
}

static bool finish(struct option_parse *parse, struct options *options)
{
	if (parse->done)
		return true;
	if (options->said.versions) {
		if (!options->quiet)
			parse_print(parse, options->said.versions > 1 && !options->server ? PRINT_VERSION_JSON : PRINT_VERSION,
				    options->server ? stderr : stdout, EXIT_OK);
		parse->done = true;
		return true;
	}
	if (parse->mode == MODE_DAEMON) {
		bool refresh_only = options->no_wait || options->attr_refresh || options->attr_digests;

		if (!options->config_file)
			options->config_file = options->server && geteuid() != 0 ? "rsyncd.conf" : "/etc/rsyncd.conf";
		if (refresh_only && !options->refresh_attrs)
			return parse_fail(parse, EXIT_SYNTAX,
					  "--no-wait, --attr-refresh and --attr-digests of a daemon go "
					  "with --refresh-attrs only");
		if (options->quiet && !options->refresh_attrs && !options->config_check)
			return parse_fail(parse, EXIT_SYNTAX,
					  "--quiet of a daemon goes with --refresh-attrs and --config-check only");
		if (!options->daemon && !options->config_check && !options->refresh_attrs && !options->status)
			return parse_fail_bare(parse, EXIT_SYNTAX, "Daemon option(s) used without --daemon.\n%s",
					       OPTIONS_DAEMON_HINT);
		return true;
	}
	if (parse->mode == MODE_CLIENT && parse->argc == 2 && options->human_readable > 1) {
		parse_print(parse, PRINT_HELP, stdout, EXIT_OK);
		return true;
	}
	/* The rest of the options of such a server has still to come. */
	if (options->server && options->secluded_args && !parse->in_block)
		return true;
	if (!take_variable(parse, parse->iconv_given, "RSYNC_ICONV", "iconv")
	    || !take_variable(parse, parse->max_alloc_given, "RSYNC_MAX_ALLOC", "max-alloc") || !options_finish(parse, options))
		return false;
	return parse->mode != MODE_CLIENT || parse->done || check_kind_of_run(parse, options);
}

static enum options_result result(struct options *options, bool good, char **error, int *code)
{
	struct option_parse *parse = options->parse;

	if (parse->print != PRINT_NOTHING) {
		static void (*const add[])(struct strbuf * out) = {
			[PRINT_HELP] = options_add_help,
			[PRINT_DAEMON_HELP] = options_add_daemon_help,
			[PRINT_INFO_HELP] = ui_levels_add_info_help,
			[PRINT_DEBUG_HELP] = ui_levels_add_debug_help,
			[PRINT_VERSION] = options_add_version,
			[PRINT_VERSION_JSON] = options_add_version_json,
		};
		struct strbuf text = STRBUF_INIT;

		add[parse->print](&text);
		fputs(strbuf_text(&text), parse->stream);
		fflush(parse->stream);
		strbuf_free(&text);
	}
	*error = parse->error;
	*code = parse->code;
	options->error_is_bare = parse->error_is_bare;
	parse->error = NULL;
	return !good ? OPTIONS_ERROR : parse->done ? OPTIONS_EXIT : OPTIONS_OK;
}

enum options_result options_parse(struct options *options, int argc, char **argv, const struct refused_options *refused,
				  char **error, int *code)
{
	struct option_parse *parse;
	bool good;

	options_init(options);
	parse = restart(options, refused ? MODE_SERVER : MODE_CLIENT, argc);
	parse->refused = refused;
	for (int i = 0; i < argc; i++)
		args_append(&parse->words, argv[i]);
	good = read_line(parse, options, argc, argv);
	if (good && parse->wants_server) {
		parse = restart(options, MODE_SERVER, argc);
		good = read_line(parse, options, argc, argv);
	}
	if (good && parse->wants_daemon) {
		parse = restart(options, MODE_DAEMON, argc);
		good = read_line(parse, options, argc, argv);
	}
	good = good && finish(parse, options);
	return result(options, good, error, code);
}

enum options_result options_parse_secluded(struct options *options, int argc, char **argv,
					   const struct refused_options *refused, char **error, int *code)
{
	struct option_parse *parse = options->parse;
	bool good;

	parse->options = options;
	parse->in_block = true;
	parse->refused = refused;
	args_free(&options->operands);
	good = read_line(parse, options, argc, argv) && finish(parse, options);
	return result(options, good, error, code);
}

bool options_need_whole_list(const struct options *options)
{
	return options->delete_when == DELETE_BEFORE || options->delete_when == DELETE_AFTER || options->delay_updates ||
	       options->prune_empty_dirs;
}

/* Errors in options are reported as the client's (doc/protocol/06-command-line.md section 8.10) or the server's, whatever role
 * the process has by now. */
void options_add_filters(const struct options *options, struct filter_list *list, bool with_cvs)
{
	const char *role = log_role();

	log_set_role(options->server ? "server" : "client");
	for (size_t i = 0; i < options->filters.count; i++) {
		const struct filter_option *filter = &options->filters.items[i];

		filter_set_from0(list, filter->from0);
		switch (filter->kind) {
		case FOPT_RULE:
			filter_add(list, filter->text, filter->style);
			break;
		case FOPT_WORDS:
			filter_add_words(list, filter->text, filter->style);
			break;
		case FOPT_FILE:
			filter_add_file(list, filter->text, filter->style);
			break;
		case FOPT_SHORTCUT_F:
			filter_add_shortcut_F(list, filter->times);
			break;
		case FOPT_CVS:
			if (with_cvs)
				filter_add_cvs(list);
			break;
		}
	}
	filter_set_from0(list, options->from0);
	log_set_role(role);
}

char *options_receiving_lack(const struct options *options)
{
	/* As in a pull: what would lose contents, read them, or keep what the files do not have. */
	const char *conflict = options->remove_source_files ? "--remove-source-files" :
			       options->acls ? "--acls" :
			       options->xattrs ? "--xattrs" :
			       options->append ? "--append" :
			       options->checksum ? "--checksum" : NULL;

	if (!options->only_send_attrs || !conflict)
		return NULL;
	return xasprintf("on remote machine: --only-send-attrs cannot be used with %s", conflict);
}

bool options_lack_list_digest(const struct options *options)
{
	const char *choice = options->checksum_choice;
	const char *comma = choice ? strchr(choice, ',') : NULL;

	return options->checksum && choice && strcasecmp(comma ? comma + 1 : choice, "none") == 0;
}

int options_link_flag(const struct options *options)
{
	return (options->insecure_links ? FS_ANY_LINKS : 0) | (options->confine_root ? FS_NO_ANONYMOUS : 0);
}

int options_confine(const struct options *options, int fd)
{
	if (fd < 0 || !options->confine_root || fs_leads_inside(fd, options->confine_root))
		return fd;
	close(fd);
	errno = ELOOP;
	return -1;
}

bool options_act_as_root(const struct options *options)
{
	return options_super_level(options) != LEVEL_NORMAL;
}

static void add_rule(struct filter_list *list, const char *format, const char *name)
{
	char *rule = xasprintf(format, name);

	filter_add(list, rule, FILTER_NEW_STYLE);
	free(rule);
}

void options_protect_leftovers(const struct options *options, struct filter_list *list, bool perishable)
{
	const char *partial = options_partial_dir(options);
	bool deletes = options->delete_when != DELETE_NEVER;

	if (options->backup && deletes && !options->backup_dir && !options->delete_excluded)
		add_rule(list, "P *%s", options->suffix ? options->suffix : "~");
	if (partial && *partial != '/')
		add_rule(list, perishable ? "-p %s/" : "- %s/", partial);
}

const char *options_partial_dir(const struct options *options)
{
	if (options->partial_dir)
		return options->partial_dir;
	return options->delay_updates ? ".~tmp~" : NULL;
}

enum super_level options_super_level(const struct options *options)
{
	if (options->super == SUPER_FAKE)
		return LEVEL_FAKE;
	/* --copy-as gives root up, so --super has no effect on it. */
	if (options->super == SUPER_NO || (options->super == SUPER_YES && !options->copy_as))
		return options->super == SUPER_YES ? LEVEL_ROOT : LEVEL_NORMAL;
	return geteuid() == 0 ? LEVEL_ROOT : LEVEL_NORMAL;
}

void options_setup_request(const struct options *options, struct setup_request *request)
{
	*request = (struct setup_request){
		.max_protocol = options->max_protocol,
		.client_info = options->client_info,
		.recursive = options->recursive != 0,
		.allow_inc_recurse = options->allow_inc_recurse,
		.use_qsort = options->use_qsort,
		.compress = options->compress,
		.compress_choice = options->compress_choice,
		.compress_level = options->compress_level,
		.compress_level_set = options->compress_level_set,
		.compress_threads = options->compress_threads,
		.checksum_choice = options->checksum_choice,
		.always_checksum = options->checksum,
		.checksum_seed = options->checksum_seed,
		.iconv = options->iconv != NULL,
		.inplace = options->inplace,
		.append = options->append > 0,
		.fuzzy = options->fuzzy > 0,
		.prune_empty_dirs = options->prune_empty_dirs,
		.needs_whole_list = options_need_whole_list(options),
		.for_batch = options->write_batch || options->read_batch,
		.from_batch = options->read_batch != NULL,
		.acls = options->acls,
		.xattrs = options->xattrs > 0,
		.alt_dests = options->alt_dests,
	};
}

const char *options_kind_of_end(const struct options *options)
{
	return options->dry_run ? " (DRY RUN)" : options->only_write_batch ? " (BATCH ONLY)" : "";
}
