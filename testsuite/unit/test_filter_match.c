/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Matching one name against one rule: the vectors of doc/protocol/04-filters.md section 4.9, and the time that hostile patterns
 * take.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "testsuite/unit/unit.h"

#include "filter/add.h"
#include "filter/filter.h"
#include "filter/wildmatch.h"
#include "lib/alloc.h"

static const struct vector {
	bool matches, is_dir;
	const char *pattern, *name;
} vectors[] = {
	/* A: no wildcard characters */
	{ true, false, "foo", "foo" },
	{ true, false, "foo", "a/b/foo" },
	{ true, true, "foo", "foo" },
	{ false, false, "foo", "xfoo" },
	{ false, false, "foo", "foo/bar" },
	{ false, false, "foo", "Foo" },
	{ false, false, "foo/", "foo" },
	{ true, true, "foo/", "foo" },
	{ true, true, "foo/", "a/foo" },
	{ true, false, "/foo", "foo" },
	{ false, false, "/foo", "a/foo" },
	{ true, true, "/foo/", "foo" },
	{ false, false, "/foo/", "foo" },
	{ true, false, "foo/bar", "foo/bar" },
	{ true, false, "foo/bar", "x/foo/bar" },
	{ false, false, "foo/bar", "xfoo/bar" },
	{ false, false, "foo/bar", "foo/bar/baz" },
	{ true, true, "foo/bar/", "x/foo/bar" },
	{ false, false, "foo/bar/", "x/foo/bar" },
	{ true, false, "/foo/bar", "foo/bar" },
	{ false, false, "/foo/bar", "x/foo/bar" },
	{ false, false, "/", "foo" },
	{ false, true, "/", "foo" },
	{ false, true, "foo//", "foo" },
	{ false, false, "//foo", "foo" },
	{ false, false, "foo//bar", "foo/bar" },
	{ false, false, "./foo", "foo" },
	{ true, false, "a\\b", "a\\b" },
	{ false, false, "a\\b", "ab" },
	{ true, false, "foo\\", "foo\\" },
	{ false, false, "\\foo", "foo" },
	{ true, false, "\\[x]", "[x]" },
	{ true, false, "]", "]" },
	{ true, false, "a]b", "a]b" },
	{ true, false, "a-b", "a-b" },
	{ true, false, "!x", "!x" },
	/* B: ? and * */
	{ true, false, "?", "a" },
	{ false, false, "?", "ab" },
	{ false, false, "?", "\xc3\xa9" },
	{ true, false, "?\?", "\xc3\xa9" },
	{ true, false, "*", "a" },
	{ true, false, "*", "a/b" },
	{ true, false, "*", ".hid" },
	{ true, false, "*.o", "x.o" },
	{ true, false, "*.o", "d/x.o" },
	{ false, false, "*.o", "x.oo" },
	{ true, false, "*.o", ".o" },
	{ true, true, "*.o/", "x.o" },
	{ false, false, "*.o/", "x.o" },
	{ true, false, "f*r", "foobar" },
	{ true, false, "f*r", "fr" },
	{ true, false, "a*b*c", "aXbYc" },
	{ false, false, "a*b*c", "acb" },
	{ true, false, "*a*", "banana" },
	{ true, false, "a?c", "abc" },
	{ false, false, "a?c", "ac" },
	{ true, false, "*foo*", "a/xfoox" },
	{ true, false, "/*", "a" },
	{ false, false, "/*", "a/b" },
	{ true, true, "/*/", "a" },
	{ true, false, "/*/*", "a/b" },
	{ false, false, "/*/*", "a/b/c" },
	{ false, false, "/*/*", "a" },
	{ false, false, "*/foo", "foo" },
	{ true, false, "*/foo", "a/foo" },
	{ true, false, "*/foo", "a/b/foo" },
	{ true, false, "foo/*", "foo/a" },
	{ true, false, "foo/*", "x/foo/a" },
	{ false, false, "foo/*", "foo/a/b" },
	{ true, false, "foo/*/bar", "foo/x/bar" },
	{ true, false, "foo/*/bar", "q/foo/x/bar" },
	{ false, false, "foo/*/bar", "foo/x/y/bar" },
	{ true, false, "f?o/b*r", "x/foo/bar" },
	{ false, false, "a?b", "a/b" },
	{ false, false, "a*b", "a/b" },
	{ false, false, "/a*b", "a/b" },
	/* C: ** */
	{ true, false, "**", "a" },
	{ true, true, "**", "a/b" },
	{ true, false, "**foo", "foo" },
	{ true, false, "**foo", "a/xfoo" },
	{ false, false, "**foo", "a/foo/b" },
	{ true, false, "**/foo", "foo" },
	{ true, false, "**/foo", "a/foo" },
	{ true, false, "**/foo", "a/b/foo" },
	{ false, false, "**/foo", "xfoo" },
	{ false, false, "/**/foo", "foo" },
	{ true, false, "/**/foo", "a/foo" },
	{ true, false, "/**/foo", "a/b/foo" },
	{ true, false, "foo**", "foobar" },
	{ true, false, "foo**", "foo/a/b" },
	{ true, false, "foo**", "x/foo/a" },
	{ false, false, "foo**", "x/yfoo/a" },
	{ false, true, "foo/**", "foo" },
	{ true, false, "foo/**", "foo/a" },
	{ true, false, "foo/**", "x/foo/a/b" },
	{ false, false, "foo/**", "xfoo/a" },
	{ true, false, "/foo/**", "foo/a/b" },
	{ false, false, "/foo/**", "x/foo/a" },
	{ false, true, "/foo/**", "foo" },
	{ true, false, "foo**bar", "foo/x/bar" },
	{ true, false, "foo**bar", "foobar" },
	{ true, false, "foo**bar", "z/fooQ/Rbar" },
	{ false, false, "foo/**/bar", "foo/bar" },
	{ true, false, "foo/**/bar", "foo/a/bar" },
	{ true, false, "foo/**/bar", "foo/a/b/bar" },
	{ true, false, "foo/**/bar", "z/foo/a/bar" },
	{ false, false, "/foo/**/bar", "foo/bar" },
	{ true, true, "**/", "a" },
	{ false, false, "**/", "a" },
	{ true, true, "**/", "a/b" },
	{ true, false, "**/b/**", "a/b/c" },
	{ true, false, "**/b/**", "b/c" },
	{ false, true, "**/b/**", "a/b" },
	{ true, false, "a**/b", "a/b" },
	{ true, false, "a**/b", "x/a/y/b" },
	{ false, false, "a**/b", "xa/b" },
	{ true, false, "**.o", "a/b/c.o" },
	{ true, false, "a/**b", "a/b" },
	{ true, false, "a/**b", "a/x/yb" },
	{ true, false, "a****b", "a/x/b" },
	{ true, false, "**b*", "a/bx" },
	{ false, false, "**b*", "b/x" },
	{ true, false, "*/**/foo", "a/b/foo" },
	{ false, false, "*/**/foo", "a/foo" },
	{ true, false, "**/a/**/b", "a/x/b" },
	{ false, false, "**/a/**/b", "a/b" },
	{ true, true, "a/**/***", "a/x" },
	{ true, false, "/**", "a/b" },
	{ true, false, "/**", "a" },
	{ false, false, "*/**", "a" },
	{ true, false, "*/**", "a/b/c" },
	{ true, true, "foo/**/", "foo/a" },
	{ false, false, "foo/**/", "foo/a" },
	/* D: trailing *** */
	{ true, true, "foo/***", "foo" },
	{ false, false, "foo/***", "foo" },
	{ true, false, "foo/***", "foo/a" },
	{ true, false, "foo/***", "foo/a/b" },
	{ true, true, "foo/***", "x/foo" },
	{ true, false, "foo/***", "x/foo/y" },
	{ false, true, "foo/***", "xfoo" },
	{ true, true, "/foo/***", "foo" },
	{ true, false, "/foo/***", "foo/a" },
	{ false, true, "/foo/***", "x/foo" },
	{ true, false, "***", "a" },
	{ true, true, "***", "a" },
	{ true, true, "foo***", "foobar" },
	{ true, false, "foo***", "foobar/x" },
	{ true, false, "foo***", "foobar" },
	{ true, true, "*/***", "a" },
	{ true, false, "*/***", "a/b" },
	{ false, false, "*/***", "a" },
	{ true, true, "**/***", "a" },
	{ true, false, "**/***", "a" },
	{ true, true, "foo/***/", "foo" },
	{ true, false, "/***/a", "b/a" },
	/* E: backslash together with wildcards */
	{ true, false, "a\\*", "a*" },
	{ false, false, "a\\*", "ab" },
	{ false, false, "a\\*", "a\\b" },
	{ true, false, "a\\b*", "ab" },
	{ true, false, "a\\b*", "abc" },
	{ false, false, "a\\b*", "a\\bc" },
	{ true, false, "a\\\\b*", "a\\bc" },
	{ true, false, "\\a\\b?", "abc" },
	{ false, false, "*\\", "a\\" },
	{ true, false, "*\\\\", "a\\" },
	{ true, false, "\\**", "*x" },
	{ false, false, "\\**", "x" },
	{ true, false, "\\?", "?" },
	{ false, false, "\\?", "a" },
	{ true, false, "\\[a]", "[a]" },
	{ true, false, "\\[a]*", "[a]b" },
	{ false, false, "\\[a]*", "\\[a]b" },
	{ true, false, "f\\oo/*", "foo/x" },
	/* F: classes */
	{ true, false, "[ab]", "a" },
	{ false, false, "[ab]", "c" },
	{ false, false, "[!ab]", "a" },
	{ true, false, "[!ab]", "c" },
	{ true, false, "[^ab]", "c" },
	{ true, false, "[^ab]", "^" },
	{ true, false, "[a^]", "^" },
	{ true, false, "[a-c]", "b" },
	{ false, false, "[c-a]", "b" },
	{ true, false, "[c-a]", "c" },
	{ false, false, "[c-a]", "a" },
	{ false, false, "[a-c-e]", "d" },
	{ true, false, "[a-c-e]", "-" },
	{ true, false, "[a-c-e]", "e" },
	{ true, false, "[-a]", "-" },
	{ true, false, "[a-]", "-" },
	{ true, false, "[]]", "]" },
	{ true, false, "[]a]", "a" },
	{ false, false, "[!]]", "]" },
	{ true, false, "[!]]", "x" },
	{ true, false, "[]-a]", "^" },
	{ false, false, "[]-a]", "-" },
	{ true, false, "[\\]]", "]" },
	{ true, false, "[\\\\]", "\\" },
	{ true, false, "[\\a-\\c]", "b" },
	{ false, false, "[a\\-c]", "b" },
	{ true, false, "[a\\-c]", "-" },
	{ true, false, "[--0]", "0" },
	{ false, false, "[a", "a" },
	{ false, false, "[a", "[a" },
	{ false, false, "[", "[" },
	{ false, false, "[]", "[]" },
	{ false, false, "[!", "x" },
	{ false, false, "a[]b", "a[]b" },
	{ false, false, "x[/]y", "x/y" },
	{ false, false, "/x[!a]y", "x/y" },
	{ false, false, "/x[.-0]y", "x/y" },
	{ true, false, "[[:alpha:]]", "q" },
	{ false, false, "[[:alpha:]]", "1" },
	{ true, false, "[[:digit:][:upper:]]", "7" },
	{ true, false, "[[:digit:][:upper:]]", "Q" },
	{ false, false, "[[:digit:][:upper:]]", "q" },
	{ true, false, "[![:space:]]", "x" },
	{ true, false, "[[:xdigit:]]", "f" },
	{ false, false, "[[:xdigit:]]", "g" },
	{ true, false, "[[:punct:]]", "_" },
	{ true, false, "[[:blank:]]", " " },
	{ false, false, "[[:foo:]]", "f" },
	{ false, false, "[[:digit:][:foo:]]", "7" },
	{ false, false, "[[::]x]", "x" },
	{ true, false, "[[:x]", ":" },
	{ true, false, "[[:x]", "[" },
	{ true, false, "[[:alpha]", "l" },
	{ true, false, "[[:alpha]z]", "lz]" },
	{ true, false, "[[:alpha:]-z]", "-" },
	{ false, false, "[[:alpha:]-z]", "~" },
	{ false, false, "[a-[:digit:]]", "5" },
	{ false, false, "[a-[:digit:]]", "b:]" },
	{ true, false, "[a-[:digit:]]", ":]" },
	{ true, false, "[[=a=]]", "a]" },
	{ true, false, "[!a-c]x", "dx" },
	{ true, false, "[a!]", "!" },
	{ true, false, "[[:alnum:]_-]*", "_x" },
	{ true, false, "*[0-9]", "file7" },
	{ true, false, "[a-z]*.[ch]", "main.c" },
	{ true, false, "d/[a-z]", "q/d/m" },
};

