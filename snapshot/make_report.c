/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a run that makes an attr snapshot tells: how far it is, what it has done; and how a signal ends it. */
#include "snapshot/make_report.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "attrs/image.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/strbuf.h"
#include "options.h"
#include "ui/number.h"

#define PROGRESS_NANOSECONDS 250000000

/* --- the progress line --- */

/* Everything that is logged goes through here, so that a message does not end up behind the count. */
static void emit(void *maker_void, enum log_kind kind, const char *text, size_t length)
{
	struct maker *maker = maker_void;
	bool is_progress = *text == '\r';

	if (maker->line_open && !is_progress)
		maker->below.emit(maker->below.context, L_CLIENT, "\n", 1);
	maker->line_open = is_progress;
	maker->below.emit(maker->below.context, kind, text, is_progress ? length - 1 : length);
}

static const char *format(const struct maker *maker, char *buf, uint64_t value)
{
	return number_format(buf, 64, (int64_t)value, maker->options->human_readable);
}

static void show_progress(struct maker *maker)
{
	char number[64];

	log_msg(L_CLIENT, "\r%15s files...", format(maker, number, atomic_load(&maker->done)));
}

static bool shows_progress(const struct maker *maker)
{
	return maker->options->levels.info[INFO_PROGRESS] > 0 && !maker->options->quiet && !maker->after_run;
}

/* --- the thread that waits for signals --- */

static void fill_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

/* It ends with the first signal after the run, which make_watch_stop sends. */
static void *watch(void *maker_void)
{
	static const struct timespec interval = { 0, PROGRESS_NANOSECONDS };
	struct maker *maker = maker_void;
	sigset_t set;
	int number;

	fill_set(&set);
	for (;;) {
		number = sigtimedwait(&set, NULL, &interval);
		if (atomic_load(&maker->over))
			return NULL;
		if (number > 0) {
			atomic_store(&maker->stop, true);
			exit_with(EXIT_SIGNAL);
		}
		if (shows_progress(maker))
			show_progress(maker);
	}
}

void make_watch_start(struct maker *maker)
{
	sigset_t set;

	maker->below = log_set_sink((struct log_sink){ emit, maker });
	fill_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	maker->watches = pthread_create(&maker->watch, NULL, watch, maker) == 0;
	if (!maker->watches)
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void make_watch_stop(struct maker *maker)
{
	if (maker->watches) {
		atomic_store(&maker->over, true);
		pthread_kill(maker->watch, SIGHUP);
		pthread_join(maker->watch, NULL);
	}
	if (shows_progress(maker))
		show_progress(maker);
	if (maker->line_open)
		log_msg(L_CLIENT, "%s", "");
	log_set_sink(maker->below);
}

/* --- the end --- */

struct kinds { uint64_t total, files, dirs, links, devices, specials, bytes; };

static void count_kinds(const struct image *image, struct kinds *kinds)
{
	*kinds = (struct kinds){ .total = 1, .dirs = 1 };
	for (size_t i = 0; i < image->dirs.count; i++) {
		const struct entries *entries = &image->dirs.items[i]->entries;

		for (uint32_t j = 0; j < entries->count; j++) {
			const struct entry *entry = &entries->items[j];

			kinds->files += entry_is_regular(entry);
			kinds->bytes += entry_is_regular(entry) ? entry->size : 0;
			kinds->dirs += entry_is_dir(entry);
			kinds->links += entry_is_symlink(entry);
			kinds->devices += entry_is_device(entry);
			kinds->specials += entry_is_special(entry);
		}
		kinds->total += entries->count;
	}
}

static void say_kinds(const struct maker *maker, const struct kinds *kinds)
{
	struct strbuf line = STRBUF_INIT;
	char number[64];
	const struct { const char *name; uint64_t count; } parts[] = {
		{ "reg", kinds->files }, { "dir", kinds->dirs }, { "link", kinds->links }, { "dev", kinds->devices },
		{ "special", kinds->specials },
	};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (parts[i].count)
			strbuf_addf(&line, "%s%s: %s", line.length ? ", " : "", parts[i].name,
				    format(maker, number, parts[i].count));
	log_info("Number of files: %s (%s)", format(maker, number, kinds->total), strbuf_text(&line));
	strbuf_free(&line);
}

static void say_statistics(const struct maker *maker)
{
	uint64_t dirs = maker->image->dirs.count;
	struct kinds kinds;
	char a[64], b[64];

	log_info("%s", "");
	count_kinds(maker->image, &kinds);
	say_kinds(maker, &kinds);
	log_info("Total file size: %s bytes", format(maker, a, kinds.bytes));
	log_info("Directories: %s read, %s taken over", format(maker, a, maker->reread),
		 format(maker, b, dirs > maker->reread ? dirs - maker->reread : 0));
	if (maker->image->digests)
		log_info("Digests: %s computed, %s taken over", format(maker, a, maker->computed_digests),
			 format(maker, b, maker->reused_digests));
	log_info("Threads: %d", maker->scan.threads);
	if (!maker->options->dry_run)
		log_info("Snapshot size: %s bytes", format(maker, a, maker->size));
	log_info("Time: %.3f seconds", (double)(clock_nanoseconds() - maker->began) / 1e9);
}

void make_report(struct maker *maker)
{
	const struct options *options = maker->options;
	char a[64], b[64];

	if (options->quiet)
		return;
	if (options->levels.info[INFO_MISC])
		log_info("%s %s: generation %" PRIu64 ", %s entries, %s directories read%s", options->dry_run ? "would write"
			 : "wrote", options->attr_snapshot, maker->generation, format(maker, a, image_count(maker->image)),
			 format(maker, b, maker->reread), options->dry_run ? " (DRY RUN)" : "");
	if (options->levels.info[INFO_STATS] > 1 && !maker->after_run)
		say_statistics(maker);
}
