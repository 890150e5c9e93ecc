/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of rules: the grammar, and the files that it is read from: lines or words, comments, limits. */
#include "filter/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "filter/list.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

static bool is_white(char c)
{
	return c && strchr(" \t\n\v\f\r", c);
}

/* --- names and modifiers --- */

#define MAY_EXCLUDE (1u << ACTION_EXCLUDE)
#define MAY_INCLUDE (1u << ACTION_INCLUDE)
#define MAY_MERGE (1u << ACTION_MERGE | 1u << ACTION_DIR_MERGE)
#define MAY_ALL (MAY_EXCLUDE | MAY_INCLUDE | MAY_MERGE)

static const struct rule_name {
	char letter;
	const char *word;
	enum rule_action action;
	uint16_t side;
} rule_names[] = {
	{ '-', "exclude", ACTION_EXCLUDE, 0 },
	{ '+', "include", ACTION_INCLUDE, 0 },
	{ '.', "merge", ACTION_MERGE, 0 },
	{ ':', "dir-merge", ACTION_DIR_MERGE, 0 },
	{ 'H', "hide", ACTION_EXCLUDE, RULE_SENDER },
	{ 'S', "show", ACTION_INCLUDE, RULE_SENDER },
	{ 'P', "protect", ACTION_EXCLUDE, RULE_RECEIVER },
	{ 'R', "risk", ACTION_INCLUDE, RULE_RECEIVER },
	{ '!', "clear", ACTION_CLEAR, 0 },
};

static const struct rule_modifier {
	char letter;
	bool with_sided_name; /* allowed on hide, show, protect, risk */
	uint16_t flags, excludes;
	unsigned actions;
} rule_modifiers[] = {
	{ '/', true, RULE_ABSOLUTE, 0, MAY_ALL },
	{ '!', true, RULE_NEGATE, 0, MAY_EXCLUDE | MAY_INCLUDE },
	{ 'C', false, RULE_CVS, RULE_FIXED, MAY_ALL },
	{ 's', false, RULE_SENDER, 0, MAY_ALL },
	{ 'r', false, RULE_RECEIVER, 0, MAY_ALL },
	{ 'p', true, RULE_PERISHABLE, 0, MAY_ALL },
	{ 'x', true, RULE_XATTR, 0, MAY_ALL },
	{ 'e', true, RULE_EXCLUDE_SELF, 0, MAY_MERGE },
	{ 'n', true, RULE_NO_INHERIT, 0, MAY_MERGE },
	{ 'w', true, RULE_WORDS, 0, MAY_MERGE },
	{ '-', true, RULE_FIXED_EXCLUDE, RULE_FIXED_INCLUDE | RULE_CVS, MAY_MERGE },
	{ '+', true, RULE_FIXED_INCLUDE, RULE_FIXED_EXCLUDE | RULE_CVS, MAY_MERGE },
};

/* --- errors --- */

/* The text if that may be shown, else where it stands; `what` says what is there. */
static char *label_text(const struct origin *origin, const char *text, size_t length, const char *what)
{
	if (!origin)
		return xstrndup(text, length);
	if (origin->is_secret)
		return xstrdup(origin->label);
	if (origin->line)
		return xasprintf("<rule from %s%s line %d>", what, origin->label, origin->line);
	return xasprintf("<rule from %s%s>", what, origin->label);
}

char *name_label(const struct origin *origin, const char *name)
{
	return label_text(origin, name, strlen(name), "a file named at ");
}

struct shown_rule show_rule(const struct origin *origin, const char *text, size_t length)
{
	char *label = label_text(origin, text, length, "");
	struct shown_rule shown;

	snprintf(shown.text, sizeof shown.text, "%s", label);
	free(label);
	return shown;
}

void report_long_rule(const struct origin *origin, const char *text, size_t length)
{
	char *label = label_text(origin, text, length, "");

	log_error("discarding over-long filter: %s", label);
	free(label);
}

static _Noreturn void refuse_rule(const struct rule_syntax *syntax, const char *text, size_t length, const char *problem)
{
	die(EXIT_SYNTAX, "%s: %s", problem, show_rule(syntax->origin, text, length).text);
}

/* --- new style --- */

/* The rule's name at the start of the text, and how many bytes it has; NULL if there is none. */
static const struct rule_name *find_name(const char *text, size_t length, size_t *used)
{
	bool long_name = strchr("cdehimprs", text[0]) != NULL;

	for (size_t i = 0; i < sizeof rule_names / sizeof rule_names[0]; i++) {
		const struct rule_name *name = &rule_names[i];
		*used = long_name ? strlen(name->word) : 1;
		if (!long_name && name->letter == text[0])
			return name;
		if (!long_name || length < *used || memcmp(text, name->word, *used))
			continue;
		if (length == *used || is_white(text[*used]) || text[*used] == '_' || text[*used] == ',')
			return name;
	}
	return NULL;
}

