/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a run prints and logs: the lines of items, and when they come; deletions, progress.
 *
 * With a protocol between them, the half that looks at the destination is ahead of the half that names the files it sends, so
 * its messages ("deleting x", "y exists") come before the names of the same moment. People and scripts know that order, so
 * lines of items are held back for a moment and messages overtake them.
 */
#include "receiver/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/contents.h"
#include "dest/decide.h"
#include "dest/paths.h"
#include "dest/task.h"
#include "flist/paths.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "receiver/debug.h"
#include "receiver/run.h"
#include "ui/progress.h"
#include "wire/request.h"

/* --- the lines of items --- */

void item_lines_init(struct item_lines *lines, const struct options *options)
{
	const char *shown = options->out_format, *logged = options->log_file_format ? options->log_file_format : "%i %n%L";

	if (!shown && options->levels.info[INFO_NAME])
		shown = "%n%L";
	if (!options->log_file || !*logged)
		logged = NULL;
	*lines = (struct item_lines){
		.options = options, .shown = options->quiet ? NULL : shown, .logged = logged,
		.shown_has_item = shown && format_uses(shown, 'i'),
		.shown_has_operation = shown && format_uses(shown, 'o'),
		.logged_has_item = logged && format_uses(logged, 'i'),
		.logged_has_operation = logged && format_uses(logged, 'o'),
		.shown_is_late = shown && (format_uses(shown, 'b') || format_uses(shown, 'c') || format_uses(shown, 'C')),
	};
}

/* doc/protocol/03-transfer.md section 2.7 and doc/protocol/06-command-line.md section 8.7. What nobody asked to see itemized is
 * an item only if it was made or is a directory. */
static bool is_named(const struct item_lines *lines, uint32_t flags, bool is_dir, bool is_hard_link, bool wants_all)
{
	if (flags & ITEM_TRANSFER || is_hard_link)
		return true;
	if (lines->shown_has_item)
		return decide_is_significant(flags) || wants_all;
	return decide_is_significant(flags) && (flags & ITEM_LOCAL_CHANGE || is_dir);
}

static bool wants_unchanged(const struct options *options)
{
	return options->itemize > 1 || options->levels.info[INFO_NAME] > 1;
}

bool item_is_shown(const struct item_lines *lines, uint32_t flags, bool is_dir, bool is_hard_link)
{
	return lines->shown && is_named(lines, flags, is_dir, is_hard_link, wants_unchanged(lines->options));
}

/* A dry run has no transfers that could end and be logged. */
bool item_is_logged(const struct item_lines *lines, uint32_t flags, bool is_dir, bool is_hard_link)
{
	if (!lines->logged || (lines->options->dry_run && (lines->options->server || flags & ITEM_TRANSFER)))
		return false;
	/* A server has no say in what its client wants to see. */
	if (lines->options->server && !(flags & ITEM_TRANSFER))
		return lines->logged_has_item && (decide_is_significant(flags) || is_hard_link);
	return is_named(lines, flags, is_dir, is_hard_link, lines->logged_has_item && wants_unchanged(lines->options));
}

void item_line_log(enum log_kind kind, const char *format, const struct format_values *values)
{
	struct strbuf line = STRBUF_INIT;

	format_expand(format, values, &line);
	log_msg(kind, "%s", strbuf_text(&line));
	strbuf_free(&line);
}

static struct format_values deletion_values(const struct options *options, const char *path, const char *shown, bool is_dir)
{
	return (struct format_values){
		.look = { .flags = ITEM_DELETED, .mode = is_dir ? S_IFDIR : S_IFREG },
		.name = path, .shown = shown, .is_deletion = true, .pid = (int)getpid(), .operation = "del.",
		.group_not_kept = !options->group,
	};
}

