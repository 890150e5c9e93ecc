/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts of --help and --version (protocol/06 section 8.12). */
#ifndef OPTIONS_HELP_H
#define OPTIONS_HELP_H

#include "lib/strbuf.h"

/* `word` after `indent` blanks at a line's start, else after one; *column (0 before the first word) is kept up to date. */
void help_add_word(struct strbuf *out, const char *word, int indent, size_t *column);
void options_add_help(struct strbuf *out);
void options_add_daemon_help(struct strbuf *out);
void options_add_version(struct strbuf *out);
void options_add_version_json(struct strbuf *out);

#endif
