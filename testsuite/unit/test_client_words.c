/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The words that a client gives a server, those of doc/protocol/06-command-line.md section 4.3 as 3.5.0 sends them, their
 * quoting, and captured argument blocks. */
#include "client/words.h"
#include "options_support.h"

#include "client.h"

/* '^' and "^i" stand for what a client of 3.5.0 says it is capable of. */
static void expand(struct strbuf *out, const char *form)
{
	for (; *form; form++) {
		if (*form != '^') {
			strbuf_add_char(out, *form);
			continue;
		}
		strbuf_addf(out, "e.%sLsfxCIvu", form[1] == 'i' ? "i" : "");
		form += form[1] == 'i';
	}
}

static char *joined(const struct args *words)
{
	struct strbuf line = STRBUF_INIT;

	for (size_t i = 0; i < words->count; i++)
		strbuf_addf(&line, "%s%s", i ? " " : "", words->items[i]);
	return strbuf_detach(&line);
}

/* Options that this build lacks are understood all the same: what is refused is the run. */
static void parse_all(struct parsed *parsed, const char *options, bool push)
{
	char *line = xasprintf("%s%s%s", options, *options ? " " : "", push ? "src h:dst" : "h:src/ dst");

	parse_line(parsed, line);
	if (parsed->result == OPTIONS_ERROR && !strstr(parsed->error, "is not supported by this build"))
		fail_msg("%s: %s", line, parsed->error);
	free(line);
}

static void assert_words(const char *options, bool push, const char *form)
{
	struct strbuf wanted = STRBUF_INIT;
	struct args words = { NULL, 0 };
	struct parsed parsed;
	char *made;

	parse_all(&parsed, options, push);
	options_server_words(&parsed.options, push, parsed.options.max_protocol, &words);
	if (!parsed.options.secluded_args)
		server_words_escape(&parsed.options, &words);
	made = joined(&words);
	expand(&wanted, push ? "--server" : "--server --sender");
	if (*form)
		strbuf_add_char(&wanted, ' ');
	expand(&wanted, form);
	if (strcmp(made, strbuf_text(&wanted)) != 0)
		fail_msg("%s (%s): \"%s\" instead of \"%s\"", options, push ? "push" : "pull", made, strbuf_text(&wanted));
	free(made);
	strbuf_free(&wanted);
	args_free(&words);
	parsed_free(&parsed);
}