static bool rule_matches_name(const char *pattern, const char *name, bool is_dir)
{
	struct filter_setup setup = { .side = FILTER_SENDER };
	struct filter_list *list = filter_new(&setup);
	char *rule = xasprintf("- %s", pattern);

	filter_add(list, rule, FILTER_NEW_STYLE);
	bool excluded = filter_excludes(list, name, is_dir);
	free(rule);
	filter_free(list);
	return excluded;
}

UNIT_TEST(rules_match_as_the_vectors_say)
{
	int wrong = 0;

	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		const struct vector *v = &vectors[i];
		if (rule_matches_name(v->pattern, v->name, v->is_dir) == v->matches)
			continue;
		print_error("%s of \"%s\" should %smatch \"%s\"\n", v->is_dir ? "directory" : "file", v->pattern,
			    v->matches ? "" : "not ", v->name);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

UNIT_TEST(negation_inverts_every_vector)
{
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		struct filter_setup setup = { .side = FILTER_SENDER };
		struct filter_list *list = filter_new(&setup);
		char *rule = xasprintf("-! %s", vectors[i].pattern);
		filter_add(list, rule, FILTER_NEW_STYLE);
		assert_int_equal(filter_excludes(list, vectors[i].name, vectors[i].is_dir), !vectors[i].matches);
		free(rule);
		filter_free(list);
	}
}

