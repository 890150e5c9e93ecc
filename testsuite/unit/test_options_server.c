/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What clients of every release send to a sending server, and what the server understands by it. */
#include "options_support.h"

#include "ui/levels.h"
#include "wire/setup.h"

#define BIT(out, options, member) \
	do { \
		if ((options)->member) \
			strbuf_add_string(out, " " #member); \
	} while (0)
#define NUM(out, options, member, normal) \
	do { \
		if ((options)->member != (normal)) \
			strbuf_addf(out, " " #member "=%lld", (long long)(options)->member); \
	} while (0)
#define STR(out, options, member) \
	do { \
		if ((options)->member) \
			strbuf_addf(out, " " #member "=%s", (options)->member); \
	} while (0)

static void describe_kept(struct strbuf *out, const struct options *o)
{
	NUM(out, o, recursive, 0);
	if (!o->allow_inc_recurse)
		strbuf_add_string(out, " no_inc_recurse");
	BIT(out, o, dirs);
	BIT(out, o, relative);
	if (!o->implied_dirs)
		strbuf_add_string(out, " no_implied_dirs");
	BIT(out, o, links);
	BIT(out, o, copy_links);
	BIT(out, o, copy_dirlinks);
	BIT(out, o, keep_dirlinks);
	BIT(out, o, copy_unsafe_links);
	BIT(out, o, safe_links);
	BIT(out, o, munge_links);
	NUM(out, o, hard_links, 0);
	BIT(out, o, perms);
	BIT(out, o, executability);
	BIT(out, o, acls);
	BIT(out, o, owner);
	BIT(out, o, group);
	BIT(out, o, devices);
	BIT(out, o, specials);
	BIT(out, o, copy_devices);
	BIT(out, o, times);
	NUM(out, o, xattrs, 0);
	NUM(out, o, atimes, 0);
	BIT(out, o, omit_dir_times);
	BIT(out, o, omit_link_times);
	BIT(out, o, open_noatime);
	BIT(out, o, numeric_ids);
	BIT(out, o, sparse);
	BIT(out, o, preallocate);
	NUM(out, o, one_file_system, 0);
	BIT(out, o, use_qsort);
}

static void describe_selected(struct strbuf *out, const struct options *o)
{
	BIT(out, o, checksum);
	BIT(out, o, ignore_times);
	BIT(out, o, size_only);
	BIT(out, o, update);
	BIT(out, o, existing);
	BIT(out, o, ignore_existing);
	BIT(out, o, remove_source_files);
	BIT(out, o, remove_sent_files);
	NUM(out, o, max_size, -1);
	NUM(out, o, min_size, -1);
	NUM(out, o, modify_window, 0);
	BIT(out, o, cvs_exclude);
	STR(out, o, files_from);
	BIT(out, o, files_from_remote);
	BIT(out, o, from0);
	BIT(out, o, prune_empty_dirs);
	NUM(out, o, delete_when, DELETE_NEVER);
	BIT(out, o, delete_excluded);
	BIT(out, o, delete_missing_args);
	BIT(out, o, ignore_missing_args);
	BIT(out, o, force);
	BIT(out, o, ignore_errors);
	NUM(out, o, max_delete, -1);
	BIT(out, o, mkpath);
	BIT(out, o, backup);
	BIT(out, o, partial);
	BIT(out, o, delay_updates);
	NUM(out, o, fuzzy, 0);
	NUM(out, o, alt_dests, 0);
	BIT(out, o, has_partial_dir);
}

static void describe_mechanics(struct strbuf *out, const struct options *o)
{
	NUM(out, o, whole_file, -1);
	BIT(out, o, inplace);
	NUM(out, o, append, 0);
	BIT(out, o, fsync);
	BIT(out, o, compress);
	STR(out, o, compress_choice);
	if (o->compress_level_set)
		strbuf_addf(out, " level=%d", o->compress_level);
	BIT(out, o, skip_compress);
	STR(out, o, checksum_choice);
	NUM(out, o, checksum_seed, 0);
	NUM(out, o, block_size, 0);
	NUM(out, o, bwlimit, 0);
	NUM(out, o, timeout, 0);
	STR(out, o, iconv);
	NUM(out, o, max_alloc, 0);
	NUM(out, o, max_protocol, PROTOCOL_MAX);
	BIT(out, o, only_send_attrs);
}

/* Every field of a server's options that is not at its default, in the order of the struct, and the operands. */
static char *describe(const struct options *o)
{
	struct strbuf out = STRBUF_INIT;

	strbuf_addf(&out, "%s", o->client_info);
	BIT(&out, o, secluded_args);
	NUM(&out, o, verbose, 0);
	NUM(&out, o, quiet, 0);
	if (o->stderr_mode_given)
		strbuf_addf(&out, " stderr=%d", o->stderr_mode);
	BIT(&out, o, stats);
	BIT(&out, o, list_only);
	BIT(&out, o, dry_run);
	NUM(&out, o, itemize, 0);
	describe_kept(&out, o);
	describe_selected(&out, o);
	describe_mechanics(&out, o);
	strbuf_add_string(&out, " |");
	for (size_t i = 0; i < o->operands.count; i++)
		strbuf_addf(&out, " %s", o->operands.items[i]);
	return strbuf_detach(&out);
}

struct vector {
	const char *words;    /* between "--server --sender" and ". src/" */
	const char *expected; /* between the capability letters and the operands */
};

#define ARCHIVE "recursive=2 links perms owner group devices specials times"
#define NO_R "links perms owner group devices specials times"

/* Clients 3.2.7 to 3.5.0; "EPS" and "EPI" stand for the capability word without and with "i". */
static const struct vector pulls[] = {
	{ "-EPS", "" },
	{ "-vEPS", "verbose=1" },
	{ "-vvEPS", "verbose=2" },
	{ "-vvvEPS", "verbose=3" },
	{ "-vvvvvvvvvEPS", "verbose=9" },
	{ "-qEPS", "quiet=1" },
	{ "-qEPS --msgs2stderr", "quiet=1 stderr=1" },
	{ "-EPS --no-msgs2stderr", "stderr=2" },
	{ "-logDtprEPI", ARCHIVE },
	{ "-vlogDtprzEPI", "verbose=1 " ARCHIVE " compress" },
	{ "-lHogDtpAXrSzEPI --numeric-ids",
	  "recursive=2 links hard_links=1 perms acls owner group devices specials times xattrs=1 numeric_ids sparse compress" },
	{ "-vnrEPI", "verbose=1 dry_run recursive=2" },
	{ "-REPS", "relative" },
	{ "-REPS --no-implied-dirs", "relative no_implied_dirs" },
	{ "-bEPS --suffix=.old", "backup" },
	{ "-bEPS --backup-dir bk", "backup" },
	{ "-bEPS --backup-dir bk --suffix=.o", "backup" },
	{ "-EPS --append", "inplace append=1" },
	{ "-EPS --append --append", "inplace append=2" },
	{ "-dEPS", "dirs" },
	{ "-rEPI", "recursive=2" },
	{ "-ldogDtpEPS", "dirs " NO_R },
	{ "-LEPS", "copy_links" },
	{ "-kEPS", "copy_dirlinks" },
	{ "-pEPS", "perms" },
	{ "-pAEPS", "perms acls" },
	{ "-DEPS --no-specials", "devices" },
	{ "-EPS --specials", "specials" },
	{ "-logtprEPI", "recursive=2 links perms owner group times" },
	{ "-UUEPS", "atimes=2 open_noatime" },
	{ "-UEPS --open-noatime", "atimes=1 open_noatime" },
	{ "-EPS --open-noatime", "open_noatime" },
	{ "-SEPS --inplace", "sparse inplace" },
	{ "-WEPS --checksum-choice=none", "whole_file=1 checksum_choice=none" },
	{ "-EPS --checksum-choice=md5,auto", "checksum_choice=md5,auto" },
	{ "-EPS -B2048", "block_size=2048" },
	{ "-EPS --ignore-missing-args", "ignore_missing_args" },
	{ "-EPS --delete-missing-args", "delete_missing_args" },
	{ "-EPS --max-alloc=2G", "" },
	{ "-EPS --max-alloc=0", "" },
	{ "-EPS --max-alloc=2M", "max_alloc=2097152" },
	{ "-ogEPS", "owner group" },
	{ "-EPS --new-compress", "compress compress_choice=zlibx" },
	{ "-zEPS --old-compress", "compress compress_choice=zlib" },
	{ "-EPS --compress-level=3 --compress-choice=zstd", "compress compress_choice=zstd level=3" },
	{ "-EPS --compress-level=5", "compress level=5" },
	{ "-EPS --compress-choice=none", "compress_choice=none" },
	{ "-EPS --skip-compress=gz/jpg", "skip_compress" },
	{ "-REPS --files-from=- --from0", "dirs relative files_from=- files_from_remote from0" },
	{ "-logDtpREPS --files-from=- --from0", "dirs relative " NO_R " files_from=- files_from_remote from0" },
	{ "-rREPI --files-from=- --from0", "recursive=2 relative files_from=- files_from_remote from0" },
	{ "-EPS --files-from=- --from0 --no-relative", "dirs files_from=- files_from_remote from0" },
	{ "-REPS --files-from F", "dirs relative files_from=F" },
	{ "-REPS --files-from F --from0", "dirs relative files_from=F from0" },
	{ "-dEPS --list-only", "list_only dirs" },
	{ "-rEPI --list-only", "list_only recursive=2" },
	{ "-WcEPS", "checksum whole_file=1" },
	{ "-EPS --bwlimit=1536", "bwlimit=1536" },
	{ "-EPS --timeout=30", "timeout=30" },
	{ "-EPS --checksum-seed=-7", "checksum_seed=-7" },
	{ "-EPS --iconv=latin1", "iconv=latin1" },
	{ "-EPS --iconv=.", "iconv=." },
	{ "-EPS --iconv=", "iconv=" },
	{ "-EPS --numeric-ids --copy-unsafe-links --safe-links", "copy_unsafe_links safe_links numeric_ids" },
	{ "-EPS --ignore-errors", "ignore_errors" },
	{ "-EPS --remove-source-files", "remove_source_files" },
	{ "-EPS --remove-sent-files", "remove_source_files remove_sent_files" },
	{ "-EPS --copy-devices", "copy_devices" },
	{ "-EPS --use-qsort", "use_qsort" },
	{ "-vvqbunlWHHogDtUUpAXXrcCIRxxSzEPS --iconv=latin1",
	  "verbose=2 quiet=1 dry_run recursive=2 relative links hard_links=2 perms acls owner group devices specials times "
	  "xattrs=2 atimes=2 open_noatime sparse one_file_system=2 checksum ignore_times update cvs_exclude backup "
	  "whole_file=1 compress iconv=latin1" },
	/* what -M adds, and what other releases send on a pull */
	{ "-rEPI --only-send-attrs", "recursive=2 only_send_attrs" },
	{ "-rEPI --no-i-r", "recursive=2 no_inc_recurse" },
	{ "-rEPI --protocol=29", "recursive=2 max_protocol=29" },
	{ "-rEPI --stderr=all --stats", "stderr=1 stats recursive=2" },
	{ "-rEPI -e.LsfxC", "recursive=2" },
	{ "-rEPI --log-format=%i%I", "itemize=2 recursive=2" },
	{ "-rEPI --log-format=X", "recursive=2" },
	{ "-EPS --modify-window=2", "modify_window=2" },
	{ "-EPS -@-1", "modify_window=-1" },
	{ "-EPS --qsort", "use_qsort" },
	/* no effect on a sending side, by definition */
	{ "-EPS --partial-dir p --delay-updates", "partial delay_updates has_partial_dir" },
	{ "-EPS --temp-dir t --fsync --super --preallocate --write-devices", "preallocate inplace fsync" },
	{ "-EPS --link-dest a --link-dest b -yy", "fuzzy=2 alt_dests=2" },
	{ "-OJEPS --usermap=*:u --groupmap=*:g --mkpath --max-delete=-1",
	  "owner group omit_dir_times omit_link_times max_delete=0 mkpath" },
	{ "-EPS --rsync-path=x --trust-sender --port=1 --password-file=f -4 --outbuf=N --contimeout=3", "" },
};

/* Releases below 3.2.7, as captured and as doc/protocol/06-command-line.md section 4.4 says. */
static const struct vector old_pulls[] = {
	{ "-lHogDtpr", "recursive=2 links hard_links=1 perms owner group devices specials times" },
	{ "-logDtprc --numeric-ids", ARCHIVE " numeric_ids checksum" },
	{ "-logDtprz", ARCHIVE " compress" },
	{ "-logDtpr --delete", ARCHIVE " delete_when=1" },
	{ "-logDtpr --delete --delete-after", ARCHIVE " delete_when=5" },
	{ "-r --backup-dir b", "recursive=2 backup" },
	{ "-r", "recursive=2" },
	{ "-logDtprR", "recursive=2 relative " NO_R },
	{ "-R --no-implied-dirs", "relative no_implied_dirs" },
	{ "", "" },
	{ "-logDtpre.iL", ARCHIVE },
	{ "-re.iL --fuzzy --modify-window=1", "recursive=2 modify_window=1 fuzzy=1" },
	{ "-re.iLs --stats --info=NAME0 --debug=ALL", "stats recursive=2" },
	{ "-logDtprze.iLs --new-compress", ARCHIVE " compress compress_choice=zlibx" },
	{ "-logDtprRe.iLsfxC", "recursive=2 relative " NO_R },
	{ "-logDtprce.iLsfxCIv --numeric-ids", ARCHIVE " numeric_ids checksum" },
	{ "-re31.7iL", "recursive=2" },
	{ "-r -e .iLs", "recursive=2" },
};

static char *expand(const char *words)
{
	struct strbuf out = STRBUF_INIT;

	for (; *words; words++)
		if (strncmp(words, "EPS", 3) == 0 || strncmp(words, "EPI", 3) == 0) {
			strbuf_add_string(&out, words[2] == 'I' ? "e.iLsfxCIvu" : "e.LsfxCIvu");
			words += 2;
		} else {
			strbuf_add_char(&out, *words);
		}
	return strbuf_detach(&out);
}

/* The description without the capability word in front. */
static void check(const struct vector *vector)
{
	char *words = expand(vector->words);
	char *line = xasprintf("--server --sender%s%s . src/ x", *words ? " " : "", words);
	char *expected = xasprintf("%s%s | src/ x", *vector->expected ? " " : "", vector->expected);
	struct parsed parsed;
	char *text;

	assert_parses(&parsed, line);
	text = describe(&parsed.options);
	if (strcmp(text + strlen(parsed.options.client_info), expected) != 0)
		fail_msg("%s:\n  %s\n  %s", line, text, expected);
	assert_true(parsed.options.server && parsed.options.sender);
	free(text);
	free(expected);
	free(line);
	free(words);
	parsed_free(&parsed);
}

UNIT_TEST(every_pull_of_recent_clients_is_understood)
{
	for (size_t i = 0; i < sizeof pulls / sizeof *pulls; i++)
		check(&pulls[i]);
}

UNIT_TEST(every_pull_of_old_clients_is_understood)
{
	for (size_t i = 0; i < sizeof old_pulls / sizeof *old_pulls; i++)
		check(&old_pulls[i]);
}

UNIT_TEST(the_capability_word_arrives_as_sent)
{
	static const char *const words[][2] = {
		{ "-re.iLsfxCIvu", ".iLsfxCIvu" }, { "-re31.7iL", "31.7iL" }, { "-r -e .L", ".L" }, { "-r", "" },
		{ "-r --rsh=.L", ".L" }, { "-re.iL -e.L", ".L" },
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		char *line = xasprintf("--server --sender %s . x", words[i][0]);
		struct parsed parsed;

		assert_parses(&parsed, line);
		assert_string_equal(parsed.options.client_info, words[i][1]);
		parsed_free(&parsed);
		free(line);
	}
}

/* S-109: a name that looks like an option is a name. */
UNIT_TEST(S109_options_end_at_the_dot)
{
	struct parsed parsed;

	assert_parses(&parsed, "--server --sender -r . -n --version . --bogus");
	assert_int_equal(parsed.options.operands.count, 4);
	assert_string_equal(parsed.options.operands.items[0], "-n");
	assert_string_equal(parsed.options.operands.items[2], ".");
	assert_false(parsed.options.dry_run);
	parsed_free(&parsed);
}

UNIT_TEST(a_two_word_value_may_be_a_dot)
{
	struct parsed parsed;

	assert_parses(&parsed, "--server --sender -b --backup-dir . -r . x");
	assert_int_equal(parsed.options.recursive, 2);
	assert_int_equal(parsed.options.operands.count, 1);
	parsed_free(&parsed);
}

UNIT_TEST(pushes_are_parsed_so_that_they_can_be_answered)
{
	static const char *const pushes[] = {
		"-svvqbunlKmJyWHHogDtUUpAXXrcCIRxxSze.iLsfxCIvu",
		"-rze.iLsfxCIvu --log-format=%i%I --max-delete=-1 --delete-during --force --super --size-only",
		"-re.iLsfxCIvu --log-format=X --partial --stats --fake-super --log-file=x --filter=-_x --chmod=u+x",
		"-de.LsfxCIvu --no-r --delete --backup-dir b --suffix=.o --temp-dir t --link-dest a --usermap=\\*:u --mkpath",
		"-re.iLsfxCIvu --only-write-batch=X --existing --ignore-existing --write-devices --append --append",
	};

	for (size_t i = 0; i < sizeof pushes / sizeof *pushes; i++) {
		char *line = xasprintf("--server %s . dst", pushes[i]);
		struct parsed parsed;

		assert_parses(&parsed, line);
		assert_true(parsed.options.server && !parsed.options.sender);
		parsed_free(&parsed);
		free(line);
	}
}

/* What -M adds for it alone. */
UNIT_TEST(a_server_has_rules_and_modes_of_its_own)
{
	static const char *const ends[] = { "--sender . x", ". x" };
	struct parsed parsed;

	for (size_t i = 0; i < 2; i++) {
		char *line = xasprintf("--server -rF --filter=-_a --exclude=b --include=c --exclude-from=d --include-from=e "
				       "-f_-_g --chmod=u+x --old-dirs %s", ends[i]);

		assert_parses(&parsed, line);
		assert_null(options_receiving_lack(&parsed.options));
		/* The last one is that of --old-dirs. */
		assert_int_equal(parsed.options.filters.count, 8);
		assert_int_equal(parsed.options.filters.items[4].kind, FOPT_FILE);
		assert_int_equal(parsed.options.filters.items[4].style, FILTER_OLD_EXCLUDE);
		assert_string_equal(parsed.options.filters.items[7].text, "/*/*");
		assert_non_null(parsed.options.chmod);
		parsed_free(&parsed);
		free(line);
	}
	assert_fails("--server --sender --chmod=nonsense . x", 1, "Invalid argument passed to --chmod (nonsense)");
}

UNIT_TEST(a_sending_server_refuses_what_it_would_have_to_act_on)
{
	static const char *const words[] = { "--attr-snapshot=x", "--attr-digests=md5" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		char *line = xasprintf("--server -r %s --sender . x", words[i]);
		char *error = xasprintf("on remote machine: %.*s is not supported by this build", (int)strcspn(words[i], "="),
					words[i]);

		assert_fails(line, 4, error);
		free(error);
		free(line);
	}
}

/* An attr tree of what is pushed: nothing that would lose contents or ask for them. */
UNIT_TEST(what_does_not_go_with_a_pushed_attr_tree)
{
	static const char *const words[] = {
		"--remove-source-files", "--acls", "--xattrs", "--append", "--checksum",
	};
	struct parsed parsed;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		char *line = xasprintf("--server -r --only-send-attrs %s . x", words[i]);
		char *error = xasprintf("on remote machine: --only-send-attrs cannot be used with %s", words[i]);

		assert_parses(&parsed, line);
		char *lack = options_receiving_lack(&parsed.options);

		assert_string_equal(lack, error);
		parsed_free(&parsed);
		free(lack);
		free(error);
		free(line);
	}
	assert_parses(&parsed, "--server -r --only-send-attrs . x");
	assert_null(options_receiving_lack(&parsed.options));
	parsed_free(&parsed);
}

/* What a pull has a receiving server has; what only concerns the user's end is nothing to it. */
UNIT_TEST(a_receiving_server_has_what_a_pull_has)
{
	static const char *const lines[] = {
		"-logDtprRze.iLsfxCIvu --log-format=%i --delete --size-only --numeric-ids --existing -x -S",
		"-re.iLsfxCIvu --progress --trust-sender --read-batch=x",
	};

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		char *line = xasprintf("--server %s . dst", lines[i]);
		struct parsed parsed;

		assert_parses(&parsed, line);
		assert_null(options_receiving_lack(&parsed.options));
		parsed_free(&parsed);
		free(line);
	}
	assert_fails("--server -r --attr-snapshot=x . dst", 4,
		     "on remote machine: --attr-snapshot is not supported by this build");
}

UNIT_TEST(errors_say_that_they_are_the_servers)
{
	assert_fails("--server --sender --bogus . x", 1, "on remote machine: --bogus: unknown option");
	assert_fails("--server --sender -rQ . x", 1, "on remote machine: -rQ: unknown option");
	assert_fails("--server --sender --files-from=h:x . x", 1, "The --files-from sent to the server cannot specify a host.");
	assert_fails("--server --sender --files-from=:x . x", 1, "The --files-from sent to the server cannot specify a host.");
	assert_fails("--server --sender --crtimes . x", 1, "The server does not support --crtimes (-N)");
	assert_fails("--server --sender --compress-choice=rar . x", 4, "unknown compress name: rar");
	assert_fails("--server --sender --cc=md5,crc . x", 4, "unknown checksum name: crc");
	assert_fails("--server --sender --protocol=26 . x", 2, "--protocol must be at least 27 on the Server.");
	assert_fails("--server --sender -M foo . x", 1, "Remote option must start with a dash: foo");
	assert_fails("--server --sender --link-dest=a --copy-dest=b . x", 1,
		     "ERROR: the --copy-dest option conflicts with the --link-dest option");
	assert_fails("--server --sender --append -W . x", 1, "--append cannot be used with --whole-file");
	assert_fails("--server --sender --inplace --partial-dir=x . x", 1, "--inplace cannot be used with --partial-dir");
	assert_fails("--server --sender --append --delay-updates . x", 1, "--append cannot be used with --delay-updates");
}

UNIT_TEST(a_server_obeys_the_level_words_it_knows)
{
	struct parsed parsed;

	assert_parses(&parsed, "--server --sender -vv --info=name0,future3,remove2 --debug=warp9 . x");
	assert_int_equal(parsed.options.levels.info[INFO_NAME], 0);
	assert_int_equal(parsed.options.levels.info[INFO_REMOVE], 2);
	assert_int_equal(parsed.options.levels.info[INFO_MISC], 2);
	parsed_free(&parsed);
}

UNIT_TEST(a_secluded_block_continues_the_line)
{
	struct parsed parsed;
	char *text;

	assert_parses(&parsed, "--server --sender -sre.iLsfxCIvu");
	assert_true(parsed.options.secluded_args);
	parse_block(&parsed, "--numeric-ids --backup-dir b_k . a_b*/~x -n");
	assert_int_equal(parsed.result, OPTIONS_OK);
	text = describe(&parsed.options);
	assert_string_equal(text, ".iLsfxCIvu secluded_args recursive=2 numeric_ids backup | a b*/~x -n");
	free(text);
	parsed_free(&parsed);
}

/* S-110: the block neither ends nor repeats the state that it is read in. */
UNIT_TEST(S110_a_block_cannot_seclude_again)
{
	static const char *const blocks[] = { "-s . x", "--no-s . x", "--protect-args --no-secluded-args . x" };

	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
		struct parsed parsed;

		assert_parses(&parsed, "--server --sender -s");
		parse_block(&parsed, blocks[i]);
		assert_int_equal(parsed.result, OPTIONS_OK);
		assert_true(parsed.options.secluded_args);
		parsed_free(&parsed);
	}
}