void item_lines_deletion(const struct item_lines *lines, const char *path, bool is_dir)
{
	const struct options *options = lines->options;
	const struct format_values values = deletion_values(options, path, path, is_dir);

	if (lines->is_only_logged)
		;
	else if (lines->shown && (lines->shown_has_item || lines->shown_has_operation))
		item_line_log(L_CLIENT, lines->shown, &values);
	else if (options->levels.info[INFO_DEL] || lines->shown)
		item_line_log(L_CLIENT, "deleting %n", &values);
	if (!options->log_file || options->dry_run)
		return;
	item_line_log(L_LOG, lines->logged_has_item || lines->logged_has_operation ? lines->logged : "deleting %n", &values);
}

void item_record_values(struct format_values *values, const struct options *options, const struct transfer_record *record)
{
	const struct entry *entry = record->entry;

	*values = (struct format_values){
		.look = {
			.flags = record->flags, .mode = entry->mode, .times_kept = options->times, .sends = true,
			.unknown = record->flags & ITEM_MISSING_DATA,
		},
		.name = record->name, .shown = record->shown, .link = record->link, .link_is_hard = record->link_is_hard,
		.length = entry->size, .transferred = record->written, .checksum_bytes = record->sums,
		.mtime = entry->mtime, .uid = options->owner ? entry->uid : 0, .gid = entry->gid,
		.group_not_kept = !options->group, .digest = record->digest, .digest_length = record->digest_length,
		.pid = (int)getpid(), .operation = "send",
	};
}

void log_run_end(bool sends, uint64_t sent, uint64_t received, uint64_t total_size, int code)
{
	if (sends || !code)
		log_msg(L_LOG, "sent %" PRIu64 " bytes  received %" PRIu64 " bytes  total size %" PRIu64, sent, received,
			total_size);
}

void item_lines_name_asked(const struct item_lines *lines, const struct options *options, const char *name)
{
	if (progress_is_asked() && !options->levels.info[INFO_NAME] && !lines->shown_has_item)
		log_info("%s", name);
}

/* --- the report of a run --- */

#define HELD_MAX 4096
#define HELD_MS 200
#define FIRST_UPDATE 32768 /* bytes that a file has when it is first seen to progress */

struct held {
	char *line;        /* NULL: nothing to print */
	char *log_line;    /* NULL: nothing to log */
	bool transfer;
	uint64_t size;
	uint64_t position; /* in the list */
	bool announced;    /* line and first progress have been shown already */
};

struct report {
	struct receiver *receiver;
	struct item_lines lines;     /* of items */
	bool is_logged;              /* by a module */
	struct item_lines deletions; /* of deletions, which a service's client hears of otherwise */
	struct progress *progress;
	struct progress *on_request; /* the same where nobody has asked for it beforehand; NULL: nobody may */
	VEC(struct held) held;
	int64_t oldest_ms;
	struct task *live_task;
	uint32_t live_index;
};

/* An old client of a service does not know what is done without a transfer, and so gets it line by line. */
static const char *choose_service_format(const struct receiver *receiver)
{
	return !receiver->session.caps.item_flags && receiver->dest.options->levels.info[INFO_NAME] ? "%n%L" : NULL;
}

struct report *report_new(struct receiver *receiver)
{
	struct dest *dest = &receiver->dest;
	const struct options *options = dest->options;
	struct report *report = xcalloc(1, sizeof *report);
	int mode = options->levels.info[INFO_PROGRESS], names = options->levels.info[INFO_NAME];

	report->receiver = receiver;
	report->is_logged = dest->module && dest->module->log_item && !dest->dry_run;
	item_lines_init(&report->deletions, options);
	report->lines = report->deletions;
	/* A server with --quiet would not say it, and a log repeats what is said. */
	dest->names_directories = (dest->shows_receiver || !options->quiet) && (names || report->lines.shown_has_item);
	if (receiver->service) {
		report->lines.shown = choose_service_format(receiver);
		report->lines.shown_has_item = false;
	}
	dest->wants_items = dest->logs_steps || report->lines.shown || report->lines.logged;
	if (receiver->service)
		dest->wants_items |= names > 1 || report->is_logged;
	else
		dest->wants_items |= !options->quiet && (names > 1 || mode);
	if (options->quiet || (options->dry_run && mode < 2) || receiver->service)
		return report;
	if (mode) {
		report->progress = progress_new(mode, options->human_readable, options->dry_run);
	} else {
		report->on_request = progress_new(0, options->human_readable, false);
		progress_listen();
	}
	return report;
}

