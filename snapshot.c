/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is done with existing attr snapshots: they are opened, described, verified against a tree and compared.
 *
 * --attr-verify FILE [SRC/]: is the file whole, and does it still say what the tree says?
 *
 * --attr-diff OLD NEW: what changed from one snapshot to the next. Without a format the output is a list of paths for another
 * program: what is new or changed, for --files-from; with --delete what is gone, for rm. With one it is what rsync -i says.
 */
#include "snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attrs/image.h"
#include "attrs/snapshot.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "options.h"
#include "snapshot/compare.h"
#include "snapshot/make.h"
#include "ui/itemize.h"
#include "ui/number.h"
#include "wire/request.h"
#include "wire/session.h"

struct attr_snapshot *snapshot_open_or_die(const char *path)
{
	struct strbuf why = STRBUF_INIT;
	struct attr_snapshot *snapshot = attr_snapshot_open(path, &why);
	int error = errno;

	if (snapshot) {
		strbuf_free(&why);
		return snapshot;
	}
	if (why.length)
		die(EXIT_FILEIO, "rsync: attr snapshot \"%s\": %s", path, strbuf_text(&why));
	die_errno(EXIT_FILEIO, error, "cannot open attr snapshot \"%s\"", path);
}

/* What was written to standard output has arrived there; else the process ends with EXIT_FILEIO. */
static void flush_output(void)
{
	int error = fflush(stdout) < 0 ? errno : EIO;

	if (!ferror(stdout))
		return;
	die_errno(EXIT_FILEIO, error, "cannot write to standard output");
}

static void add_number(struct strbuf *out, uint64_t value, int level, const char *unit, const char *units)
{
	char number[64];

	strbuf_addf(out, "%s %s", number_format(number, sizeof number, (int64_t)value, level), value == 1 ? unit : units);
}

static void add_age(struct strbuf *out, int64_t made)
{
	static const struct { int64_t seconds; const char *unit; } units[] = {
		{ 86400, "days" }, { 3600, "hours" }, { 60, "minutes" }, { 1, "seconds" },
	};
	int64_t age = (int64_t)time(NULL) - made;

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (age >= 2 * units[i].seconds || (units[i].seconds == 1 && age >= 0)) {
			strbuf_addf(out, " (%" PRId64 " %s ago)", age / units[i].seconds, units[i].unit);
			return;
		}
	strbuf_add_string(out, " (in the future)");
}

void snapshot_describe(struct strbuf *out, const char *path, const struct attr_snapshot *snapshot, int number_level)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);

	strbuf_addf(out, "# attr snapshot %s\n# generation %" PRIu64 " of ", path, facts->generation);
	listing_time(out, facts->made);
	add_age(out, facts->made);
	strbuf_addf(out, ", made by %s\n# root: ", facts->version);
	if (facts->root_dev || facts->root_ino)
		strbuf_addf(out, "%s, device %" PRIu64 ", inode %" PRIu64, facts->root_path, facts->root_dev, facts->root_ino);
	else
		strbuf_addf(out, "any%s%s", *facts->root_path ? ", from the list of " : "", facts->root_path);
	strbuf_addf(out, "\n# options: %s\n# ", facts->options);
	add_number(out, facts->entry_count, number_level, "entry", "entries");
	strbuf_add_string(out, " in ");
	add_number(out, facts->dir_count, number_level, "directory", "directories");
	strbuf_add_string(out, ", ");
	add_number(out, facts->content_bytes, number_level, "byte", "bytes");
	strbuf_add_string(out, " of contents; the file has ");
	add_number(out, facts->file_size, number_level, "byte", "bytes");
	strbuf_addf(out, "\n# digests:%s%s%s%s", facts->digests & ATTR_DIGEST_XXH128 ? " xxh128" : "",
		    facts->digests & ATTR_DIGEST_MD5 ? " md5" : "", facts->digests ? "" : " none",
		    facts->has_atimes ? "; with access times" : "");
	if (facts->followed_links)
		strbuf_add_string(out, "\n# symlinks were followed");
	if (facts->io_error)
		strbuf_add_string(out, "\n# there were errors when it was made: it may lack something");
}

/* --- how one difference is printed: as a line of --out-format, or as a path for another program --- */

