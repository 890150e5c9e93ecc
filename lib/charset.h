/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Conversion between a local charset and the UTF-8 of the wire (--iconv, doc/protocol/02-file-list.md section 9); and
 * internationalised host names, from what users write to what the name system knows (doc/protocol/09-since-3.5.0.md
 * section 11.1).
 */
#ifndef LIB_CHARSET_H
#define LIB_CHARSET_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/strbuf.h"

struct charset;
/* `local`: a name iconv(3) knows; "." is the locale's, "" too. NULL if the system cannot convert it. */
struct charset *charset_new(const char *local);
void charset_free(struct charset *charset);

/* Append the converted bytes; false with errno (nothing appended) if they cannot be converted or `out` would exceed `limit`
 * bytes. */
bool charset_convert(struct charset *charset, bool to_wire, const char *text, size_t length, size_t limit, struct strbuf *out);
#define charset_to_wire(charset, ...) charset_convert((charset), true, __VA_ARGS__)
#define charset_from_wire(charset, ...) charset_convert((charset), false, __VA_ARGS__)

/* Has this build the library for it? */
bool idn_is_there(void);

/*
 * The name with each label that is not ASCII as its A-label, malloc'ed. NULL: the whole name stays as it is, because it is
 * ASCII, because one of its labels cannot be converted, or because this build cannot. `is_utf8`: the bytes are UTF-8 whatever
 * the locale; else they are the locale's.
 */
char *idn_to_ascii(const char *name, bool is_utf8);

#endif
