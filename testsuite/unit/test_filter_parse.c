/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text grammar of rules: the vectors of doc/protocol/04-filters.md section 4.2.7, seen as the list that would be sent. */
#include "filter/add.h"
#include "filter_support.h"

struct vector {
	const char *rule;
	const char *sent;  /* list of a pull at protocol 32, or NULL */
	const char *error; /* start of the message, if it does not parse */
};

static const struct vector new_style[] = {
	{ "- foo", "- foo", NULL },
	{ "exclude foo", "- foo", NULL },
	{ "exclude_foo", "- foo", NULL },
	{ "exclude,p foo", "-p foo", NULL },
	{ "-,p foo", "-p foo", NULL },
	{ "-p_foo", "-p foo", NULL },
	{ "- _foo", "- _foo", NULL },
	{ "-  foo", "-  foo", NULL },
	{ "-_ foo", "-  foo", NULL },
	{ "-, foo", "- foo", NULL },
	{ "include,sr foo", "+sr foo", NULL },
	{ "+rs foo", "+sr foo", NULL },
	{ "show_x", "+s x", NULL },
	{ "S x", "+s x", NULL },
	{ "+s x", "+s x", NULL },
	{ "Sp x", "+sp x", NULL },
	{ "hide,! x", "-!s x", NULL },
	{ "H,! x", "-!s x", NULL },
	{ "risk x", "", NULL },
	{ "P x", "", NULL },
	{ "-!/ x", "-/! x", NULL },
	{ "-/! x", "-/! x", NULL },
	{ "-!! x", "-! x", NULL },
	{ "-C", "-C ", NULL },
	{ "-,C", "-C ", NULL },
	{ "exclude,C", "-C ", NULL },
	{ "-C foo", "-C foo", NULL },
	{ "-Cp", "-Cp ", NULL },
	{ "-sx user.a", "-xs user.a", NULL },
	{ ": f", ": f", NULL },
	{ ":-n f", ":n- f", NULL },
	{ ":n- f", ":n- f", NULL },
	{ ":C", ":C .cvsignore", NULL },
	{ ":nwC f", ":C f", NULL },
	{ ":sC", ":Cs .cvsignore", NULL },
	{ ":sp- f", ":-sp f", NULL },
	{ ":e a/b/f", "- f|: a/b/f", NULL },
	{ ":es f", "- f|:s f", NULL },
	{ ":eC", "- .cvsignore|:C .cvsignore", NULL },
	{ ": /a/f", ": /a/f", NULL },
	{ "- /", "- /", NULL },
	{ "- foo//", "- foo//", NULL },
	{ "!", "", NULL },
	{ "clear", "", NULL },
	{ "", "- before", NULL },
	{ "-foo", NULL, "invalid modifier 'f' at position 1 in filter rule: -foo" },
	{ "+foo", NULL, "invalid modifier 'f' at position 1 in filter rule: +foo" },
	{ "-zz x", NULL, "invalid modifier 'z' at position 1" },
	{ "-\tfoo", NULL, "invalid modifier '\t' at position 1" },
	{ "excludep foo", NULL, "Unknown filter rule: excludep foo" },
	{ "foo", NULL, "Unknown filter rule: foo" },
	{ "# foo", NULL, "Unknown filter rule: # foo" },
	{ " - foo", NULL, "Unknown filter rule:  - foo" },
	{ "Ss x", NULL, "invalid modifier 's' at position 1" },
	{ "Pr x", NULL, "invalid modifier 'r' at position 1" },
	{ "HC", NULL, "invalid modifier 'C' at position 1" },
	{ "-n x", NULL, "invalid modifier 'n' at position 1" },
	{ "-w x", NULL, "invalid modifier 'w' at position 1" },
	{ "-e x", NULL, "invalid modifier 'e' at position 1" },
	{ "-- x", NULL, "invalid modifier '-' at position 1" },
	{ "-+ x", NULL, "invalid modifier '+' at position 1" },
	{ ".!- f", NULL, "invalid modifier '!'" },
	{ ":! f", NULL, "invalid modifier '!'" },
	{ ".-+ f", NULL, "invalid modifier '+' at position 2" },
	{ ".-C f", NULL, "invalid modifier 'C' at position 2" },
	{ ":C- f", NULL, "invalid modifier '-' at position 2" },
	{ "exclude", NULL, "unexpected end of filter rule: exclude" },
	{ "-", NULL, "unexpected end" },
	{ "- ", NULL, "unexpected end" },
	{ "-p", NULL, "unexpected end" },
	{ "P", NULL, "unexpected end" },
	{ ":n", NULL, "unexpected end" },
	{ ".", NULL, "unexpected end" },
	{ "! ", NULL, "'!' rule has trailing characters: ! " },
	{ "! x", NULL, "'!' rule has trailing characters" },
	{ "!x", NULL, "'!' rule has trailing characters" },
	{ "clear,p", NULL, "'!' rule has trailing characters" },
	{ "clear x", NULL, "'!' rule has trailing characters" },
	{ "H!x", NULL, "unexpected end" },
	{ "H!", NULL, "unexpected end" },
};

