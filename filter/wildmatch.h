/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The wildcard matcher (doc/protocol/04-filters.md section 4.8); time at most pattern length times text length (S-061). */
#ifndef FILTER_WILDMATCH_H
#define FILTER_WILDMATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/budget.h"

bool wildmatch(const char *pattern, const char *text);
/* The same as work for a peer. */
bool wildmatch_for(struct budget *budget, const char *pattern, const char *text);
/* floating: the pattern may also match from the start of any later component on. The bytes of the pattern that have been
 * looked at are added to *steps. */
bool wild_match(const char *pattern, size_t pattern_length, const char *text, size_t text_length, bool floating,
		uint64_t *steps);
/* Does the text contain "*", "?" or "["? */
bool has_wildcards(const char *pattern);

#endif
