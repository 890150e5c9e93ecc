/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Values of parameters. */
#include "loadparm/values.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "loadparm/grammar.h"

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

/* Length of the reference that starts at `at` (with both percent signs), 0 if there is none. */
static size_t reference_length(const char *at)
{
	const char *end;

	if (at[0] != '%' || !isupper((unsigned char)at[1]))
		return 0;
	end = strchr(at + 1, '%');
	return end ? (size_t)(end - at) + 1 : 0;
}

static const char *lookup(const char *at, size_t length)
{
	char *name = xstrndup(at + 1, length - 2);
	const char *value = getenv(name);

	free(name);
	return value;
}

bool config_expand(const char *value, struct strbuf *out)
{
	size_t growth = 0;

	while (*value) {
		size_t length = reference_length(value);
		const char *text = length ? lookup(value, length) : NULL;

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

static void add_quoted(struct strbuf *out, const char *value, char quote)
{
	if (quote != '\'')
		strbuf_add_char(out, '\'');
	strbuf_add_string(out, value);
	if (quote != '\'')
		strbuf_add_char(out, '\'');
}

static char quote_after(char quote, char c)
{
	if (!quote && (c == '\'' || c == '"'))
		return c;
	return c == quote ? 0 : quote;
}

bool config_expand_command(const char *command, struct strbuf *out, char **bad)
{
	char quote = 0;

	while (*command) {
		size_t length = reference_length(command);
		const char *value = length ? lookup(command, length) : NULL;
		bool ours = !strncmp(command, "%RSYNC_", 7);

		if (value && ours && !is_harmless(value)) {
			*bad = xstrndup(command, length);
			return false;
		}
		if (value && ours) {
			add_quoted(out, value, quote);
		} else if (value) {
			strbuf_add_string(out, value);
		} else {
			length = *command == '\\' && quote != '\'' && command[1] ? 2 : 1;
			if (length == 1)
				quote = quote_after(quote, *command);
			strbuf_add(out, command, length);
		}
		command += length;
	}
	return true;
}