void report_break_line(struct report *report)
{
	if (report->progress)
		progress_break_line(report->progress);
}

void report_free(struct report *report)
{
	report_drain(report);
	report_break_line(report);
	free(report->progress);
	free(report->on_request);
	vec_free(&report->held);
	free(report);
}

static void set_totals(const struct report *report, struct progress *progress)
{
	const struct receiver *receiver = report->receiver;
	const struct flist_totals *totals = flist_totals(receiver->dest.list);

	progress_totals(progress, totals->size, receiver->loaded_entries, flist_is_complete(receiver->dest.list));
}

/* The first that is shown of a file: a receiver has not got anything yet. */
static uint64_t first_update(const struct report *report, uint64_t size)
{
	if (report->receiver->dest.shows_receiver)
		return 0;
	return size < FIRST_UPDATE ? size : FIRST_UPDATE;
}

void report_drain(struct report *report)
{
	for (size_t i = 0; i < report->held.count; i++) {
		const struct held *held = &report->held.items[i];

		if (held->line && !held->announced)
			log_msg(L_CLIENT, "%s", held->line);
		if (held->transfer && report->progress) {
			set_totals(report, report->progress);
			if (!held->announced)
				progress_file_start(report->progress, held->size);
			if (!held->announced && held->size)
				progress_update(report->progress, first_update(report, held->size));
			progress_file_end(report->progress, held->size, held->position);
		}
		if (held->log_line)
			log_msg(L_LOG, "%s", held->log_line);
		free(held->line);
		free(held->log_line);
	}
	report->held.count = 0;
}

void report_drain_if_old(struct report *report)
{
	if (report->held.count && (report->held.count >= HELD_MAX || clock_milliseconds() - report->oldest_ms >= HELD_MS))
		report_drain(report);
}

void report_section_end(struct report *report, uint64_t position)
{
	if (!report->progress || report->receiver->dest.options->levels.info[INFO_PROGRESS] < 2)
		return;
	report_drain(report);
	set_totals(report, report->progress);
	progress_section_end(report->progress, position);
}

/* --- items --- */

/* What %C shows: the digest of a content that has come, or of one that the list has; of one that would come, nothing. */
static const uint8_t *shown_digest(const struct receiver *receiver, int32_t node, const struct entry *entry,
				   const struct event *event, int *length, uint8_t room[DIGEST_MAX_LENGTH])
{
	bool is_listed = receiver->dest.contents->is_remote && receiver->dest.options->checksum;
	const uint8_t *listed = is_listed ? flist_received_digest(receiver->dest.list, node, entry) : NULL;

	*length = event->digest_length ? event->digest_length : digest_length(receiver->session.xfer_sum);
	if (event->digest_length)
		return event->digest;
	if (listed) {
		*length = digest_length(receiver->session.file_sum);
		digest_for_display(receiver->session.file_sum, listed, *length, room);
		return room;
	}
	memset(room, 0, DIGEST_MAX_LENGTH);
	return event->flags & ITEM_TRANSFER && receiver->dest.dry_run ? room : NULL;
}

static void fill_values(struct report *report, int32_t node, const struct entry *entry, const struct event *event,
			const char *link, struct strbuf *path, struct strbuf *shown, uint8_t room[DIGEST_MAX_LENGTH],
			struct format_values *values)
{
	struct receiver *receiver = report->receiver;
	const struct entries *entries = node < 0 ? NULL : flist_dir(receiver->dest.list, node)->entries;
	/* An old sender does not repeat what was asked of it, and that is what its receiver has to show. */
	const uint8_t *digest;
	int digest_bytes;
	bool is_unreported = !receiver->session.caps.item_flags && event->flags & ITEM_TRANSFER;