static const struct vector old_style[] = {
	{ "foo", "- before|- foo", NULL },
	{ "- foo", "- before|- foo", NULL },
	{ "+ foo", "- before|+ foo", NULL },
	{ "-foo", "- before|- -foo", NULL },
	{ "-  foo", "- before|-  foo", NULL },
	{ "!", "", NULL },
	{ "! ", "- before|- ! ", NULL },
	{ "!x", "- before|- !x", NULL },
	{ "- !", "- before|- !", NULL },
	{ "# foo", "- before|- # foo", NULL },
	{ "", "- before", NULL },
	{ "- ", NULL, "unexpected end of filter rule" },
	{ "- - foo", "- before|- - foo", NULL },
	{ "P foo", "- before|- P foo", NULL },
};

static void check(const struct vector *vector, const char *before, enum filter_style style)
{
	struct filter_setup setup = { .side = FILTER_RECEIVER };
	struct filter_list *list = filter_new(&setup);
	struct ending ending;

	filter_add(list, before, style);
	RUN(&ending, filter_add(list, vector->rule, style));
	if (vector->error) {
		if (ending.code != EXIT_SYNTAX || strncmp(ending.text, vector->error, strlen(vector->error)))
			fail_msg("\"%s\": code %d, \"%s\"", vector->rule, ending.code, ending.text);
	} else {
		if (ending.code != -1)
			fail_msg("\"%s\": code %d, \"%s\"", vector->rule, ending.code, ending.text);
		char *sent = sent_rules(list, 32, false, true);
		const char *shown = !strncmp(sent, "- before|", 9) && style == FILTER_NEW_STYLE ? sent + 9 : sent;
		if (style == FILTER_NEW_STYLE && !*vector->sent && !strcmp(sent, "- before"))
			shown = "";
		if (strcmp(shown, vector->sent))
			fail_msg("\"%s\" is sent as \"%s\", not \"%s\"", vector->rule, shown, vector->sent);
		free(sent);
	}
	filter_free(list);
}

UNIT_TEST(new_style_rules_parse_as_stock_does)
{
	for (size_t i = 0; i < sizeof new_style / sizeof new_style[0]; i++)
		check(&new_style[i], "- before", FILTER_NEW_STYLE);
}

UNIT_TEST(old_style_rules_parse_as_stock_does)
{
	for (size_t i = 0; i < sizeof old_style / sizeof old_style[0]; i++)
		check(&old_style[i], "before", FILTER_OLD_EXCLUDE);
}

static void expect_sent(struct filter_list *list, const char *expected)
{
	char *sent = sent_rules(list, 32, false, true);

	assert_string_equal(sent, expected);
	free(sent);
	filter_free(list);
}

static struct filter_list *new_list(struct memory_files *files, const struct memory_file *items)
{
	*files = (struct memory_files){ .items = items };
	struct filter_setup setup = {
		.side = FILTER_RECEIVER, .open_file = open_memory_file, .context = files, .dash_is_stdin = true,
	};

	return filter_new(&setup);
}

UNIT_TEST(clear_empties_what_stood_before)
{
	struct memory_files files;
	struct filter_list *list = new_list(&files, NULL);

	filter_add(list, "- a", FILTER_NEW_STYLE);
	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_add(list, "clear", FILTER_NEW_STYLE);
	assert_true(filter_is_empty(list));
	/* The merge is not active any more, so that it can be added again. */
	filter_add(list, ": .r", FILTER_NEW_STYLE);
	expect_sent(list, ": .r");
}

