/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `refuse options` of a module against what its clients send (doc/protocol/07-daemon.md section 5.19). */
#include "options_support.h"

#include "options/refuse.h"
#include "options/table.h"

struct vector {
	const char *refuse;
	const char *words;
	const char *refused; /* what the message names; NULL: allowed */
};

static char *refusal(const char *refuse, bool has_charset, const char *line)
{
	struct refused_options *refused = refused_options_new(refuse, has_charset);
	struct parsed parsed;
	char *error;

	parse_line_refused(&parsed, line, refused);
	refused_options_free(refused);
	if (parsed.result == OPTIONS_ERROR && strncmp(parsed.error, "The server is configured to refuse ", 35) == 0)
		assert_int_equal(parsed.code, 4);
	else if (parsed.result != OPTIONS_OK)
		fail_msg("%s: %s", line, parsed.error);
	error = parsed.error ? xstrdup(parsed.error + 35) : NULL;
	parsed_free(&parsed);
	return error;
}

static void check(const struct vector *vector, const char *role)
{
	char *line = xasprintf("%s%s%s . mod/", role, *vector->words ? " " : "", vector->words);
	char *error = refusal(vector->refuse, true, line);

	if (!error != !vector->refused || (error && strcmp(error, vector->refused) != 0))
		fail_msg("refuse options = %s, %s: %s", vector->refuse, line, error ? error : "allowed");
	free(error);
	free(line);
}

#define CHECK_ALL(vectors, role) \
	do { \
		for (size_t i = 0; i < sizeof(vectors) / sizeof *(vectors); i++) \
			check(&(vectors)[i], role); \
	} while (0)