	flist_entry_path(receiver->dest.list, node, entry, path);
	flist_shown_name(receiver->dest.list, node, entry, shown);
	digest = shown_digest(receiver, node, entry, event, &digest_bytes, room);
	*values = (struct format_values){
		.look = {
			.flags = is_unreported ? ITEM_TRANSFER : event->flags, .mode = event->mode ? event->mode : entry->mode,
			.unknown = is_unreported,
			/* A receiver that old does not say whether it could set the times of symlinks. */
			.times_kept = receiver->dest.options->times
				      && (receiver->session.caps.item_flags || !entry_is_symlink(entry)),
		},
		.name = strbuf_text(path) + (receiver->dest.shows_receiver ? strspn(strbuf_text(path), "/") : 0),
		.shown = strbuf_text(shown),
		.link = link                                                              ? link
			: entry_is_symlink(entry) && receiver->dest.options->links ? entry_target(entries, entry)
										   : NULL,
		.link_is_hard = link != NULL,
		.length = entry->size,
		.transferred = event->bytes,
		.checksum_bytes = receiver->dest.shows_receiver ? 0 : event->sums,
		.mtime = entry->mtime,
		.uid = receiver->dest.options->owner ? entry->uid : 0,
		.gid = entry->gid,
		.group_not_kept = !receiver->dest.options->group
				  || (receiver->dest.contents->is_remote && !decide_keeps_group(&receiver->dest.rules, entry)),
		.pid = (int)getpid(),
		.digest = digest,
		.digest_length = digest_bytes,
		.operation = receiver->dest.shows_receiver ? "recv" : "send",
	};
}

static char *format_line(struct report *report, const char *format, int32_t node, const struct entry *entry,
			 const struct event *event, const char *link)
{
	struct strbuf path = STRBUF_INIT, shown = STRBUF_INIT, line = STRBUF_INIT;
	uint8_t room[DIGEST_MAX_LENGTH];
	struct format_values values;

	fill_values(report, node, entry, event, link, &path, &shown, room, &values);
	format_expand(format, &values, &line);
	strbuf_free(&path);
	strbuf_free(&shown);
	return strbuf_detach(&line);
}

/* A line that is not held back; owned by this call. */
static void print_line(enum log_kind kind, char *line)
{
	log_msg(kind, "%s", line);
	free(line);
}

/* -vv without %i: one line by the half that looks, for what is not transferred. */
static void name_unchanged(struct report *report, int32_t node, const struct entry *entry, const struct event *event,
			   const char *link)
{
	const struct options *options = report->receiver->dest.options;
	struct strbuf path = STRBUF_INIT;

	bool is_itemized = report->receiver->service ? options->itemize : report->lines.shown_has_item;

	if (options->levels.info[INFO_NAME] < 2 || is_itemized)
		return;
	bool is_link = event->flags & ITEM_XNAME_FOLLOWS, is_matched = event->flags & ITEM_MATCHED;

	if (!is_matched
	    && (link || entry_is_dir(entry) || event->flags & ITEM_TRANSFER || (event->flags & ITEM_LOCAL_CHANGE && !is_link)))
		return;
	flist_entry_path(report->receiver->dest.list, node, entry, &path);
	log_msg(report->receiver->dest.shows_receiver ? L_CLIENT : L_INFO, "%s%s%s", strbuf_text(&path),
		entry_is_dir(entry) ? "/" : "", event->touched && !entry_is_dir(entry) ? "" : " is uptodate");
	strbuf_free(&path);
}

