/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts of --help and --version (doc/protocol/06-command-line.md section 8.12). */
#ifndef OPTIONS_HELP_H
#define OPTIONS_HELP_H

#include "lib/strbuf.h"

void options_add_help(struct strbuf *out);
void options_add_daemon_help(struct strbuf *out);
void options_add_version(struct strbuf *out);
void options_add_version_json(struct strbuf *out);

#endif
