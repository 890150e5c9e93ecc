/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lexical grammar of rsyncd.conf: sections, parameters, directives, continuation lines; values of parameters. */
#include "loadparm/grammar.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "lib/alloc.h"
#include "lib/exit.h"

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

enum grammar_event grammar_next(struct grammar *grammar)
{
	int c;

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
			take(grammar);
			if (collect_name(grammar, ']') != ']')
				return broken(grammar, "badly formed section header: no \"]\"");
			if (!grammar->name.length)
				return broken(grammar, "empty section name");
			if (memchr(grammar->name.data, '/', grammar->name.length))
				return broken(grammar, "a section name must not contain \"/\"");
			skip_line(grammar);
			return GRAMMAR_SECTION;
		case '&':
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
		default:
			if (collect_name(grammar, '=') != '=')
				return ignored(grammar, "badly formed line: no \"=\"");
			if (!grammar->name.length)
				return broken(grammar, "a parameter without a name");
			collect_value(grammar);
			return GRAMMAR_PARAMETER;
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

#define GROWTH_MAX 2048

bool config_parse_bool(const char *text, bool *value)
{
	bool yes = grammar_same_name(text, "yes") || grammar_same_name(text, "true") || grammar_same_name(text, "1");
	bool no = grammar_same_name(text, "no") || grammar_same_name(text, "false") || grammar_same_name(text, "0");

	if (yes || no)
		*value = yes;
	return yes || no;
}

bool config_parse_tristate(const char *text, enum tristate *value)
{
	bool flag;

	if (grammar_same_name(text, "unset") || grammar_same_name(text, "-1")) {
		*value = UNSET;
		return true;
	}
	if (!config_parse_bool(text, &flag))
		return false;
	*value = flag ? YES : NO;
	return true;
}

bool config_parse_integer(const char *text, int low, int high, int *value)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (end == text || *end || errno || number < low || number > high)
		return false;
	*value = (int)number;
	return true;
}

static const struct {
	const char *name;
	int value;
} facilities[] = {
	{ "auth", LOG_AUTH }, { "authpriv", LOG_AUTHPRIV }, { "cron", LOG_CRON }, { "daemon", LOG_DAEMON },
	{ "ftp", LOG_FTP }, { "kern", LOG_KERN }, { "lpr", LOG_LPR }, { "mail", LOG_MAIL }, { "news", LOG_NEWS },
	{ "security", LOG_AUTH }, { "syslog", LOG_SYSLOG }, { "user", LOG_USER }, { "uucp", LOG_UUCP },
	{ "local0", LOG_LOCAL0 }, { "local1", LOG_LOCAL1 }, { "local2", LOG_LOCAL2 }, { "local3", LOG_LOCAL3 },
	{ "local4", LOG_LOCAL4 }, { "local5", LOG_LOCAL5 }, { "local6", LOG_LOCAL6 }, { "local7", LOG_LOCAL7 },
};

bool config_parse_facility(const char *text, int *value)
{
	for (size_t i = 0; i < sizeof facilities / sizeof facilities[0]; i++)
		if (grammar_same_name(text, facilities[i].name)) {
			*value = facilities[i].value;
			return true;
		}
	return config_parse_integer(text, 1, INT_MAX, value);
}

/* --- references and lists --- */

/* The value of the reference that starts at `at`, *length with both percent signs; NULL: there is none, or it has no value. */
static const char *look_up(const char *at, size_t *length)
{
	const char *end = at[0] == '%' && isupper((unsigned char)at[1]) ? strchr(at + 1, '%') : NULL;
	char *name = end ? xstrndup(at + 1, (size_t)(end - at) - 1) : NULL;
	const char *value = name ? getenv(name) : NULL;

	if (end)
		*length = (size_t)(end - at) + 1;
	free(name);
	return value;
}

bool config_expand(const char *value, struct strbuf *out)
{
	size_t growth = 0, length;

	while (*value) {
		const char *text = look_up(value, &length);

		if (text) {
			if (strlen(text) > length)
				growth += strlen(text) - length;
			if (growth > GROWTH_MAX)
				return false;
			strbuf_add_string(out, text);
			value += length;
		} else {
			strbuf_add_char(out, *value++);
		}
	}
	return true;
}

char *config_text(const char *value)
{
	struct strbuf text = STRBUF_INIT;

	if (!config_expand(value, &text))
		die(EXIT_MALLOC, "a value of the configuration grows too long: %s", value);
	return strbuf_detach(&text);
}

void config_list_start(struct config_list *list, char *text)
{
	text += strspn(text, " \t\r\n");
	*list = (struct config_list){ text, *text == ',' ? "," : " \t\r\n," };
}

char *config_list_next(struct config_list *list)
{
	char *item, *end;

	while ((item = strsep(&list->rest, list->separators))) {
		item += strspn(item, " \t\r\n");
		for (end = item + strlen(item); end > item && isspace((unsigned char)end[-1]);)
			*--end = 0;
		if (*item)
			return item;
	}
	return NULL;
}

/* No byte that could end a word, open a quote or start anything in a shell. */
static bool is_harmless(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || *text == 0x7f || strchr("'\"`$\\;&|<>()*?[]#!~{}", *text))
			return false;
	return true;
}

bool config_expand_command(const char *command, struct strbuf *out, char **bad)
{
	char quote = 0;
	size_t length;

	while (*command) {
		const char *value = look_up(command, &length);
		bool ours = !strncmp(command, "%RSYNC_", 7);

		if (value && ours && !is_harmless(value)) {
			*bad = xstrndup(command, length);
			return false;
		}
		if (value && ours) {
			if (quote != '\'')
				strbuf_add_char(out, '\'');
			strbuf_add_string(out, value);
			if (quote != '\'')
				strbuf_add_char(out, '\'');
		} else if (value) {
			strbuf_add_string(out, value);
		} else {
			length = *command == '\\' && quote != '\'' && command[1] ? 2 : 1;
			if (length == 1 && !quote && (*command == '\'' || *command == '"'))
				quote = *command;
			else if (length == 1 && *command == quote)
				quote = 0;
			strbuf_add(out, command, length);
		}
		command += length;
	}
	return true;
}