/* doc/protocol/07-daemon.md section 8.3 */
static void log_item(struct report *report, int32_t node, const struct entry *entry, const struct event *event,
		     const char *link)
{
	const struct dest_module *module = report->receiver->dest.module;
	struct strbuf path = STRBUF_INIT, shown = STRBUF_INIT;
	uint8_t room[DIGEST_MAX_LENGTH];
	struct format_values values;
	char *inside, *whole;

	if (!(event->flags & ITEM_TRANSFER) && !(module->logs_items && (decide_is_significant(event->flags) || link)))
		return;
	fill_values(report, node, entry, event, link, &path, &shown, room, &values);
	/* From the module's root on; "." of the transfer stays visible. */
	inside = dest_named_in_module(&report->receiver->dest, strbuf_text(&path));
	for (size_t length = strlen(inside); length && inside[length - 1] == '/';)
		inside[--length] = '\0';
	whole = xasprintf("%s%s", inside, !strcmp(strbuf_text(&path), ".") && strcmp(inside, ".") != 0 ? "/." : "");
	values.shown = whole;
	module->log_item(module->context, &values);
	free(inside);
	free(whole);
	strbuf_free(&path);
	strbuf_free(&shown);
}

/* A signal has asked for progress, and a file has come to its end. */
static void answer_request(struct report *report, int32_t node, const struct entry *entry, const struct event *event,
			   uint64_t position)
{
	const struct run_stats *before = &report->receiver->stats;
	struct strbuf path = STRBUF_INIT;

	report_drain(report);
	flist_entry_path(report->receiver->dest.list, node, entry, &path);
	item_lines_name_asked(&report->lines, report->receiver->dest.options, strbuf_text(&path));
	strbuf_free(&path);
	set_totals(report, report->on_request);
	progress_catch_up(report->on_request, before->transferred_files + event->files - 1,
			  before->transferred_size + event->total - entry->size);
	progress_file_end(report->on_request, entry->size, position);
	progress_break_line(report->on_request);
}

/*
 * Of what an old sender does not hear of, because it is done without it. Where both ends are here, or were, that has what is
 * left of a format. An old receiver itemizes it only for who asks for %i; else it has names to report, in a way of its own.
 */
static void choose_old_lines(const struct receiver *receiver, struct item_lines *lines)
{
	const struct options *options = receiver->dest.options;
	const char *names = choose_service_format(receiver);
	bool is_replay = receiver->dest.contents->is_replay;

	if (is_replay || !receiver->dest.shows_receiver) {
		lines->shown = is_replay && (options->itemize || options->out_format) ? NULL : names;
		lines->shown_has_item = false;
	} else if (lines->shown_has_item) {
		lines->logged = lines->logged_has_item ? lines->logged : NULL;
	} else {
		lines->shown = options->quiet ? NULL : names;
		lines->logged = lines->logged ? names : NULL;
		lines->logged_has_item = false;
	}
}

bool report_is_wanted(const struct options *options, uint32_t flags, const char *link)
{
	const uint32_t insignificant = ITEM_BASIS_TYPE_FOLLOWS | ITEM_XNAME_FOLLOWS | ITEM_LOCAL_CHANGE;

	return flags & 0xffff & ~insignificant || options->levels.info[INFO_NAME] > 1 || options->itemize > 1
	       || (link && *link && !(flags & ITEM_MATCHED));
}

