/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a local run prints: items, deletions, progress.
 *
 * With a protocol between them, the half that looks at the destination is ahead of the half that names the files it sends, so
 * its messages ("deleting x", "y exists") come before the names of the same moment. People and scripts know that order, so
 * lines of items are held back for a moment and messages overtake them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "local_private.h"
#include "ui/itemize.h"
#include "wire/request.h"

#define HELD_MAX 4096
#define HELD_MS 200
#define FIRST_UPDATE 32768 /* bytes that a file has when it is first seen to progress */

struct held {
	char *line;        /* NULL: nothing to print, progress only */
	bool transfer;
	uint64_t size;
	uint64_t position; /* in the list */
	bool announced;    /* line and first progress have been shown already */
};

struct report {
	struct local *local;
	const char *format; /* NULL: items are not named */
	bool format_has_item, format_has_operation;
	struct progress *progress;
	VEC(struct held) held;
	int64_t oldest_ms;
	struct task *live_task;
	uint32_t live_index;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static const char *choose_format(const struct options *options)
{
	if (options->out_format)
		return *options->out_format ? options->out_format : NULL;
	if (options->itemize)
		return "%i %n%L";
	return options->levels.info[INFO_NAME] ? "%n%L" : NULL;
}

bool report_wants_names(const struct local *local)
{
	const struct options *options = local->options;

	return !options->quiet && (choose_format(options) || options->levels.info[INFO_NAME] > 1
				   || options->levels.info[INFO_PROGRESS]);
}

bool report_names_directories(const struct local *local)
{
	const char *format = choose_format(local->options);

	return local->options->levels.info[INFO_NAME] || (format && format_uses(format, 'i'));
}

struct report *report_new(struct local *local)
{
	const struct options *options = local->options;
	struct report *report = xcalloc(1, sizeof *report);
	int mode = options->levels.info[INFO_PROGRESS];

