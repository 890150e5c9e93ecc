/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The attr snapshot of the destination, written after the run (--attr-snapshot=FILE SRC DEST): the making run without most of
 * its scan, because the run has seen the tree (dest/seen.c). And that of a list from a peer, with nothing to be scanned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attrs/image_scan.h"
#include "dest/contents.h"
#include "dest/seen.h"
#include "fs/chmod.h"
#include "fs/operator.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "receiver/pool.h"
#include "receiver/run.h"
#include "receiver/snapshot.h"
#include "snapshot/make.h"

/* --- before --- */

static void check_place(struct receiver *receiver)
{
	char leaf[256];
	int fd = fs_operator_parent(receiver->snapshot_file, 0, leaf);

	if (fd < 0)
		die_errno(EXIT_FILEIO, errno, "cannot write the snapshot %s", receiver->snapshot_file);
	if (!receiver->dest.single_name && receiver->dest.top.fd >= 0 && fs_is_inside(fd, receiver->dest.top.fd))
		die(EXIT_SYNTAX, "rsync: the snapshot %s would lie inside the tree that it is of, %s", receiver->snapshot_file,
		    receiver->dest.top_path);
	close(fd);
}

void receiver_snapshot_begin(struct receiver *receiver)
{
	const struct options *options = receiver->dest.options;
	const struct entries *first = flist_dir(receiver->dest.list, 0)->entries;

	if (!receiver->snapshot_file)
		return;
	/* A single file has no snapshot; a directory that gets another name has. */
	if (receiver->dest.single_name && !(first->count && entry_is_dir(&first->items[0])))
		die(EXIT_SYNTAX, "rsync: --attr-snapshot is of one directory: the destination is a file");
	check_place(receiver);
	/* Under another name everything is scanned: that is one directory without contents. What is kept beside the files, too,
	 * may lie anywhere. */
	if (!receiver->dest.dry_run && !receiver->dest.single_name && !receiver->dest.backups && !options->temp_dir
	    && !options_partial_dir(options))
		receiver->dest.seen = dest_seen_new(receiver->dest.options);
}

/* --- of a list --- */

/* What the image keeps of a listed entry: a scan would fill no more. */
static void add_entry(const struct receiver *receiver, struct entries *to, const struct entries *from, const struct entry *old)
{
	const struct entry_side *side = entry_side_of(from, old);
	struct entry *entry = entries_add(to, entry_name(from, old), old->name_length);
	uint32_t name = entry->name;

	*entry = *old;
	entry->name = name;
	entry->side = 0;
	entry->flags = old->flags & ENTRY_HARD_LINKED;
	if (receiver->dest.options->chmod && !entry_is_symlink(entry))
		entry->mode = (uint16_t)chmod_apply(receiver->dest.options->chmod, entry->mode);
	if (side)
		*entries_side(to, entry) = *side;
	if (entry_is_symlink(entry))
		entries_set_target(to, entry, from->pool + side->target, side->target_length);
}

struct image *receiver_snapshot_of_list(struct receiver *receiver)
{
	struct contents *contents = receiver->dest.contents;
	VEC(uint32_t) numbers = VEC_INIT; /* by node: of the image's directory */
	struct image *image;

	check_place(receiver);
	if (entries_find(flist_dir(receiver->dest.list, 0)->entries, ".", true) < 0) {
		log_error("rsync: the list has no directory for a snapshot to be of");
		return NULL;
	}
	image = image_new();
	for (int32_t node = 0; node >= 0; node = contents->calls->next_list(contents)) {
		receiver_stop_check(receiver);
		uint32_t number = node ? numbers.items[node] : 0;
		struct image_dir *dir = image->dirs.items[number];
		const struct entries *listed = flist_dir(receiver->dest.list, node)->entries;

		entries_init(&dir->entries);
		for (uint32_t i = 0; i < listed->count; i++) {
			const struct entry *entry = &listed->items[i];

			if (entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN))
				continue;
			if (node || strcmp(entry_name(listed, entry), ".") != 0) {
				add_entry(receiver, &dir->entries, listed, entry);
				continue;
			}
			struct fs_stat st = {
				.mode = entry->mode, .uid = entry->uid, .gid = entry->gid, .size = entry->size,
				.mtime = entry->mtime, .mtime_nsec = entry->mtime_nsec,
			};

			if (receiver->dest.options->chmod)
				st.mode = chmod_apply(receiver->dest.options->chmod, st.mode);
			image_set_root(image, &st);
		}
		receiver->loaded_entries += listed->count;
		image_add_children(image, number);
		dir = image->dirs.items[number];
		for (uint32_t i = 0; i < dir->child_count; i++) {
			struct entry *entry = &dir->entries.items[dir->entries.count - dir->child_count + i];

			while (numbers.count <= entry->dir)
				vec_push(&numbers, 0);
			numbers.items[entry->dir] = dir->first_child + i;
			entry->dir = 0;
		}
		contents->calls->node_done(contents, node);
		flist_drop_entries(receiver->dest.list, node);
	}
	vec_free(&numbers);
	return image;
}

/* --- after --- */

static bool give(void *receiver_void, uint32_t tag, const char *path, struct entries *list, struct fs_stat *st)
{
	struct receiver *receiver = receiver_void;
	const struct fs_root *root = receiver->late_dirs ? NULL : &receiver->dest.top;
	struct seen_dir *dir = dest_seen_dir(receiver->dest.seen, (int32_t)tag - 1, root, path);

	if (!dir)
		return false;
	*list = dir->entries;
	*st = dir->st;
	entries_init(&dir->entries);
	dir->is_complete = false;
	entries_sort(list);
	return true;
}

int receiver_snapshot_write(struct receiver *receiver, const char *given, struct image *image)
{
	const struct options *options = receiver->dest.options;
	struct image_known known = { give, receiver, 1 };
	struct fs_root root;

	if (!given && !image)
		return EXIT_FILESELECT;
	if (!given) {
		image->io_error |= receiver->session.io_error | atomic_load(&receiver->dest.contents->io_error);
		return snapshot_make_of_list(options, options->operands.items[0], image, &receiver->began);
	}

	/* Nothing may have come of a destination that is to get the name of the one thing that is copied. */
	if (receiver->dest.dry_run || fs_root_open(&root, given) < 0)
		return EXIT_OK;
	fs_root_close(&root);
	return snapshot_make_after_run(options, given, receiver->dest.seen ? &known : NULL, &receiver->began);
}
