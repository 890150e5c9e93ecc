/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a client of a remote session prints: the header, a line for each item, deletions, progress, what the server says, and
 * the closing numbers (doc/protocol/06-command-line.md section 8). All of one run goes through one object, because the parts
 * share standard output: a progress line or an unfinished header is ended before anything else is said.
 *
 *     output = client_output_new(options, session, true);     from now on it is the log's sink
 *     client_output_header(output);                           when the session is set up
 *     client_output_item(output, record, stage) ...
 *     client_output_end(output, &stats, code);
 *     client_output_free(output);                             the sink is again what it was
 *
 * One thread prints items and progress; messages may come from any thread.
 */
#ifndef CLIENT_OUTPUT_H
#define CLIENT_OUTPUT_H

#include "lib/log.h"
#include "sender.h"
#include "ui/number.h"

struct client_output;
/* Both arguments are borrowed; the session's protocol is looked at when the first line is printed. sends: a push. */
struct client_output *client_output_new(const struct options *options, const struct session *session, bool sends);
void client_output_free(struct client_output *output);

/* "sending incremental file list" and its relatives; the second ends the one that waits for its "done". */
void client_output_header(struct client_output *output);
void client_output_header_done(struct client_output *output, uint64_t entries);

/* The totals of progress lines: called whenever more of the list is known. `complete`: all of it is. */
void client_output_totals(struct client_output *output, const struct flist_totals *totals, bool complete);
/* An item: its line, when it is time for it, and its progress. */
void client_output_item(struct client_output *output, const struct transfer_record *record, enum item_stage stage);
void client_output_progress(struct client_output *output, uint64_t done);
/* All items up to this place in the list have been looked at (--info=progress2). */
void client_output_section(struct client_output *output, uint64_t position);

/* MSG_INFO, _WARNING, _ERROR, _ERROR_XFER, _DELETED and _IO_TIMEOUT of a server; false for any other message. */
bool client_output_message(struct client_output *output, enum message_code code, const uint8_t *payload, size_t length);

/* The statistics that the options want, as far as the session's protocol has them, and the end of the log of a run with this
 * exit code. */
void client_output_end(struct client_output *output, const struct run_stats *stats, int code);

#endif
