/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Progress lines on stdout: per file (--progress) and whole run (--info=progress2), doc/protocol/06-command-line.md
 * section 8.6. One thread only.
 *
 *   for each file:  progress_totals(...); progress_file_start(...); progress_update(...)*; progress_file_end(...)
 *
 * Mode 0 is silent until SIGVTALRM (where there is one: SIGINFO) asks for one line, which the end of the next file prints.
 *
 * A log sink that shares stdout calls progress_break_line() before it prints anything.
 */
#ifndef UI_PROGRESS_H
#define UI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress;
/* mode: INFO_PROGRESS level, 0 on request, 1 per file, 2 whole run. pretends: of files that are not transferred, only the whole
 * is shown, where that is wanted. free() ends it. */
struct progress *progress_new(int mode, int number_level, bool pretends);

/* Take note of the signals from now on. */
void progress_listen(void);
/* Has one come that no line has answered yet? Any thread. */
bool progress_is_asked(void);
/* Who has not reported every file says before the end of one what the files before that come to. */
void progress_catch_up(struct progress *progress, uint64_t files, uint64_t bytes);

/* Totals known so far; complete: the whole list is known (to-chk instead of ir-chk). */
void progress_totals(struct progress *progress, uint64_t total_size, uint64_t total_entries, bool complete);
void progress_file_start(struct progress *progress, uint64_t size);
/* done: bytes of this file so far. Shown for the first call of a file, then once a second. */
void progress_update(struct progress *progress, uint64_t done);
/* index: position of the file in the list, from 0. */
void progress_file_end(struct progress *progress, uint64_t size, uint64_t index);
/* Whole run: every entry up to and including `index` has been looked at; shows the last line again with the new count. */
void progress_section_end(struct progress *progress, uint64_t index);
/* End an unfinished line with a newline, if there is one. */
void progress_break_line(struct progress *progress);

#endif
