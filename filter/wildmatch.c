/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The wildcard matcher (doc/protocol/04-filters.md section 4.8), without recursion and in time O(pattern * text).
 *
 * A star is tried with nothing first and then takes one byte more whenever the rest does not fit. Only the last star
 * matters: what stands between two stars is found at its earliest place, and the later star can take everything in between.
 * The last "**" is kept as well, for when the last "*" would have to cross a slash. It can then be moved past that slash at
 * once: every earlier place for it leads to the same obstacle. A "*" that has come to the end of the text has failed for
 * good, since any later place for an earlier star leaves it less text.
 */
#include "filter/wildmatch.h"

#include <string.h>

struct span {
	const char *at, *end;
};

/* Where to go on after a mismatch: pattern behind the star, and the first text byte that the star has not taken. */
struct retry {
	const char *pattern, *text;
};

bool has_wildcards(const char *pattern)
{
	return strpbrk(pattern, "*?[") != NULL;
}

/* ASCII whatever the locale, so that both sides of a transfer agree. No text has a NUL, which ranges that are left out stand
 * for. */
static const struct {
	const char *name;
	struct {
		unsigned char low, high;
	} ranges[4];
} named_classes[] = {
	{ "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } } },
	{ "alpha", { { 'A', 'Z' }, { 'a', 'z' } } },
	{ "blank", { { ' ', ' ' }, { '\t', '\t' } } },
	{ "cntrl", { { 1, 31 }, { 127, 127 } } },
	{ "digit", { { '0', '9' } } },
	{ "graph", { { 33, 126 } } },
	{ "lower", { { 'a', 'z' } } },
	{ "print", { { 32, 126 } } },
	{ "punct", { { 33, '0' - 1 }, { '9' + 1, 'A' - 1 }, { 'Z' + 1, 'a' - 1 }, { 'z' + 1, 126 } } },
	{ "space", { { ' ', ' ' }, { 9, 13 } } },
	{ "upper", { { 'A', 'Z' } } },
	{ "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } } },
};

enum item { ITEM_MALFORMED, ITEM_OTHER, ITEM_MEMBER };

/* pattern->at is behind "[:"; the byte before the next "]" decides whether this is a named class at all. */
static enum item match_named_class(struct span *pattern, unsigned char c, bool *is_named)
{
	const char *close = memchr(pattern->at, ']', (size_t)(pattern->end - pattern->at));

	if (!close)
		return ITEM_MALFORMED;
	*is_named = close > pattern->at && close[-1] == ':';
	if (!*is_named)
		return c == '[' ? ITEM_MEMBER : ITEM_OTHER;
	size_t length = (size_t)(close - 1 - pattern->at);

	for (size_t i = 0; i < sizeof named_classes / sizeof named_classes[0]; i++) {
		bool has = false;

		if (strlen(named_classes[i].name) != length || memcmp(named_classes[i].name, pattern->at, length) != 0)
			continue;
		for (size_t j = 0; j < 4; j++)
			has |= c >= named_classes[i].ranges[j].low && c <= named_classes[i].ranges[j].high;
		pattern->at = close + 1;
		return has ? ITEM_MEMBER : ITEM_OTHER;
	}
	return ITEM_MALFORMED;
}

/* One byte of a class, escaped or not. */
static bool take_byte(struct span *pattern, unsigned char *byte)
{
	if (pattern->at < pattern->end && *pattern->at == '\\')
		pattern->at++;
	if (pattern->at == pattern->end)
		return false;
	*byte = (unsigned char)*pattern->at++;
	return true;
}

static enum item match_item(struct span *pattern, unsigned char c)
{
	if (pattern->end - pattern->at >= 2 && pattern->at[0] == '[' && pattern->at[1] == ':') {
		struct span inside = { pattern->at + 2, pattern->end };
		bool is_named = false;
		enum item item = match_named_class(&inside, c, &is_named);
		if (item == ITEM_MALFORMED)
			return item;
		if (is_named) {
			pattern->at = inside.at;
			return item;
		}
	}
	/* A single byte or a range of a class. */
	unsigned char low, high;

	if (!take_byte(pattern, &low))
		return ITEM_MALFORMED;
	bool member = c == low;
	if (pattern->end - pattern->at >= 2 && pattern->at[0] == '-' && pattern->at[1] != ']') {
		pattern->at++;
		if (!take_byte(pattern, &high))
			return ITEM_MALFORMED;
		member = member || (low <= c && c <= high);
	}
	return member ? ITEM_MEMBER : ITEM_OTHER;
}

/* pattern->at is behind "["; leaves it behind the closing "]" when the class matches. */
static bool match_class(struct span *pattern, unsigned char c)
{
	bool inverted = false, member = false, first = true;

	if (pattern->at < pattern->end && (*pattern->at == '!' || *pattern->at == '^')) {
		inverted = true;
		pattern->at++;
	}
	for (;; first = false) {
		if (pattern->at == pattern->end)
			return false;
		if (*pattern->at == ']' && !first)
			break;
		enum item item = match_item(pattern, c);
		if (item == ITEM_MALFORMED)
			return false;
		member = member || item == ITEM_MEMBER;
	}
	pattern->at++;
	return member != inverted && c != '/';
}

/* One element that is no star against one byte; moves pattern->at behind the element on success. */
static bool match_element(struct span *pattern, unsigned char c)
{
	unsigned char element = (unsigned char)*pattern->at++;

	switch (element) {
	case '?':
		return c != '/';
	case '[':
		return match_class(pattern, c);
	case '\\':
		return pattern->at < pattern->end && (unsigned char)*pattern->at++ == c;
	default:
		return element == c;
	}
}

/* Move a "**" (or the start of a floating match) past the next slash. */
static bool skip_slash(struct retry *retry, const char *end)
{
	const char *slash = memchr(retry->text, '/', (size_t)(end - retry->text));

	if (!slash)
		return false;
	retry->text = slash + 1;
	return true;
}

/* The state of one match: where it is, and the last star of each kind. A NULL text means there is none. */
struct match {
	struct span pattern, text;
	struct retry star, double_star;
	bool floating; /* double_star is the floating start, which only goes to starts of components */
};

/* After a mismatch: let the last star take one byte more. False if no star can. */
static bool backtrack(struct match *m)
{
	const char *end = m->text.end;

	if (m->star.text) {
		if (m->star.text == end)
			return false;
		if (*m->star.text != '/') {
			m->text.at = ++m->star.text;
			m->pattern.at = m->star.pattern;
			return true;
		}
		m->star.text = NULL;
		if (!m->double_star.text || !skip_slash(&m->double_star, end))
			return false;
	} else if (!m->double_star.text) {
		return false;
	} else if (m->floating) {
		if (!skip_slash(&m->double_star, end))
			return false;
	} else if (m->double_star.text++ == end) {
		return false;
	}
	m->text.at = m->double_star.text;
	m->pattern.at = m->double_star.pattern;
	return true;
}

bool wild_match(const char *pattern, size_t pattern_length, const char *text, size_t text_length, bool floating,
		uint64_t *steps)
{
	struct match m = {
		.pattern = { pattern, pattern + pattern_length },
		.text = { text, text + text_length },
		.double_star = { pattern, floating ? text : NULL },
		.floating = floating,
	};

	for (;;) {
		const char *before = m.pattern.at;

		++*steps;
		if (m.pattern.at < m.pattern.end && *m.pattern.at == '*') {
			/* Note a run of stars, which first takes nothing. */
			const char *start = m.pattern.at;

			while (m.pattern.at < m.pattern.end && *m.pattern.at == '*')
				m.pattern.at++;
			struct retry retry = { m.pattern.at, m.text.at };
			if (m.pattern.at - start == 1) {
				m.star = retry;
			} else {
				m.star.text = NULL;
				m.double_star = retry;
				m.floating = false;
			}
			if (m.pattern.at == m.pattern.end && !m.star.text)
				return true; /* "**" takes all that is left */
			continue;
		}
		if (m.pattern.at == m.pattern.end && m.text.at == m.text.end)
			return true;
		bool matches = m.pattern.at < m.pattern.end && m.text.at < m.text.end
			       && match_element(&m.pattern, (unsigned char)*m.text.at);

		*steps += (uint64_t)(m.pattern.at - before);
		if (matches)
			m.text.at++;
		else if (!backtrack(&m))
			return false;
	}
}

bool wildmatch_for(struct budget *budget, const char *pattern, const char *text)
{
	uint64_t steps = 0;
	bool matches = wild_match(pattern, strlen(pattern), text, strlen(text), false, &steps);

	budget_work(budget, steps);
	return matches;
}

bool wildmatch(const char *pattern, const char *text)
{
	return wildmatch_for(NULL, pattern, text);
}