/* --- against the definition --- */

/* The definition of 4.8 word for word, exponential and without classes. */
static bool naive_match(const char *pattern, const char *text)
{
	if (!*pattern)
		return !*text;
	if (*pattern == '*') {
		size_t run = strspn(pattern, "*");
		for (;; text++) {
			if (naive_match(pattern + run, text))
				return true;
			if (!*text || (run == 1 && *text == '/'))
				return false;
		}
	}
	if (!*text)
		return false;
	if (*pattern == '\\')
		return pattern[1] && pattern[1] == *text && naive_match(pattern + 2, text + 1);
	if (*pattern == '?' ? *text == '/' : *pattern != *text)
		return false;
	return naive_match(pattern + 1, text + 1);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

static void random_text(char *out, size_t max, const char *letters, uint32_t *seed)
{
	size_t length = next_random(seed) % (max + 1);

	for (size_t i = 0; i < length; i++)
		out[i] = letters[next_random(seed) % strlen(letters)];
	out[length] = '\0';
}

UNIT_TEST(wildmatch_agrees_with_plain_backtracking)
{
	uint32_t seed = 20240229;
	int matched = 0;

	for (int i = 0; i < 400000; i++) {
		char pattern[13], text[15];
		random_text(pattern, 12, "aab/*****?\\", &seed);
		random_text(text, 14, "aaab//", &seed);
		bool expected = naive_match(pattern, text);
		matched += expected;
		if (wildmatch(pattern, text) != expected)
			fail_msg("wildmatch(\"%s\", \"%s\") is not %d", pattern, text, expected);
	}
	assert_true(matched > 10000);
}

/* A pattern with stars in the middle may start at any component: the same as trying each of them. */
UNIT_TEST(floating_rule_agrees_with_trying_every_component)
{
	uint32_t seed = 7;

	for (int i = 0; i < 100000; i++) {
		char pattern[16], name[15];
		random_text(pattern, 12, "aab/**?", &seed);
		random_text(name, 14, "aaab/", &seed);
		size_t length = strlen(pattern);
		bool floats = length && pattern[0] != '/' && strncmp(pattern, "**", 2) && strstr(pattern, "**")
			      && pattern[length - 1] != '/' && (length < 3 || strcmp(pattern + length - 3, "***"));
		if (!floats || !*name || name[0] == '/')
			continue;
		bool expected = false;
		for (const char *at = name; at && !expected; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
			expected = naive_match(pattern, at);
		if (rule_matches_name(pattern, name, false) != expected)
			fail_msg("rule \"%s\" on \"%s\" is not %d", pattern, name, expected);
	}
}

/* --- hostile patterns --- */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void repeat(char *out, size_t size, const char *unit, const char *end)
{
	size_t length = strlen(unit);
	size_t count = (size - 1 - strlen(end)) / length;

	for (size_t i = 0; i < count; i++)
		memcpy(out + i * length, unit, length);
	strcpy(out + count * length, end);
}

UNIT_TEST(hostile_patterns_take_bounded_time)
{
	static const struct {
		const char *unit, *end, *text_unit, *text_end;
	} cases[] = {
		{ "*a", "b", "a", "" }, { "**a", "b", "a", "" },       { "**a*a", "b", "a", "" },
		{ "*a**", "b", "a", "" }, { "**/*a", "b", "a/", "" },  { "*/**a", "b", "aa/", "" },
		{ "a**", "b", "a/", "" }, { "*a/", "b", "aa/", "" },   { "**a/*a*", "b", "aaa/", "" },
		{ "?*", "b", "a", "" },   { "[a-z]*", "B", "a", "" },  { "[[:alpha:]]**", "1", "a/", "" },
		{ "a*/**/", "b", "aaaaaaaa/", "c" },
	};
	char pattern[4096], text[4096];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (size_t size = 64; size <= sizeof pattern; size *= 8) {
			repeat(pattern, size, cases[i].unit, cases[i].end);
			repeat(text, sizeof text, cases[i].text_unit, cases[i].text_end);
			double start = seconds();
			assert_false(rule_matches_name(pattern, text, false));
			double used = seconds() - start;
			if (used > 0.25)
				fail_msg("%zu bytes of \"%s\" took %.3f s", size, cases[i].unit, used);
		}
	}
}

UNIT_TEST(wildcards_are_recognised)
{
	assert_true(has_wildcards("a*"));
	assert_true(has_wildcards("?"));
	assert_true(has_wildcards("x[y"));
	assert_false(has_wildcards("a\\b]"));
	assert_false(has_wildcards(""));
}
