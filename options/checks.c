/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Conflicts, implied settings, defaults; the options of the attr snapshot, and which of them make sense together. */
#include "options/checks.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "attrs/source.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/refuse.h"
#include "options/remote.h"
#include "ui/itemize.h"
#include "wire/setup.h"

#define ALL_WHENS (SAID_BEFORE | SAID_DURING | SAID_DELAY | SAID_AFTER)

/* Records the message if it is the first: the checks behind one that finds something wrong may be carried out all the same. */
#define refuse_if(parse, wrong, ...) ((wrong) ? (void)parse_fail(parse, EXIT_SYNTAX, __VA_ARGS__) : (void)0)

/* --- attr snapshots --- */

/* Does the line ask for something other than a listing? */
static bool lists_nothing(const struct options *options)
{
	return options->attr_mode != ATTR_MODE_NONE || options->attr_snapshot != NULL;
}

static void check_attr_mode(struct option_parse *parse, const struct options *options)
{
	static const struct { size_t least, most; bool wants_snapshot; const char *words; } shapes[] = {
		[ATTR_MODE_LIST] = { 1, 2, false, "FILE [PATH]" },
		[ATTR_MODE_VERIFY] = { 1, 2, false, "FILE [SRC/]" },
		[ATTR_MODE_DIFF] = { 2, 2, false, "OLD NEW" },
		[ATTR_MODE_FROM_TREE] = { 1, 2, true, "TREE [REAL/]" },
		[ATTR_MODE_TO_TREE] = { 1, 1, true, "TREE" },
	};
	const char *name = parse->attr_mode_name, *words = shapes[options->attr_mode].words;
	size_t count = options->operands.count;
	size_t least = shapes[options->attr_mode].least, most = shapes[options->attr_mode].most;
	bool has_snapshot = options->attr_snapshot, wants_snapshot = shapes[options->attr_mode].wants_snapshot;

	refuse_if(parse, options->attr_refresh, "--attr-refresh cannot be used with --%s", name);
	refuse_if(parse, options->attr_digests, "--attr-digests cannot be used with --%s", name);
	refuse_if(parse, wants_snapshot && !has_snapshot, "--%s needs --attr-snapshot=FILE", name);
	refuse_if(parse, !wants_snapshot && has_snapshot, "--attr-snapshot cannot be used with --%s", name);
	refuse_if(parse, count < least || count > most, "usage: rsync-huai --%s%s %s", name,
		  has_snapshot ? " --attr-snapshot=FILE" : "", words);
	refuse_if(parse, options->files_from, "--files-from cannot be used with --%s", name);
	refuse_if(parse, options->list_only, "--list-only cannot be used with --%s", name);
}

/* Of a snapshot without a destination: what has a meaning for a destination only, or would make it one of less than a tree. */
static void check_attr_making(struct option_parse *parse, struct options *options)
{
	const struct { bool used; const char *name; } useless[] = {
		{ options->delete_when != DELETE_NEVER, "delete" },
		{ options->checksum, "checksum" },
		{ options->max_size >= 0, "max-size" },
		{ options->min_size >= 0, "min-size" },
		{ options->out_format != NULL, "out-format (or -i)" },
		{ options->dirs, "dirs" },
	};
	const char *refresh = options->attr_refresh;
	bool rules_from_stdin = false;

	for (size_t i = 0; i < options->filters.count; i++)
		rules_from_stdin |= options->filters.items[i].kind == FOPT_FILE && !strcmp(options->filters.items[i].text, "-");
	for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
		refuse_if(parse, useless[i].used, "--%s cannot be used with --attr-snapshot without a destination",
			  useless[i].name);
	refuse_if(parse, refresh && strcmp(refresh, "-") == 0 && rules_from_stdin,
		  "--attr-refresh=- and rules cannot both be read from standard input");
	refuse_if(parse, options->attr_digests && options_kind_of_run(options) == PULL,
		  "--attr-digests cannot be used with "
		  "--attr-snapshot of a list that is received: it needs the contents");
	/* A snapshot that is refreshed was made of a whole tree. */
	if (refresh && !options->recursive)
		options->recursive = 1;
	refuse_if(parse, !options->recursive, "--attr-snapshot is of a whole tree: it needs --recursive (-r or -a)");
}

