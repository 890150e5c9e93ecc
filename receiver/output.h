/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What users see of a run as a whole (main thread). */
#ifndef RECEIVER_OUTPUT_H
#define RECEIVER_OUTPUT_H

#include <stddef.h>
#include <stdio.h>

#include "flist.h"

#include "lib/log.h"
#include "ui/number.h"
#include "wire/input.h"

struct charset;
struct receiver;
struct run;

/* The sink of messages, and the exit hook that ends the log of a run that breaks off; both take a struct run. */
void run_emit(void *run, enum log_kind kind, const char *text, size_t length);
void run_log_broken_end(void *run, int code);
/* What a peer has said to us as its client. `charset`: what it is converted from, as far as it could be; NULL: it is not.
 * false: it is no message for users. */
bool receiver_say_message(const struct options *options, struct charset *charset, enum message_code code,
			  const uint8_t *payload, size_t length);
/* "building file list ... ", and its "done". */
void run_say_header(struct run *run);
void run_close_header(struct run *run);
/* Where a message is printed. */
FILE *stream_of(const struct options *options, enum log_kind kind);
/* FLIST2: the counter that users would see running, and its end. */
void say_list_count(const struct options *options, uint64_t from, uint64_t entries);
struct kind_counts kinds_listed(const struct flist_totals *totals);
void run_say_list_count(struct run *run);
void run_fill_statistics(struct run *run);
/* The statistics that were asked for, and the last line of the log. */
void run_say_end(struct run *run, int code);
/* --list-only, or one operand: print the list. */
void receiver_list_run(struct receiver *receiver);

#endif
