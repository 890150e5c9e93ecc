/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The final statistics of a client (doc/protocol/06-command-line.md section 8.4). */
#ifndef UI_STATS_H
#define UI_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/session.h"

struct kind_counts { uint64_t total, dirs, links, devices, specials; }; /* regular = total minus the others */

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
