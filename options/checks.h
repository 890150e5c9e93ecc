/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The checks that need the whole command line: conflicts, implied settings, defaults (doc/protocol/06-command-line.md
 * section 3).
 */
#ifndef OPTIONS_CHECKS_H
#define OPTIONS_CHECKS_H

#include "options/parse.h"

/* Bring the options to their final state. False after parse_fail. */
bool options_finish(struct option_parse *parse, struct options *options);

#endif