static const struct rule_modifier *find_modifier(char letter, const struct rule_name *name, uint16_t flags)
{
	for (size_t i = 0; i < sizeof rule_modifiers / sizeof rule_modifiers[0]; i++) {
		const struct rule_modifier *modifier = &rule_modifiers[i];
		if (modifier->letter != letter)
			continue;
		if (!(modifier->actions & 1u << name->action) || (modifier->excludes & flags))
			return NULL;
		return name->side && !modifier->with_sided_name ? NULL : modifier;
	}
	return NULL;
}

/* Where the rule that starts at `text` ends as far as it is known before its prefix is parsed. */
static size_t word_length(const char *text, size_t length)
{
	size_t end = 0;

	while (end < length && !is_white(text[end]))
		end++;
	return end;
}

/* The pattern behind a prefix that ends at `at`. */
static size_t parse_pattern(const struct rule_syntax *syntax, const char *text, size_t length, size_t at, struct parsed *parsed)
{
	size_t end = syntax->words ? at + word_length(text + at, length - at) : length;

	parsed->pattern = text + at;
	parsed->length = end - at;
	return end;
}

static size_t parse_new_style(const struct rule_syntax *syntax, const char *text, size_t length, struct parsed *parsed)
{
	size_t used;
	const struct rule_name *name = find_name(text, length, &used);

	if (!name)
		refuse_rule(syntax, text, length, "Unknown filter rule");
	parsed->action = name->action;
	if (name->action == ACTION_CLEAR) {
		if (used != (syntax->words ? word_length(text, length) : length))
			refuse_rule(syntax, text, length, "'!' rule has trailing characters");
		return used;
	}
	parsed->flags |= name->side;
	size_t at = used + (used < length && text[used] == ',');

	for (; at < length && text[at] != ' ' && text[at] != '_' && !(syntax->words && is_white(text[at])); at++) {
		const struct rule_modifier *modifier = find_modifier(text[at], name, parsed->flags);

		if (!modifier) {
			/* Which modifier and where it stands is part of the text, so it is said only where the text may be
			 * shown. */
			char problem[80] = "invalid modifier in filter rule";

			if (!syntax->origin)
				snprintf(problem, sizeof problem, "invalid modifier '%c' at position %zu in filter rule",
					 text[at], at);
			refuse_rule(syntax, text, length, problem);
		}
		parsed->flags |= modifier->flags;
	}
	size_t end = parse_pattern(syntax, text, length, at < length ? at + 1 : at, parsed);
	bool is_merge = MAY_MERGE & 1u << parsed->action;

	if ((parsed->flags & RULE_CVS) && is_merge) {
		parsed->flags |= RULE_NO_INHERIT | RULE_WORDS | RULE_FIXED_EXCLUDE;
		if (!parsed->length) {
			parsed->pattern = ".cvsignore";
			parsed->length = strlen(parsed->pattern);
		}
	}
	if (!parsed->length && !(parsed->flags & RULE_CVS))
		refuse_rule(syntax, text, length, "unexpected end of filter rule");
	return end;
}

/* --- old style --- */

static size_t parse_old_style(const struct rule_syntax *syntax, const char *text, size_t length, struct parsed *parsed)
{
	size_t at = 0, whole = syntax->words ? word_length(text, length) : length;

	if (whole == 1 && text[0] == '!') {
		parsed->action = ACTION_CLEAR;
		return whole;
	}
	parsed->action = syntax->style == FILTER_OLD_INCLUDE ? ACTION_INCLUDE : ACTION_EXCLUDE;
	if (length >= 2 && (text[0] == '-' || text[0] == '+') && text[1] == ' ') {
		parsed->action = text[0] == '+' ? ACTION_INCLUDE : ACTION_EXCLUDE;
		at = 2;
	}
	size_t end = parse_pattern(syntax, text, length, at, parsed);
	if (!parsed->length)
		refuse_rule(syntax, text, length, "unexpected end of filter rule");
	return end;
}

size_t parse_rule(const struct rule_syntax *syntax, const char *text, size_t length, struct parsed *parsed)
{
	size_t skip = 0, used;

	while (syntax->words && skip < length && is_white(text[skip]))
		skip++;
	if (skip == length)
		return 0;
	text += skip;
	length -= skip;
	*parsed = (struct parsed){ .flags = 0 };
	if (syntax->defaults & RULE_FIXED) {
		used = parse_pattern(syntax, text, length, 0, parsed);
		parsed->action = syntax->defaults & RULE_FIXED_INCLUDE ? ACTION_INCLUDE : ACTION_EXCLUDE;
		if ((syntax->defaults & RULE_CVS) && used == 1 && text[0] == '!')
			parsed->action = ACTION_CLEAR;
	} else if (syntax->style == FILTER_NEW_STYLE) {
		used = parse_new_style(syntax, text, length, parsed);
	} else {
		used = parse_old_style(syntax, text, length, parsed);
	}
	if ((parsed->flags & RULE_SIDES) && (syntax->defaults & RULE_SIDES))
		refuse_rule(syntax, text, length, "specified-side merge file contains specified-side filter");
	parsed->flags |= syntax->defaults & (RULE_ABSOLUTE | RULE_NEGATE | RULE_XATTR | RULE_PERISHABLE | RULE_SIDES);
	return skip + used;
}

/* --- rule files --- */

