/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a client of a remote session prints. */
#include "client_output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decide.h"
#include "delta/digest.h"
#include "fs/chmod.h"
#include "lib/alloc.h"
#include "ui/itemize.h"
#include "ui/progress.h"
#include "wire/request.h"

#define FIRST_UPDATE 32768 /* bytes that a file has when it is first seen to progress */

struct client_output {
	const struct options *options;
	const struct session *session;
	bool sends;
	struct log_sink below;
	const char *format;      /* NULL: items are not named */
	bool format_has_item, format_has_operation;
	bool format_is_late;     /* it tells what is known only after the content */
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

/* What is not printable is shown as \#ooo; but carriage returns at the ends are a progress line's (protocol/06 8.1, 8.13). */
void client_print(const struct options *options, enum log_kind kind, const char *text, size_t length)
{
	FILE *out = stream_of(options, kind);
	size_t start = length && text[0] == '\r', end = length, escaped_length;
	char *escaped;

	if (!is_printed(options, kind))
		return;
	while (end > start && strchr("\r\n", text[end - 1]))
		end--;
	escaped_length = log_escape(NULL, 0, text + start, end - start, options->eight_bit_output);
	escaped = xmalloc(escaped_length + 1);
	log_escape(escaped, escaped_length + 1, text + start, end - start, options->eight_bit_output);
	if (out == stderr)
		fflush(stdout);
	fwrite(text, 1, start, out);
	fwrite(escaped, 1, escaped_length, out);
	fwrite(text + end, 1, length - end, out);
	if (out == stderr || (length && text[length - 1] != '\n'))
		fflush(out);
	free(escaped);
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
	client_print(output->options, kind, text, length);
}

/* --- the frame --- */

static const char *choose_format(const struct options *options)
{
	if (options->out_format)
		return options->out_format;
	return options->levels.info[INFO_NAME] ? "%n%L" : NULL;
}

struct client_output *client_output_new(const struct options *options, const struct session *session, bool sends)
{
	struct client_output *output = xcalloc(1, sizeof *output);
	int mode = options->levels.info[INFO_PROGRESS];