/* The checks of a line that has such options. */
static void check_attr_options(struct option_parse *parse, struct options *options)
{
	size_t count = options->operands.count;

	if (options->attr_mode != ATTR_MODE_NONE) {
		check_attr_mode(parse, options);
		return;
	}
	refuse_if(parse, !options->attr_snapshot, "--attr-%s needs --attr-snapshot=FILE",
		  options->attr_refresh ? "refresh" : "digests");
	refuse_if(parse, options->files_from, "--attr-snapshot cannot be used with --files-from");
	refuse_if(parse, options->list_only, "--attr-snapshot cannot be used with --list-only");
	refuse_if(parse, options->relative, "--attr-snapshot cannot be used with --relative");
	refuse_if(parse, !count || count > 2, "--attr-snapshot is of one directory: SRC/, or DEST of one SRC");
	if (count == 1)
		check_attr_making(parse, options);
	else
		refuse_if(parse, options->attr_refresh, "--attr-refresh is for runs without a destination");
}

/* --- output --- */

typedef bool level_parser(struct ui_levels *levels, const char *words, char **bad);

/* A server may be older or newer than its client: it ignores the items that it does not know. */
static void apply_words(struct option_parse *parse, struct ui_levels *levels, const char *const *words, size_t count,
			level_parser *parser, const char *option)
{
	for (size_t i = 0; i < count; i++) {
		char *bad = NULL;

		if (!parser(levels, words[i], &bad) && option)
			parse_fail_bare(parse, EXIT_SYNTAX, "Unknown --%s item: \"%s\"", option, bad);
		free(bad);
	}
}

static void finish_output(struct option_parse *parse, struct options *options)
{
	const char *format = options->out_format, *info_name = options->server ? NULL : "info";
	uint8_t *info = options->levels.info;
	struct ui_levels given;

	if (options->server && format && strstr(format, "%I"))
		options->itemize = 2;
	else if (options->server && format && strstr(format, "%i") && !options->itemize)
		options->itemize = 1;
	if (!options->server && options->itemize && !format)
		options->out_format = "%i %n%L";
	options->log_format_has_i = options->server ? options->itemize > 0
						    : options->out_format && format_uses(options->out_format, 'i');
	/* The levels of -v, then of the options that are made of levels; explicit words beat both, wherever they stood. */
	ui_levels_from_verbose(&options->levels, options->verbose);
	if (options->stats)
		info[INFO_STATS] = options->verbose > 1 ? 3 : 2;
	if (options->progress) {
		info[INFO_FLIST] = 2;
		info[INFO_PROGRESS] = 1;
		if (!info[INFO_NAME] && !options->out_format)
			info[INFO_NAME] = 1;
	}
	/* Levels that --info itself has not set are not sent to a server (doc/protocol/06-command-line.md section 7.3). */
	memset(&given, INFO_NOT_GIVEN, sizeof given);
	apply_words(parse, &given, parse->info_words.items, parse->info_words.count, ui_levels_parse_info, NULL);
	memcpy(options->info_given, given.info, sizeof options->info_given);
	apply_words(parse, &options->levels, parse->info_words.items, parse->info_words.count, ui_levels_parse_info, info_name);
	apply_words(parse, &options->levels, parse->debug_words.items, parse->debug_words.count, ui_levels_parse_debug,
		    options->server ? NULL : "debug");
}

/* --- algorithms --- */

static void check_checksum_name(struct option_parse *parse, const char *name)
{
	if (strcasecmp(name, "auto") != 0 && algorithm_find(CHOICE_CHECKSUM, name, strlen(name)) < 0)
		parse_fail_bare(parse, EXIT_UNSUPPORTED, "unknown checksum name: %s", name);
}