UNIT_TEST(include_option_excludes_with_a_minus)
{
	struct memory_files files;
	struct filter_list *list = new_list(&files, NULL);

	filter_add(list, "- foo", FILTER_OLD_INCLUDE);
	filter_add(list, "bar", FILTER_OLD_INCLUDE);
	expect_sent(list, "- foo|+ bar");
}

/* --- single merges --- */

static const struct memory_file merge_files[] = {
	{ "operator:f", "# c\n; c\n\n- *.tmp\n+ keep me\nexclude,p j\nshow_x\nhide h y\n" },
	{ "operator:fixed", "a - b\n+ c\n!\n" },
	{ "operator:two", "- a\n+ b\n" },
	{ "operator:words", "-_a +_b\n-,p_c exclude_d" },
	{ "operator:cvs", "a ! b\nc\n!\nd !x -e +f #g" },
	{ "operator:old", "a\n+ b\n- c\n!\nd\n! \n#x\n;y\n\ne f \n-f\n" },
	{ "operator:crlf", "- a\r\n- b\r- c\n\r\n- d" },
	{ "operator:sided", "- a\nshow_x\n" },
	{ "operator:/x/outer", ". f\n. /x/inner\n" },
	{ "operator:/x/inner", "- inner\nsecret stuff\n" },
	{ "operator:loop", ". loop\n" },
	{ "operator:missing-inner", "- a\n. no-such-file\n" },
	{ NULL, NULL },
};

static const struct {
	const char *rule, *sent;
} merges[] = {
	{ ". f", "- before|- *.tmp|+ keep me|-p j|+s x|-s h y" },
	{ "merge f", "- before|- *.tmp|+ keep me|-p j|+s x|-s h y" },
	{ ".- fixed", "- before|- a - b|- + c|- !" },
	{ ".+ fixed", "- before|+ a - b|+ + c|+ !" },
	{ ".p two", "- before|-p a|+p b" },
	{ "./ two", "- before|-/ a|+/ b" },
	{ ".s two", "- before|-s a|+s b" },
	{ ".e two", "- before|- two|- a|+ b" },
	{ ".w words", "- before|- a|+ b|-p c|- d" },
	{ ".C cvs", "- d|- !x|- -e|- +f|- #g" },
	{ ". crlf", "- before|- a|- b|- c|- d" },
};

UNIT_TEST(merge_files_give_their_rules)
{
	for (size_t i = 0; i < sizeof merges / sizeof merges[0]; i++) {
		struct memory_files files;
		struct filter_list *list = new_list(&files, merge_files);
		filter_add(list, "- before", FILTER_NEW_STYLE);
		filter_add(list, merges[i].rule, FILTER_NEW_STYLE);
		expect_sent(list, merges[i].sent);
		strbuf_free(&files.opened);
	}
}

UNIT_TEST(exclude_from_reads_old_style_lines)
{
	struct memory_files files;
	struct filter_list *list = new_list(&files, merge_files);

	filter_add(list, "- before", FILTER_NEW_STYLE);
	filter_add_file(list, "old", FILTER_OLD_EXCLUDE);
	expect_sent(list, "- d|- ! |- e f |- -f");
	strbuf_free(&files.opened);
}

UNIT_TEST(from0_separates_rules_by_nul_only)
{
	int fds[2];
	struct filter_setup setup = { .side = FILTER_RECEIVER, .from0 = true, .dash_is_stdin = true };
	struct filter_list *list = filter_new(&setup);
	static const char content[] = "a\nb\0# comment\0c";
	int saved = dup(STDIN_FILENO);

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], content, sizeof content), sizeof content);
	close(fds[1]);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	filter_add_file(list, "-", FILTER_OLD_EXCLUDE);
	dup2(saved, STDIN_FILENO);
	close(saved);
	expect_sent(list, "- a\nb|- c");
}

static void expect_death(const char *rule, int code, const char *message)
{
	struct memory_files files;
	struct filter_list *list = new_list(&files, merge_files);
	struct ending ending;

	RUN(&ending, filter_add(list, rule, FILTER_NEW_STYLE));
	assert_int_equal(ending.code, code);
	if (!strstr(ending.text, message))
		fail_msg("\"%s\" says \"%s\"", rule, ending.text);
	assert_null(strstr(ending.text, "secret"));
	assert_null(strstr(ending.text, "no-such"));
	filter_free(list);
	strbuf_free(&files.opened);
}

