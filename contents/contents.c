/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The runs that list something or write a destination, by where their list and their contents come from. */
#include "contents/contents.h"

#include <stdlib.h>
#include <string.h>

#include "attrs/snapshot.h"
#include "contents/copy.h"
#include "contents/pull.h"
#include "fs/root.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "receiver/run.h"
#include "snapshot.h"

int receiver_main(struct options *options)
{
	size_t operands = options->operands.count;
	bool lists = options->list_only || operands == 1;

	if (options->attr_snapshot && options->only_send_attrs)
		die(EXIT_SYNTAX, "rsync: --only-send-attrs with a destination writes an attr tree: --attr-snapshot is for runs "
		    "without a destination then");
	return run_receiver(options, NULL, NULL, contents_of_files, lists ? NULL : options->operands.items[operands - 1], NULL);
}

int receiver_count_main(struct options *options, struct run_stats *stats)
{
	return run_receiver(options, NULL, NULL, contents_of_files, options->operands.items[options->operands.count - 1],
			    stats);
}

int receiver_pull_main(struct options *options, const struct receiver_peer *peer, const char *destination)
{
	return run_receiver(options, NULL, peer, contents_of_peer, destination, peer->service ? peer->service->stats : NULL);
}

/* --- of what a snapshot says --- */

/* As a source argument below the snapshot's root. */
static char *source_path(const char *given)
{
	char *path = xmalloc(strlen(given) + 3);

	fs_clean_path(path, given);
	if (!strcmp(path, "."))
		strcpy(path, "./");
	return path;
}

static void log_header(const struct options *options, const char *file, const struct attr_snapshot *snapshot)
{
	struct strbuf lines = STRBUF_INIT;
	char *line, *save = NULL;

	snapshot_describe(&lines, file, snapshot, options->human_readable);
	/* Each a message of its own: their line breaks are no part of them. */
	for (line = strtok_r(lines.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		log_info("%s", line);
	strbuf_free(&lines);
}

int receiver_list_snapshot(struct options *options)
{
	const char *file = options->operands.items[0];
	struct attr_snapshot *snapshot = snapshot_open_or_die(file);
	char *path = source_path(options->operands.count > 1 ? options->operands.items[1] : "");
	char *shown = xasprintf("%s:", file);
	struct receiver_snapshot from = { .snapshot = snapshot, .path = path, .shown = shown };
	int code;

	if (options->verbose || options->stats)
		log_header(options, file, snapshot);
	/* The header says what they would. */
	options->levels.info[INFO_FLIST] = options->levels.info[INFO_STATS] = 0;
	options->list_only = true;
	options->dirs = !options->recursive;
	code = run_receiver(options, &from, NULL, contents_of_files, NULL, NULL);
	free(path);
	free(shown);
	attr_snapshot_close(snapshot);
	return code;
}

/* Nothing of what a snapshot holds is left out: as -aH. */
static void want_everything(struct options *options)
{
	options->recursive = 2;
	options->links = options->perms = options->times = options->owner = options->group = true;
	options->devices = options->specials = true;
	options->hard_links = options->hard_links ? options->hard_links : 1;
}

int receiver_snapshot_to_tree(struct options *options)
{
	struct attr_snapshot *snapshot = snapshot_open_or_die(options->attr_snapshot);
	const char *root = attr_snapshot_facts(snapshot)->root_path;
	char *shown = xasprintf("%s:", options->attr_snapshot), *guarded = *root == '/' ? xasprintf("%s/", root) : NULL;
	struct receiver_snapshot from = { .snapshot = snapshot, .path = "./", .shown = shown, .root = guarded };
	int code;

	want_everything(options);
	options->only_send_attrs = true;
	code = run_receiver(options, &from, NULL, contents_of_files, options->operands.items[0], NULL);
	if (attr_snapshot_facts(snapshot)->io_error && code == EXIT_OK) {
		log_error("rsync: \"%s\" was made with errors: it may lack something", options->attr_snapshot);
		code = EXIT_PARTIAL;
	}
	free(shown);
	free(guarded);
	attr_snapshot_close(snapshot);
	return code;
}
