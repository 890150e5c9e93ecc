/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --attr-to-tree TREE and --attr-from-tree TREE [REAL/]: a snapshot from an attr tree, and an attr tree from a snapshot. */
#include "snapshot/convert.h"

#include <stdlib.h>

#include "attrs/snapshot.h"
#include "contents/contents.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options.h"
#include "snapshot/facts.h"
#include "snapshot/make.h"

/* Nothing of what a snapshot holds is left out: as -aH. */
static void want_everything(struct options *options)
{
	options->recursive = 2;
	options->links = options->perms = options->times = options->owner = options->group = true;
	options->devices = options->specials = true;
	options->hard_links = options->hard_links ? options->hard_links : 1;
}

int snapshot_to_tree_main(struct options *options)
{
	struct attr_snapshot *snapshot = snapshot_open_or_die(options->attr_snapshot);
	const char *root = attr_snapshot_facts(snapshot)->root_path;
	char *shown = xasprintf("%s:", options->attr_snapshot), *guarded = *root == '/' ? xasprintf("%s/", root) : NULL;
	struct receiver_snapshot from = { .snapshot = snapshot, .path = "./", .shown = shown, .root = guarded };
	int code;

	want_everything(options);
	options->only_send_attrs = true;
	code = receiver_snapshot_main(options, &from, options->operands.items[0]);
	if (attr_snapshot_facts(snapshot)->io_error && code == EXIT_OK) {
		log_error("rsync: \"%s\" was made with errors: it may lack something", options->attr_snapshot);
		code = EXIT_PARTIAL;
	}
	free(shown);
	free(guarded);
	attr_snapshot_close(snapshot);
	return code;
}

int snapshot_from_tree_main(struct options *options)
{
	if (options->atimes)
		die(EXIT_SYNTAX, "rsync: an attr tree does not keep the access times that --atimes (-U) asks for");
	return snapshot_make_main(options);
}
