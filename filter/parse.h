/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text grammar of filter rules (doc/protocol/04-filters.md section 4.2): from text to struct parsed, and no further. */
#ifndef FILTER_PARSE_H
#define FILTER_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter/filter.h"
#include "filter/rule.h"

#define RULE_TEXT_MAX 5119 /* a line, and a rule on the wire */
#define PATTERN_MAX 4095

/* Where the text of a rule stands; NULL where it may be shown: command line, wire, configuration. */
struct origin {
	const char *label; /* how the file may be called */
	bool is_secret;    /* label is "<rule from ...>" already: the file's own name came from a file */
	int line;          /* 0: word-split, there are no line numbers */
};

/* How a text is read. */
struct rule_syntax {
	enum filter_style style;
	bool words;        /* words of one string: a pattern ends at white space */
	uint16_t defaults; /* of a merge or CVS rule: what all rules read get, and FIXED and CVS */
	const struct origin *origin;
};

/* One parsed rule: its pattern is a part of the text. */
struct parsed {
	enum rule_action action;
	uint16_t flags;
	const char *pattern;
	size_t length;
};

/* Parse the rule at the start of `text`; returns the bytes used, 0 if there is no rule (only white space). */
size_t parse_rule(const struct rule_syntax *syntax, const char *text, size_t length, struct parsed *parsed);
/* How a message names the rule: its text if that may be shown. Free the result. */
char *rule_label(const struct origin *origin, const char *text, size_t length);
/* How messages call a file that is named `name` by a rule from `origin`. Free the result. */
char *name_label(const struct origin *origin, const char *name);
/* The message about a rule that is left out because of its length. */
void report_long_rule(const struct origin *origin, const char *text, size_t length);

#endif