/* How a difference is printed. */
struct change_report {
	const struct options *options;
	const char *format;               /* of a line; NULL: paths for --files-from or rm, as they are */
	const struct compared_tree *tree; /* the newer one */
	const struct link_groups *groups;
	uint64_t unprintable;             /* paths that cannot stand on a line of their own */
};

static void put(const struct change_report *report, const char *text, size_t length)
{
	if (report->options->quiet)
		return;
	fwrite(text, 1, length, stdout);
	fputc(report->options->from0 ? '\0' : '\n', stdout);
}

/* A path as it is, made safe for a list that --files-from reads. */
static void change_report_path(struct change_report *report, const char *path)
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

static void change_report(struct change_report *report, const struct snapshot_change *change)
{
	const struct entry *entry = change->entry;
	bool is_deletion = change->item & ITEM_DELETED;
	bool is_link = change->item & ITEM_XNAME_FOLLOWS && change->group != NO_GROUP && !change->leads;
	struct strbuf leader = STRBUF_INIT, line = STRBUF_INIT;
	struct format_values values = {
		.look = { .flags = change->item, .mode = entry->mode, .times_kept = true },
		.name = change->path, .shown = change->path, .link_is_hard = is_link, .is_deletion = is_deletion,
		.length = entry->size, .mtime = entry->mtime, .uid = entry->uid, .gid = entry->gid,
		.pid = (int)getpid(), .operation = "send",
	};

	if (is_link)
		compared_path(report->tree, link_groups_leader(report->groups, change->group), &leader);
	if (!is_deletion) {
		if (is_link)
			values.link = strbuf_text(&leader);
		else if (entry_is_symlink(entry))
			values.link = entry_target(change->list, entry);
		values.digest = compared_digest(report->tree, change->list, entry, ATTR_DIGEST_XXH128);
		if (!values.digest)
			values.digest = compared_digest(report->tree, change->list, entry, ATTR_DIGEST_MD5);
	}
	format_expand(report->format, &values, &line);
	if (report->options->from0)
		put(report, strbuf_text(&line), line.length);
	else
		log_info("%s", strbuf_text(&line));
	strbuf_free(&leader);
	strbuf_free(&line);
}

/* --- --attr-verify --- */

struct verification {
	struct change_report report;
	uint64_t differences;
};

static void count_difference(void *verification_void, const struct snapshot_change *change)
{
	struct verification *verification = verification_void;

	verification->differences++;
	change_report(&verification->report, change);
}

static int compare_with_tree(struct options *options, const char *file, struct attr_snapshot *snapshot, const char *tree)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	struct image *image = snapshot_scan_tree(options, tree, options->checksum ? facts->digests : 0);
	struct verification verification = { .differences = 0 };
	struct snapshot_comparison comparison = {
		.old = snapshot, .new = { .image = image }, .atimes = facts->has_atimes && options->atimes > 0,
		.modify_window = options->modify_window, .groups = link_groups_new(), .tell = count_difference,
		.context = &verification,
	};
	bool failed = image->io_error || log_saw_xfer_error();
	char number[64];

	verification.report = (struct change_report){
		.options = options, .format = options->out_format && *options->out_format ? options->out_format : "%i %n%L",
		.tree = &comparison.new, .groups = comparison.groups,
	};
	/* By these the comparison means less than it seems to. */
	if ((facts->root_dev || facts->root_ino) && (facts->root_dev != image->root_dev || facts->root_ino != image->root_ino))
		log_warning("%s: is of another directory, %s", file, facts->root_path);
	if (strcmp(facts->options, image->options ? image->options : "") != 0)
		log_warning("%s: was made with other options: %s", file, *facts->options ? facts->options : "none");
	if (facts->io_error)
		log_warning("%s: was made with errors: it may lack something", file);
	snapshot_compare(&comparison);
	if (verification.differences)
		log_info("%s: differences from %s: %s", file, tree,
			 number_format(number, sizeof number, (int64_t)verification.differences, options->human_readable));
	else
		log_info("%s: the same as %s", file, tree);
	link_groups_free(comparison.groups);
	image_free(image);
	return verification.differences || failed ? EXIT_PARTIAL : EXIT_OK;
}

