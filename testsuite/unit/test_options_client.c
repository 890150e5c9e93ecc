/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command line of a local run: what is understood, what is implied, what is refused. */
#include "options_support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "fs/chmod.h"

#include "options/help.h"
#include "options/table.h"
#include "ui/levels.h"

UNIT_TEST(archive_is_its_letters)
{
	struct parsed parsed;
	struct options *o = &parsed.options;

	assert_parses(&parsed, "-a a b");
	assert_int_equal(o->recursive, 1);
	assert_true(o->links && o->perms && o->times && o->group && o->owner && o->devices && o->specials);
	assert_false(o->dirs || o->relative || o->checksum || o->hard_links || o->list_only);
	assert_int_equal(o->operands.count, 2);
	parsed_free(&parsed);
}

UNIT_TEST(later_words_win)
{
	static const struct { const char *words; bool owner; } vectors[] = {
		{ "-a --no-o", false }, { "--no-o -a", true }, { "-a --no-owner -o", true }, { "-o --no-o", false },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("%s a b", vectors[i].words);
		struct parsed parsed;

		assert_parses(&parsed, line);
		assert_int_equal(parsed.options.owner, vectors[i].owner);
		parsed_free(&parsed);
		free(line);
	}
}

UNIT_TEST(options_and_operands_may_alternate)
{
	struct parsed parsed;

	assert_parses(&parsed, "-rv a b -t -- -x");
	assert_true(parsed.options.times && parsed.options.recursive == 2 && parsed.options.one_file_system == 0);
	assert_int_equal(parsed.options.operands.count, 3);
	assert_string_equal(parsed.options.operands.items[2], "-x");
	parsed_free(&parsed);
}

/* The whole list that the local engine is to have; none of these may be refused. */
UNIT_TEST(the_words_of_a_local_run)
{
	static const char *const words[] = {
		"-r", "-l", "-p", "-t", "-g", "-o", "-D", "--devices", "--specials", "-a", "-H", "-n", "-v", "-q", "-i",
		"--stats",
		"-P", "--progress", "--info=progress2", "--debug=flist2", "-h", "-x", "-xx", "--numeric-ids",
		"--filter=-_x", "-f +_x",
		"--exclude=x", "--include x", "--exclude-from=x", "--include-from=x", "-F", "-FF", "-C", "-r --delete",
		"-r --delete-before", "-d --delete-during", "-r --delete-after", "-r --delete-delay", "-r --delete-excluded",
		"-r --del", "-r --del --max-delete=3", "--force", "--ignore-errors", "--size-only", "-I", "-c", "-u",
		"--existing",
		"--ignore-non-existing", "--ignore-existing", "--chmod=u+x", "--files-from=x", "--files-from=- -0", "-R",
		"--no-relative", "--implied-dirs", "--no-implied-dirs", "--mkpath", "-W", "--inplace", "--fsync",
		"--preallocate",
		"-S", "--only-send-attrs", "--attr-snapshot=x",
		"-d", "-L", "-k", "--copy-unsafe-links", "--safe-links", "--max-size=1K",
		"--min-size=1",
		"--out-format=%n", "--log-format=%n", "--list-only", "-8", "--stderr=all", "--msgs2stderr", "--partial",
		"-avPH --delete-after --only-send-attrs",
		"--no-r --no-l --no-p --no-t --no-g --no-o --no-D --no-devices --no-H",
		"--no-v --no-i --no-h --no-x --no-c --no-d --no-R --no-i-d --no-S --no-8 --no-force --no-inplace --no-progress",
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		char *line = xasprintf("%s a b", words[i]);
		struct parsed parsed;

		assert_parses(&parsed, line);
		parsed_free(&parsed);
		free(line);
	}
}

/* --- attr snapshots --- */

