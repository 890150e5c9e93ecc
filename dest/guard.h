/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Refusals of attr trees (main thread). */
#ifndef DEST_GUARD_H
#define DEST_GUARD_H

struct dest;

/* Before anything is written: would an attr tree replace its own source, or something that is no attr tree? */
void dest_guard(struct dest *dest);
/* The same before a directory is made in `parent`. */
void dest_guard_new(struct dest *dest, const char *parent);

#endif
