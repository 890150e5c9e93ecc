/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One line of --list-only (doc/protocol/06-command-line.md section 8.9). */
#ifndef UI_LISTING_H
#define UI_LISTING_H

#include <stdbool.h>

#include "attrs/entry.h"
#include "lib/strbuf.h"

/* mode: of the entry, perhaps after --chmod; path: transfer name. Appends without newline. */
void listing_line(struct strbuf *out, const struct entries *list, const struct entry *entry, uint32_t mode, const char *path,
		  int number_level, bool with_atime, bool with_target);

/* "2024/02/29 23:59:59" in local time. */
void listing_time(struct strbuf *out, int64_t seconds);

/* "rwxr-sr-t": the nine permission letters of a mode, as listings and %B show them. 10 bytes with the NUL. */
void permission_letters(uint32_t mode, char out[10]);

#endif