UNIT_TEST(errors_never_show_text_from_a_file)
{
	expect_death(". /x/inner", EXIT_SYNTAX, "Unknown filter rule: <rule from /x/inner line 2>");
	expect_death(". /x/outer", EXIT_SYNTAX, "Unknown filter rule: <rule from a file named at /x/outer line 2>");
	expect_death(".w /x/inner", EXIT_SYNTAX, "<rule from /x/inner>");
	expect_death(". missing-inner", EXIT_FILEIO, "failed to open exclude file <rule from missing-inner line 2>");
	expect_death(".s sided", EXIT_SYNTAX,
			"specified-side merge file contains specified-side filter: <rule from sided line 2>");
}

UNIT_TEST(file_that_merges_itself_hits_the_depth_limit)
{
	expect_death(". loop", EXIT_FILEIO, "merge-file include depth limit (32) exceeded");
}

UNIT_TEST(missing_file_is_named_with_its_default_action)
{
	struct memory_files files;
	struct filter_list *list = new_list(&files, merge_files);
	struct ending ending;

	RUN(&ending, filter_add_file(list, "nonex", FILTER_OLD_INCLUDE));
	assert_int_equal(ending.code, EXIT_FILEIO);
	assert_non_null(strstr(ending.text, "failed to open include file nonex: No such file or directory (2)"));
	filter_free(list);
	strbuf_free(&files.opened);
}

UNIT_TEST(over_long_rules_are_reported_and_skipped)
{
	struct filter_setup setup = { .side = FILTER_RECEIVER };
	struct filter_list *list = filter_new(&setup);
	char *pattern = malloc(4097);
	struct ending ending;

	memset(pattern, 'x', 4096);
	pattern[4096] = '\0';
	RUN(&ending, filter_add(list, pattern, FILTER_OLD_EXCLUDE));
	assert_int_equal(ending.code, -1);
	assert_int_equal(strncmp(ending.text, "discarding over-long filter: xxx", 32), 0);
	assert_true(filter_is_empty(list));
	pattern[4095] = '\0';
	RUN(&ending, filter_add(list, pattern, FILTER_OLD_EXCLUDE));
	assert_string_equal(ending.text, "");
	assert_false(filter_is_empty(list));
	free(pattern);
	filter_free(list);
}

/* A line one byte longer than fits is skipped, and the rules around it are not. */
UNIT_TEST(over_long_lines_are_skipped_alone)
{
	struct memory_files files;
	struct strbuf content = STRBUF_INIT;
	struct ending ending;

	strbuf_add_string(&content, "- a\n");
	for (int i = 0; i < 5120; i++)
		strbuf_add_char(&content, 'x');
	strbuf_add_string(&content, "\n- b\n");
	const struct memory_file items[] = { { "operator:long", content.data }, { NULL, NULL } };
	struct filter_list *list = new_list(&files, items);
	RUN(&ending, filter_add(list, ". long", FILTER_NEW_STYLE));
	assert_string_equal(ending.text, "discarding over-long filter: <rule from long line 2>\n");
	expect_sent(list, "- a|- b");
	strbuf_free(&content);
	strbuf_free(&files.opened);
}

/* --- daemon parameters --- */

UNIT_TEST(words_of_a_parameter_keep_their_prefixes)
{
	struct filter_setup setup = { .side = FILTER_RECEIVER };
	struct filter_list *list = filter_new(&setup);

	filter_add_words(list, " - /foo  - /bar\t+s_x  exclude,p y ", FILTER_NEW_STYLE);
	filter_add_words(list, "a + b  - c", FILTER_OLD_EXCLUDE);
	filter_add_words(list, "d - e", FILTER_OLD_INCLUDE);
	expect_sent(list, "- /foo|- /bar|+s x|-p y|- a|+ b|- c|+ d|- e");
}

UNIT_TEST(clear_word_empties_earlier_parameters)
{
	struct filter_setup setup = { .side = FILTER_RECEIVER };
	struct filter_list *list = filter_new(&setup);

	filter_add_words(list, "- a", FILTER_NEW_STYLE);
	filter_add_words(list, "b ! c", FILTER_OLD_EXCLUDE);
	expect_sent(list, "- c");
}
