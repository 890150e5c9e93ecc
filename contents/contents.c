/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The runs that list something or write a destination, by where their list and their contents come from; and contents that are
 * copied from files of this system, where nothing has to be waited for.
 */
#include "contents/contents.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attrs/snapshot.h"
#include "contents/pull.h"
#include "dest/file.h"
#include "dest/job.h"
#include "dest/write.h"
#include "fs/file.h"
#include "fs/root.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "receiver/run.h"
#include "snapshot.h"

struct copies {
	struct contents contents;
	struct receiver *receiver;
};

static void request(struct contents *contents, struct file_job *job)
{
	(void)contents;
	job_take_content(job);
}

/* --- --checksum --- */

/* --checksum between two local files: no digest says it better than the bytes. */
static bool is_same(struct contents *contents, struct file_job *job)
{
	enum { CHUNK = 128 * 1024 };
	uint64_t size;
	ssize_t a = -1, b = -1;
	int source = job_open_source(job, &size);
	int dest = source < 0 ? -1 : fs_open_at(job->looked_at.dir_fd, job->name, O_RDONLY, 0);
	char *buffers = dest < 0 ? NULL : malloc(2 * CHUNK);

	(void)contents;
	while (buffers) {
		a = fs_read_full(source, buffers, CHUNK);
		b = fs_read_full(dest, buffers + CHUNK, CHUNK);
		if (a <= 0 || a != b || memcmp(buffers, buffers + CHUNK, (size_t)a) != 0)
			break;
	}
	free(buffers);
	if (source >= 0)
		close(source);
	if (dest >= 0)
		close(dest);
	return a == 0 && b == 0;
}

static int32_t next_list(struct contents *contents)
{
	return flist_load_next(((struct copies *)contents)->receiver->dest.list);
}

static void free_copies(struct contents *contents)
{
	free(contents);
}

/* There is no peer. */
static struct contents *contents_of_files(struct receiver *receiver, const struct receiver_peer *peer)
{
	static const struct contents_calls calls = {
		.request = request, .is_same = is_same, .next_list = next_list, .free = free_copies,
	};
	struct copies *copies = xcalloc(1, sizeof *copies);

	(void)peer;
	copies->contents.calls = &calls;
	copies->receiver = receiver;
	return &copies->contents;
}

/* --- runs --- */

int receiver_main(struct options *options, struct run_stats *stats)
{
	size_t operands = options->operands.count;
	bool lists = options->list_only || operands == 1;

	if (options->attr_snapshot && options->only_send_attrs)
		die(EXIT_SYNTAX, "rsync: --only-send-attrs with a destination writes an attr tree: --attr-snapshot is for runs "
		    "without a destination then");
	return run_receiver(options, NULL, NULL, contents_of_files, lists ? NULL : options->operands.items[operands - 1],
			    stats);
}

int receiver_pull_main(struct options *options, const struct receiver_peer *peer, const char *destination)
{
	return run_receiver(options, NULL, peer, contents_of_peer, destination, peer->service ? peer->service->stats : NULL);
}

/* --- of what a snapshot says --- */

int receiver_list_snapshot(struct options *options)
{
	const char *file = options->operands.items[0];
	struct attr_snapshot *snapshot = snapshot_open_or_die(file);
	const char *given = options->operands.count > 1 ? options->operands.items[1] : "";
	char *path = xmalloc(strlen(given) + 3);
	char *shown = xasprintf("%s:", file);
	struct receiver_snapshot from = { .snapshot = snapshot, .path = path, .shown = shown };
	int code;

	/* As a source argument below the snapshot's root. */
	fs_clean_path(path, given);
	if (!strcmp(path, "."))
		strcpy(path, "./");
	if (options->verbose || options->stats) {
		struct strbuf lines = STRBUF_INIT;
		char *line, *save = NULL;

		snapshot_describe(&lines, file, snapshot, options->human_readable);
		/* Each a message of its own: their line breaks are no part of them. */
		for (line = strtok_r(lines.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			log_info("%s", line);
		strbuf_free(&lines);
	}
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

int receiver_snapshot_to_tree(struct options *options)
{
	struct attr_snapshot *snapshot = snapshot_open_or_die(options->attr_snapshot);
	const char *root = attr_snapshot_facts(snapshot)->root_path;
	char *shown = xasprintf("%s:", options->attr_snapshot), *guarded = *root == '/' ? xasprintf("%s/", root) : NULL;
	struct receiver_snapshot from = { .snapshot = snapshot, .path = "./", .shown = shown, .root = guarded };
	int code;

	/* Nothing of what a snapshot holds is left out: as -aH. */
	options->recursive = 2;
	options->links = options->perms = options->times = options->owner = options->group = true;
	options->devices = options->specials = true;
	options->hard_links = options->hard_links ? options->hard_links : 1;
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
