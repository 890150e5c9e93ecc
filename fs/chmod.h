/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The --chmod language (doc/protocol/06-command-line.md section 11.4). */
#ifndef FS_CHMOD_H
#define FS_CHMOD_H

#include <stdbool.h>
#include <sys/types.h>

struct chmod_rules;
/* Parse and append to *rules (NULL at first); false on a syntax error, *rules unchanged. */
bool chmod_parse(struct chmod_rules **rules, const char *text);
mode_t chmod_apply(const struct chmod_rules *rules, mode_t mode); /* whole st_mode in and out */
void chmod_free(struct chmod_rules *rules);

#endif
