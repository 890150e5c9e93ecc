/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Conflicts, implied settings, defaults; the options of the attr snapshot, and which of them make sense together. */
#include "options/checks.h"

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

/* --- attr snapshots --- */

/* Does the line ask for something other than a listing? */
static bool attr_options_list_nothing(const struct options *options)
{
	return options->attr_mode != ATTR_MODE_NONE || options->attr_snapshot != NULL;
}

static bool fail_pair(struct option_parse *parse, const char *name, const char *with)
{
	return parse_fail(parse, EXIT_SYNTAX, "--%s cannot be used with --%s", name, with);
}

static bool check_mode(struct option_parse *parse, const struct options *options)
{
	static const struct { size_t least, most; bool wants_snapshot; const char *words; } shapes[] = {
		[ATTR_MODE_LIST] = { 1, 2, false, "FILE [PATH]" },
		[ATTR_MODE_VERIFY] = { 1, 2, false, "FILE [SRC/]" },
		[ATTR_MODE_DIFF] = { 2, 2, false, "OLD NEW" },
		[ATTR_MODE_FROM_TREE] = { 1, 2, true, "TREE [REAL/]" },
		[ATTR_MODE_TO_TREE] = { 1, 1, true, "TREE" },
	};
	const char *name = parse->attr_mode_name;
	size_t count = options->operands.count;

	if (options->attr_refresh || options->attr_digests)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-%s cannot be used with --%s",
				  options->attr_refresh ? "refresh" : "digests", name);
	if (shapes[options->attr_mode].wants_snapshot && !options->attr_snapshot)
		return parse_fail(parse, EXIT_SYNTAX, "--%s needs --attr-snapshot=FILE", name);
	if (!shapes[options->attr_mode].wants_snapshot && options->attr_snapshot)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-snapshot cannot be used with --%s", name);
	if (count < shapes[options->attr_mode].least || count > shapes[options->attr_mode].most)
		return parse_fail(parse, EXIT_SYNTAX, "usage: rsync-huai --%s%s %s", name,
				  options->attr_snapshot ? " --attr-snapshot=FILE" : "", shapes[options->attr_mode].words);
	if (options->files_from || options->list_only)
		return parse_fail(parse, EXIT_SYNTAX, "--%s cannot be used with --%s",
				  options->files_from ? "files-from" : "list-only", name);
	return true;
}

/* An option that has a meaning for a destination only, or would make the snapshot one of less than a directory; else NULL. */
static const char *useless_for_making(const struct options *options)
{
	const struct { bool used; const char *name; } useless[] = {
		{ options->delete_when != DELETE_NEVER, "delete" },
		{ options->checksum, "checksum" },
		{ options->max_size >= 0, "max-size" },
		{ options->min_size >= 0, "min-size" },
		{ options->out_format != NULL, "out-format (or -i)" },
		{ options->dirs, "dirs" },
	};

	for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
		if (useless[i].used)
			return useless[i].name;
	return NULL;
}

static bool stdin_is_wanted_twice(const struct options *options)
{
	bool wanted = false;

	for (size_t i = 0; i < options->filters.count; i++)
		wanted |= options->filters.items[i].kind == FOPT_FILE && strcmp(options->filters.items[i].text, "-") == 0;
	return wanted && options->attr_refresh && strcmp(options->attr_refresh, "-") == 0;
}

static bool check_making(struct option_parse *parse, struct options *options)
{
	const char *useless = useless_for_making(options);

	if (useless)
		return fail_pair(parse, useless, "attr-snapshot without a destination");
	if (stdin_is_wanted_twice(options))
		return parse_fail(parse, EXIT_SYNTAX, "--attr-refresh=- and rules cannot both be read from standard input");
	if (options->attr_digests && options_kind_of_run(options) == PULL)
		return fail_pair(parse, "attr-digests", "attr-snapshot of a list that is received: it needs the contents");
	/* A snapshot that is refreshed was made of a whole tree. */
	if (options->attr_refresh && !options->recursive)
		options->recursive = 1;
	if (!options->recursive)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-snapshot is of a whole tree: it needs --recursive (-r or -a)");
	return true;
}

