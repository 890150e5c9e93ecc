/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The options of the attr snapshot: their setters, and which of them make sense together. */
#ifndef OPTIONS_ATTR_H
#define OPTIONS_ATTR_H

#include "options/parse.h"

option_setter set_attr_file, set_attr_digests, set_attr_mode;

/* Does the line ask for something other than a listing? */
bool attr_options_list_nothing(const struct options *options);
/* The checks that need the whole line, of one that has such options. False after parse_fail. */
bool attr_options_check(struct option_parse *parse, struct options *options);

#endif