/* Seen with stock 3.5.0, except the nameless -D, which it calls "--(null)". */
static const struct vector pushes[] = {
	{ "partial", "-r --inplace", "--partial" },
	{ "partial", "-r --append", "--partial" },
	{ "partial", "-P", "--partial" },
	{ "partial", "--partial", "--partial" },
	{ "partial", "--partial-dir=", "--partial" },
	{ "partial", "--partial-dir x", NULL },
	{ "inplace", "--append", "--inplace" },
	{ "inplace !write-devices", "--write-devices", "--inplace" },
	{ "", "--write-devices", "--write-devices" },
	{ "", "--copy-devices", "--copy-devices" },
	{ "!copy-devices", "--copy-devices", NULL },
	{ "delete", "-r --delete", "--delete" },
	{ "delete", "-r --delete-before", "--delete" },
	{ "delete", "-r --delete-during", "--delete" },
	{ "delete", "-r --delete-excluded", "--delete" },
	{ "delete", "--delete-missing-args", "--delete" },
	{ "delete", "--remove-source-files", NULL },
	{ "delete-*", "-r --delete", "--delete-before" },
	{ "delete-before", "-r --delete", NULL },
	{ "delete-during", "-r --delete", NULL },
	{ "delete-before delete-during", "-r --delete", "--delete-before" },
	{ "delete-during", "-r --del", "--del" },
	{ "del", "-r --delete-during", "--delete-during" },
	{ "compress", "-z", "--compress (-z)" },
	{ "z", "-z", "--compress (-z)" },
	{ "compress", "--compress-choice=zstd", "--compress (-z)" },
	{ "compress", "--compress-level=3", "--compress (-z)" },
	{ "compress", "--new-compress", "--compress (-z)" },
	{ "compress", "--old-compress", "--compress (-z)" },
	{ "compress", "--compress-choice=none", NULL },
	{ "compress-choice", "--new-compress", NULL },
	{ "zc", "--compress-choice=zstd", "--compress-choice" },
	{ "cc", "--checksum-choice=md5", "--checksum-choice" },
	{ "zl", "--compress-level=3", "--compress-level" },
	{ "r", "-a", "--recursive (-r)" },
	{ "a", "-r", "--recursive (-r)" },
	{ "archive", "-l", "--links (-l)" },
	{ "a", "-a", "--archive (-a)" },
	{ "D", "-D", "-D" },
	{ "devices", "-D", NULL },
	{ "specials", "--specials", "--specials" },
	{ "no-iconv", "-r", "--no-iconv" },
	{ "no-iconv", "-r --iconv=utf8", NULL },
	{ "iconv", "--iconv=utf8", "--iconv" },
	{ "iconv", "-r", NULL },
	{ "progress", "-P", "--progress" },
	{ "progress", "--progress", "--progress" },
	{ "append", "--append --append", "--append" },
	{ "append-verify", "--append-verify", "--append-verify" },
	{ "out-format", "--log-format=X", "--log-format" },
	{ "log-format", "--out-format=X", "--out-format" },
	{ "existing", "--ignore-non-existing", "--ignore-non-existing" },
	{ "secluded-args", "--protect-args", "--protect-args" },
	{ "protect-args", "-s", "--secluded-args (-s)" },
	{ "time-limit", "--stop-after=3", "--stop-after" },
	{ "remove-source-files", "--remove-sent-files", "--remove-sent-files" },
	{ "remove-sent-files", "--remove-source-files", "--remove-source-files" },
	{ "remove-*", "--remove-sent-files", "--remove-sent-files" },
	{ "c delete", "-c", "--checksum (-c)" },
	{ "checksum", "-rc", "--checksum (-c)" },
	{ "dirs", "-r", NULL },
	{ "links", "-l --no-l", "--links (-l)" },
	{ "no-links", "-l --no-l", "--no-l" },
	{ "e", "-re.L", "--rsh (-e)" },
	{ "rsh", "-re.L", "--rsh (-e)" },
	{ "server", "-r", "--server" },
	{ "[c]", "-c", "--checksum (-c)" },
	{ "[n]", "-n", NULL },
	{ "hard-link*", "-H", "--hard-links (-H)" },
	{ "*", "-r", "--recursive (-r)" },
	{ "* !r", "-r", NULL },
	{ "* !a !v", "-vlogDtprnse.L --from0 --log-format=X --checksum-seed=3", NULL },
	{ "* !a !v", "--timeout=3", "--timeout" },
	{ "* !a !v", "--stats", "--stats" },
	{ "* !a !v", "-R", "--relative (-R)" },
	{ "* !a !v", "-z", "--compress (-z)" },
	{ "* !a !v", "-X", "--xattrs (-X)" },
	{ "! !x r", "-r", "--recursive (-r)" },
	{ "c !c", "-c", NULL },
	{ "!c c", "-c", "--checksum (-c)" },
	{ "DELETE", "-r --delete", NULL },
	{ "delete\tx", "-r --delete", NULL },
	{ "delete,x", "-r --delete", NULL },
	{ "", "-logDtprzc --delete --partial", NULL },
};

static const struct vector pulls[] = {
	{ "delete", "--remove-source-files", "--delete" },
	{ "delete", "--remove-sent-files", "--delete" },
	{ "remove-source-files", "--remove-sent-files", "--remove-sent-files" },
	{ "sender", "-r", "--sender" },
	{ "delete-*", "--remove-source-files", NULL },
	{ "*", "-e.L", NULL },
};

UNIT_TEST(S107_refusals_reach_every_spelling)
{
	CHECK_ALL(pushes, "--server");
	CHECK_ALL(pulls, "--server --sender");
}

/* S-107: an option that is named is refused in each of its spellings, and in that of each synonym. */
UNIT_TEST(S107_every_option_by_every_name)
{
	const struct option_spec *table = option_table(MODE_SERVER);

	for (const struct option_spec *named = table; !option_is_end(named); named++)
		for (const struct option_spec *said = table; !option_is_end(said); said++) {
			char label[OPTION_LABEL_SIZE], *line, *error, *token;

			if (!option_is_same(named, said) || named->runs == OF_DAEMON)
				continue;
			token = named->name ? xstrdup(named->name) : xasprintf("%c", named->letter);
			line = xasprintf("%s%s --server . x", option_label(said, label),
					 said->arg == NO_ARG ? "" : said->arg == INT_ARG ? "=28" : "=-1");
			error = refusal(token, true, line);
			if (!error)
				fail_msg("refuse options = %s lets %s through", token, line);
			free(error);
			free(line);
			free(token);
		}
}