UNIT_TEST(an_attr_snapshot_is_no_listing)
{
	static const struct { const char *line; int recursive; enum attr_mode mode; unsigned digests; } vectors[] = {
		{ "-a --attr-snapshot=f src/", 1, ATTR_MODE_NONE, 0 },
		{ "-r --attr-snapshot f --only-send-attrs src/", 2, ATTR_MODE_NONE, 0 },
		{ "--attr-snapshot=f --attr-refresh=dirs src/", 1, ATTR_MODE_NONE, 0 },
		{ "-a --attr-snapshot=f --attr-digests=md5 src/", 1, ATTR_MODE_NONE, ATTR_DIGEST_MD5 },
		{ "-a --attr-snapshot=f --attr-digests=md5,xxh128,md5 s d/", 1, ATTR_MODE_NONE,
		  ATTR_DIGEST_MD5 | ATTR_DIGEST_XXH128 },
		{ "-aH --delete --attr-snapshot=f src dst/", 1, ATTR_MODE_NONE, 0 },
		{ "--attr-list f", 0, ATTR_MODE_LIST, 0 }, { "-r --attr-list f some/path", 2, ATTR_MODE_LIST, 0 },
		{ "--attr-verify --attr-verify f", 2, ATTR_MODE_VERIFY, 0 }, { "--attr-verify f src/", 2, ATTR_MODE_VERIFY, 0 },
		{ "--attr-diff -0 --delete old new", 2, ATTR_MODE_DIFF, 0 },
		{ "--attr-from-tree --attr-snapshot=f tree real", 2, ATTR_MODE_FROM_TREE, 0 },
		{ "--attr-snapshot=f --attr-to-tree tree", 2, ATTR_MODE_TO_TREE, 0 },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		struct parsed parsed;

		assert_parses(&parsed, vectors[i].line);
		assert_false(parsed.options.list_only);
		assert_int_equal(parsed.options.recursive, vectors[i].recursive);
		assert_int_equal(parsed.options.attr_mode, vectors[i].mode);
		assert_int_equal(parsed.options.attr_digests, vectors[i].digests);
		if (strstr(vectors[i].line, "--attr-snapshot"))
			assert_string_equal(parsed.options.attr_snapshot, "f");
		parsed_free(&parsed);
	}
}