	report->local = local;
	report->format = options->quiet ? NULL : choose_format(options);
	report->format_has_item = report->format && format_uses(report->format, 'i');
	report->format_has_operation = report->format && format_uses(report->format, 'o');
	if (mode && !options->quiet && !options->dry_run)
		report->progress = progress_new(mode, options->human_readable);
	return report;
}

struct progress *report_progress(struct report *report)
{
	return report->progress;
}

void report_free(struct report *report)
{
	report_drain(report);
	if (report->progress) {
		progress_end(report->progress);
		progress_free(report->progress);
	}
	vec_free(&report->held);
	free(report);
}

/* FLIST2: the counter that people would see running, and its end. */
void report_list_count(struct report *report)
{
	const struct options *options = report->local->options;
	uint64_t entries = report->local->loaded_entries;

	if (options->levels.info[INFO_FLIST] < 2 || options->quiet || report->local->session.inc_recurse
	    || (!options->recursive && !options->dirs))
		return;
	for (uint64_t i = 0; i <= entries; i += 100)
		printf(" %llu files...\r", (unsigned long long)i);
	printf("%llu file%s to consider\n", (unsigned long long)entries, entries == 1 ? " " : "s");
}

static void set_totals(struct report *report)
{
	const struct local *local = report->local;
	const struct flist_totals *totals = flist_totals(local->list);

	progress_totals(report->progress, totals->size, local->loaded_entries, flist_is_complete(local->list));
}

static void show_held(struct report *report, struct held *held)
{
	if (held->line && !held->announced)
		log_msg(L_CLIENT, "%s", held->line);
	if (held->transfer && report->progress) {
		set_totals(report);
		if (!held->announced)
			progress_file_start(report->progress, held->size);
		if (!held->announced && held->size)
			progress_update(report->progress, held->size < FIRST_UPDATE ? held->size : FIRST_UPDATE);
		progress_file_end(report->progress, held->size, held->position);
	}
	free(held->line);
}

void report_drain(struct report *report)
{
	for (size_t i = 0; i < report->held.count; i++)
		show_held(report, &report->held.items[i]);
	report->held.count = 0;
}

void report_drain_if_old(struct report *report)
{
	if (report->held.count && now_ms() - report->oldest_ms >= HELD_MS)
		report_drain(report);
}

static void hold(struct report *report, const struct held *held)
{
	if (!report->held.count)
		report->oldest_ms = now_ms();
	vec_push(&report->held, *held);
	if (report->held.count >= HELD_MAX || now_ms() - report->oldest_ms >= HELD_MS)
		report_drain(report);
}

void report_section_end(struct report *report, uint64_t position)
{
	if (!report->progress || report->local->options->levels.info[INFO_PROGRESS] < 2)
		return;
	report_drain(report);
	set_totals(report);
	progress_section_end(report->progress, position);
}

/* --- items --- */

static void fill_values(struct report *report, int32_t node, const struct entry *entry, const struct event *event,
			const char *link, struct strbuf *path, struct strbuf *shown, struct format_values *values)
{
	struct local *local = report->local;
	const struct entries *entries = node < 0 ? NULL : flist_dir(local->list, node)->entries;
	/* An old sender does not repeat what was asked of it, and that is what its receiver has to show. */
	bool untold = local->session.protocol < 29 && event->flags & ITEM_TRANSFER;

	flist_entry_path(local->list, node, entry, path);
	flist_shown_name(local->list, node, entry, shown);
	*values = (struct format_values){
		.look = {
			.flags = untold ? ITEM_TRANSFER : event->flags, .mode = entry->mode, .unknown = untold,
			.times_kept = decide_keeps_time(local->options, entry),
		},
		.name = strbuf_text(path) + (local->shows_receiver ? strspn(strbuf_text(path), "/") : 0),
		.shown = strbuf_text(shown),
		.link = link ? link : entry_is_symlink(entry) && local->options->links ? entry_target(entries, entry) : NULL,
		.link_is_hard = link != NULL,
		.length = entry->size,
		.transferred = event->bytes,
		.mtime = entry->mtime,
		.uid = local->options->owner ? entry->uid : 0,
		.gid = entry->gid,
		.group_not_kept = !local->options->group || (local->pull && !decide_keeps_group(&local->rules, entry)),
		.pid = (int)getpid(),
		.digest = event->digest_length ? event->digest : NULL,
		.digest_length = event->digest_length,
		.operation = local->shows_receiver ? "recv" : "send",
	};
}

static char *format_line(struct report *report, int32_t node, const struct entry *entry, const struct event *event,
			 const char *link)
{
	struct strbuf path = STRBUF_INIT, shown = STRBUF_INIT, line = STRBUF_INIT;
	struct format_values values;

	fill_values(report, node, entry, event, link, &path, &shown, &values);
	format_expand(report->format, &values, &line);
	strbuf_free(&path);
	strbuf_free(&shown);
	return strbuf_detach(&line);
}

/* protocol/03 2.7 and protocol/06 8.7: is the item named? */
static bool is_shown(const struct report *report, const struct entry *entry, const struct event *event, const char *link)
{
	const struct options *options = report->local->options;
	bool significant = decide_is_significant(event->flags);

	if (!report->format)
		return false;
	if (event->flags & ITEM_TRANSFER || link)
		return true;
	if (report->format_has_item)
		return significant || options->itemize > 1 || options->levels.info[INFO_NAME] > 1;
	return significant && (event->flags & ITEM_LOCAL_CHANGE || entry_is_dir(entry));
}

/* -vv without %i: one line by the half that looks, for what is not transferred. */
static void name_unchanged(struct report *report, int32_t node, const struct entry *entry, const struct event *event,
			   const char *link)
{
	const struct options *options = report->local->options;
	struct strbuf path = STRBUF_INIT;

	if (options->quiet || options->levels.info[INFO_NAME] < 2 || options->itemize || options->out_format)
		return;
	bool is_link = event->flags & ITEM_XNAME_FOLLOWS;

	if (link || entry_is_dir(entry) || event->flags & ITEM_TRANSFER || (event->flags & ITEM_LOCAL_CHANGE && !is_link))
		return;
	flist_entry_path(report->local->list, node, entry, &path);
	log_info("%s%s", strbuf_text(&path), event->touched ? "" : " is uptodate");
	strbuf_free(&path);
}

void report_item(struct report *report, int32_t node, const struct entry *entry, const struct event *event, const char *link,
		 uint64_t position)
{
	struct held held = {
		.transfer = (event->flags & ITEM_TRANSFER) != 0,
		.size = entry->size,
		.position = position,
	};

	name_unchanged(report, node, entry, event, link);
	if (is_shown(report, entry, event, link))
		held.line = format_line(report, node, entry, event, link);
	if (held.transfer && report->live_task && report->live_index == event->index) {
		held.announced = report->live_task->entries && entry == &report->live_task->entries->items[event->index];
		if (held.announced)
			report->live_task = NULL;
	}
	if (held.line || (held.transfer && report->progress))
		hold(report, &held);
	if (held.announced)
		report_drain(report);
}

/* A file that takes long enough to be watched: its name and its progress so far. */
void report_live(struct report *report, struct task *task)
{
	uint32_t index = atomic_load(&task->live_index);
	struct event event = { .kind = EVENT_ITEM, .flags = atomic_load(&task->live_flags) };
	const struct entry *entry;

	if (!report->progress || !index)
		return;
	index--;
	entry = &task->entries->items[index];
	if (report->live_task != task || report->live_index != index) {
		report_drain(report);
		report->live_task = task;
		report->live_index = index;
		event.index = index;
		if (is_shown(report, entry, &event, NULL)) {
			char *line = format_line(report, task->node, entry, &event, NULL);
			log_msg(L_CLIENT, "%s", line);
			free(line);
		}
		set_totals(report);
		progress_file_start(report->progress, atomic_load(&task->live_size));
	}
	progress_update(report->progress, atomic_load(&task->live_done));
}

void report_deletion(struct report *report, const char *path, bool is_dir)
{
	const struct options *options = report->local->options;
	struct strbuf line = STRBUF_INIT;

	if (options->quiet)
		return;
	if (report->format_has_item || report->format_has_operation) {
		struct format_values values = {
			.look = { .flags = ITEM_DELETED, .mode = is_dir ? S_IFDIR : S_IFREG },
			.name = path, .shown = path, .is_deletion = true, .pid = (int)getpid(),
			.group_not_kept = !options->group,
		};
		format_expand(report->format, &values, &line);
		log_msg(L_CLIENT, "%s", strbuf_text(&line));
	} else if (options->levels.info[INFO_DEL] || options->out_format) {
		log_info("deleting %s%s", path, is_dir ? "/" : "");
	}
	strbuf_free(&line);
}
