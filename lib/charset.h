/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Conversion between a local charset and the UTF-8 of the wire (--iconv, doc/protocol/02-file-list.md section 9). */
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
bool charset_to_wire(struct charset *charset, const char *text, size_t length, size_t limit, struct strbuf *out);
bool charset_from_wire(struct charset *charset, const char *text, size_t length, size_t limit, struct strbuf *out);

#endif
