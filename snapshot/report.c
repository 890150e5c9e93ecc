/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How one difference of two trees is printed: as a line of --out-format, or as a path for another program. */
#include "snapshot/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/strbuf.h"
#include "options.h"
#include "snapshot/compare.h"
#include "snapshot/groups.h"
#include "ui/itemize.h"
#include "wire/request.h"

static void put(const struct change_report *report, const char *text, size_t length)
{
	if (report->options->quiet)
		return;
	fwrite(text, 1, length, stdout);
	fputc(report->options->from0 ? '\0' : '\n', stdout);
}

void change_report_path(struct change_report *report, const char *path)
{
	struct strbuf safe = STRBUF_INIT;

	if (!report->options->from0 && strpbrk(path, "\r\n")) {
		report->unprintable++;
		return;
	}
	/* --files-from takes these for comments. */
	if (*path == '#' || *path == ';')
		strbuf_add_string(&safe, "./");
	strbuf_add_string(&safe, path);
	put(report, strbuf_text(&safe), safe.length);
	strbuf_free(&safe);
}

static const uint8_t *some_digest(const struct change_report *report, const struct snapshot_change *change)
{
	const uint8_t *digest;

	if (change->item & ITEM_DELETED)
		return NULL;
	digest = compared_digest(report->tree, change->list, change->entry, ATTR_DIGEST_XXH128);
	return digest ? digest : compared_digest(report->tree, change->list, change->entry, ATTR_DIGEST_MD5);
}

static void fill_values(const struct change_report *report, const struct snapshot_change *change, struct strbuf *leader,
			struct format_values *values)
{
	const struct entry *entry = change->entry;
	bool is_link = change->item & ITEM_XNAME_FOLLOWS && change->group != NO_GROUP && !change->leads;

	if (is_link)
		compared_path(report->tree, link_groups_leader(report->groups, change->group), leader);
	*values = (struct format_values){
		.look = { .flags = change->item, .mode = entry->mode, .times_kept = true },
		.name = change->path,
		.shown = change->path,
		.link = is_link ? strbuf_text(leader) : entry_is_symlink(entry) ? entry_target(change->list, entry) : NULL,
		.link_is_hard = is_link,
		.is_deletion = (change->item & ITEM_DELETED) != 0,
		.length = entry->size,
		.mtime = entry->mtime,
		.uid = entry->uid,
		.gid = entry->gid,
		.digest = some_digest(report, change),
		.pid = (int)getpid(),
		.operation = "send",
	};
	if (values->is_deletion)
		values->link = NULL;
}

void change_report(struct change_report *report, const struct snapshot_change *change)
{
	struct strbuf leader = STRBUF_INIT, line = STRBUF_INIT;
	struct format_values values;

	fill_values(report, change, &leader, &values);
	format_expand(report->format, &values, &line);
	if (report->options->from0)
		put(report, strbuf_text(&line), line.length);
	else
		log_info("%s", strbuf_text(&line));
	strbuf_free(&leader);
	strbuf_free(&line);
}
