/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * `refuse options`: which options a module's clients may not use, in whatever spelling (doc/protocol/07-daemon.md
 * section 5.19).
 */
#ifndef OPTIONS_REFUSE_H
#define OPTIONS_REFUSE_H

#include "options/parse.h"

/* Of the parameter's text; what matches no option is logged. Without a charset, --iconv is refused as well. */
struct refused_options *refused_options_new(const char *refuse_parameter, bool has_charset);
void refused_options_free(struct refused_options *refused);

/* At each option, and what a refusal implies at the end. False after parse_fail. */
bool refuse_option(struct option_parse *parse, const struct option_spec *spec);
bool refuse_implied(struct option_parse *parse, const struct options *options);

#endif
