/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Wildcards of operands that no shell has expanded: those of a daemon's client, and secluded ones. '*', '?' and brackets match
 * as in filter rules, also names with a leading dot; what matches nothing stays as it is.
 */
#ifndef SERVER_EXPAND_H
#define SERVER_EXPAND_H

#include "attrs/source.h"
#include "filter/filter.h"
#include "wire/args.h"

/* The cost of all operands of one client. */
struct expansion_cost {
	struct budget *budget;  /* NULL: nobody's */
	uint64_t names;         /* that have been held against patterns so far */
};

/*
 * Append what `pattern` matches below the attribute root, without what `hidden` (NULL: nothing) hides; or the pattern.
 * EXIT_PROTOCOL for too many names, on the way (4 million) or in `out`; whoever is not there any more is left, and so is a
 * client over its budget.
 */
void operand_expand(struct attr_source *source, struct filter_list *hidden, const char *pattern, struct expansion_cost *cost,
		    struct args *out);
/* Expand all operands, with the rights and from the working directory of this process; of each the `most` first. */
void operands_expand_own(struct args *operands, size_t most, struct budget *budget);

#endif