UNIT_TEST(attr_options_that_do_not_go_together)
{
	static const struct { const char *line, *error; } vectors[] = {
		{ "--attr-refresh=dirs s/", "--attr-refresh needs --attr-snapshot=FILE" },
		{ "--attr-digests=md5 s/", "--attr-digests needs --attr-snapshot=FILE" },
		{ "-a --attr-snapshot=f --attr-digests=md5, s/", "--attr-digests: \"\" is not one of xxh128 and md5" },
		{ "-a --attr-snapshot=f --attr-digests=md55 s/", "--attr-digests: \"md55\" is not one of xxh128 and md5" },
		{ "-a --attr-snapshot=", "--attr-snapshot needs the name of a file" },
		{ "--attr-snapshot=f s/", "--attr-snapshot is of a whole tree: it needs --recursive (-r or -a)" },
		{ "-a --attr-snapshot=f a b c/", "--attr-snapshot is of one directory: SRC/, or DEST of one SRC" },
		{ "-a --attr-snapshot=f", "--attr-snapshot is of one directory: SRC/, or DEST of one SRC" },
		{ "-aR --attr-snapshot=f a b", "--attr-snapshot cannot be used with --relative" },
		{ "-a --list-only --attr-snapshot=f a b", "--attr-snapshot cannot be used with --list-only" },
		{ "-a --files-from=x --attr-snapshot=f a b", "--attr-snapshot cannot be used with --files-from" },
		{ "-a --attr-snapshot=f --attr-refresh=dirs a b", "--attr-refresh is for runs without a destination" },
		{ "--attr-list --attr-diff a b", "--attr-list and --attr-diff cannot be used together" },
		{ "--attr-list --attr-snapshot=f a", "--attr-snapshot cannot be used with --attr-list" },
		{ "--attr-list --attr-refresh=dirs a", "--attr-refresh cannot be used with --attr-list" },
		{ "--attr-verify --list-only a", "--list-only cannot be used with --attr-verify" },
		{ "--attr-diff a", "usage: rsync-huai --attr-diff OLD NEW" },
		{ "--attr-verify a b c", "usage: rsync-huai --attr-verify FILE [SRC/]" },
		{ "--attr-to-tree a", "--attr-to-tree needs --attr-snapshot=FILE" },
	};
	static const char *const useless[] = {
		"delete", "checksum", "max-size=1", "min-size=1", "dirs", NULL
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
		assert_fails(vectors[i].line, 1, vectors[i].error);
	for (size_t i = 0; useless[i]; i++) {
		char *line = xasprintf("-a --%s --attr-snapshot=f a", useless[i]);
		char *error = xasprintf("--%.*s cannot be used with --attr-snapshot without a destination",
					(int)strcspn(useless[i], "="), useless[i]);

		assert_fails(line, 1, error);
		free(line);
		free(error);
	}
}

/* No peer names a file that the server then writes, on either side. */
UNIT_TEST(attr_options_are_not_for_servers)
{
	static const char *const words[] = {
		"--attr-snapshot=f", "--attr-refresh=dirs", "--attr-digests=md5", "--attr-list", "--attr-verify", "--attr-diff",
		"--attr-from-tree", "--attr-to-tree",
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (int sends = 0; sends < 2; sends++) {
			char *line = xasprintf("--server%s %s . x", sends ? " --sender" : "", words[i]);
			char *error = xasprintf("on remote machine: %.*s is not supported by this build",
						(int)strcspn(words[i], "="), words[i]);

			assert_fails(line, 4, error);
			free(line);
			free(error);
		}
}

static const char *value_for(const struct option_spec *spec)
{
	static const struct { const char *name, *value; } special[] = {
		{ "checksum-choice", "=md5" }, { "cc", "=md5" }, { "compress-choice", "=lz4" }, { "zc", "=lz4" },
		{ "max-alloc", "=2M" },
	};

	for (size_t i = 0; i < sizeof special / sizeof *special; i++)
		if (spec->name && strcmp(spec->name, special[i].name) == 0)
			return special[i].value;
	return spec->arg == NO_ARG ? "" : spec->arg == INT_ARG ? "=28" : "=1";
}

/* Refused in other words, and earlier. */
static bool has_words_of_its_own(const struct option_spec *spec)
{
	return spec->name && (strncmp(spec->name, "attr-", 5) == 0 || strcmp(spec->name, "crtimes") == 0);
}

/* Nothing is accepted and then left undone: in a run that it does not belong to, every row is refused by its own name. */
UNIT_TEST(what_is_not_built_is_refused_by_name)
{
	/* What a pull has, a local run has by the protocol. */
	static const struct { unsigned kinds; const char *operands, *where; } runs[] = {
		{ LOCAL | PULL, "a b", " in a local run" },
		{ PUSH, "a h:b", " in a push" },
		{ PULL, "h:a b", " in a pull" },
	};
	int refused = 0;

	for (size_t run = 0; run < sizeof runs / sizeof *runs; run++) {
		for (const struct option_spec *spec = option_table(MODE_CLIENT); !option_is_end(spec); spec++) {
			char label[OPTION_LABEL_SIZE], *line, *error;

			if (spec->runs & runs[run].kinds || has_words_of_its_own(spec))
				continue;
			option_label(spec, label);
			line = xasprintf("%s%s %s", label, value_for(spec), runs[run].operands);
			error = xasprintf("%s is not supported by this build%s", label, runs[run].where);
			assert_fails(line, 4, error);
			free(error);
			free(line);
			refused++;
		}
	}
	assert_true(refused > 0);
}

/* The help names exactly the rows that work, each once as a heading or among the further spellings. */
UNIT_TEST(the_help_is_the_table)
{
	static const enum parse_mode modes[] = { MODE_CLIENT, MODE_DAEMON };

	for (size_t m = 0; m < 2; m++) {
		struct strbuf help = STRBUF_INIT;

		if (modes[m] == MODE_DAEMON)
			options_add_daemon_help(&help);
		else
			options_add_help(&help);
		for (const struct option_spec *spec = option_table(modes[m]); !option_is_end(spec); spec++) {
			char label[OPTION_LABEL_SIZE];
			size_t length = strlen(option_label(spec, label));
			bool listed = false;

			for (const char *p = strstr(help.data, "\nOptions\n"); (p = strstr(p, label)); p += length)
				listed |= (p[-1] == ' ' || p[-1] == '\n') && strchr("=, \n", p[length]);
			if (listed != option_is_shown(spec))
				fail_msg("%s is %slisted", label, listed ? "" : "not ");
		}
		strbuf_free(&help);
	}
}

UNIT_TEST(local_run_goes_by_the_protocol_where_it_has_to)
{
	static const struct { const char *line; bool by_protocol; } vectors[] = {
		{ "-a -W --inplace --no-z a b", false }, { "-a --no-W a b", true }, { "-az a b", true }, { "-az a h:b", false },
	};
	struct parsed parsed;

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		assert_parses(&parsed, vectors[i].line);
		assert_int_equal(parsed.options.by_protocol, vectors[i].by_protocol);
		parsed_free(&parsed);
	}
	/* The rest of the line is read all the same, and its errors come first. */
	assert_fails("-az --foo a b", 1, "--foo: unknown option");
}

UNIT_TEST(unknown_words)
{
	static const struct { const char *line, *error; } vectors[] = {
		{ "--foo", "--foo: unknown option" },
		{ "--verb a b", "--verb: unknown option" },
		{ "--Verbose a b", "--Verbose: unknown option" },
		{ "-Q a b", "-Q: unknown option" },
		{ "-aQr a b", "-aQr: unknown option" },
		{ "--verbose=3 a b", "--verbose=3: option does not take an argument" },
		{ "-r=5 a b", "-r=5: option does not take an argument" },
		{ "--max-size", "--max-size: missing argument" },
		{ "a b -rf", "-rf: missing argument" },
		{ "--no-a a b", "--no-a: unknown option" },
		{ "--no-archive a b", "--no-archive: unknown option" },
		{ "--no-delete a b", "--no-delete: unknown option" },
		{ "--no-partial-dir a b", "--no-partial-dir: unknown option" },
		{ "--only-send a b", "--only-send: unknown option" },
		{ "--no-only-send-attrs a b", "--no-only-send-attrs: unknown option" },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
		assert_fails(vectors[i].line, 1, vectors[i].error);
}

UNIT_TEST(short_values)
{
	static const char *const lines[] = { "-f+_x a b", "-f +_x a b", "-f=+_x a b", "-rvf+_x a b" };

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct parsed parsed;

		assert_parses(&parsed, lines[i]);
		assert_int_equal(parsed.options.filters.count, 1);
		assert_string_equal(parsed.options.filters.items[0].text, "+ x");
		parsed_free(&parsed);
	}
}

UNIT_TEST(filters_keep_their_order)
{
	static const struct { int kind, style, times; const char *text; } expected[] = {
		{ FOPT_RULE, FILTER_OLD_EXCLUDE, 1, "a" }, { FOPT_SHORTCUT_F, FILTER_NEW_STYLE, 1, "" },
		{ FOPT_RULE, FILTER_NEW_STYLE, 1, "+ b" }, { FOPT_FILE, FILTER_OLD_INCLUDE, 1, "c" },
		{ FOPT_SHORTCUT_F, FILTER_NEW_STYLE, 2, "" }, { FOPT_RULE, FILTER_OLD_INCLUDE, 1, "d" },
		{ FOPT_FILE, FILTER_OLD_EXCLUDE, 1, "e" }, { FOPT_CVS, FILTER_NEW_STYLE, 1, NULL },
	};
	struct parsed parsed;

	assert_parses(&parsed, "-C --exclude=a -F -f +_b --include-from=c -FF --include=d --exclude-from e x y");
	assert_int_equal(parsed.options.filters.count, 8);
	for (size_t i = 0; i < 8; i++) {
		const struct filter_option *filter = &parsed.options.filters.items[i];

		assert_int_equal(filter->kind, expected[i].kind);
		assert_int_equal(filter->style, expected[i].style);
		assert_int_equal(filter->times, expected[i].times);
		if (expected[i].text)
			assert_string_equal(filter->text, expected[i].text);
	}
	parsed_free(&parsed);
}

UNIT_TEST(delete_words)
{
	static const struct { const char *words; enum delete_when when; } vectors[] = {
		{ "-r", DELETE_NEVER }, { "-r --delete", DELETE_DEFAULT }, { "-r --delete-excluded", DELETE_DEFAULT },
		{ "-r --del", DELETE_DURING }, { "-r --delete --delete-before", DELETE_BEFORE },
		{ "-r --delete-delay", DELETE_DELAY },
		{ "-r --delete-during --delete-delay", DELETE_DELAY }, { "-d --delete-after", DELETE_AFTER },
		{ "-r --delete-excluded --delete-after", DELETE_AFTER },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("%s a b", vectors[i].words);
		struct parsed parsed;

		assert_parses(&parsed, line);
		if (parsed.options.delete_when != vectors[i].when)
			fail_msg("%s: %d", line, parsed.options.delete_when);
		parsed_free(&parsed);
		free(line);
	}
	assert_fails("-r --delete-before --delete-after a b", 1, "You may not combine multiple --delete-WHEN options.");
	assert_fails("-r --del --delete-after a b", 1, "You may not combine multiple --delete-WHEN options.");
	assert_fails("--delete a b", 1, "--delete does not work without --recursive (-r) or --dirs (-d).");
	assert_fails("--delete-excluded a b", 1, "--delete does not work without --recursive (-r) or --dirs (-d).");
}

UNIT_TEST(max_delete)
{
	static const struct { const char *word; int value; } vectors[] = {
		{ "--max-delete=7", 7 }, { "--max-delete=0", 0 }, { "--max-delete=-3", 0 }, { "--max-delete=-2147483648", -1 },
		{ "-p", -1 },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("%s a b", vectors[i].word);
		struct parsed parsed;

		assert_parses(&parsed, line);
		assert_int_equal(parsed.options.max_delete, vectors[i].value);
		parsed_free(&parsed);
		free(line);
	}
}

UNIT_TEST(files_from_changes_the_defaults)
{
	static const struct { const char *words; int recursive; bool dirs, relative; } vectors[] = {
		{ "--files-from=F", 0, true, true },           { "--files-from=F -a", 0, true, true },
		{ "--files-from=F -r", 2, false, true },       { "-r --files-from=F -a", 2, false, true },
		{ "-a -r --files-from=F", 2, false, true },    { "--files-from=F --no-R", 0, true, false },
		{ "--no-R --files-from=F", 0, true, false },   { "--files-from=F --no-d", 0, false, true },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("%s a b", vectors[i].words);
		struct parsed parsed;

		assert_parses(&parsed, line);
		if (parsed.options.recursive != vectors[i].recursive || parsed.options.dirs != vectors[i].dirs ||
		    parsed.options.relative != vectors[i].relative)
			fail_msg("%s: r%d d%d R%d", line, parsed.options.recursive, parsed.options.dirs,
				 parsed.options.relative);
		parsed_free(&parsed);
		free(line);
	}
	assert_fails("--files-from=:F a b", 1, "--files-from cannot be remote when the transfer is local");
	assert_fails("--files-from=h:F a b", 1, "--files-from cannot be remote when the transfer is local");
}

UNIT_TEST(one_argument_is_a_listing)
{
	struct parsed parsed;

	assert_parses(&parsed, "a");
	assert_true(parsed.options.list_only && parsed.options.dirs && !parsed.options.recursive);
	parsed_free(&parsed);
	assert_parses(&parsed, "-r a");
	assert_true(parsed.options.list_only && !parsed.options.dirs && parsed.options.recursive);
	parsed_free(&parsed);
}

struct level_vector {
	const char *words;
	int word, level;
};

UNIT_TEST(options_that_are_levels)
{
	static const struct level_vector vectors[] = {
		{ "-p", INFO_NAME, 0 },                          { "-v", INFO_NAME, 1 },
		{ "-v --info=name0", INFO_NAME, 0 },             { "--info=name0 -v", INFO_NAME, 0 },
		{ "--progress", INFO_NAME, 1 },                  { "--progress --info=name0", INFO_NAME, 0 },
		{ "--progress --out-format=%n", INFO_NAME, 0 },  { "-P -i", INFO_NAME, 0 },
		{ "--progress", INFO_FLIST, 2 },                 { "-P", INFO_PROGRESS, 1 },
		{ "-P --no-progress", INFO_PROGRESS, 0 },        { "--info=progress2", INFO_PROGRESS, 2 },
		{ "-P --info=progress2", INFO_PROGRESS, 2 },     { "--stats", INFO_STATS, 2 },
		{ "--stats -v", INFO_STATS, 2 },                 { "--stats -vv", INFO_STATS, 3 },
		{ "-v --stats --info=stats1", INFO_STATS, 1 },   { "-v --no-v", INFO_NAME, 0 },
		{ "-p", INFO_NONREG, 1 },                        { "--info=none", INFO_NONREG, 0 },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("%s a b", vectors[i].words);
		struct parsed parsed;

		assert_parses(&parsed, line);
		if (parsed.options.levels.info[vectors[i].word] != vectors[i].level)
			fail_msg("%s: %d", line, parsed.options.levels.info[vectors[i].word]);
		parsed_free(&parsed);
		free(line);
	}
}

UNIT_TEST(unknown_levels_are_told_without_the_program_name)
{
	struct parsed parsed;

	assert_fails("--info=foo a b", 1, "Unknown --info item: \"foo\"");
	assert_fails("--debug=2flist a b", 1, "Unknown --debug item: \"2flist\"");
	parse_line(&parsed, "--info=foo a b");
	assert_true(parsed.options.error_is_bare);
	parsed_free(&parsed);
	parse_line(&parsed, "--foo a b");
	assert_false(parsed.options.error_is_bare);
	parsed_free(&parsed);
}

UNIT_TEST(out_formats)
{
	static const struct { const char *words, *format; bool has_i; } vectors[] = {
		{ "-i", "%i %n%L", true }, { "-i --out-format=%n", "%n", false }, { "--out-format=%i_%f", "%i %f", true },
		{ "-i --no-i", NULL, false }, { "-v", NULL, false },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("%s a b", vectors[i].words);
		struct parsed parsed;

		assert_parses(&parsed, line);
		assert_true(!vectors[i].format == !parsed.options.out_format);
		if (vectors[i].format)
			assert_string_equal(parsed.options.out_format, vectors[i].format);
		assert_int_equal(parsed.options.log_format_has_i, vectors[i].has_i);
		parsed_free(&parsed);
		free(line);
	}
}

UNIT_TEST(chmod_is_checked_and_adds_up)
{
	struct parsed parsed;

	assert_parses(&parsed, "--chmod=u+x --chmod=F644 a b");
	assert_non_null(parsed.options.chmod);
	assert_int_equal(chmod_apply(parsed.options.chmod, S_IFREG | 0600), S_IFREG | 0644);
	assert_int_equal(chmod_apply(parsed.options.chmod, S_IFDIR | 0600), S_IFDIR | 0700);
	parsed_free(&parsed);
	assert_fails("--chmod=u+z a b", 1, "Invalid argument passed to --chmod (u+z)");
}

/* Daemon mode */

UNIT_TEST(a_daemons_words)
{
	struct parsed parsed;
	struct options *o = &parsed.options;

	assert_parses(&parsed,
		      "-v --config=/x --daemon --no-detach --port 8873 --address=::1 -M a=b --dparam=c=d --log-file=l -6");
	assert_true(o->daemon && !o->detach && !o->server && !o->config_check);
	assert_string_equal(o->config_file, "/x");
	assert_string_equal(o->address, "::1");
	assert_string_equal(o->log_file, "l");
	assert_int_equal(o->port, 8873);
	assert_int_equal(o->ip_family, 6);
	assert_int_equal(o->verbose, 1);
	assert_int_equal(o->dparams.count, 2);
	assert_string_equal(o->dparams.items[1], "c=d");
	parsed_free(&parsed);
	assert_parses(&parsed, "--config-check --config=/x");
	assert_true(o->config_check);
	parsed_free(&parsed);
	assert_parses(&parsed, "--status --config=/x");
	assert_true(o->status && !o->daemon);
	parsed_free(&parsed);
	assert_parses(&parsed, "--daemon --config-check");
	assert_true(o->daemon && o->config_check);
	parsed_free(&parsed);
	assert_parses(&parsed, "--server --daemon .");
	assert_true(o->daemon && o->server);
	parsed_free(&parsed);
}

#define HINT "\n(Type \"rsync --daemon --help\" for assistance with daemon mode.)"

UNIT_TEST(a_daemons_errors)
{
	assert_fails("--daemon -e x", 1, "-e: unknown option (in daemon mode)" HINT);
	assert_fails("-a --daemon", 1, "-a: unknown option (in daemon mode)" HINT);
	assert_fails("--server --daemon --sender .", 1, "--sender: unknown option (in daemon mode)" HINT);
	assert_fails("--config=x -v", 1, "Daemon option(s) used without --daemon." HINT);
	assert_fails("--no-detach", 1, "Daemon option(s) used without --daemon." HINT);
	assert_fails("--daemon --dparam=x", 1, "--dparam value is missing an '=': x" HINT);
	assert_fails("--daemon --port=99999", 1, "--port=99999 is not a port number");
	struct parsed parsed;

	assert_parses(&parsed, "--daemon -T x");
	assert_string_equal(parsed.options.temp_dir, "x");
	parsed_free(&parsed);
}

/* Aliases are the user's own, and none of a server's or daemon's. */
UNIT_TEST(aliases_of_the_user)
{
	char home[] = "/tmp/huai-options-XXXXXX";
	struct parsed parsed;
	char *file;
	FILE *out;

	assert_non_null(mkdtemp(home));
	file = xasprintf("%s/.popt", home);
	out = fopen(file, "w");
	assert_non_null(out);
	fputs("rsync alias --mirror -aH --delete\nrsync alias -q -v\nother alias -v -q\n", out);
	fclose(out);
	setenv("HOME", home, 1);
	assert_parses(&parsed, "--mirror -q a b");
	assert_true(parsed.options.hard_links == 1 && parsed.options.delete_when == DELETE_DEFAULT);
	assert_true(parsed.options.verbose == 1 && parsed.options.quiet == 0);
	parsed_free(&parsed);
	assert_parses(&parsed, "--server --sender -q . x");
	assert_true(parsed.options.verbose == 0 && parsed.options.quiet == 1);
	parsed_free(&parsed);
	assert_fails("--server --sender --mirror . x", 1, "on remote machine: --mirror: unknown option");
	unlink(file);
	rmdir(home);
	free(file);
}

/* Aliases of whoever runs the test must not take part. */
static int set_environment(void **state)
{
	(void)state;
	setenv("HOME", "/nonexistent", 1);
	return 0;
}

UNIT_GROUP(set_environment, NULL)