static bool check_snapshot(struct option_parse *parse, struct options *options)
{
	size_t count = options->operands.count;

	if (options->files_from || options->relative || options->list_only)
		return fail_pair(parse, "attr-snapshot", options->files_from ? "files-from" : options->list_only ? "list-only"
				 : "relative");
	if (!count || count > 2)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-snapshot is of one directory: SRC/, or DEST of one SRC");
	if (count == 1)
		return check_making(parse, options);
	if (options->attr_refresh)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-refresh is for runs without a destination");
	return true;
}

/* The checks that need the whole line, of one that has such options. False after parse_fail. */
static bool attr_options_check(struct option_parse *parse, struct options *options)
{
	if (options->attr_mode != ATTR_MODE_NONE)
		return check_mode(parse, options);
	if (options->attr_snapshot)
		return check_snapshot(parse, options);
	return parse_fail(parse, EXIT_SYNTAX, "--attr-%s needs --attr-snapshot=FILE",
			  options->attr_refresh ? "refresh" : "digests");
}

/* --- all of a line --- */

#define ALL_WHENS (SAID_BEFORE | SAID_DURING | SAID_DELAY | SAID_AFTER)

/* Records the levels that --info itself has set: the others are not sent to a server (doc/protocol/06-command-line.md
 * section 7.3). */
static void note_given(const struct option_parse *parse, struct options *options)
{
	struct ui_levels given;
	char *bad = NULL;

	memset(&given, INFO_NOT_GIVEN, sizeof given);
	for (size_t i = 0; i < parse->info_words.count; i++, bad = NULL) {
		ui_levels_parse_info(&given, parse->info_words.items[i], &bad);
		free(bad);
	}
	memcpy(options->info_given, given.info, sizeof options->info_given);
}

/* A server may be older or newer than its client: it ignores the items that it does not know. */
static bool apply_words(struct option_parse *parse, struct options *options)
{
	for (size_t i = 0; i < parse->info_words.count; i++) {
		char *bad = NULL;

		if (!ui_levels_parse_info(&options->levels, parse->info_words.items[i], &bad) && !options->server)
			parse_fail_bare(parse, EXIT_SYNTAX, "Unknown --info item: \"%s\"", bad);
		free(bad);
	}
	for (size_t i = 0; i < parse->debug_words.count; i++) {
		char *bad = NULL;

		if (!ui_levels_parse_debug(&options->levels, parse->debug_words.items[i], &bad) && !options->server)
			parse_fail_bare(parse, EXIT_SYNTAX, "Unknown --debug item: \"%s\"", bad);
		free(bad);
	}
	return !parse->error;
}

/* The levels of -v, then of the options that are made of levels; explicit words beat both, wherever they stood. */
static bool finish_levels(struct option_parse *parse, struct options *options)
{
	uint8_t *info = options->levels.info;

	ui_levels_from_verbose(&options->levels, options->verbose);
	if (options->stats)
		info[INFO_STATS] = options->verbose > 1 ? 3 : 2;
	if (options->progress) {
		info[INFO_FLIST] = 2;
		info[INFO_PROGRESS] = 1;
		if (!info[INFO_NAME] && !options->out_format)
			info[INFO_NAME] = 1;
	}
	note_given(parse, options);
	return apply_words(parse, options);
}

static void finish_output(struct options *options)
{
	if (options->server && options->out_format) {
		if (strstr(options->out_format, "%I"))
			options->itemize = 2;
		else if (strstr(options->out_format, "%i") && !options->itemize)
			options->itemize = 1;
	}
	if (!options->server && options->itemize && !options->out_format)
		options->out_format = "%i %n%L";
	options->log_format_has_i = options->server ? options->itemize > 0
						    : options->out_format && format_uses(options->out_format, 'i');
}

static bool check_checksum_name(struct option_parse *parse, const char *name)
{
	enum sum_algorithm algorithm;

	if (strcasecmp(name, "auto") == 0 || sum_algorithm_parse(name, &algorithm))
		return true;
	return parse_fail_bare(parse, EXIT_UNSUPPORTED, "unknown checksum name: %s", name);
}