UNIT_TEST(a_block_cannot_change_the_mode)
{
	struct parsed parsed;

	assert_parses(&parsed, "--server --sender -s");
	parse_block(&parsed, "--daemon . x");
	assert_int_equal(parsed.result, OPTIONS_ERROR);
	assert_string_equal(parsed.error, "Attempt to hack rsync thwarted!");
	parsed_free(&parsed);
}

/* The final checks know the whole of both lists. */
UNIT_TEST(a_block_completes_what_the_line_left_open)
{
	struct parsed parsed;

	assert_parses(&parsed, "--server --sender -s --delete");
	parse_block(&parsed, "-r . x");
	assert_int_equal(parsed.result, OPTIONS_OK);
	assert_int_equal(parsed.options.delete_when, DELETE_DEFAULT);
	parsed_free(&parsed);
	assert_parses(&parsed, "--server --sender -s --delete");
	parse_block(&parsed, ". x");
	assert_int_equal(parsed.result, OPTIONS_ERROR);
	parsed_free(&parsed);
}

/* S-005: no value of a client's lifts the ceiling; 0 in the struct is the built-in one. */
UNIT_TEST(S005_max_alloc_only_lowers)
{
	static const struct { const char *word; size_t value; } vectors[] = {
		{ "0", 0 }, { "1G", 0 }, { "2G", 0 }, { "8191P", 0 }, { "1M", 1 << 20 }, { "1G-1", (1u << 30) - 1 },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("--server --sender --max-alloc=%s . x", vectors[i].word);
		struct parsed parsed;

		assert_parses(&parsed, line);
		assert_int_equal(parsed.options.max_alloc, vectors[i].value);
		parsed_free(&parsed);
		free(line);
	}
	assert_fails("--server --sender --max-alloc=1 . x", 1, "--max-alloc=1 is too small (min: 1.00M or 0 for unlimited)");
	assert_fails("--server --sender --max-alloc=8192P . x", 1, "--max-alloc=8192P is too large");
}

