/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Internationalised host names: from what people write to what the name system knows (doc/protocol/09-since-3.5.0.md
 * section 11.1).
 */
#ifndef LIB_IDN_H
#define LIB_IDN_H

#include <stdbool.h>

/* Has this build the library for it? */
bool idn_is_there(void);

/*
 * The name with each label that is not ASCII as its A-label, malloc'ed. NULL: the whole name stays as it is, because it is
 * ASCII, because one of its labels cannot be converted, or because this build cannot. `is_utf8`: the bytes are UTF-8 whatever
 * the locale; else they are the locale's.
 */
char *idn_to_ascii(const char *name, bool is_utf8);

#endif
