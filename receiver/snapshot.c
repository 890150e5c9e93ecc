/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The attr snapshot of the destination, written after the run (--attr-snapshot=FILE SRC DEST): the making run without most of
 * its scan, because the run has seen the tree (dest/seen.c). And that of a list from a peer, with nothing to be scanned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attrs/image_scan.h"
#include "dest/private.h"
#include "fs/chmod.h"
#include "fs/operator.h"
#include "lib/exit.h"
#include "receiver/stop.h"
#include "snapshot/make.h"

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
	const struct options *options = local->options;

	if (!local->snapshot_file)
		return;
	if (!is_directory(local))
		die(EXIT_SYNTAX, "rsync: --attr-snapshot is of one directory: the destination is a file");
	check_place(local);
	/* Under another name everything is scanned: that is one directory without contents. What is kept beside the files, too,
	 * may lie anywhere. */
	if (!local->dry_run && !local->single_name && !local->backups && !options->temp_dir && !options_partial_dir(options))
		local->seen = local_seen_new(local->options);
}

/* --- of a list --- */

/* What the image keeps of a listed entry: a scan would fill no more. */
static void add_entry(const struct local *local, struct entries *to, const struct entries *from, const struct entry *old)
{
	const struct entry_side *side = entry_side_of(from, old);
	struct entry *entry = entries_add(to, entry_name(from, old), old->name_length);
	uint32_t name = entry->name;

	*entry = *old;
	entry->name = name;
	entry->side = 0;
	entry->flags = old->flags & ENTRY_HARD_LINKED;
	if (local->options->chmod && !entry_is_symlink(entry))
		entry->mode = (uint16_t)chmod_apply(local->options->chmod, entry->mode);
	if (side)
		*entries_side(to, entry) = *side;
	if (entry_is_symlink(entry))
		entries_set_target(to, entry, from->pool + side->target, side->target_length);
}

static void set_root(const struct local *local, struct image *image, const struct entry *dot)
{
	struct fs_stat st = {
		.mode = dot->mode, .uid = dot->uid, .gid = dot->gid, .mtime = dot->mtime, .mtime_nsec = dot->mtime_nsec,
	};

	if (local->options->chmod)
		st.mode = chmod_apply(local->options->chmod, st.mode);
	image_set_root(image, &st);
	image->root.items->size = dot->size;
}

/* Directories of the list and of the image. */
struct list_walk {
	struct local *local;
	struct image *image;
	VEC(uint32_t) numbers; /* by node: of the image's directory */
};

static void number_children(struct list_walk *walk, uint32_t number)
{
	struct image_dir *dir = walk->image->dirs.items[number];

	for (uint32_t i = 0; i < dir->child_count; i++) {
		struct entry *entry = &dir->entries.items[dir->entries.count - dir->child_count + i];

		while (walk->numbers.count <= entry->dir)
			vec_push(&walk->numbers, 0);
		walk->numbers.items[entry->dir] = dir->first_child + i;
		entry->dir = 0;
	}
}

static void take_node(struct list_walk *walk, int32_t node)
{
	const struct entries *listed = flist_dir(walk->local->list, node)->entries;
	uint32_t number = node ? walk->numbers.items[node] : 0;
	struct entries *list = &walk->image->dirs.items[number]->entries;

	entries_init(list);
	for (uint32_t i = 0; i < listed->count; i++) {
		const struct entry *entry = &listed->items[i];

		if (entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN))
			continue;
		if (!node && !strcmp(entry_name(listed, entry), "."))
			set_root(walk->local, walk->image, entry);
		else
			add_entry(walk->local, list, listed, entry);
	}
	image_add_children(walk->image, number);
	number_children(walk, number);
}

struct image *local_snapshot_of_list(struct local *local)
{
	struct contents *contents = local->contents;
	struct list_walk walk = { .local = local };
	const struct entries *first = flist_dir(local->list, 0)->entries;

	check_place(local);
	if (entries_find(first, ".", true) < 0) {
		log_error("rsync: the list has no directory for a snapshot to be of");
		return NULL;
	}
	walk.image = image_new();
	for (int32_t node = 0; node >= 0; node = contents->calls->next_list(contents)) {
		local_stop_check(local);
		local->loaded_entries += flist_dir(local->list, node)->entries->count;
		take_node(&walk, node);
		contents->calls->node_done(contents, node);
		flist_drop_entries(local->list, node);
	}
	vec_free(&walk.numbers);
	return walk.image;
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
