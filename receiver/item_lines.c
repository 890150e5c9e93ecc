/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines that a client prints and logs of the items of its run. */
#include "receiver/item_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/decide.h"
#include "lib/log.h"
#include "ui/progress.h"
#include "wire/request.h"

static const char *choose_shown(const struct options *options)
{
	if (options->out_format)
		return options->out_format;
	return options->levels.info[INFO_NAME] ? "%n%L" : NULL;
}

static const char *choose_logged(const struct options *options)
{
	const char *format = options->log_file_format;

	if (!options->log_file || (format && !*format))
		return NULL;
	return format ? format : "%i %n%L";
}

void item_lines_init(struct item_lines *lines, const struct options *options)
{
	const char *shown = choose_shown(options), *logged = choose_logged(options);

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

char *item_line(const char *format, const struct format_values *values)
{
	struct strbuf line = STRBUF_INIT;

	format_expand(format, values, &line);
	return strbuf_detach(&line);
}

static void log_deleted(enum log_kind kind, const char *format, const struct format_values *values)
{
	char *line = item_line(format, values);

	log_msg(kind, "%s", line);
	free(line);
}

void item_lines_deletion(const struct item_lines *lines, const char *path, bool is_dir)
{
	const struct options *options = lines->options;
	const struct format_values values = {
		.look = { .flags = ITEM_DELETED, .mode = is_dir ? S_IFDIR : S_IFREG },
		.name = path, .shown = path, .is_deletion = true, .pid = (int)getpid(), .group_not_kept = !options->group,
	};

	if (lines->is_only_logged)
		;
	else if (lines->shown && (lines->shown_has_item || lines->shown_has_operation))
		log_deleted(L_CLIENT, lines->shown, &values);
	else if (options->levels.info[INFO_DEL] || lines->shown)
		log_deleted(L_CLIENT, "deleting %n", &values);
	if (!options->log_file || options->dry_run)
		return;
	log_deleted(L_LOG, lines->logged_has_item || lines->logged_has_operation ? lines->logged : "deleting %n", &values);
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

void log_list_begin(bool sends)
{
	log_msg(L_LOG, "%s file list", sends ? "building" : "receiving");
}

bool log_end_is_wanted(const struct options *options, int code)
{
	return !code && options->levels.info[INFO_STATS];
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
