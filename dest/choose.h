/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which directory is written to (main thread). */
#ifndef DEST_CHOOSE_H
#define DEST_CHOOSE_H

#include <stdint.h>

struct dest;

/* Before anything is written: would an attr tree replace its own source, or something that is no attr tree? */
void dest_guard(struct dest *dest);

/* Decide what the destination operand stands for, make it where that is due, and open it (doc/protocol/06-command-line.md
 * section 10.2). `entries`: how many the first lists have. */
void dest_choose_destination(struct dest *dest, const char *given, uint64_t entries);
/* Open this directory as the destination. A run that writes nothing has ".": where it was started, or the module's root. */
void dest_open_top(struct dest *dest, const char *path);

#endif