int snapshot_verify_main(struct options *options)
{
	const char *file = options->operands.items[0];
	struct attr_snapshot *snapshot = snapshot_open_or_die(file);
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	char entries[64], dirs[64], bytes[64];
	int code = EXIT_OK, level = options->human_readable;

	log_info("%s: generation %" PRIu64 ", entries: %s, directories: %s, bytes of contents: %s: whole", file,
		 facts->generation,
		 number_format(entries, sizeof entries, (int64_t)facts->entry_count, level),
		 number_format(dirs, sizeof dirs, (int64_t)facts->dir_count, level),
		 number_format(bytes, sizeof bytes, (int64_t)facts->content_bytes, level));
	if (options->checksum && options->operands.count > 1 && !facts->digests)
		die(EXIT_SYNTAX, "rsync: \"%s\" holds no digests that --checksum could compare", file);
	if (options->operands.count > 1)
		code = compare_with_tree(options, file, snapshot, options->operands.items[1]);
	flush_output();
	attr_snapshot_close(snapshot);
	return code;
}

/* --- --attr-diff --- */

/* An entry that has not changed, but may have to be named for the sake of one it is linked to. */
struct held { struct tree_place place; uint32_t group; };

struct diff {
	struct change_report report;
	bool gone_only;
	VEC(struct held) held;
	VEC(uint8_t) changed_groups; /* by number: has a member been named? */
};

static void list_changed(struct diff *diff, const struct snapshot_change *change)
{
	/* rsync sets the attributes of the root with whatever name is given to it; "." would mean all that is in it. */
	if (!strcmp(change->path, "."))
		return;
	if (!change->item) {
		struct held held = { change->place, change->group };
		vec_push(&diff->held, held);
		return;
	}
	while (change->group != NO_GROUP && diff->changed_groups.count <= change->group)
		vec_push(&diff->changed_groups, 0);
	if (change->group != NO_GROUP)
		diff->changed_groups.items[change->group] = 1;
	change_report_path(&diff->report, change->path);
}

static void list_difference(void *diff_void, const struct snapshot_change *change)
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

int snapshot_diff_main(struct options *options)
{
	const char *format = options->out_format && *options->out_format ? options->out_format
			     : options->itemize                          ? "%i %n%L"
									 : NULL;
	struct diff diff = { .gone_only = options->delete_when != DELETE_NEVER };
	struct strbuf path = STRBUF_INIT;

	if (options->filters.count || options->cvs_exclude)
		die(EXIT_SYNTAX, "rsync: filter rules have no effect on --attr-diff, but on the run that makes a snapshot");
	struct attr_snapshot *old = snapshot_open_or_die(options->operands.items[0]);
	struct attr_snapshot *new = snapshot_open_or_die(options->operands.items[1]);
	struct snapshot_comparison comparison = {
		.old = old, .new = { .snapshot = new }, .atimes = options->atimes > 0, .modify_window = options->modify_window,
		.groups = link_groups_new(), .tell = list_difference, .context = &diff, .all = !format && !diff.gone_only,
		.keeps = attr_snapshot_facts(new)->io_error & IOERR_GENERAL && !options->ignore_errors,
	};

	diff.report = (struct change_report){
		.options = options, .format = format, .tree = &comparison.new, .groups = comparison.groups,
	};
	snapshot_compare(&comparison);
	/* Links are made only among names of one list: a group that gets a member needs all the others there. */
	for (size_t i = 0; i < diff.held.count; i++) {
		const struct held *held = &diff.held.items[i];
		if (held->group >= diff.changed_groups.count || !diff.changed_groups.items[held->group])
			continue;
		compared_path(diff.report.tree, held->place, &path);
		change_report_path(&diff.report, strbuf_text(&path));
	}
	flush_output();
	uint64_t unprintable = diff.report.unprintable;
	bool keeps = comparison.keeps && (diff.gone_only || format);

	if (unprintable)
		log_error("rsync: %llu name%s with line breaks cannot be listed without --from0 (-0)",
			  (unsigned long long)unprintable, unprintable == 1 ? "" : "s");
	if (keeps)
		log_error("IO error encountered when the newer snapshot was made -- skipping deletions");
	strbuf_free(&path);
	vec_free(&diff.held);
	vec_free(&diff.changed_groups);
	link_groups_free(comparison.groups);
	attr_snapshot_close(old);
	attr_snapshot_close(new);
	return unprintable || keeps ? EXIT_PARTIAL : EXIT_OK;
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
