/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The output of a client of a remote session. */
#include "client/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "delta/digest.h"
#include "fs/chmod.h"
#include "lib/alloc.h"
#include "receiver/output.h"
#include "receiver/report.h"
#include "ui/progress.h"
#include "wire/request.h"

#define FIRST_UPDATE 32768 /* bytes that a file has when it is first seen to progress */

struct client_output {
	const struct options *options;
	const struct session *session;
	bool sends;
	struct log_sink below;
	struct item_lines lines;
	struct progress *progress;
	bool progress_shown;     /* of this file */
	bool header_is_open;     /* "building file list ... " waits for its "done" */
	bool header_was_broken;
};

/* --- text --- */

static FILE *stream_of(const struct options *options, enum log_kind kind)
{
	bool informs = kind == L_INFO || kind == L_CLIENT;

	return informs && options->stderr_mode != STDERR_ALL ? stdout : stderr;
}

static bool is_printed(const struct options *options, enum log_kind kind)
{
	return kind != L_LOG && !((kind == L_INFO || kind == L_CLIENT) && options->quiet);
}

/* The log's sink. */
static void emit(void *context, enum log_kind kind, const char *text, size_t length)
{
	struct client_output *output = context;

	if (!is_printed(output->options, kind))
		return;
	if (output->progress)
		progress_break_line(output->progress);
	if (output->header_is_open) {
		fputc('\n', stream_of(output->options, kind));
		output->header_is_open = false;
		output->header_was_broken = true;
	}
	output->below.emit(output->below.context, kind, text, length);
}

/* --- the frame --- */

struct client_output *client_output_new(const struct options *options, const struct session *session, bool sends)
{
	struct client_output *output = xcalloc(1, sizeof *output);
	int mode = options->levels.info[INFO_PROGRESS];

	output->options = options;
	output->session = session;
	output->sends = sends;
	item_lines_init(&output->lines, options);
	if (!options->quiet && (!options->dry_run || mode > 1))
		output->progress = progress_new(mode, options->human_readable, options->dry_run);
	if (output->progress && !mode)
		progress_listen();
	output->below = log_set_sink((struct log_sink){ emit, output });
	return output;
}

void client_output_free(struct client_output *output)
{
	log_set_sink(output->below);
	if (output->progress) {
		progress_break_line(output->progress);
		progress_free(output->progress);
	}
	fflush(stdout);
	free(output);
}

/* --- the header --- */

void client_output_header(struct client_output *output)
{
	const struct options *options = output->options;
	int level = options->levels.info[INFO_FLIST];

	log_list_begin(output->sends);
	if (!level || options->quiet || (!options->recursive && !options->dirs))
		return;
	if (output->session->inc_recurse) {
		log_msg(L_CLIENT, "%s incremental file list", output->sends ? "sending" : "receiving");
	} else {
		fprintf(stream_of(options, L_CLIENT), "%s file list ... %s", output->sends ? "building" : "receiving",
			level > 1 ? "\n" : "");
		output->header_is_open = level == 1;
	}
	/* A server may write to our standard error. */
	fflush(stdout);
}

void client_output_header_done(struct client_output *output, uint64_t entries)
{
	const struct options *options = output->options;
	bool has_dirs = options->recursive || options->dirs;

	if (output->header_is_open || output->header_was_broken) {
		fputs("done\n", stream_of(options, L_CLIENT));
		log_msg(L_LOG, "done");
	}
	output->header_is_open = output->header_was_broken = false;
	if (options->levels.info[INFO_FLIST] > 1 && !options->quiet && !output->session->inc_recurse && has_dirs) {
		/* FLIST2: the counter that a user would see running, and its end. */
		FILE *out = stream_of(output->options, L_CLIENT);

		for (uint64_t i = 0; i <= entries; i += 100)
			fprintf(out, " %llu files...\r", (unsigned long long)i);
		log_info("%llu file%s to consider", (unsigned long long)entries, entries == 1 ? "" : "s");
	}
}