	output->options = options;
	output->session = session;
	output->sends = sends;
	output->format = options->quiet ? NULL : choose_format(options);
	if (output->format) {
		output->format_has_item = format_uses(output->format, 'i');
		output->format_has_operation = format_uses(output->format, 'o');
		output->format_is_late = format_uses(output->format, 'b') || format_uses(output->format, 'c')
					 || format_uses(output->format, 'C');
	}
	if (mode && !options->quiet && !options->dry_run)
		output->progress = progress_new(mode, options->human_readable);
	output->below = log_set_sink((struct log_sink){ emit, output });
	return output;
}

void client_output_free(struct client_output *output)
{
	log_set_sink(output->below);
	if (output->progress) {
		progress_end(output->progress);
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

	if (!level || options->quiet || (!options->recursive && !options->dirs))
		return;
	if (output->session->inc_recurse) {
		log_msg(L_CLIENT, "%s incremental file list", output->sends ? "sending" : "receiving");
		return;
	}
	fprintf(stream_of(options, L_CLIENT), "%s file list ... %s", output->sends ? "building" : "receiving",
		level > 1 ? "\n" : "");
	output->header_is_open = level == 1;
	fflush(stdout);
}

/* FLIST2: the counter that people would see running, and its end. */
static void count_list(const struct client_output *output, uint64_t entries)
{
	FILE *out = stream_of(output->options, L_CLIENT);

	for (uint64_t i = 0; i <= entries; i += 100)
		fprintf(out, " %llu files...\r", (unsigned long long)i);
	fprintf(out, "%llu file%s to consider\n", (unsigned long long)entries, entries == 1 ? " " : "s");
}

void client_output_header_done(struct client_output *output, uint64_t entries)
{
	const struct options *options = output->options;
	bool has_dirs = options->recursive || options->dirs;

	if (output->header_is_open || output->header_was_broken)
		fputs("done\n", stream_of(options, L_CLIENT));
	output->header_is_open = output->header_was_broken = false;
	if (options->levels.info[INFO_FLIST] > 1 && !options->quiet && !output->session->inc_recurse && has_dirs)
		count_list(output, entries);
}

/* --- items --- */

/* protocol/03 2.7 and protocol/06 8.7: is the item named? */
static bool is_shown(const struct client_output *output, const struct transfer_record *record)
{
	const struct options *options = output->options;
	bool significant = decide_is_significant(record->flags);

	if (!output->format)
		return false;
	if (record->flags & ITEM_TRANSFER || record->link_is_hard)
		return true;
	if (output->format_has_item)
		return significant || options->itemize > 1 || options->levels.info[INFO_NAME] > 1;
	return significant && (record->flags & ITEM_LOCAL_CHANGE || entry_is_dir(record->entry));
}

/* The mode as it is sent. */
static uint32_t shown_mode(const struct client_output *output, const struct entry *entry)
{
	bool changes = output->sends && output->options->chmod && !entry_is_symlink(entry);

	return changes ? chmod_apply(output->options->chmod, entry->mode) : entry->mode;
}

static void print_item(struct client_output *output, const struct transfer_record *record)
{
	static const uint8_t no_digest[DIGEST_MAX_LENGTH];
	const struct options *options = output->options;
	const struct entry *entry = record->entry;
	bool pretends = options->dry_run && record->flags & ITEM_TRANSFER;
	struct strbuf line = STRBUF_INIT;
	const struct format_values values = {
		.look = {
			.flags = record->flags, .mode = shown_mode(output, entry), .times_kept = options->times,
			.sends = output->sends, .unknown = record->flags & ITEM_MISSING_DATA,
		},
		.name = record->name, .shown = record->shown, .link = record->link, .link_is_hard = record->link_is_hard,
		.length = entry->size, .transferred = record->written, .checksum_bytes = record->sums,
		.mtime = entry->mtime, .uid = options->owner ? entry->uid : 0, .gid = entry->gid,
		.group_not_kept = !options->group,
		.digest = pretends ? no_digest : record->digest,
		.digest_length = digest_length(output->session->xfer_sum),
		.pid = (int)getpid(), .operation = output->sends ? "send" : "recv",
	};

	format_expand(output->format, &values, &line);
	log_msg(L_CLIENT, "%s", strbuf_text(&line));
	strbuf_free(&line);
}

void client_output_totals(struct client_output *output, const struct flist_totals *totals, bool complete)
{
	uint64_t entries = (uint64_t)totals->files + totals->dirs + totals->symlinks + totals->devices + totals->specials;

	if (output->progress)
		progress_totals(output->progress, totals->size, entries, complete);
}

void client_output_item(struct client_output *output, const struct transfer_record *record, enum item_stage stage)
{
	enum item_stage line_stage = output->format_is_late ? ITEM_ENDS : ITEM_BEGINS;

	if (output->progress && stage == ITEM_ENDS)
		progress_file_end(output->progress, record->size, record->position);
	if ((stage == ITEM_WITHOUT_CONTENT || stage == line_stage) && is_shown(output, record))
		print_item(output, record);
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

static void print_deletion(struct client_output *output, const char *name, bool is_dir)
{
	const struct options *options = output->options;
	struct strbuf line = STRBUF_INIT;
	const struct format_values values = {
		.look = { .flags = ITEM_DELETED, .mode = is_dir ? S_IFDIR : S_IFREG },
		.name = name, .shown = name, .is_deletion = true, .pid = (int)getpid(), .group_not_kept = !options->group,
	};

	if (output->format_has_item || output->format_has_operation) {
		format_expand(output->format, &values, &line);
		log_msg(L_CLIENT, "%s", strbuf_text(&line));
	} else if (options->levels.info[INFO_DEL] || options->out_format) {
		log_info("deleting %s%s", name, is_dir ? "/" : "");
	}
	strbuf_free(&line);
}

bool client_output_message(struct client_output *output, enum message_code code, const uint8_t *payload, size_t length)
{
	static const struct { enum message_code code; enum log_kind kind; } texts[] = {
		{ MSG_INFO, L_INFO }, { MSG_WARNING, L_WARNING }, { MSG_ERROR, L_ERROR }, { MSG_ERROR_XFER, L_ERROR_XFER },
	};
	const char *text = (const char *)payload;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (code == texts[i].code) {
			log_msg(texts[i].kind, "%.*s", (int)length, text);
			return true;
		}
	if (code == MSG_DELETED && length)
		print_deletion(output, text, text[length - 1] == '\0');
	if (code == MSG_IO_TIMEOUT && output->options->levels.info[INFO_MISC] > 1)
		log_info("Setting --timeout=%d to match server", wire_message_int(payload));
	return code == MSG_DELETED || code == MSG_IO_TIMEOUT;
}

/* --- the end --- */

void client_output_end(struct client_output *output, const struct run_stats *stats)
{
	const struct options *options = output->options;
	struct run_stats told = *stats;
	int level = options->levels.info[INFO_STATS];

	if (output->progress)
		progress_end(output->progress);
	if (options->quiet || !level)
		return;
	told.protocol = output->session->protocol;
	stats_print(&told, options->human_readable, level > 1, true, options->dry_run);
}
