/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grammar of rsyncd.conf: the vectors of doc/protocol/07-daemon.md sections 2.1 to 2.6 and 2.13. */
#include <stdint.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "loadparm/grammar.h"

/* Every event as "S name|", "P name=value|", "D word path|", "I|" or "B|". */
static void check_text(const char *text, size_t length, const char *expected)
{
	struct strbuf got = STRBUF_INIT;
	enum grammar_event event;
	struct grammar grammar;

	grammar_start(&grammar, text, length);
	while ((event = grammar_next(&grammar)) != GRAMMAR_END) {
		const char *name = strbuf_text(&grammar.name), *value = strbuf_text(&grammar.value);

		if (event == GRAMMAR_SECTION)
			strbuf_addf(&got, "S %s|", name);
		else if (event == GRAMMAR_PARAMETER)
			strbuf_addf(&got, "P %s=%s|", name, value);
		else if (event == GRAMMAR_DIRECTIVE)
			strbuf_addf(&got, "D %s %s|", name, value);
		else
			strbuf_add_string(&got, event == GRAMMAR_IGNORED ? "I|" : "B|");
	}
	grammar_free(&grammar);
	assert_string_equal(strbuf_text(&got), expected);
	strbuf_free(&got);
}

static void check(const char *text, const char *expected)
{
	check_text(text, strlen(text), expected);
}

UNIT_TEST(section_names_are_trimmed_and_their_blanks_collapsed)
{
	check("[ m1 ] junk\n", "S m1|");
	check("[m  two\ttab]\n", "S m two tab|");
	check("[m16 \\\n cont]\n", "S m16 cont|");
	check("[a]b]\n", "S a|");
	check("[a]", "S a|");
	check("  [m\xc3\xa9]\r\n", "S m\xc3\xa9|");
}

UNIT_TEST(bad_section_headers_break_the_file)
{
	check("[b/c]\nx = y\n", "B|");
	check("[]\n", "B|");
	check("[  ]\n", "B|");
	check("[unclosed\nx = y\n", "B|");
	check("[unclosed", "B|");
}

UNIT_TEST(values_are_verbatim_but_for_their_ends)
{
	check("comment = a = b = c # no ; no  \n", "P comment=a = b = c # no ; no|");
	check("comment = \"q\"\n", "P comment=\"q\"|");
	check("comment =\n", "P comment=|");
	check("comment = a\rb\r\n", "P comment=ab|");
	check("path = x#y", "P path=x#y|");
	check("comment = [x] & \\y\n", "P comment=[x] & \\y|");
}

UNIT_TEST(names_keep_one_blank_between_words)
{
	check("c o m m e n t = x\n", "P c o m m e n t=x|");
	check("read \t only=no\n", "P read only=no|");
}

UNIT_TEST(lines_without_equals_are_ignored)
{
	check("com\nment = x\n", "I|P ment=x|");
	check("nothing", "I|");
}

UNIT_TEST(an_empty_name_breaks_the_file)
{
	check(" = x\n[m]\n", "B|");
}

UNIT_TEST(a_backslash_continues_names_and_values)
{
	check("com\\\nment = x\n", "P comment=x|");
	check("comment = one \\\n   two\\   \n  three\n", "P comment=one    two  three|");
	check("comment = start \\\n# not a comment\n", "P comment=start # not a comment|");
	check("hosts allow = 127.0.0.1 \\\n   10.0.0.1\n", "P hosts allow=127.0.0.1    10.0.0.1|");
}

UNIT_TEST(comments_stand_at_the_start_only_and_never_continue)
{
	check("# a = b \\\nx = y\n ; c = d\n\n", "P x=y|");
}

UNIT_TEST(a_stray_backslash_is_skipped)
{
	check("\\ comment = x\n", "P comment=x|");
}

UNIT_TEST(directives_take_a_path_with_or_without_equals)
{
	check("&include /etc/d\n", "D include /etc/d|");
	check("&MERGE=/etc/d x\n", "D MERGE /etc/d x|");
	check("&include = /etc/d\n", "D include /etc/d|");
	check("&include\n", "I|");
}

UNIT_TEST(a_nul_byte_breaks_the_file)
{
	check_text("a = b\nc = d\0e\n", 14, "B|");
}

UNIT_TEST(events_know_their_line)
{
	static const char text[] = "# one\n\na = b\\\n c\n[m]\nd = e";
	struct grammar grammar;

	grammar_start(&grammar, text, sizeof text - 1);
	assert_int_equal(grammar_next(&grammar), GRAMMAR_PARAMETER);
	assert_int_equal(grammar.line, 3);
	assert_int_equal(grammar_next(&grammar), GRAMMAR_SECTION);
	assert_int_equal(grammar.line, 5);
	assert_int_equal(grammar_next(&grammar), GRAMMAR_PARAMETER);
	assert_int_equal(grammar.line, 6);
	grammar_free(&grammar);
}

UNIT_TEST(names_compare_without_case_and_blanks)
{
	assert_true(grammar_same_name("read only", "READONLY"));
	assert_true(grammar_same_name(" Read  On\tLy ", "read only"));
	assert_false(grammar_same_name("read_only", "read only"));
	assert_false(grammar_same_name("read", "read only"));
}
