/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Numbers (doc/protocol/06-command-line.md section 8.5), and the lines that are made of them: those of listings (8.9) and of
 * statistics (8.4).
 */
#ifndef UI_NUMBER_H
#define UI_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attrs/entry.h"
#include "lib/strbuf.h"
#include "wire/session.h"

/* level: 0 plain, 1 grouped, 2 K/M of 1000, 3 of 1024. buf at least 64 bytes; returns buf. */
const char *number_format(char *buf, size_t size, int64_t value, int level);

/* mode: of the entry, perhaps after --chmod; path: transfer name. Appends without newline. */
void listing_line(struct strbuf *out, const struct entries *list, const struct entry *entry, uint32_t mode, const char *path,
		  int number_level, bool with_atime, bool with_target);

/* "2024/02/29 23:59:59" in local time. */
void listing_time(struct strbuf *out, int64_t seconds);

/* "rwxr-sr-t": the nine permission letters of a mode, as listings and %B show them. 10 bytes with the NUL. */
void permission_letters(uint32_t mode, char out[10]);

struct kind_counts { uint64_t total, dirs, links, devices, specials; }; /* regular = total minus the others */
/* One more, with the kind that its mode says. */
void kind_count(struct kind_counts *counts, mode_t mode);

struct run_stats {
	struct kind_counts files, created, deleted;
	uint64_t transferred_files;
	uint64_t total_size, transferred_size, literal, matched;
	/* Blocks of 4 KiB that the receiving side has written to (doc/protocol/09-since-3.5.0.md section 3.1) */
	uint64_t blocks;
	uint64_t list_size;
	int64_t list_build_ms, list_transfer_ms;
	uint64_t sent, received;
	int64_t elapsed_seconds; /* whole seconds */
	struct session_caps caps; /* what the protocol does not count is not printed */
};
/* Print the block of --stats (full) and the two trailer lines, as L_INFO. kind_of_run: the end of the last one, or "". */
void stats_print(const struct run_stats *stats, int number_level, bool full, bool trailer, const char *kind_of_run);

#endif