/* NAME or TRANSFER,PRE-TRANSFER; "auto" is what happens anyway. */
static bool finish_checksum_choice(struct option_parse *parse, struct options *options)
{
	const char *choice = options->checksum_choice;
	size_t length;
	char *first;
	bool known;

	if (!choice)
		return true;
	length = strcspn(choice, ",");
	first = xstrndup(choice, length);
	known = check_checksum_name(parse, first);
	free(first);
	if (!known || (choice[length] && !check_checksum_name(parse, choice + length + 1)))
		return false;
	/* Without a digest, blocks cannot be distinguished. */
	if (strncasecmp(choice, "none", length) == 0)
		options->whole_file = 1;
	if (strcasecmp(choice, "auto") == 0 || strcasecmp(choice, "auto,auto") == 0)
		options->checksum_choice = NULL;
	return true;
}

static bool finish_compression(struct option_parse *parse, struct options *options)
{
	enum compress_algorithm algorithm = COMPRESS_ZLIB;

	if (options->compress_choice && strcasecmp(options->compress_choice, "auto") == 0)
		options->compress_choice = NULL;
	if (options->compress_choice && !compress_algorithm_parse(options->compress_choice, &algorithm))
		return parse_fail_bare(parse, EXIT_UNSUPPORTED, "unknown compress name: %s", options->compress_choice);
	if (!options->compress_choice && parse->compress_count > 1)
		options->compress_choice = "zlibx";
	if (options->compress_choice)
		compress_algorithm_parse(options->compress_choice, &algorithm);
	options->compress_letter = options->compress_choice ? algorithm == COMPRESS_ZLIB : options->compress;
	if (options->compress_choice || options->compress_level_set)
		options->compress = algorithm != COMPRESS_NONE;
	return true;
}

/* --files-from and listings change what -a, -d and -R mean by default. */
static void finish_recursion(struct option_parse *parse, struct options *options)
{
	if (options->files_from && options->recursive == 1)
		options->recursive = 0;
	/* Snapshots are of whole trees; only a listing may want less. */
	if (options->attr_mode != ATTR_MODE_NONE && options->attr_mode != ATTR_MODE_LIST)
		options->recursive = 2;
	options->relative = parse->relative_given >= 0 ? parse->relative_given : options->files_from != NULL;
	options->dirs_given = parse->dirs_given == 1;
	if (parse->dirs_given == 2) {
		/* --old-dirs: servers of old know no -d. */
		options->recursive = 2;
		options->dirs = false;
		parse_add_filter(parse, FOPT_RULE, FILTER_OLD_EXCLUDE, "/*/*", 1);
	} else if (parse->dirs_given >= 0)
		options->dirs = parse->dirs_given;
	else
		options->dirs = !options->recursive && (options->files_from || options->list_only);
}

static bool finish_delete(struct option_parse *parse, struct options *options)
{
	static const enum delete_when whens[] = {
		[SAID_BEFORE] = DELETE_BEFORE, [SAID_DURING] = DELETE_DURING, [SAID_DELAY] = DELETE_DELAY,
		[SAID_DURING | SAID_DELAY] = DELETE_DELAY, [SAID_AFTER] = DELETE_AFTER,
	};
	int said = parse->delete_words & ALL_WHENS;
	bool during = said & (SAID_DURING | SAID_DELAY);

	if (!!(said & SAID_BEFORE) + during + !!(said & SAID_AFTER) > 1)
		return parse_fail(parse, EXIT_SYNTAX, "You may not combine multiple --delete-WHEN options.");
	if (said)
		options->delete_when = whens[said];
	else if (parse->delete_words || options->delete_excluded)
		options->delete_when = DELETE_DEFAULT;
	if (options->delete_when != DELETE_NEVER && !options->recursive && !options->dirs)
		return parse_fail(parse, EXIT_SYNTAX, "--delete does not work without --recursive (-r) or --dirs (-d).");
	return true;
}

/* Pairs of options that exclude each other, in any order. */
static bool check_conflicts(struct option_parse *parse, const struct options *options)
{
	const char *inplace = options->append ? "append" : "inplace";

	if (options->append && options->whole_file == 1)
		return parse_fail(parse, EXIT_SYNTAX, "--append cannot be used with --whole-file");
	if (!options->inplace && !options->append)
		return true;
	if (options->delay_updates || options->has_partial_dir || parse->partial_dir_empty)
		return parse_fail(parse, EXIT_SYNTAX, "--%s cannot be used with --%s", inplace,
				  options->delay_updates ? "delay-updates" : "partial-dir");
	return true;
}

/* Variables of the environment that select how arguments reach a remote shell; options take precedence
 * (doc/protocol/06-command-line.md section 5.3). */