/* S-038: a clean error or a clamp for every absurd number. */
UNIT_TEST(S038_absurd_numbers)
{
	char digits[301];
	char *line, *error;
	struct parsed parsed;

	memset(digits, '9', 300);
	digits[300] = 0;
	line = xasprintf("--server --sender --max-size=%s . x", digits);
	error = xasprintf("--max-size=%s is too large", digits);
	assert_fails(line, 1, error);
	free(line);
	free(error);
	line = xasprintf("--server --sender --info=name%s --debug=flist%s . x", digits, digits);
	assert_parses(&parsed, line);
	assert_int_equal(parsed.options.levels.info[INFO_NAME], 4);
	assert_int_equal(parsed.options.levels.debug[DEBUG_FLIST], 4);
	parsed_free(&parsed);
	free(line);
	assert_fails("--server --sender --block-size=131073 . x", 1, "--block-size=131073 is too large (max: 128.00K)");
	assert_fails("--server --sender --protocol=29 -B600M . x", 1, "--block-size=600M is too large (max: 512.00M)");
	assert_fails("--server --sender --min-size=-1 . x", 1, "--min-size=-1 is too large");
	assert_fails("--server --sender --timeout=99999999999 . x", 1,
		     "on remote machine: --timeout=99999999999: number too large or too small");
	assert_parses(&parsed, "--server --sender --bwlimit=8191P --timeout=-5 --max-delete=-9 . x");
	assert_int_equal(parsed.options.bwlimit, UINT32_MAX);
	assert_int_equal(parsed.options.timeout, 0);
	assert_int_equal(parsed.options.max_delete, 0);
	parsed_free(&parsed);
}