/* --- items --- */

static void log_transfer_item(struct client_output *output, enum log_kind kind, const char *format,
			      const struct transfer_record *record)
{
	static const uint8_t no_digest[DIGEST_MAX_LENGTH];
	struct format_values values;
	char *line;

	item_record_values(&values, output->options, record);
	values.look.mode = record->entry->mode;
	/* As it is sent. */
	if (output->sends && output->options->chmod && !entry_is_symlink(record->entry))
		values.look.mode = chmod_apply(output->options->chmod, record->entry->mode);
	/* Of an older receiver it is not known whether it can set the times of symlinks. */
	if (!output->session->caps.symlink_times && entry_is_symlink(record->entry))
		values.look.times_kept = false;
	values.digest_length = digest_length(output->session->xfer_sum);
	if (output->options->dry_run && record->flags & ITEM_TRANSFER)
		values.digest = no_digest;
	line = item_line(format, &values);
	log_msg(kind, "%s", line);
	free(line);
}

void client_output_totals(struct client_output *output, const struct flist_totals *totals, bool complete)
{
	uint64_t entries = (uint64_t)totals->files + totals->dirs + totals->symlinks + totals->devices + totals->specials;

	if (output->progress)
		progress_totals(output->progress, totals->size, entries, complete);
}

void client_output_item(struct client_output *output, const struct transfer_record *record, enum item_stage stage)
{
	const struct item_lines *lines = &output->lines;
	enum item_stage line_stage = lines->shown_is_late ? ITEM_ENDS : ITEM_BEGINS;
	bool is_dir = entry_is_dir(record->entry), is_hard_link = record->link_is_hard;

	if (output->progress && stage == ITEM_ENDS && !output->options->levels.info[INFO_PROGRESS])
		item_lines_name_asked(lines, output->options, record->name);
	if (output->progress && (stage == ITEM_ENDS || (stage == ITEM_WITHOUT_CONTENT && record->flags & ITEM_TRANSFER)))
		progress_file_end(output->progress, record->size, record->position);
	if ((stage == ITEM_WITHOUT_CONTENT || stage == line_stage) && item_is_shown(lines, record->flags, is_dir, is_hard_link))
		log_transfer_item(output, L_CLIENT, lines->shown, record);
	if (stage != ITEM_BEGINS && item_is_logged(lines, record->flags, is_dir, is_hard_link))
		log_transfer_item(output, L_LOG, lines->logged, record);
	if (output->progress && stage == ITEM_BEGINS)
		progress_file_start(output->progress, record->size);
	output->progress_shown = false;
}

void client_output_progress(struct client_output *output, uint64_t done)
{
	if (!output->progress)
		return;
	progress_update(output->progress, output->progress_shown || done < FIRST_UPDATE ? done : FIRST_UPDATE);
	output->progress_shown = true;
}

void client_output_section(struct client_output *output, uint64_t position)
{
	if (output->progress)
		progress_section_end(output->progress, position);
}

/* --- what the server says --- */

bool client_output_message(struct client_output *output, enum message_code code, const uint8_t *payload, size_t length)
{
	if (code == MSG_DELETED && length)
		item_lines_deletion(&output->lines, (const char *)payload, payload[length - 1] == '\0');
	return code == MSG_DELETED || receiver_say_message(output->options, NULL, code, payload, length);
}

/* --- the end --- */

void client_output_end(struct client_output *output, const struct run_stats *stats, int code)
{
	const struct options *options = output->options;
	struct run_stats shown = *stats;
	int level = options->levels.info[INFO_STATS];

	if (output->progress)
		progress_break_line(output->progress);
	shown.caps = output->session->caps;
	if (level)
		stats_print(&shown, options->human_readable, level > 1, true, options_kind_of_end(options));
	if (!log_end_is_wanted(options, code))
		log_run_end(output->sends, stats->sent, stats->received, stats->total_size, code);
}