static bool finish_arguments(struct option_parse *parse, struct options *options)
{
	const char *old = getenv("RSYNC_OLD_ARGS"), *protect = getenv("RSYNC_PROTECT_ARGS");

	if (options->secluded_args && options->old_args)
		return parse_fail(parse, EXIT_SYNTAX, "--secluded-args conflicts with --old-args.");
	if (parse->secluded_given > 0 || options->old_args)
		return true;
	if (!parse->old_args_given && old && *old)
		options->old_args = atoi(old);
	else if (parse->secluded_given < 0 && protect && *protect)
		options->secluded_args = atoi(protect) != 0;
	return true;
}

static bool check_read_batch(struct option_parse *parse, const struct options *options)
{
	if (options->write_batch)
		return parse_fail(parse, EXIT_SYNTAX, "--write-batch and --read-batch can not be used together");
	if (options->files_from)
		return parse_fail(parse, EXIT_SYNTAX, "--read-batch cannot be used with --files-from");
	if (options->remove_source_files)
		return parse_fail(parse, EXIT_SYNTAX, "--read-batch cannot be used with --remove-%s-files",
				  options->remove_sent_files ? "sent" : "source");
	if (options->attr_snapshot)
		return parse_fail(parse, EXIT_SYNTAX, "--read-batch cannot be used with --attr-snapshot");
	if (strlen(options->read_batch) > BATCH_NAME_MAX)
		return parse_fail(parse, EXIT_SYNTAX, "the batch-file name must be %d characters or less.", BATCH_NAME_MAX);
	return true;
}

/* Options that name files and directories: what they imply, and which values are refused (doc/protocol/06-command-line.md
 * section 3). */
static bool finish_places(struct option_parse *parse, struct options *options)
{
	const char *suffix = options->suffix, *directory = options->backup_dir;
	bool sends = options->server && options->sender;

	if (options->confine_root && options->insecure_links)
		return parse_fail(parse, EXIT_SYNTAX, "--insecure-links cannot be combined with --confine-root");
	if (options->write_devices)
		options->inplace = true;
	/* Old clients pass on what is their own business. */
	if (options->server) {
		if (options->write_batch && !options->only_write_batch)
			log_warning("ignoring --write-batch option sent to server");
		if (options->read_batch)
			log_warning("ignoring --read-batch option sent to server");
		options->write_batch = options->read_batch = NULL;
	}
	if ((options->write_batch || options->read_batch) && options->only_send_attrs)
		return parse_fail(parse, EXIT_SYNTAX, "a batch is of contents: not with --only-send-attrs");
	if (options->read_batch && !check_read_batch(parse, options))
		return false;
	if (options->write_batch && strlen(options->write_batch) > BATCH_NAME_MAX)
		return parse_fail(parse, EXIT_SYNTAX, "the batch-file name must be %d characters or less.", BATCH_NAME_MAX);
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
	if (suffix && strchr(suffix, '/'))
		return parse_fail(parse, EXIT_SYNTAX, "--suffix cannot contain slashes: %s", suffix);
	if (!sends && suffix && !*suffix && !directory)
		return parse_fail(parse, EXIT_SYNTAX, "--suffix cannot be empty without a --backup-dir");
	if (!sends && directory && !options->backup_dir && (!suffix || !*suffix))
		return parse_fail(parse, EXIT_SYNTAX,
				  "--suffix cannot be empty when --backup-dir is the same as the dest dir");
	return true;
}

/* A directory for partial files from the environment, where there is anything to keep in it. */
static void finish_partial_dir(struct option_parse *parse, struct options *options)
{
	const char *directory = getenv("RSYNC_PARTIAL_DIR");

	if (!options->partial || options->inplace || options->append || options->has_partial_dir || parse->partial_dir_empty)
		return;
	if (directory && *directory && strcmp(directory, ".") != 0) {
		options->partial_dir = parse_clean_partial_dir(parse, directory);
		options->has_partial_dir = true;
	}
}

/* An attr tree of what lies elsewhere is made without a look at contents. */
static bool check_remote_attrs(struct option_parse *parse, const struct options *options)
{
	if (!options->only_send_attrs || options_kind_of_run(options) != PULL)
		return true;
	if (options->checksum)
		return parse_fail(parse, EXIT_SYNTAX, "--checksum would have the other end read all of its files: not with "
				  "--only-send-attrs");
	if (options->remove_source_files)
		return parse_fail(parse, EXIT_SYNTAX, "--only-send-attrs cannot be used with --remove-source-files");
	return true;
}

