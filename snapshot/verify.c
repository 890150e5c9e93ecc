/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --attr-verify FILE [SRC/]: is the file whole, and does it still say what the tree says? */
#include "snapshot/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attrs/image.h"
#include "attrs/snapshot.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options.h"
#include "snapshot/compare.h"
#include "snapshot/facts.h"
#include "snapshot/groups.h"
#include "snapshot/make.h"
#include "snapshot/report.h"
#include "ui/number.h"

struct verification {
	struct change_report report;
	uint64_t differences;
};

static void take_change(void *verification_void, const struct snapshot_change *change)
{
	struct verification *verification = verification_void;

	verification->differences++;
	change_report(&verification->report, change);
}

static void say_whole(const struct options *options, const char *file, const struct attr_snapshot *snapshot)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	char entries[64], dirs[64], bytes[64];
	int level = options->human_readable;

	log_info("%s: generation %" PRIu64 ", entries: %s, directories: %s, bytes of contents: %s: whole", file,
		 facts->generation,
		 number_format(entries, sizeof entries, (int64_t)facts->entry_count, level),
		 number_format(dirs, sizeof dirs, (int64_t)facts->dir_count, level),
		 number_format(bytes, sizeof bytes, (int64_t)facts->content_bytes, level));
}

/* What makes a comparison mean less than it seems to. */
static void warn_of_circumstances(const char *file, const struct attr_snapshot_facts *facts, const struct image *image)
{
	if ((facts->root_dev || facts->root_ino) && (facts->root_dev != image->root_dev || facts->root_ino != image->root_ino))
		log_warning("%s: is of another directory, %s", file, facts->root_path);
	if (strcmp(facts->options, image->options ? image->options : "") != 0)
		log_warning("%s: was made with other options: %s", file, *facts->options ? facts->options : "none");
	if (facts->io_error)
		log_warning("%s: was made with errors: it may lack something", file);
}

static int compare_with_tree(struct options *options, const char *file, struct attr_snapshot *snapshot, const char *tree)
{
	const struct attr_snapshot_facts *facts = attr_snapshot_facts(snapshot);
	struct image *image = snapshot_scan_tree(options, tree, options->checksum ? facts->digests : 0);
	struct verification verification = { .differences = 0 };
	struct snapshot_comparison comparison = {
		.old = snapshot, .new = { .image = image }, .atimes = facts->has_atimes && options->atimes > 0,
		.modify_window = options->modify_window, .groups = link_groups_new(), .tell = take_change,
		.context = &verification,
	};
	bool failed = image->io_error || log_saw_xfer_error();
	char number[64];

	verification.report = (struct change_report){
		.options = options, .format = options->out_format && *options->out_format ? options->out_format : "%i %n%L",
		.tree = &comparison.new, .groups = comparison.groups,
	};
	warn_of_circumstances(file, facts, image);
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
	int code = EXIT_OK;

	say_whole(options, file, snapshot);
	if (options->checksum && options->operands.count > 1 && !attr_snapshot_facts(snapshot)->digests)
		die(EXIT_SYNTAX, "rsync: \"%s\" holds no digests that --checksum could compare", file);
	if (options->operands.count > 1)
		code = compare_with_tree(options, file, snapshot, options->operands.items[1]);
	snapshot_flush_output();
	attr_snapshot_close(snapshot);
	return code;
}
