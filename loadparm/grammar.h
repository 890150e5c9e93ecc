/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lexical grammar of rsyncd.conf (doc/protocol/07-daemon.md sections 2.1 to 2.6): bytes in, one event a logical line out.
 * It touches no file and knows no parameter. The values of parameters: switches, numbers, lists, and %VAR% references in text
 * and in shell commands.
 */
#ifndef LOADPARM_GRAMMAR_H
#define LOADPARM_GRAMMAR_H

#include <stdbool.h>

#include "lib/strbuf.h"

enum grammar_event {
	GRAMMAR_END,
	GRAMMAR_SECTION,   /* name */
	GRAMMAR_PARAMETER, /* name, value */
	GRAMMAR_DIRECTIVE, /* name: the word after "&"; value: the path */
	GRAMMAR_IGNORED,   /* a badly formed line without effect: message */
	GRAMMAR_BROKEN,    /* nothing after this can be trusted: message; the reader is at its end */
};

struct grammar {
	const char *text;
	size_t length, at;
	int next_line;     /* of text[at], from 1 */
	/* of the last event */
	int line;
	struct strbuf name, value;
	const char *message;
};

/* `text` must outlive the reader. */
void grammar_start(struct grammar *grammar, const char *text, size_t length);
enum grammar_event grammar_next(struct grammar *grammar);
void grammar_free(struct grammar *grammar);

/* Equal but for case and white space (section 2.7)? */
int grammar_same_name(const char *a, const char *b);

enum tristate { UNSET = -1, NO = 0, YES = 1 };

/* False, and *value as it was, for text that is none. */
bool config_parse_bool(const char *text, bool *value);
bool config_parse_tristate(const char *text, enum tristate *value);
bool config_parse_integer(const char *text, int low, int high, int *value);
bool config_parse_facility(const char *text, int *value); /* of syslog, by name or number */

/*
 * Append `value` to `out` with %VAR% references replaced from the environment (doc/protocol/07-daemon.md section 2.10); an
 * unset variable stays as text. false if the references add more than 2048 bytes.
 */
bool config_expand(const char *value, struct strbuf *out);
/* The expanded value, malloc'ed; one that grows too long ends the process with EXIT_MALLOC. */
char *config_text(const char *value);

/*
 * A list of names: separated by blanks and commas; one that starts with a comma is split at commas only, so that names may
 * hold blanks (S-100). `text` is cut into pieces. NULL: no more.
 */
struct config_list {
	char *rest;
	const char *separators;
};
void config_list_start(struct config_list *list, char *text);
char *config_list_next(struct config_list *list);

/*
 * config_expand for a shell command: RSYNC_* values are quoted for the place where they stand. false with *bad (malloc'ed)
 * naming the variable if its value holds a byte that a shell could act on.
 */
bool config_expand_command(const char *command, struct strbuf *out, char **bad);

#endif