static void finish_algorithms(struct option_parse *parse, struct options *options)
{
	/* NAME or TRANSFER,PRE-TRANSFER; "auto" is what happens anyway. */
	const char *choice = options->checksum_choice;
	size_t length = choice ? strcspn(choice, ",") : 0;
	char *first = choice ? xstrndup(choice, length) : NULL;
	int algorithm = COMPRESS_ZLIB;

	if (choice)
		check_checksum_name(parse, first);
	free(first);
	if (choice && choice[length])
		check_checksum_name(parse, choice + length + 1);
	/* Without a digest, blocks cannot be distinguished. */
	if (choice && strncasecmp(choice, "none", length) == 0)
		options->whole_file = 1;
	if (choice && (strcasecmp(choice, "auto") == 0 || strcasecmp(choice, "auto,auto") == 0))
		options->checksum_choice = NULL;
	if (options->compress_level == INT_MIN)
		options->compress_level_set = false;
	if (options->compress_choice && strcasecmp(options->compress_choice, "auto") == 0)
		options->compress_choice = NULL;
	if (!options->compress_choice && parse->compress_count > 1)
		options->compress_choice = "zlibx";
	if (options->compress_choice)
		algorithm = algorithm_find(CHOICE_COMPRESS, options->compress_choice, strlen(options->compress_choice));
	if (algorithm < 0)
		parse_fail_bare(parse, EXIT_UNSUPPORTED, "unknown compress name: %s", options->compress_choice);
	options->compress_letter = options->compress_choice ? algorithm == COMPRESS_ZLIB : options->compress;
	if (options->compress_choice || options->compress_level_set)
		options->compress = algorithm != COMPRESS_NONE;
}

/* --- all of a line --- */

/* --files-from and listings change what -a, -d and -R mean by default. */
static void finish_recursion(struct option_parse *parse, struct options *options)
{
	if (options->files_from && options->recursive == 1)
		options->recursive = 0;
	/* Snapshots are of whole trees; only a listing may want less. */
	if (options->attr_mode != ATTR_MODE_NONE && options->attr_mode != ATTR_MODE_LIST)
		options->recursive = 2;
	options->relative = options->said.relative >= 0 ? options->said.relative : options->files_from != NULL;
	options->dirs_given = options->said.dirs == 1;
	if (options->said.dirs == 2) {
		/* --old-dirs: servers of old know no -d. */
		options->recursive = 2;
		options->dirs = false;
		parse_add_filter(parse, FOPT_RULE, FILTER_OLD_EXCLUDE, "/*/*", 1);
	} else if (options->said.dirs >= 0)
		options->dirs = options->said.dirs;
	else
		options->dirs = !options->recursive && (options->files_from || options->list_only);
}

static void finish_delete(struct option_parse *parse, struct options *options)
{
	static const enum delete_when whens[ALL_WHENS + 1] = {
		[SAID_BEFORE] = DELETE_BEFORE, [SAID_DURING] = DELETE_DURING, [SAID_DELAY] = DELETE_DELAY,
		[SAID_DURING | SAID_DELAY] = DELETE_DELAY, [SAID_AFTER] = DELETE_AFTER,
	};
	int said = parse->delete_words & ALL_WHENS;
	bool during = said & (SAID_DURING | SAID_DELAY);

	refuse_if(parse, !!(said & SAID_BEFORE) + during + !!(said & SAID_AFTER) > 1,
		  "You may not combine multiple --delete-WHEN options.");
	if (said)
		options->delete_when = whens[said];
	else if (parse->delete_words || options->delete_excluded)
		options->delete_when = DELETE_DEFAULT;
	refuse_if(parse, options->delete_when != DELETE_NEVER && !options->recursive && !options->dirs,
		  "--delete does not work without --recursive (-r) or --dirs (-d).");
}

/* Options that exclude each other, in any order. */

/* Variables of the environment that select how arguments reach a remote shell; options take precedence
 * (doc/protocol/06-command-line.md section 5.3). */
