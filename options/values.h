/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grammars of option values: sizes (doc/protocol/06-command-line.md section 1.4) and points in time (1.5). */
#ifndef OPTIONS_VALUES_H
#define OPTIONS_VALUES_H

#include "options/parse.h"

enum size_result { SIZE_OK, SIZE_INVALID, SIZE_TOO_LARGE };
enum size_result size_parse(const char *text, char default_unit, int64_t *value);

struct size_limits {
	char default_unit;
	int64_t min, max; /* max 0: none; a value of 0 is below no minimum, it means "no limit" */
};
/* The size that the occurrence has as its value. False after parse_fail. */
bool parse_size(struct option_parse *parse, const struct size_limits *limits, int64_t *value);

/* In the local time zone. */
enum stop_result { STOP_OK, STOP_INVALID, STOP_PAST };
enum stop_result stop_at_parse(const char *text, time_t now, time_t *when);
bool stop_after_parse(const char *text, time_t now, time_t *when);

#endif
