/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parsing of command lines written as one string, for the tests of options.h. */
#ifndef OPTIONS_SUPPORT_H
#define OPTIONS_SUPPORT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/strbuf.h"
#include "options.h"
#include "testsuite/unit/unit.h"

struct parsed {
	struct options options;
	enum options_result result;
	char *error; /* NULL: none */
	int code;
};

/* Words are separated by single blanks; "" between two blanks is an empty word, and '_' in a word stands for a blank. */
static char **split_line(const char *line, int *argc)
{
	char **argv = xcalloc(strlen(line) + 3, sizeof *argv);

	*argc = 0;
	argv[(*argc)++] = xstrdup("rsync");
	while (*line) {
		size_t length = strcspn(line, " ");
		char *word = xstrndup(line, length);

		for (char *p = word; *p; p++)
			if (*p == '_')
				*p = ' ';
		argv[(*argc)++] = word;
		line += length;
		line += *line == ' ';
	}
	return argv;
}

static void free_words(char **argv, int argc)
{
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	free(argv);
}

static inline void parse_line_refused(struct parsed *parsed, const char *line, const struct refused_options *refused)
{
	int argc;
	char **argv = split_line(line, &argc);

	parsed->result = options_parse(&parsed->options, argc, argv, refused, &parsed->error, &parsed->code);
	free_words(argv, argc);
}

static inline void parse_line(struct parsed *parsed, const char *line)
{
	parse_line_refused(parsed, line, NULL);
}

/* The secluded block of the same session. */
static inline void parse_block(struct parsed *parsed, const char *line)
{
	int argc;
	char **argv = split_line(line, &argc);

	parsed->result = options_parse_secluded(&parsed->options, argc, argv, NULL, &parsed->error, &parsed->code);
	free_words(argv, argc);
}

static inline void parsed_free(struct parsed *parsed)
{
	free(parsed->error);
	options_free(&parsed->options);
}

static inline void assert_parses(struct parsed *parsed, const char *line)
{
	parse_line(parsed, line);
	if (parsed->result != OPTIONS_OK)
		fail_msg("%s: result %d, %s", line, parsed->result, parsed->error ? parsed->error : "no error");
}

static inline void assert_fails(const char *line, int code, const char *error)
{
	struct parsed parsed;

	parse_line(&parsed, line);
	if (parsed.result != OPTIONS_ERROR || parsed.code != code || strcmp(parsed.error, error) != 0)
		fail_msg("%s: result %d, code %d, \"%s\" instead of \"%s\"", line, parsed.result, parsed.code,
			 parsed.error ? parsed.error : "", error);
	parsed_free(&parsed);
}

#endif