static void finish_arguments(struct option_parse *parse, struct options *options)
{
	const char *old = getenv("RSYNC_OLD_ARGS"), *protect = getenv("RSYNC_PROTECT_ARGS");

	refuse_if(parse, options->secluded_args && options->old_args, "--secluded-args conflicts with --old-args.");
	if (options->said.secluded > 0 || options->old_args)
		return;
	if (!options->said.old_args && old && *old)
		options->old_args = atoi(old);
	else if (options->said.secluded < 0 && protect && *protect)
		options->secluded_args = atoi(protect) != 0;
}

/* Options that name files and directories: what they imply, and which values are refused (doc/protocol/06-command-line.md
 * section 3). */
static void finish_places(struct option_parse *parse, struct options *options)
{
	const char *suffix = options->suffix, *directory = options->backup_dir;
	bool sends = options->server && options->sender;

	refuse_if(parse, options->confine_root && options->insecure_links,
		  "--insecure-links cannot be combined with --confine-root");
	if (parse->error)
		return;
	while (options->backup_dir && strncmp(options->backup_dir, "./", 2) == 0)
		options->backup_dir += 2;
	if (options->write_devices)
		options->inplace = true;
	const char *read = options->read_batch, *written = options->write_batch;

	/* Old clients pass on what is their own business. */
	if (options->server) {
		if (written && !options->only_write_batch)
			log_warning("ignoring --write-batch option sent to server");
		if (read)
			log_warning("ignoring --read-batch option sent to server");
		read = written = options->write_batch = options->read_batch = NULL;
	}
	refuse_if(parse, (written || read) && options->only_send_attrs, "a batch is of contents: not with --only-send-attrs");
	refuse_if(parse, read && written, "--write-batch and --read-batch can not be used together");
	refuse_if(parse, read && options->files_from, "--read-batch cannot be used with --files-from");
	refuse_if(parse, read && options->remove_source_files, "--read-batch cannot be used with --remove-%s-files",
		  options->remove_sent_files ? "sent" : "source");
	refuse_if(parse, read && options->attr_snapshot, "--read-batch cannot be used with --attr-snapshot");
	refuse_if(parse, (read && strlen(read) > BATCH_NAME_MAX) || (written && strlen(written) > BATCH_NAME_MAX),
		  "the batch-file name must be %d characters or less.", BATCH_NAME_MAX);
	if (options->dry_run) {
		options->only_write_batch = false;
		options->write_batch = NULL;
	}
	/* A stock rsync that replays a batch of incremental recursion expects the content of hard links at other names. */
	if (options->write_batch && options->hard_links)
		options->allow_inc_recurse = false;
	/* The destination itself is as good as none. */
	if (options->backup_dir && (!*options->backup_dir || !strcmp(options->backup_dir, ".")))
		options->backup_dir = NULL;
	/* Backups in them change the directories anyway. */
	if (options->backup && !options->backup_dir && !sends)
		options->omit_dir_times = true;
	/* Without a directory to hold them back in, updates are not delayed. */
	if (!options->server && parse->partial_dir_empty && !options->inplace && !options->append)
		options->delay_updates = false;
	refuse_if(parse, suffix && strchr(suffix, '/'), "--suffix cannot contain slashes: %s", suffix);
	refuse_if(parse, !sends && suffix && !*suffix && !directory, "--suffix cannot be empty without a --backup-dir");
	refuse_if(parse, !sends && directory && !options->backup_dir && (!suffix || !*suffix),
		  "--suffix cannot be empty when --backup-dir is the same as the dest dir");
}