UNIT_TEST(S038_ten_thousand_v)
{
	struct strbuf line = STRBUF_INIT;
	struct parsed parsed;

	strbuf_add_string(&line, "--server --sender -r");
	for (int i = 0; i < 10000; i++)
		strbuf_add_char(&line, 'v');
	strbuf_add_string(&line, " . x");
	assert_parses(&parsed, line.data);
	assert_int_equal(parsed.options.levels.debug[DEBUG_FLIST], 4);
	parsed_free(&parsed);
	strbuf_free(&line);
}

UNIT_TEST(the_set_up_is_told_what_it_asks)
{
	struct setup_request request;
	struct parsed parsed;

	assert_parses(&parsed, "--server --sender -AXUrczyme.LsfxC --append --iconv=utf8 --checksum-seed=5 --compress-level=4 "
			       "--compress-choice=zstd --cc=md5 --link-dest=a --qsort --numeric-ids --protocol=31 . x");
	options_setup_request(&parsed.options, &request);
	assert_int_equal(request.max_protocol, 31);
	assert_string_equal(request.client_info, ".LsfxC");
	assert_true(request.recursive && request.allow_inc_recurse && request.use_qsort);
	assert_true(request.compress && request.compress_level_set && request.compress_level == 4);
	assert_string_equal(request.compress_choice, "zstd");
	assert_string_equal(request.checksum_choice, "md5");
	assert_true(request.always_checksum && request.checksum_seed == 5 && request.iconv);
	assert_true(request.inplace && request.append && request.fuzzy && request.prune_empty_dirs);
	assert_true(request.acls && request.xattrs && request.alt_dests == 1);
	parsed_free(&parsed);
}