/* S-107: the secluded list is under the same rules. */
UNIT_TEST(S107_the_second_list_is_checked_too)
{
	struct refused_options *refused = refused_options_new("delete", false);
	char *words[] = { "rsyncd", "-r", "--delete", ".", "x", NULL };
	struct parsed parsed;
	char *error;
	int code;

	parse_line_refused(&parsed, "--server -se.L", refused);
	assert_int_equal(parsed.result, OPTIONS_OK);
	assert_int_equal(options_parse_secluded(&parsed.options, 5, words, refused, &error, &code), OPTIONS_ERROR);
	assert_string_equal(error, "The server is configured to refuse --delete");
	assert_int_equal(code, 4);
	free(error);
	parsed_free(&parsed);
	refused_options_free(refused);
}

UNIT_TEST(S108_forced_refusals_stay)
{
	static const struct vector vectors[] = {
		{ "!log-file !*", "--log-file=x", "--log-file" },
		{ "!log-file-format", "--log-file-format=x", "--log-file-format" },
		{ "!insecure-links !*", "--insecure-links", "--insecure-links" },
		{ "!copy-as", "--copy-as=root", "--copy-as" },
		{ "!version !V", "--version", "--version (-V)" },
		{ "!version !V", "-V", "--version (-V)" },
		{ "!help", "--help", "--help" },
	};
	char *error;

	CHECK_ALL(vectors, "--server --sender");
	error = refusal("!iconv !*", false, "--server --sender --iconv=utf8 . x");
	assert_non_null(error);
	assert_string_equal(error, "--iconv");
	free(error);
}

/* S-091, S-108: what would turn a session into a daemon, or open its file system. */
UNIT_TEST(S108_daemon_words_end_the_session)
{
	static const char *const words[] = {
		"--daemon", "--config=/x", "--dparam=a=b", "--detach", "--no-detach", "--config-check", "--status",
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct refused_options *refused = refused_options_new("*", false);
		char *line = xasprintf("%s --server . x", words[i]);
		struct parsed parsed;

		parse_line_refused(&parsed, line, refused);
		assert_int_equal(parsed.result, OPTIONS_ERROR);
		assert_int_equal(parsed.code, 1);
		assert_string_equal(parsed.error, "Attempt to hack rsync thwarted!");
		parsed_free(&parsed);
		refused_options_free(refused);
		free(line);
	}
}

UNIT_TEST(S091_insecure_links_from_a_client)
{
	char *error = refusal("", true, "--server --sender --insecure-links . x");

	assert_string_equal(error, "--insecure-links");
	free(error);
	error = refusal("", true, "--server --sender --no-insecure-links . x");
	assert_null(error);
}

/* What precedes the refused word counts, what follows does not: 5.22 announces no more than was parsed. */
UNIT_TEST(a_refusal_stops_the_parse)
{
	struct refused_options *refused = refused_options_new("c", false);
	struct parsed parsed;

	parse_line_refused(&parsed, "--server --sender -lcre.iLsfxCIvu . x", refused);
	assert_int_equal(parsed.result, OPTIONS_ERROR);
	assert_true(parsed.options.sender && parsed.options.links && !parsed.options.recursive);
	assert_string_equal(parsed.options.client_info, "");
	parsed_free(&parsed);
	refused_options_free(refused);
}

UNIT_TEST(a_clients_words_are_a_servers_even_unsaid)
{
	struct refused_options *refused = refused_options_new("", false);
	struct parsed parsed;

	parse_line_refused(&parsed, "-r . x", refused);
	assert_int_equal(parsed.result, OPTIONS_OK);
	assert_true(parsed.options.server && !parsed.options.sender);
	parsed_free(&parsed);
	refused_options_free(refused);
}
