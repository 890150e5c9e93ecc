/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of options. An option is a row, and a function where none of the general ones says what it does. */
#ifndef OPTIONS_TABLE_H
#define OPTIONS_TABLE_H

#include "options/parse.h"

/* The table of a mode (client and server share one); option_is_end is true of its last row only. */
const struct option_spec *option_table(enum parse_mode mode);
/* The row with the letter, or, if that is 0, with the name of so many bytes; NULL: none. */
const struct option_spec *option_find(const struct option_spec *table, const char *name, size_t length, char letter);

#endif
