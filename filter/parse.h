/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The text of filter rules: its grammar (doc/protocol/04-filters.md section 4.2), from text to struct parsed, and rule files
 * (section 4.11), from which rules are pulled one by one:
 *
 *   int fd = open_rule_file(list, place, path, full);
 *   struct reader *reader = reader_new(list, fd, &syntax, flags, in_directory);
 *   while (reader_next(reader, &parsed))
 *           ... syntax.origin is the line that the rule stands on
 */
#ifndef FILTER_PARSE_H
#define FILTER_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter/filter.h"
#include "filter/list.h"

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
/* How a message names the rule: its text if that may be shown. */
struct shown_rule {
	char text[RULE_TEXT_MAX + 1];
};
struct shown_rule show_rule(const struct origin *origin, const char *text, size_t length);
/* How messages call a file that is named `name` by a rule from `origin`. Free the result. */
char *name_label(const struct origin *origin, const char *name);
/* The message about a rule that is left out because of its length. */
void report_long_rule(const struct origin *origin, const char *text, size_t length);

/* --- rule files --- */

struct reader;

/* Open by the list's callback: what that returns. full: path that the module's rules are asked about, NULL for the operator's
 * own files. */
int open_rule_file(struct filter_list *list, enum filter_place place, const char *path, const char *full);

/* The same for the name in a merge rule of `outer`, which was read from a per-directory file (4.11.3). */
int open_inner_merge(struct filter_list *list, const struct segment *outer, const char *name);

/* syntax: of the rules, with the origin that names the file, which becomes the one of each rule. `flags` of the merge rule (0:
 * none) decide how the file is split. in_directory: a per-directory file, for which a directory counts as no file. */
struct reader *reader_new(struct filter_list *list, int fd, struct rule_syntax *syntax, uint16_t flags, bool in_directory);
/* The next rule, which lies in the reader until the next call; false at the end, where the file is closed and the reader freed.
 * A read error ends with EXIT_FILEIO. */
bool reader_next(struct reader *reader, struct parsed *parsed);

#endif
