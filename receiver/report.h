/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is printed of items and deletions, in the order of the list (main thread). */
#ifndef RECEIVER_REPORT_H
#define RECEIVER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

struct entry;
struct event;
struct progress;
struct receiver;
struct report;
struct task;

/* Does anybody want to hear of an item that is not transferred? */
bool report_is_wanted(const struct options *options, uint32_t flags, const char *link);
struct report *report_new(struct receiver *receiver);
void report_free(struct report *report);
void report_item(struct report *report, int32_t node, const struct entry *entry, const struct event *event, const char *link,
		 uint64_t position);
void report_deletion(struct report *report, const char *path, bool is_dir);
void report_live(struct report *report, struct task *task);
void report_section_end(struct report *report, uint64_t position);
void report_drain(struct report *report);
void report_drain_if_old(struct report *report);
struct progress *report_progress(struct report *report);
bool report_wants_names(const struct receiver *receiver);
/* Are names of directories that were made shown? */
bool report_names_directories(const struct receiver *receiver);

#endif
