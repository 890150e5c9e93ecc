/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What users see of a run as a whole: messages, the header of the list, statistics, the last line of the log; or the list
 * itself. Where nothing travels, "sent" is what the copies and the names in the list amount to, and "received" is 0.
 */
#include "receiver/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dest/contents.h"
#include "flist/paths.h"
#include "fs/chmod.h"
#include "lib/charset.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "receiver/debug.h"
#include "receiver/report.h"
#include "receiver/run.h"
#include "receiver/walk.h"
#include "ui/number.h"

#define RECORD_BYTES 20 /* what an entry takes beside its name, roughly, in any file list */

FILE *stream_of(const struct options *options, enum log_kind kind)
{
	bool informs = kind == L_INFO || kind == L_CLIENT;

	return informs && options->stderr_mode != STDERR_ALL ? stdout : stderr;
}

void run_emit(void *run_void, enum log_kind kind, const char *text, size_t length)
{
	struct run *run = run_void;
	bool informs = kind == L_INFO || kind == L_CLIENT;
	size_t body = length && text[length - 1] == '\n' ? length - 1 : length, needed;
	FILE *out = stream_of(run->options, kind);
	char *line;

	if (kind == L_LOG || (informs && run->options->quiet))
		return;
	if (run->receiver.report)
		report_break_line(run->receiver.report);
	needed = log_escape(NULL, 0, text, body, run->options->eight_bit_output);
	line = xmalloc(needed + 2);
	log_escape(line, needed + 1, text, body, run->options->eight_bit_output);
	line[needed] = '\n';
	if (out == stderr)
		fflush(stdout);
	if (run->header_is_open) {
		fputc('\n', out);
		run->header_is_open = false;
		run->header_was_broken = true;
	}
	/* At once: others write to the same standard error. */
	fwrite(line, 1, needed + 1, out);
	free(line);
}

bool receiver_say_message(const struct options *options, struct charset *charset, enum message_code code,
			  const uint8_t *payload, size_t length)
{
	static const struct { enum message_code code; enum log_kind kind; } texts[] = {
		{ MSG_INFO, L_INFO }, { MSG_WARNING, L_WARNING }, { MSG_ERROR, L_ERROR }, { MSG_ERROR_XFER, L_ERROR_XFER },
	};
	const char *text = (const char *)payload;
	struct strbuf converted = STRBUF_INIT;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (code != texts[i].code)
			continue;
		if (charset && charset_from_wire(charset, text, length, 4 * length, &converted))
			log_msg(texts[i].kind, "%s", strbuf_text(&converted));
		else
			log_msg(texts[i].kind, "%.*s", (int)length, text);
		strbuf_free(&converted);
		return true;
	}
	if (code == MSG_IO_TIMEOUT && options->levels.info[INFO_MISC] > 1)
		log_info("Setting --timeout=%d to match server", (int32_t)decode_int(payload));
	return code == MSG_IO_TIMEOUT;
}

/* Exit hook: how a log of a run that breaks off ends. */
void run_log_broken_end(void *run_void, int code)
{
	const struct run *run = run_void;

	if (code && !run->receiver.dest.shows_receiver)
		log_run_end(true, 0, 0, 0, code);
}

void run_say_header(struct run *run)
{
	const struct options *options = run->options;
	int level = options->levels.info[INFO_FLIST];

	log_msg(L_LOG, "%s file list", run->receiver.dest.shows_receiver ? "receiving" : "building");
	if (!level || options->quiet || run->receiver.service || (!options->recursive && !options->dirs))
		return;
	if (run->receiver.session.inc_recurse)
		log_msg(L_CLIENT, "%s incremental file list", run->receiver.dest.shows_receiver ? "receiving" : "sending");
	else if (level > 1 && !run->receiver.dest.shows_receiver)
		log_msg(L_CLIENT, "building file list ... ");
	else
		run->header_is_open = fprintf(stream_of(options, L_CLIENT), "%s file list ... ",
					      run->receiver.dest.shows_receiver ? "receiving" : "building")
				      >= 0;
	/* A server may write to our standard error. */
	fflush(stdout);
}

void run_close_header(struct run *run)
{
	/* With a count, which still follows, there is no "done". */
	if (run->options->levels.info[INFO_FLIST] > 1)
		return;
	if (run->header_is_open || run->header_was_broken) {
		fputs("done\n", stream_of(run->options, L_CLIENT));
		log_msg(L_LOG, "done");
	}
	run->header_is_open = false;
}

void say_list_count(const struct options *options, uint64_t from, uint64_t entries)
{
	FILE *out = stream_of(options, L_CLIENT);

	if (options->levels.info[INFO_FLIST] < 2)
		return;
	for (uint64_t i = from; !options->quiet && i <= entries; i += 100)
		fprintf(out, " %llu files...\r", (unsigned long long)i);
	log_info("%llu file%s to consider", (unsigned long long)entries, entries == 1 ? "" : "s");
}

void run_say_list_count(struct run *run)
{
	const struct options *options = run->options;
	uint64_t entries = run->receiver.loaded_entries;

	if (options->levels.info[INFO_FLIST] < 2 || run->receiver.service || run->receiver.session.inc_recurse
	    || (!options->recursive && !options->dirs))
		return;
	if (run->header_is_open && entries >= 100)
		fputc('\n', stream_of(options, L_CLIENT));
	run->header_is_open = false;
	/* A receiver has begun with its first hundred. */
	say_list_count(options, run->receiver.dest.shows_receiver ? 100 : 0, entries);
}

