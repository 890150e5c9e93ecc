/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lexical grammar of rsyncd.conf: sections, parameters, directives, continuation lines. */
#include "loadparm/grammar.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define END_OF_TEXT (-1)

void grammar_start(struct grammar *grammar, const char *text, size_t length)
{
	*grammar = (struct grammar){
		.text = text, .length = length, .next_line = 1, .name = STRBUF_INIT, .value = STRBUF_INIT,
	};
}

void grammar_free(struct grammar *grammar)
{
	strbuf_free(&grammar->name);
	strbuf_free(&grammar->value);
}

/* White space that can stand inside a line: LF is not among it. */
static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static int peek(const struct grammar *grammar)
{
	return grammar->at < grammar->length ? (unsigned char)grammar->text[grammar->at] : END_OF_TEXT;
}

static int take(struct grammar *grammar)
{
	int c = peek(grammar);

	if (c != END_OF_TEXT)
		grammar->at++;
	if (c == '\n')
		grammar->next_line++;
	return c;
}

static void skip_blanks(struct grammar *grammar)
{
	while (is_blank(peek(grammar)))
		take(grammar);
}

static void skip_line(struct grammar *grammar)
{
	int c;

	do
		c = take(grammar);
	while (c != '\n' && c != END_OF_TEXT);
}

static void trim_end(struct strbuf *text)
{
	while (text->length && is_blank((unsigned char)text->data[text->length - 1]))
		strbuf_truncate(text, text->length - 1);
}

/* The line that ends here goes on if its last visible byte is a backslash; that byte and what follows it are dropped. */
static bool drop_continuation(struct strbuf *text)
{
	size_t length = text->length;

	while (length && is_blank((unsigned char)text->data[length - 1]))
		length--;
	if (!length || text->data[length - 1] != '\\')
		return false;
	strbuf_truncate(text, length - 1);
	return true;
}

/* Collect a name up to `stop`, runs of white space as one space. Returns the byte that ended it: stop, LF or the end. */
static int collect_name(struct grammar *grammar, int stop)
{
	struct strbuf *name = &grammar->name;

	strbuf_reset(name);
	for (;;) {
		int c = take(grammar);

		if (c == stop || c == END_OF_TEXT || (c == '\n' && !drop_continuation(name))) {
			trim_end(name);
			return c;
		}
		if (c == '\n')
			continue;
		if (!is_blank(c))
			strbuf_add_char(name, (char)c);
		else if (name->length && name->data[name->length - 1] != ' ')
			strbuf_add_char(name, ' ');
	}
}

/* The rest of the logical line, verbatim but for CRs and white space at both ends. */
static void collect_value(struct grammar *grammar)
{
	struct strbuf *value = &grammar->value;
	int c;

	strbuf_reset(value);
	skip_blanks(grammar);
	while ((c = take(grammar)) != END_OF_TEXT) {
		if (c == '\n' && !drop_continuation(value))
			break;
		if (c != '\n' && c != '\r')
			strbuf_add_char(value, (char)c);
	}
	trim_end(value);
}

static enum grammar_event ignored(struct grammar *grammar, const char *message)
{
	grammar->message = message;
	return GRAMMAR_IGNORED;
}

static enum grammar_event broken(struct grammar *grammar, const char *message)
{
	grammar->message = message;
	grammar->at = grammar->length;
	return GRAMMAR_BROKEN;
}

static enum grammar_event read_section(struct grammar *grammar)
{
	take(grammar);
	if (collect_name(grammar, ']') != ']')
		return broken(grammar, "badly formed section header: no \"]\"");
	if (!grammar->name.length)
		return broken(grammar, "empty section name");
	if (memchr(grammar->name.data, '/', grammar->name.length))
		return broken(grammar, "a section name must not contain \"/\"");
	skip_line(grammar);
	return GRAMMAR_SECTION;
}

static enum grammar_event read_directive(struct grammar *grammar)
{
	int c;

	take(grammar);
	strbuf_reset(&grammar->name);
	while ((c = peek(grammar)) != END_OF_TEXT && c != '\n' && c != '=' && !is_blank(c))
		strbuf_add_char(&grammar->name, (char)take(grammar));
	skip_blanks(grammar);
	if (peek(grammar) == '=')
		take(grammar);
	collect_value(grammar);
	if (!grammar->value.length)
		return ignored(grammar, "badly formed directive: no path");
	return GRAMMAR_DIRECTIVE;
}

static enum grammar_event read_parameter(struct grammar *grammar)
{
	if (collect_name(grammar, '=') != '=')
		return ignored(grammar, "badly formed line: no \"=\"");
	if (!grammar->name.length)
		return broken(grammar, "a parameter without a name");
	collect_value(grammar);
	return GRAMMAR_PARAMETER;
}

enum grammar_event grammar_next(struct grammar *grammar)
{
	/* A NUL would end the file or a value early without a word: part of a configuration must not get lost silently. */
	if (grammar->at == 0 && grammar->length && memchr(grammar->text, 0, grammar->length)) {
		grammar->line = 0;
		return broken(grammar, "the file contains a NUL byte");
	}
	for (;;) {
		skip_blanks(grammar);
		grammar->line = grammar->next_line;
		switch (peek(grammar)) {
		case END_OF_TEXT:
			return GRAMMAR_END;
		case '\n':
		case '\\':
			take(grammar);
			continue;
		case '#':
		case ';':
			skip_line(grammar);
			continue;
		case '[':
			return read_section(grammar);
		case '&':
			return read_directive(grammar);
		default:
			return read_parameter(grammar);
		}
	}
}

int grammar_same_name(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (isspace((unsigned char)*a))
			a++;
		while (isspace((unsigned char)*b))
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return 0;
		if (!*a)
			return 1;
	}
}