enum { FILE_BYTES_PER_STEP = 8, OPEN_STEPS = 50 };

struct reader {
	struct filter_list *list;
	struct rule_syntax syntax;
	struct origin origin; /* of the rule read last */
	int fd, line;
	bool words, from0, in_directory;
	bool after_cr;        /* an LF now belongs to the line end before */
	bool at_end;
	bool is_long;         /* the line has more than fits */
	size_t length;        /* of text */
	size_t total;         /* bytes of the file read */
	size_t at, count;     /* of buffer */
	char text[RULE_TEXT_MAX];
	char buffer[8192];
};

int open_rule_file(struct filter_list *list, enum filter_place place, const char *path, const char *full)
{
	struct filter_list *hidden = list->setup.hidden;

	if (place == FILTER_AT_OPERATOR && list->setup.dash_is_stdin && !strcmp(path, "-"))
		return dup(STDIN_FILENO);
	if (full && hidden && hidden->hides_path(hidden, full, false)) {
		errno = ENOENT;
		return FILTER_HIDDEN;
	}
	budget_work(list->setup.budget, OPEN_STEPS);
	if (!list->setup.open_file) {
		errno = ENOENT;
		return -1;
	}
	return list->setup.open_file(list->setup.context, place, path);
}

int open_inner_merge(struct filter_list *list, const struct segment *outer, const char *name)
{
	const char *base = strbuf_text(&list->base);
	size_t base_length = list->base.length;
	struct strbuf full = STRBUF_INIT, path = STRBUF_INIT;

	if (name[0] != '/')
		strbuf_add_clean(&full, strchr(name, '/') ? outer->dir : base);
	strbuf_add_clean(&full, name);
	const char *text = strbuf_text(&full);

	bool below_base =
		(!base_length || (!strncmp(text, base, base_length) && text[base_length] == '/')) && !list->setup.daemon_rules;

	if (below_base)
		strbuf_add_string(&path, text + base_length + (base_length > 0));
	else
		strbuf_addf(&path, "/%s", text);
	int fd = open_rule_file(list, below_base ? FILTER_AT_BASE : FILTER_AT_ROOT, strbuf_text(&path), text);
	int error = errno;

	strbuf_free(&full);
	strbuf_free(&path);
	errno = error;
	return fd;
}

struct reader *reader_new(struct filter_list *list, int fd, struct rule_syntax *syntax, uint16_t flags, bool in_directory)
{
	struct reader *reader = xcalloc(1, sizeof *reader);

	reader->list = list;
	reader->origin = *syntax->origin;
	syntax->origin = &reader->origin;
	reader->syntax = *syntax;
	reader->fd = fd;
	reader->words = flags & RULE_WORDS;
	reader->line = reader->words ? 0 : 1;
	reader->from0 = list->setup.from0 && !reader->words;
	reader->in_directory = in_directory;
	return reader;
}

/* False at the end of the file. */
static bool fill(struct reader *reader)
{
	ssize_t got;

	do
		got = read(reader->fd, reader->buffer, sizeof reader->buffer);
	while (got < 0 && errno == EINTR);
	/* A directory of that name is no file of that name. */
	if (got < 0 && !(reader->in_directory && errno == EISDIR))
		die(EXIT_FILEIO, "failed to read filter file %s: %s (%d)", reader->origin.label, strerror(errno), errno);
	if (got <= 0)
		return false;
	reader->at = 0;
	reader->count = (size_t)got;
	/* A peer that names a huge file must not keep us reading. */
	reader->total += reader->count;
	budget_work(reader->list->setup.budget, reader->count / FILE_BYTES_PER_STEP + 1);
	if (reader->list->from_peer && reader->total > PEER_BYTES_MAX)
		die(EXIT_MALLOC, "filter file is larger than %u bytes", PEER_BYTES_MAX);
	return true;
}

/* The next line or word, which may be empty; false at the end. */
static bool next_text(struct reader *reader)
{
	reader->length = 0;
	reader->is_long = false;
	reader->origin.line = reader->line;
	while (!reader->at_end) {
		if (reader->at == reader->count && !fill(reader)) {
			reader->at_end = true;
			return true;
		}
		char c = reader->buffer[reader->at++];
		bool second_half = reader->after_cr && c == '\n';

		reader->after_cr = c == '\r';
		if (!(reader->words ? is_white(c) : reader->from0 ? !c : c == '\n' || c == '\r')) {
			if (reader->length < sizeof reader->text)
				reader->text[reader->length++] = c;
			else
				reader->is_long = true;
		} else if (!second_half) {
			reader->line += !reader->words;
			return true;
		}
	}
	return false;
}

bool reader_next(struct reader *reader, struct parsed *parsed)
{
	while (next_text(reader)) {
		size_t length = strnlen(reader->text, reader->length);
		bool comment = !reader->words && length && (reader->text[0] == '#' || reader->text[0] == ';');

		if (comment)
			continue;
		if (reader->is_long)
			report_long_rule(&reader->origin, "", 0);
		else if (parse_rule(&reader->syntax, reader->text, length, parsed))
			return true;
	}
	close(reader->fd);
	free(reader);
	return false;
}
