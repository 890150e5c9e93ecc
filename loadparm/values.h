/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The values of parameters: switches, numbers, lists, and %VAR% references in text and in shell commands. */
#ifndef LOADPARM_VALUES_H
#define LOADPARM_VALUES_H

#include <stdbool.h>

#include "lib/strbuf.h"

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
