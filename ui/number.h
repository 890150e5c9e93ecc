/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Number styles of the output (doc/protocol/06-command-line.md section 8.5). */
#ifndef UI_NUMBER_H
#define UI_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* level: 0 plain, 1 grouped, 2 K/M of 1000, 3 of 1024. buf at least 64 bytes; returns buf. */
const char *number_format(char *buf, size_t size, int64_t value, int level);
const char *number_format_fraction(char *buf, size_t size, double value, int level);

#endif
