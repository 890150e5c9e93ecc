/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --debug tells of the file list of a receiving side. */
#include <string.h>

#include "dest/contents.h"
#include "dest/dest.h"
#include "dest/paths.h"
#include "flist/debug.h"
#include "flist/paths.h"
#include "lib/log.h"
#include "receiver/debug.h"

/* --- DUP: names that the list has twice, under the indexes of those that lose --- */

static bool follows_its_like(const struct entries *entries, uint32_t index)
{
	const struct entry *entry = &entries->items[index], *before = entry - 1;

	return index && entry_is_dir(before) == entry_is_dir(entry) && before->name_length == entry->name_length
	       && !memcmp(entry_name(entries, before), entry_name(entries, entry), entry->name_length);
}

static void say_duplicate(struct receiver *receiver, int32_t node, const struct entry *entry, int32_t ndx)
{
	struct strbuf path = STRBUF_INIT;

	flist_entry_path(receiver->list, node, entry, &path);
	log_info("removing duplicate name %s from file list (%d)", strbuf_text(&path), ndx);
	strbuf_free(&path);
}

/* A file gives way to the directory at `index`. */
static void say_file_of_directory(struct receiver *receiver, int32_t node, uint32_t index)
{
	const struct flist_dir *dir = flist_dir(receiver->list, node);
	int32_t file = entries_find(dir->entries, entry_name(dir->entries, &dir->entries->items[index]), false);

	if (file >= 0)
		say_duplicate(receiver, node, &dir->entries->items[file], dir->first_ndx + file);
}

/* In one list a directory's index stands beside those of its contents. */
static void say_directory_duplicates(struct receiver *receiver, int32_t node)
{
	const struct flist_dir *dir = flist_dir(receiver->list, node);
	const struct entry *entry = &flist_dir(receiver->list, dir->parent)->entries->items[dir->parent_entry];

	say_file_of_directory(receiver, dir->parent, dir->parent_entry);
	for (int32_t i = 1; i < dir->group; i++)
		say_duplicate(receiver, dir->parent, entry, dir->own_ndx + i);
}

static void say_node_duplicates(struct receiver *receiver, int32_t node)
{
	const struct flist_dir *dir = flist_dir(receiver->list, node);
	bool in_turn = receiver->session.inc_recurse;
	uint32_t count = in_turn || !dir->child_count ? dir->count : flist_dir(receiver->list, dir->first_child)->parent_entry;

	if (node && !in_turn)
		say_directory_duplicates(receiver, node);
	for (uint32_t i = 0; i < count; i++) {
		const struct entry *entry = &dir->entries->items[i];

		if (entry->flags & ENTRY_DUPLICATE && follows_its_like(dir->entries, i))
			say_duplicate(receiver, node, entry, dir->first_ndx + (int32_t)i);
		else if (entry_is_dir(entry))
			say_file_of_directory(receiver, node, i);
	}
}

/* Old protocols number the whole list by path. */
static void say_all_duplicates(struct receiver *receiver)
{
	struct flist_pos pos;

	for (int32_t ndx = 0; flist_locate(receiver->list, ndx, &pos); ndx++)
		if (pos.entry && pos.entry->flags & ENTRY_DUPLICATE)
			say_duplicate(receiver, pos.dir, pos.entry, ndx);
}

static void say_duplicates(struct receiver *receiver, int32_t node)
{
	if (!receiver->options->levels.debug[DEBUG_DUP])
		return;
	if (receiver->session.protocol >= 29)
		say_node_duplicates(receiver, node);
	else if (!node)
		say_all_duplicates(receiver);
}

void receiver_debug_list(struct receiver *receiver, int32_t node)
{
	say_duplicates(receiver, node);
	if (receiver->contents->is_remote)
		flist_debug_received(receiver->list, node);
	else
		flist_debug_sent(receiver->list, node);
}
