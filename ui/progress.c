/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Progress lines: what is done, how fast, and how long the rest will take. */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "ui/number.h"
#include "ui/progress.h"

#define SAMPLES 5 /* the rate of an unfinished line is that of the last five seconds */

struct sample {
	int64_t ms;
	uint64_t done;
};

struct progress {
	int mode, number_level;
	bool pretends;
	uint64_t total_size, total_entries;
	bool complete;
	struct sample samples[SAMPLES]; /* a ring; `oldest` is overwritten next */
	int newest, oldest;
	struct sample start;            /* of this file (mode 1) or of the run (mode 2) */
	bool shown;                     /* has this file (or run) shown anything yet? */
	uint64_t file_size, finished_bytes;
	uint64_t last_index;
	uint64_t files;
	bool line_open;
	int last_tail;
};

/* Set by a signal, looked at by any thread. */
static atomic_bool is_asked;

static void note_request(int number)
{
	(void)number;
	atomic_store(&is_asked, true);
}

void progress_listen(void)
{
	struct sigaction action = { .sa_handler = note_request, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(SIGVTALRM, &action, NULL);
#ifdef SIGINFO
	sigaction(SIGINFO, &action, NULL);
#endif
}

bool progress_is_asked(void)
{
	return atomic_load(&is_asked);
}

struct progress *progress_new(int mode, int number_level, bool pretends)
{
	struct progress *progress = xcalloc(1, sizeof *progress);

	progress->mode = mode;
	progress->pretends = pretends;
	progress->number_level = number_level;
	progress->start.ms = clock_milliseconds();
	progress->samples[0] = progress->start;
	return progress;
}

void progress_totals(struct progress *progress, uint64_t total_size, uint64_t total_entries, bool complete)
{
	progress->total_size = total_size;
	progress->total_entries = total_entries;
	progress->complete = complete;
}

/* kB/s between two samples; 0 when no time has passed. */
static double rate_between(const struct sample *from, const struct sample *to)
{
	if (to->ms <= from->ms || to->done < from->done)
		return 0.0;
	return (double)(to->done - from->done) * 1000.0 / (double)(to->ms - from->ms) / 1024.0;
}

static void print_line(struct progress *progress, uint64_t done, uint64_t total, double rate, double seconds, const char *tail)
{
	char number[64], rate_text[32], time_text[32] = "  ??:??:??";
	int percent = done == total ? 100 : total > 0 ? (int)((double)done * 100.0 / (double)total) : 0;

	if (percent > 99 && done != total)
		percent = 99;
	number_format(number, sizeof number, (int64_t)done, progress->number_level);
	const char *unit = "kB/s";

	if (rate > 1024.0 * 1024.0) {
		rate /= 1024.0 * 1024.0;
		unit = "GB/s";
	} else if (rate > 1024.0) {
		rate /= 1024.0;
		unit = "MB/s";
	}
	snprintf(rate_text, sizeof rate_text, "%7.2f%s", rate, unit);
	if (!(seconds < 0 || seconds > 9999.0 * 3600.0))
		snprintf(time_text, sizeof time_text, "%4u:%02u:%02u", (unsigned)(seconds / 3600), (unsigned)seconds / 60 % 60,
			 (unsigned)seconds % 60);
	printf("\r%15s %3d%% %s %s%s", number, percent, rate_text, time_text, tail);
	progress->line_open = true;
	fflush(stdout);
}

/* What is done since the start. In a line that is written over, what is left of a longer one is wiped out. */
static void print_done(struct progress *progress, uint64_t done, uint64_t total)
{
	struct sample now = { clock_milliseconds(), done };
	uint64_t looked_at = progress->last_index + 1;
	uint64_t rest = progress->total_entries > looked_at ? progress->total_entries - looked_at : 0;
	char tail[96];
	int length = snprintf(tail, sizeof tail, " (xfr#%" PRIu64 ", %s-chk=%" PRIu64 "/%" PRIu64 ")", progress->files,
			      progress->complete ? "to" : "ir", rest, progress->total_entries);

	if (progress->mode >= 2 && length < progress->last_tail)
		snprintf(tail + length, sizeof tail - (size_t)length, "%*s", progress->last_tail - length, "");
	progress->last_tail = length;
	print_line(progress, done, total, rate_between(&progress->start, &now), (double)(now.ms - progress->start.ms) / 1000.0,
		   tail);
}

void progress_file_start(struct progress *progress, uint64_t size)
{
	progress->file_size = size;
	if (progress->mode != 1)
		return;
	progress->start = (struct sample){ clock_milliseconds(), 0 };
	progress->samples[0] = progress->start;
	progress->newest = progress->oldest = 0;
	progress->shown = false;
}

void progress_update(struct progress *progress, uint64_t done)
{
	bool whole_run = progress->mode >= 2;
	struct sample now = { clock_milliseconds(), done + (whole_run ? progress->finished_bytes : 0) };
	uint64_t total = whole_run ? progress->total_size : progress->file_size;
	double rate, left;

	if (!progress->mode || progress->pretends)
		return;
	if (progress->shown && now.ms - progress->samples[progress->newest].ms < 1000)
		return;
	rate = rate_between(&progress->samples[progress->oldest], &now);
	if (progress->shown) {
		progress->newest = (progress->newest + 1) % SAMPLES;
		if (progress->newest == progress->oldest)
			progress->oldest = (progress->oldest + 1) % SAMPLES;
		progress->samples[progress->newest] = now;
	}
	progress->shown = true;
	pid_t foreground = isatty(STDOUT_FILENO) ? tcgetpgrp(STDOUT_FILENO) : -1;

	if (!(foreground < 0 || foreground == getpgrp()))
		return;
	if (rate > 0)
		left = total > now.done ? (double)(total - now.done) / rate / 1024.0 : 0;
	else
		left = now.done == total || now.ms == progress->start.ms ? 0 : -1;
	print_line(progress, now.done, total, rate, left, "  ");
}

void progress_file_end(struct progress *progress, uint64_t size, uint64_t index)
{
	bool is_of_file = progress->mode == 1;

	progress->files++;
	progress->last_index = index;
	progress->finished_bytes += size;
	if (progress->pretends || (!progress->mode && !atomic_load(&is_asked)))
		return;
	atomic_store(&is_asked, false);
	print_done(progress, is_of_file ? size : progress->finished_bytes, is_of_file ? size : progress->total_size);
	if (progress->mode < 2)
		progress_break_line(progress);
}

void progress_catch_up(struct progress *progress, uint64_t files, uint64_t bytes)
{
	progress->files = files;
	progress->finished_bytes = bytes;
}

void progress_section_end(struct progress *progress, uint64_t index)
{
	if (progress->mode < 2)
		return;
	if (index > progress->last_index)
		progress->last_index = index;
	print_done(progress, progress->finished_bytes, progress->total_size);
}

void progress_break_line(struct progress *progress)
{
	if (!progress->line_open)
		return;
	progress->line_open = false;
	putchar('\n');
	fflush(stdout);
}
