/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Progress lines: per file (--progress) and whole run (--info=progress2), protocol/06 8.6. */
#ifndef UI_PROGRESS_H
#define UI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress;
/* mode: INFO_PROGRESS level, 1 per file, 2 whole run. */
struct progress *progress_new(int mode, int number_level);
void progress_free(struct progress *progress);
/* Totals known so far; complete: the whole list is known (to-chk instead of ir-chk). */
void progress_totals(struct progress *progress, uint64_t total_size, uint64_t total_entries, bool complete);
void progress_file_start(struct progress *progress, uint64_t size);
void progress_update(struct progress *progress, uint64_t done);
/* index: position of the file in the list. */
void progress_file_end(struct progress *progress, uint64_t size, uint64_t index);
void progress_end(struct progress *progress);

#endif