struct kind_counts kinds_listed(const struct flist_totals *totals)
{
	return (struct kind_counts){
		.total = (uint64_t)totals->files + totals->dirs + totals->symlinks + totals->devices + totals->specials,
		.dirs = totals->dirs, .links = totals->symlinks, .devices = totals->devices, .specials = totals->specials,
	};
}

void run_fill_statistics(struct run *run)
{
	struct receiver *receiver = &run->receiver;
	struct run_stats *stats = &receiver->stats;
	const struct flist_totals *totals = flist_totals(receiver->dest.list);

	stats->files = kinds_listed(totals);
	stats->total_size = totals->size;
	stats->list_build_ms = 1;
	stats->caps = receiver->session.caps;
	stats->sent = stats->literal + stats->files.total * RECORD_BYTES;
	if (run->peer) {
		stats->list_size = receiver->dest.contents->list_bytes;
		/* The other end of a local run is none to its user: its times are always known. */
		if (receiver->dest.shows_receiver || receiver->session.caps.list_times)
			stats->list_build_ms = run->peer_stats.build_ms;
		stats->list_transfer_ms = run->peer_stats.transfer_ms;
		stats->sent = (uint64_t)(receiver->dest.shows_receiver ? run->peer_stats.read : run->peer_stats.written);
		stats->received = (uint64_t)(receiver->dest.shows_receiver ? run->peer_stats.written : run->peer_stats.read);
	}
	stats->elapsed_seconds = (clock_nanoseconds() - run->started) / CLOCK_SECOND;
}

void run_say_end(struct run *run, int code)
{
	const struct options *options = run->options;
	const struct wire *wire = run->receiver.session.wire;
	struct run_stats *stats = &run->receiver.stats;
	int level = options->levels.info[INFO_STATS];

	/* A daemon has an end of its own. */
	if (run->receiver.service && options->log_file)
		log_run_end(false, wire_bytes_written(wire), wire_bytes_read(wire), flist_totals(run->receiver.dest.list)->size,
			    code);
	if (run->receiver.service)
		return;
	if (options->levels.debug[DEBUG_DELTASUM] && !run->peer)
		log_info("total: matches=0  hash_hits=0  false_alarms=0 data=%llu", (unsigned long long)stats->literal);
	run_fill_statistics(run);
	if (level)
		stats_print(stats, options->human_readable, level > 1, true, options_kind_of_end(options));
	/* The trailer of a verbose run, which ends well, says the same as the end of its log. */
	if (code || !level)
		log_run_end(!run->receiver.dest.shows_receiver, stats->sent, stats->received, stats->total_size, code);
}

/* --- --list-only, or one operand: the list itself --- */

static void print_entry(struct receiver *receiver, int32_t node, const struct entry *entry)
{
	const struct options *options = receiver->dest.options;
	struct strbuf path = STRBUF_INIT, line = STRBUF_INIT;
	const char *name;
	bool changed = options->chmod && entry->mode && !entry_is_symlink(entry);
	uint32_t mode = changed ? chmod_apply(options->chmod, entry->mode) : entry->mode;

	flist_entry_path(receiver->dest.list, node, entry, &path);
	name = strbuf_text(&path) + strspn(strbuf_text(&path), "/");
	listing_line(&line, flist_dir(receiver->dest.list, node)->entries, entry, mode, name, options->human_readable,
		     options->atimes > 0, options->links);
	log_info("%s", strbuf_text(&line));
	strbuf_free(&path);
	strbuf_free(&line);
}

/* Directories are printed when the walk enters them, so that their contents follow. */
static void print_node(struct receiver *receiver, int32_t node)
{
	const struct flist_dir *listed = flist_dir(receiver->dest.list, node);
	struct entries *entries = listed->entries;

	if (node)
		print_entry(receiver, listed->parent,
			    &flist_dir(receiver->dest.list, listed->parent)->entries->items[listed->parent_entry]);
	for (uint32_t i = 0; i < entries->count; i++) {
		const struct entry *entry = &entries->items[i];
		bool has_node = entry_is_dir(entry) && strcmp(entry_name(entries, entry), ".") != 0;

		if (!has_node && !(entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)))
			print_entry(receiver, node, entry);
	}
}

void receiver_list_run(struct receiver *receiver)
{
	struct contents *contents = receiver->dest.contents;
	bool by_path = receiver_goes_by_path(receiver), loads_all = receiver->dest.options->prune_empty_dirs || by_path;
	struct flist_pos pos;
	int32_t node = 0;

	if (loads_all)
		receiver_load_everything(receiver);
	if (receiver->dest.options->prune_empty_dirs)
		receiver_prune(receiver);
	for (int32_t ndx = 0; by_path && flist_locate(receiver->dest.list, ndx, &pos); ndx++)
		if (!(pos.entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)))
			print_entry(receiver, pos.dir, pos.entry);
	for (size_t i = 0; loads_all && !by_path && i < receiver->order.count; i++)
		print_node(receiver, receiver->order.items[i]);
	while (!loads_all && node >= 0) {
		receiver->loaded_entries += flist_dir(receiver->dest.list, node)->entries->count;
		receiver_debug_list(receiver, node);
		print_node(receiver, node);
		if (contents->is_remote)
			contents->calls->node_done(contents, node);
		node = contents->calls->next_list(contents);
	}
}
