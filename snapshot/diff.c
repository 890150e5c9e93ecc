/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * --attr-diff OLD NEW: what changed from one snapshot to the next. Without a format the output is a list of paths for another
 * program: what is new or changed, for --files-from; with --delete what is gone, for rm. With one it is what rsync -i says.
 */

#include "snapshot/diff.h"

#include <stdlib.h>

#include "attrs/snapshot.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "options.h"
#include "snapshot/compare.h"
#include "snapshot/facts.h"
#include "snapshot/groups.h"
#include "snapshot/report.h"
#include "wire/request.h"
#include "wire/session.h"

/* An entry that has not changed, but may have to be named for the sake of one it is linked to. */
struct held { struct tree_place place; uint32_t group; };

struct diff {
	struct change_report report;
	bool gone_only;
	VEC(struct held) held;
	VEC(uint8_t) changed_groups; /* by number: has a member been named? */
};

static void note_changed_group(struct diff *diff, uint32_t group)
{
	while (diff->changed_groups.count <= group)
		vec_push(&diff->changed_groups, 0);
	diff->changed_groups.items[group] = 1;
}

/* rsync sets the attributes of the root with whatever name is given to it; "." would mean all that is in it. */
static bool is_root(const struct snapshot_change *change)
{
	return change->path[0] == '.' && !change->path[1];
}

static void list_changed(struct diff *diff, const struct snapshot_change *change)
{
	if (is_root(change))
		return;
	if (!change->item) {
		struct held held = { change->place, change->group };
		vec_push(&diff->held, held);
		return;
	}
	if (change->group != NO_GROUP)
		note_changed_group(diff, change->group);
	change_report_path(&diff->report, change->path);
}

static void take_change(void *diff_void, const struct snapshot_change *change)
{
	struct diff *diff = diff_void;
	bool gone = change->item & ITEM_DELETED;

	if (diff->gone_only && !gone)
		return;
	if (diff->report.format)
		change_report(&diff->report, change);
	else if (diff->gone_only)
		change_report_path(&diff->report, change->path);
	else if (!gone)
		list_changed(diff, change);
}

/* Links are made only among names of one list: a group that gets a member needs all the others there. */
static void list_held(struct diff *diff)
{
	struct strbuf path = STRBUF_INIT;

	for (size_t i = 0; i < diff->held.count; i++) {
		const struct held *held = &diff->held.items[i];
		if (held->group >= diff->changed_groups.count || !diff->changed_groups.items[held->group])
			continue;
		compared_path(diff->report.tree, held->place, &path);
		change_report_path(&diff->report, strbuf_text(&path));
	}
	strbuf_free(&path);
}

static const char *choose_format(const struct options *options)
{
	if (options->out_format && *options->out_format)
		return options->out_format;
	return options->itemize ? "%i %n%L" : NULL;
}

static int finish(struct diff *diff, bool keeps)
{
	snapshot_flush_output();
	if (diff->report.unprintable)
		log_error("rsync: %llu name%s with line breaks cannot be listed without --from0 (-0)",
			  (unsigned long long)diff->report.unprintable, diff->report.unprintable == 1 ? "" : "s");
	if (keeps)
		log_error("IO error encountered when the newer snapshot was made -- skipping deletions");
	return diff->report.unprintable || keeps ? EXIT_PARTIAL : EXIT_OK;
}

static void refuse_rules(const struct options *options)
{
	if (options->filters.count || options->cvs_exclude)
		die(EXIT_SYNTAX, "rsync: filter rules have no effect on --attr-diff, but on the run that makes a snapshot");
}

int snapshot_diff_main(struct options *options)
{
	struct attr_snapshot *old, *new;
	struct diff diff = { .gone_only = options->delete_when != DELETE_NEVER };
	struct snapshot_comparison comparison;
	int code;

	refuse_rules(options);
	old = snapshot_open_or_die(options->operands.items[0]);
	new = snapshot_open_or_die(options->operands.items[1]);
	comparison = (struct snapshot_comparison){
		.old = old, .new = { .snapshot = new }, .atimes = options->atimes > 0, .modify_window = options->modify_window,
		.groups = link_groups_new(), .tell = take_change, .context = &diff,
		.keeps = attr_snapshot_facts(new)->io_error & IOERR_GENERAL && !options->ignore_errors,
	};
	diff.report = (struct change_report){
		.options = options, .format = choose_format(options), .tree = &comparison.new, .groups = comparison.groups,
	};
	comparison.all = !diff.report.format && !diff.gone_only;
	snapshot_compare(&comparison);
	list_held(&diff);
	code = finish(&diff, comparison.keeps && (diff.gone_only || diff.report.format));
	vec_free(&diff.held);
	vec_free(&diff.changed_groups);
	link_groups_free(comparison.groups);
	attr_snapshot_close(old);
	attr_snapshot_close(new);
	return code;
}

/* --- counting --- */

static void count_change(void *count_void, const struct snapshot_change *change)
{
	uint64_t *count = count_void;

	*count += change->item != 0;
}

uint64_t snapshot_count_changes(struct attr_snapshot *old, const struct attr_snapshot *new)
{
	uint64_t count = 0;
	const struct snapshot_comparison comparison = {
		.old = old, .new = { .snapshot = new }, .groups = link_groups_new(), .tell = count_change, .context = &count,
	};

	snapshot_compare(&comparison);
	link_groups_free(comparison.groups);
	return count;
}