static void check_client(struct option_parse *parse, struct options *options)
{
	size_t count = options->operands.count;
	/* An attr tree of what lies elsewhere is made without a look at contents. */
	bool of_remote = options->only_send_attrs && options_kind_of_run(options) == PULL;
	/* ACLs and extended attributes are those of the real files, wherever their list comes from. */
	const char *kept = options->acls ? "acls" : options->xattrs ? "xattrs" : NULL;
	bool lists_only = options->attr_mode != ATTR_MODE_NONE || (options->attr_snapshot && count < 2);

	refuse_if(parse, of_remote && options->checksum,
		  "--checksum would have the other end read all of its files: not with --only-send-attrs");
	refuse_if(parse, of_remote && options->remove_source_files,
		  "--only-send-attrs cannot be used with --remove-source-files");
	refuse_if(parse, kept && options->only_send_attrs, "--%s cannot be used with --only-send-attrs", kept);
	refuse_if(parse, kept && lists_only, "--%s cannot be used with snapshots of attributes", kept);
	refuse_if(parse, options->only_send_attrs && options->append, "--only-send-attrs cannot be used with --append");
	if (parse->error)
		return;
	if (lists_nothing(options) || options->attr_refresh || options->attr_digests)
		check_attr_options(parse, options);
	else if (options->sender || !count || (options->files_from && count != 2))
		parse_print(parse, PRINT_HELP, stderr, EXIT_SYNTAX);
	else if (options->files_from_remote && !argument_is_remote(options->operands.items[0])
		 && !argument_is_remote(options->operands.items[count - 1]))
		parse_fail_bare(parse, EXIT_SYNTAX, "--files-from cannot be remote when the transfer is local");
}

bool options_finish(struct option_parse *parse, struct options *options)
{
	static const struct filter_option cvs = { .kind = FOPT_CVS, .times = 1 };

	if (!options->server)
		finish_arguments(parse, options);
	finish_algorithms(parse, options);
	if (parse->error)
		return false;
	finish_places(parse, options);
	if (parse->error || (parse->refused && !refuse_implied(parse, options)))
		return false;
	if (options->server && !parse->refused && !parse->saw_end && !options->operands.count)
		parse_print(parse, PRINT_HELP, stderr, EXIT_SYNTAX);
	if (options->munge_links && attrs_munging_is_unsafe())
		return parse_fail_bare(parse, EXIT_UNSUPPORTED, MUNGE_UNSAFE);
	options->list_only_given = options->list_only;
	/* --fake-super keeps attributes in an xattr: that cannot be copied as it is as well, and snapshots do not have it. */
	if (options->super == SUPER_FAKE) {
		refuse_if(parse, options->xattrs > 1, "--fake-super conflicts with -XX");
		refuse_if(parse, options->only_send_attrs, "--fake-super cannot be used with --only-send-attrs");
		refuse_if(parse, lists_nothing(options), "--fake-super cannot be used with snapshots of attributes");
	}
	if (!options->server && options->operands.count == 1 && !options->read_batch && !lists_nothing(options))
		options->list_only = true;
	finish_recursion(parse, options);
	/* A directory for partial files from the environment, where there is anything to keep in it. */
	const char *partial = getenv("RSYNC_PARTIAL_DIR");
	bool keeps = !options->server && options->partial && !options->inplace && !options->append;

	if (keeps && !options->has_partial_dir && !parse->partial_dir_empty && partial && *partial
	    && strcmp(partial, ".") != 0) {
		options->partial_dir = parse_clean_partial_dir(parse, partial);
		options->has_partial_dir = true;
	}
	finish_delete(parse, options);
	const char *name = options->append ? "append" : options->inplace ? "inplace" : NULL;

	refuse_if(parse, options->append && options->whole_file == 1, "--append cannot be used with --whole-file");
	refuse_if(parse, name && options->delay_updates, "--%s cannot be used with --delay-updates", name);
	refuse_if(parse, name && (options->has_partial_dir || parse->partial_dir_empty),
		  "--%s cannot be used with --partial-dir", name);
	if (parse->error)
		return false;
	if (options->append)
		options->inplace = true;
	if (options->append > 2)
		options->append = 2;
	finish_output(parse, options);
	if (options->server || parse->error)
		return !parse->error;
	if (options->cvs_exclude)
		vec_push(&options->filters, cvs);
	check_client(parse, options);
	return !parse->error;
}
