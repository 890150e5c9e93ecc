/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The attr snapshot of the destination, written after the run (--attr-snapshot=FILE SRC DEST): the making run without most of
 * its scan, because the run has seen the tree (local_seen.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attrs/image_known.h"
#include "fs/operator.h"
#include "lib/exit.h"
#include "local_private.h"
#include "snapshot_make.h"

/* --- before --- */

/* A single file has no snapshot; a directory that gets another name has. */
static bool is_directory(struct local *local)
{
	const struct entries *first = flist_dir(local->list, 0)->entries;

	return !local->single_name || (first->count && entry_is_dir(&first->items[0]));
}

static void check_place(struct local *local)
{
	char leaf[256];
	int fd = fs_operator_parent(local->snapshot_file, leaf);

	if (fd < 0) {
		log_errno(L_ERROR, errno, "cannot write the snapshot %s", local->snapshot_file);
		exit_with(EXIT_FILEIO);
	}
	if (!local->single_name && local->top.fd >= 0 && fs_is_inside(fd, local->top.fd))
		die(EXIT_SYNTAX, "rsync: the snapshot %s would lie inside the tree that it is of, %s",
		    local->snapshot_file, local->top_path);
	close(fd);
}

void local_snapshot_begin(struct local *local)
{
	if (!local->snapshot_file)
		return;
	if (!is_directory(local))
		die(EXIT_SYNTAX, "rsync: --attr-snapshot is of one directory: the destination is a file");
	check_place(local);
	/* Under another name everything is scanned: that is one directory without contents. */
	if (!local->dry_run && !local->single_name)
		local->seen = local_seen_new(local->options);
}

/* --- after --- */

static bool give(void *local_void, uint32_t tag, const char *path, struct entries *list, struct fs_stat *st)
{
	struct local *local = local_void;
	struct seen_dir *dir = local_seen_dir(local->seen, (int32_t)tag - 1);

	if (!dir || (!local->late_dirs && local_seen_settle_links(local->seen, &dir->entries, &local->top, path) < 0))
		return false;
	*list = dir->entries;
	*st = dir->st;
	entries_init(&dir->entries);
	dir->is_complete = false;
	entries_sort(list);
	return true;
}

/* Nothing may have come of a destination that is to get the name of the one thing that is copied. */
static bool is_there(const char *given)
{
	struct fs_root root;

	if (fs_root_open(&root, given) < 0)
		return false;
	fs_root_close(&root);
	return true;
}

int local_snapshot_write(struct local *local, const char *given)
{
	struct image_known known = { give, local, 1 };

	if (!local->snapshot_file || local->dry_run || !is_there(given))
		return EXIT_OK;
	return snapshot_make_after_run(local->options, given, local->seen ? &known : NULL, &local->began);
}