static const struct { const char *options, *push, *pull; } vectors[] = {
	{ "", "-^", NULL }, { "-v", "-v^", NULL }, { "-vvvvvvvvvvvv", "-vvvvvvvvv^", NULL }, { "-q", "-q^", NULL },
	{ "-q --msgs2stderr", "-q^ --msgs2stderr", NULL }, { "-q --no-msgs2stderr", "-^ --no-msgs2stderr", NULL },
	{ "--stderr=a", "-^ --msgs2stderr", NULL }, { "-a", "-logDtpr^i", NULL }, { "-avz", "-vlogDtprz^i", NULL },
	{ "-azHAXS --numeric-ids --delete", "-lHogDtpAXrSz^i --delete --numeric-ids", "-lHogDtpAXrSz^i --numeric-ids" },
	{ "-rvn", "-vnr^i", NULL }, { "-R", "-R^", NULL }, { "--no-implied-dirs", "-^", NULL },
	{ "-R --no-implied-dirs", "-R^ --no-implied-dirs", NULL }, { "-b --suffix=.old", "-b^ --suffix=.old", NULL },
	{ "--backup-dir=bk", "-b^ --backup-dir bk", NULL },
	{ "--backup-dir=bk --suffix=.o", "-b^ --backup-dir bk --suffix=.o", NULL }, { "-b --suffix=~", "-b^", NULL },
	{ "--append --append", "-^ --append", NULL }, { "--append-verify", "-^ --append --append", NULL },
	{ "-d", "-d^", NULL }, { "-r -d", "-r^i", NULL }, { "-a --no-r -d", "-ldogDtp^", NULL },
	{ "-d --delete", "-d^ --no-r --delete", "-d^" }, { "-L", "-^", "-L^" }, { "-k", "-^", "-k^" },
	{ "-K", "-K^", "-^" }, { "-E", "-E^", "-^" }, { "-pE", "-p^", NULL }, { "-A", "-pA^", NULL },
	{ "-AX --no-A --no-X", "-p^", NULL }, { "--devices", "-D^ --no-specials", NULL },
	{ "-D --no-devices", "-^ --specials", NULL }, { "-a --no-D", "-logtpr^i", NULL }, { "-UU", "-UU^", NULL },
	{ "-U --open-noatime", "-U^ --open-noatime", NULL }, { "-UU --no-U", "-^ --open-noatime", NULL },
	{ "-O", "-O^", "-^" }, { "-O -b", "-b^", NULL }, { "-O --backup-dir=x", "-bO^ --backup-dir x", "-b^ --backup-dir x" },
	{ "-J", "-J^", "-^" }, { "-m", "-m^", "-^" }, { "-rm", "-mr^i", "-r^" }, { "-S --inplace", "-S^ --inplace", NULL },
	{ "-S --inplace --no-W", "-S^ --inplace --no-W", "-S^ --inplace" }, { "--cc=none", "-W^ --checksum-choice=none", NULL },
	{ "--cc=md5,auto", "-^ --checksum-choice=md5,auto", NULL }, { "-B 2K", "-^ -B2048", NULL },
	{ "--delete -r", "-r^i --delete", "-r^i" }, { "--delete-before -r", "-r^i --delete-before", "-r^" },
	{ "--delete-after -r", "-r^i --delete-after", "-r^" }, { "--delete-delay -r", "-r^i --delete-delay", "-r^i" },
	{ "--delete-excluded --delete-after -r", "-r^i --delete-after --delete-excluded", "-r^" },
	{ "--delete-excluded -r", "-r^i --delete-excluded", "-r^i" }, { "--max-delete=0 -r", "-r^i --max-delete=-1", "-r^i" },
	{ "--max-delete=7 -r", "-r^i --max-delete=7", "-r^i" }, { "--ignore-missing-args", "-^", "-^ --ignore-missing-args" },
	{ "--delete-missing-args --ignore-missing-args", "-^ --delete-missing-args", NULL },
	{ "--max-alloc=2G", "-^ --max-alloc=2G", NULL }, { "--max-alloc=1024M", "-^", NULL },
	{ "--max-alloc=0", "-^ --max-alloc=0", NULL }, { "--partial-dir=.", "-^ --partial", "-^" },
	{ "--partial-dir=/abs/", "-^ --partial-dir /abs", "-^" },
	{ "--partial-dir=./a/../b//c/.", "-^ --partial-dir b/c/.", "-^" }, { "-P", "-^ --log-format=X --partial", "-^" },
	{ "-vP", "-v^ --partial", "-v^" }, { "--delay-updates -r", "-r^i --delay-updates", "-r^" },
	{ "--delay-updates --partial-dir=x", "-^ --partial-dir x --delay-updates", "-^" },
	{ "--chown=u:g", "-og^ --usermap=\\*:u --groupmap=\\*:g", "-og^" }, { "-@ 2", "-^ --modify-window=2", "-^" },
	{ "--modify-window=-1", "-^ -@-1", "-^" }, { "--modify-window=0", "-^ --modify-window=0", "-^" },
	{ "-yy", "-y^", "-^" }, { "-yy --link-dest=a --link-dest=b", "-yy^ --link-dest a --link-dest b", "-^" },
	{ "-zz", "-^ --new-compress", NULL }, { "--zc=zlib", "-z^ --old-compress", NULL },
	{ "-z --zc=zstd --zl=3", "-^ --compress-level=3 --compress-choice=zstd", NULL },
	{ "--zl=5", "-^ --compress-level=5", NULL }, { "--zc=none -z", "-^ --compress-choice=none", NULL },
	{ "-z --no-z", "-^", NULL }, { "--files-from=F", "-R^", "-R^ --files-from=- --from0" },
	{ "--files-from=F -a", "-logDtpR^", "-logDtpR^ --files-from=- --from0" },
	{ "--files-from=F -r", "-rR^i", "-rR^i --files-from=- --from0" },
	{ "--files-from=F --no-R", "-^", "-^ --files-from=- --from0 --no-relative" },
	{ "--files-from=:F", "-R^ --files-from F", NULL }, { "--files-from=h:F -0", "-R^ --files-from F --from0", NULL },
	{ "-s", "-s^", NULL }, { "--list-only", "-d^ --list-only", NULL }, { "--list-only -r", "-r^i --list-only", NULL },
	{ "-i", "-^ --log-format=%i", "-^" }, { "-ii", "-^ --log-format=%i%I", "-^" }, { "-iv", "-v^ --log-format=%i", "-v^" },
	{ "--out-format=%n", "-^ --log-format=X", "-^" }, { "--out-format=%o", "-^ --log-format=%o", "-^" },
	{ "--out-format=%n -v", "-v^", NULL }, { "--progress", "-^ --log-format=X", "-^" }, { "--info=progress2", "-^", NULL },
	{ "-c -W", "-Wc^", NULL }, { "--bwlimit=1.5M", "-^ --bwlimit=1536", NULL }, { "--timeout=9", "-^ --timeout=9", NULL },
	{ "--only-write-batch=F", "-^ --only-write-batch=X", "-^" }, { "--protocol=29", "", NULL },
	{ "-a --protocol=29", "-logDtpr", NULL },
	{ "-R --no-implied-dirs --protocol=29", "-R", "-R --no-implied-dirs" },
	{ "--iconv=utf8,latin1", "-^ --iconv=latin1", NULL }, { "--iconv=.", "-^ --iconv=.", NULL }, { "--iconv=-", "-^",
	  NULL },
	{ "-M--foo='a_b*'", "-^ --foo=\\'a\\ b\\*\\'", NULL }, { "--no-i-r -r", "-r^", NULL },
	{ "--skip-compress=mp[34]", "-^", "-^ --skip-compress=mp\\[34\\]" },
	{ "--backup-dir=~/x*y", "-b^ --backup-dir ~/x\\*y", NULL }, { "--copy-devices", "-^", "-^ --copy-devices" },
	{ "--write-devices", "-^ --inplace --write-devices", "-^ --inplace" },
	{ "--remove-source-files", "-^ --remove-source-files", NULL }, { "--remove-sent-files", "-^ --remove-sent-files",
	  NULL },
	{ "-svvqbunlKmJyWHHogDtUUpAXXrcCIRxxSz --iconv=utf8,latin1", "-svvqbunlKmJyWHHogDtUUpAXXrcCIRxxSz^i --iconv=latin1",
	  "-svvqbunlWHHogDtUUpAXXrcCIRxxSz^ --iconv=latin1" },
	{ "--info=name0", "-^ --info=NAME0", NULL }, { "--info=all9", "-^ --log-format=X --info=ALL4", "-^ --info=ALL4" },
	{ "--info=none", "-^ --info=NONE", NULL }, { "--info=all4,del0,skip0", "-^ --log-format=X --info=ALL4,DEL0,SKIP0",
	  "-^ --info=ALL4" },
	{ "--info=none,name,del,skip,backup,copy,misc", "-^ --log-format=X --info=ALL,MOUNT0,NONREG0,STATS0,SYMSAFE0",
	  "-^ --info=MISC,MOUNT0,NAME,REMOVE0,STATS0,SYMSAFE0" },
	{ "--info=none,name,del,skip,backup,copy", "-^ --log-format=X --info=ALL,MISC0,MOUNT0,NONREG0,STATS0,SYMSAFE0",
	  "-^ --info=NONE,NAME" },
	{ "--info=backup,copy,del,misc", "-^ --info=BACKUP,COPY,DEL,MISC", "-^ --info=MISC" },
	{ "--info=flist,progress", "-^", NULL },
};