/* ACLs and extended attributes are those of the real files, wherever their list comes from. */
static bool check_kept_attributes(struct option_parse *parse, const struct options *options)
{
	const char *kept = options->acls ? "acls" : options->xattrs ? "xattrs" : NULL;
	bool lists_only = options->attr_mode != ATTR_MODE_NONE || (options->attr_snapshot && options->operands.count < 2);

	if (kept && options->only_send_attrs)
		return parse_fail(parse, EXIT_SYNTAX, "--%s cannot be used with --only-send-attrs", kept);
	if (kept && lists_only)
		return parse_fail(parse, EXIT_SYNTAX, "--%s cannot be used with snapshots of attributes", kept);
	return true;
}

/* --fake-super keeps attributes in an xattr: that cannot be copied as it is as well, and snapshots do not have it. */
static bool check_fake_super(struct option_parse *parse, const struct options *options)
{
	bool of_attrs = options->only_send_attrs || options->attr_snapshot || options->attr_mode != ATTR_MODE_NONE;

	if (options->super != SUPER_FAKE)
		return true;
	if (options->xattrs > 1)
		return parse_fail(parse, EXIT_SYNTAX, "--fake-super conflicts with -XX");
	if (of_attrs)
		return parse_fail(parse, EXIT_SYNTAX, "--fake-super cannot be used with %s",
				  options->only_send_attrs ? "--only-send-attrs" : "snapshots of attributes");
	return true;
}

static bool check_client(struct option_parse *parse, struct options *options)
{
	size_t count = options->operands.count;

	if (!check_remote_attrs(parse, options) || !check_kept_attributes(parse, options))
		return false;
	if (options->only_send_attrs && options->append)
		return parse_fail(parse, EXIT_SYNTAX, "--only-send-attrs cannot be used with --append");
	if (options->attr_snapshot || options->attr_refresh || options->attr_digests || options->attr_mode != ATTR_MODE_NONE)
		return attr_options_check(parse, options);
	if (options->sender || !count || (options->files_from && count != 2)) {
		parse_print(parse, PRINT_HELP, stderr, EXIT_SYNTAX);
		return true;
	}
	if (options->files_from_remote && !argument_is_remote(options->operands.items[0]) &&
	    !argument_is_remote(options->operands.items[count - 1]))
		return parse_fail_bare(parse, EXIT_SYNTAX, "--files-from cannot be remote when the transfer is local");
	return true;
}

static bool check_server(struct option_parse *parse, struct options *options)
{
	if (parse->refused && !refuse_implied(parse, options))
		return false;
	if (!parse->refused && !parse->saw_end && !options->operands.count) {
		parse_print(parse, PRINT_HELP, stderr, EXIT_SYNTAX);
		return true;
	}
	return true;
}

bool options_finish(struct option_parse *parse, struct options *options)
{
	static const struct filter_option cvs = { .kind = FOPT_CVS, .times = 1 };

	if (!options->server && !finish_arguments(parse, options))
		return false;
	if (!finish_checksum_choice(parse, options) || !finish_compression(parse, options))
		return false;
	if (!finish_places(parse, options))
		return false;
	if (options->server && !check_server(parse, options))
		return false;
	if (options->munge_links && attrs_munging_is_unsafe())
		return parse_fail_bare(parse, EXIT_UNSUPPORTED, MUNGE_UNSAFE);
	options->list_only_given = options->list_only;
	if (!check_fake_super(parse, options))
		return false;
	if (!options->server && options->operands.count == 1 && !options->read_batch && !attr_options_list_nothing(options))
		options->list_only = true;
	finish_recursion(parse, options);
	if (!options->server)
		finish_partial_dir(parse, options);
	if (!finish_delete(parse, options) || !check_conflicts(parse, options))
		return false;
	if (options->append)
		options->inplace = true;
	if (options->append > 2)
		options->append = 2;
	finish_output(options);
	if (!finish_levels(parse, options))
		return false;
	if (options->server)
		return true;
	if (options->cvs_exclude)
		vec_push(&options->filters, cvs);
	return check_client(parse, options);
}
