/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --attr-list FILE [PATH]: what --list-only would say of the tree. */
#include "snapshot/list.h"

#include <stdlib.h>
#include <string.h>

#include "attrs/snapshot.h"
#include "contents/contents.h"
#include "fs/root.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "options.h"
#include "snapshot/facts.h"

/* As a source argument below the snapshot's root. */
static char *source_path(const char *given)
{
	char *path = xmalloc(strlen(given) + 3);

	fs_clean_path(path, given);
	if (!strcmp(path, "."))
		strcpy(path, "./");
	return path;
}

static void say_header(struct options *options, const char *file, const struct attr_snapshot *snapshot)
{
	struct strbuf lines = STRBUF_INIT;
	char *line, *save = NULL;

	snapshot_describe(&lines, file, snapshot, options->human_readable);
	/* Each a message of its own: their line breaks are no part of them. */
	for (line = strtok_r(lines.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		log_info("%s", line);
	strbuf_free(&lines);
}

int snapshot_list_main(struct options *options)
{
	const char *file = options->operands.items[0];
	struct attr_snapshot *snapshot = snapshot_open_or_die(file);
	char *path = source_path(options->operands.count > 1 ? options->operands.items[1] : "");
	char *shown = xasprintf("%s:", file);
	struct receiver_snapshot from = { .snapshot = snapshot, .path = path, .shown = shown };
	int code;

	if (options->verbose || options->stats)
		say_header(options, file, snapshot);
	/* The header says what they would. */
	options->levels.info[INFO_FLIST] = options->levels.info[INFO_STATS] = 0;
	options->list_only = true;
	options->dirs = !options->recursive;
	code = receiver_snapshot_main(options, &from, NULL);
	free(path);
	free(shown);
	attr_snapshot_close(snapshot);
	return code;
}