void report_item(struct report *report, int32_t node, const struct entry *entry, const struct event *event, const char *link,
		 uint64_t position)
{
	struct held held = {
		.transfer = (event->flags & ITEM_TRANSFER) != 0,
		.size = entry->size,
		.position = position,
	};
	const struct item_lines *lines = &report->lines;
	struct item_lines names = report->lines;
	/* The same link was found in an alternate destination: that is no news. */
	bool is_new_link = link && !(event->flags & ITEM_MATCHED), is_dir = entry_is_dir(entry);
	const struct receiver *receiver = report->receiver;
	const struct options *options = receiver->dest.options;
	bool logs_step = receiver->dest.logs_steps && report_is_wanted(options, event->flags, link);
	bool has_old = receiver->dest.contents->is_remote && !receiver->session.caps.item_flags;

	if (has_old && !receiver->service && !held.transfer) {
		choose_old_lines(receiver, &names);
		lines = &names;
	}
	if (logs_step)
		receiver_debug_item(receiver, node, entry, event);
	name_unchanged(report, node, entry, event, link);
	if (report->is_logged)
		log_item(report, node, entry, event, link);
	/* An old receiver names a directory for the attributes that it sets, and not for having made it. */
	bool is_unnamed = is_dir && event->flags & ITEM_IS_NEW && event->is_bare && has_old && !lines->shown_has_item
			  && lines->shown != options->out_format;

	/* A service's client reports itself what it sends. */
	if (!(receiver->service && held.transfer) && !is_unnamed && item_is_shown(lines, event->flags, is_dir, is_new_link))
		held.line = format_line(report, lines->shown, node, entry, event, link);
	/* The log of a pull whose format has no %i: directories, and what is made without a transfer, have their names there as
	 * well, if names are printed at all. */
	if ((is_dir || event->flags & ITEM_LOCAL_CHANGE) && decide_is_significant(event->flags) && receiver->dest.shows_receiver
	    && !receiver->service && options->levels.info[INFO_NAME] && lines == &report->lines && lines->logged
	    && !lines->logged_has_item)
		print_line(L_LOG, format_line(report, "%n%L", node, entry, event, link));
	if (item_is_logged(lines, event->flags, is_dir, is_new_link))
		held.log_line = format_line(report, lines->logged, node, entry, event, link);
	if (held.transfer && report->live_task && report->live_index == event->index) {
		held.announced = report->live_task->entries && entry == &report->live_task->entries->items[event->index];
		if (held.announced)
			report->live_task = NULL;
	}
	if (held.line || held.log_line || (held.transfer && report->progress)) {
		if (!report->held.count)
			report->oldest_ms = clock_milliseconds();
		vec_push(&report->held, held);
		report_drain_if_old(report);
	}
	if (held.announced || logs_step)
		report_drain(report);
	if (held.transfer && report->on_request && progress_is_asked())
		answer_request(report, node, entry, event, position);
	if (logs_step)
		receiver_debug_item_done(receiver, node, entry, event);
}

/* A file that takes long enough to be watched: its name and its progress so far. */
void report_live(struct report *report, struct task *task)
{
	uint32_t index = atomic_load(&task->live_index);
	uint64_t done, least;
	bool is_new;
	struct event event = { .kind = EVENT_ITEM, .flags = atomic_load(&task->live_flags) };
	const struct entry *entry;

	if (!report->progress || !index)
		return;
	index--;
	entry = &task->entries->items[index];
	is_new = report->live_task != task || report->live_index != index;
	if (is_new) {
		report_drain(report);
		report->live_task = task;
		report->live_index = index;
		event.index = index;
		if (item_is_shown(&report->lines, event.flags, false, false))
			print_line(L_CLIENT, format_line(report, report->lines.shown, task->node, entry, &event, NULL));
		set_totals(report, report->progress);
		progress_file_start(report->progress, atomic_load(&task->live_size));
	}
	least = first_update(report, atomic_load(&task->live_size));
	done = is_new ? 0 : atomic_load(&task->live_done);
	progress_update(report->progress, done < least ? least : done);
}

void report_deletion(struct report *report, const char *path, bool is_dir)
{
	struct contents *contents = report->receiver->dest.contents;
	struct item_lines lines = report->deletions;

	if (report->is_logged) {
		const struct dest_module *module = report->receiver->dest.module;
		char *shown = dest_named_in_module(&report->receiver->dest, path);
		struct format_values values = deletion_values(report->receiver->dest.options, path, shown, is_dir);

		if (module->logs_items || module->logs_operations)
			module->log_item(module->context, &values);
		else
			module->log_deletion(module->context, path, is_dir);
		free(shown);
	}
	if (report->receiver->service && report->receiver->session.caps.deleted_messages) {
		contents->calls->notify_deletion(contents, path, is_dir);
		lines.is_only_logged = true;
	}
	item_lines_deletion(&lines, path, is_dir);
}
