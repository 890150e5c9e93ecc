/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which items of a client's run get a line, on standard output (--out-format) and in the log file (--log-file-format), and
 * the lines of deletions (doc/protocol/06-command-line.md sections 8.7, 8.8 and 14.2). Lines for standard output are L_CLIENT
 * messages, lines of the log L_LOG ones.
 *
 * And the report of a receiving side: what is printed of items and deletions, in the order of the list (main thread).
 */
#ifndef RECEIVER_REPORT_H
#define RECEIVER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/log.h"
#include "options.h"
#include "sender.h"
#include "ui/itemize.h"

struct entry;
struct event;
struct receiver;
struct report;
struct task;

struct item_lines {
	const struct options *options;
	const char *shown, *logged;     /* formats; NULL: no lines */
	bool shown_has_item, shown_has_operation;
	bool logged_has_item, logged_has_operation;
	bool shown_is_late;             /* it shows what is known only after the content */
	bool is_only_logged;            /* somebody else reports deletions to the user */
};

/* The options are borrowed. */
void item_lines_init(struct item_lines *lines, const struct options *options);

/* Is there a line for an item with these ITEM_* flags? */
bool item_is_shown(const struct item_lines *lines, uint32_t flags, bool is_dir, bool is_hard_link);
bool item_is_logged(const struct item_lines *lines, uint32_t flags, bool is_dir, bool is_hard_link);

/* The line in this format. */
void item_line_log(enum log_kind kind, const char *format, const struct format_values *values);

/* A deletion, in both places. */
void item_lines_deletion(const struct item_lines *lines, const char *path, bool is_dir);

/* What a sending side knows of an item, and can be shown of it. What a daemon adds is left out. */
void item_record_values(struct format_values *values, const struct options *options, const struct transfer_record *record);

/* What a log ends with, if there is one. */
void log_run_end(bool sends, uint64_t sent, uint64_t received, uint64_t total_size, int code);

/* SIGVTALRM has asked how far the run is: the name of the file that has just come to its end, unless items have names. */
void item_lines_name_asked(const struct item_lines *lines, const struct options *options, const char *name);

/* Does anybody want to hear of an item that is not transferred? */
bool report_is_wanted(const struct options *options, uint32_t flags, const char *link);
/* Notes in the destination whether anybody wants items, and names of directories that were made. */
struct report *report_new(struct receiver *receiver);
void report_free(struct report *report);
void report_item(struct report *report, int32_t node, const struct entry *entry, const struct event *event, const char *link,
		 uint64_t position);
void report_deletion(struct report *report, const char *path, bool is_dir);
void report_live(struct report *report, struct task *task);
void report_section_end(struct report *report, uint64_t position);
void report_drain(struct report *report);
void report_drain_if_old(struct report *report);
void report_break_line(struct report *report); /* of progress, if there is one */

#endif