UNIT_TEST(words_as_stock_sends_them)
{
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		assert_words(vectors[i].options, true, vectors[i].push);
		assert_words(vectors[i].options, false, vectors[i].pull ? vectors[i].pull : vectors[i].push);
	}
}

/* A daemon's version is known before the words are made: below 30 there is no word of what we can do. */
UNIT_TEST(words_for_an_old_daemon)
{
	struct args words = { NULL, 0 };
	struct parsed parsed;
	char *made;

	parse_all(&parsed, "-aR --no-implied-dirs", true);
	options_server_words(&parsed.options, true, 29, &words);
	made = joined(&words);
	assert_string_equal(made, "--server -logDtprR");
	free(made);
	args_free(&words);
	parsed_free(&parsed);
}

UNIT_TEST(old_args_leave_quoting_out)
{
	assert_words("--old-args --partial-dir=a_b -M--x=a_b", true, "-^ --partial-dir a\\ b --x=a b");
	assert_words("--old-args --old-args --partial-dir=a_b", true, "-^ --partial-dir a b");
	assert_fails("--old-args -s h:a b", 1, "--secluded-args conflicts with --old-args.");
}

UNIT_TEST(paths_are_quoted_but_for_wildcards)
{
	static const struct { const char *path, *escaped; } paths[] = {
		{ "a b", "a\\ b" }, { "a*b?[c]", "a*b?[c]" }, { "a\\*b", "a\\*b" }, { "a\\b", "a\\\\b" }, { "a\\", "a\\\\" },
		{ "$HOME", "\\$HOME" }, { "`x`", "\\`x\\`" }, { "a{b,c}", "a\\{b,c\\}" }, { "a'b\"", "a\\'b\\\"" },
		{ "!x#y&;|<>()", "\\!x\\#y\\&\\;\\|\\<\\>\\(\\)" }, { "a\nb\rc\td", "a'\n'b\\\rc\\\td" }, { "~a=b,%:\xc3\xa9",
		  "~a=b,%:\xc3\xa9" },
	};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		char *escaped = server_word_escape(paths[i].path, true);

		assert_string_equal(escaped, paths[i].escaped);
		free(escaped);
	}
}

UNIT_TEST(secluded_words_begin_behind_the_letters)
{
	static const struct { const char *options; bool push; size_t visible; } cases[] = {
		{ "-s", true, 2 }, { "-as --partial", true, 2 }, { "-as --iconv=a,b --partial", false, 4 }, {
		  "-s --protocol=29", true, 2 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct args words = { NULL, 0 };
		struct parsed parsed;

		parse_all(&parsed, cases[i].options, cases[i].push);
		options_server_words(&parsed.options, cases[i].push, parsed.options.max_protocol, &words);
		assert_int_equal(server_words_visible(&words), cases[i].visible);
		args_free(&words);
		parsed_free(&parsed);
	}
}

static int set_environment(void **state)
{
	(void)state;
	unsetenv("RSYNC_OLD_ARGS");
	unsetenv("RSYNC_PROTECT_ARGS");
	unsetenv("RSYNC_MAX_ALLOC");
	unsetenv("RSYNC_PARTIAL_DIR");
	return 0;
}

UNIT_GROUP(set_environment, NULL)
