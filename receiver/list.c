/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --list-only, or one operand: the file list itself. */
#include <string.h>

#include "dest/contents.h"
#include "flist/paths.h"
#include "fs/chmod.h"
#include "lib/log.h"
#include "receiver/debug.h"
#include "receiver/list.h"
#include "receiver/order.h"
#include "receiver/prune.h"
#include "receiver/run.h"
#include "receiver/walk.h"
#include "ui/listing.h"

static void print_entry(struct receiver *receiver, int32_t node, const struct entry *entry)
{
	const struct options *options = receiver->dest.options;
	struct strbuf path = STRBUF_INIT, line = STRBUF_INIT;
	const char *name;
	bool changed = options->chmod && entry->mode && !entry_is_symlink(entry);
	uint32_t mode = changed ? chmod_apply(options->chmod, entry->mode) : entry->mode;

	flist_entry_path(receiver->dest.list, node, entry, &path);
	name = strbuf_text(&path) + strspn(strbuf_text(&path), "/");
	listing_line(&line, flist_dir(receiver->dest.list, node)->entries, entry, mode, name, options->human_readable,
		     options->atimes > 0, options->links);
	log_info("%s", strbuf_text(&line));
	strbuf_free(&path);
	strbuf_free(&line);
}

/* Directories are printed when the walk enters them, so that their contents follow. */
static void print_node(struct receiver *receiver, int32_t node)
{
	const struct flist_dir *listed = flist_dir(receiver->dest.list, node);
	struct entries *entries = listed->entries;

	if (node)
		print_entry(receiver, listed->parent,
			    &flist_dir(receiver->dest.list, listed->parent)->entries->items[listed->parent_entry]);
	for (uint32_t i = 0; i < entries->count; i++) {
		const struct entry *entry = &entries->items[i];
		bool has_node = entry_is_dir(entry) && strcmp(entry_name(entries, entry), ".") != 0;

		if (!has_node && !(entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)))
			print_entry(receiver, node, entry);
	}
}

static void list_by_path(struct receiver *receiver)
{
	struct flist_pos pos;

	for (int32_t ndx = 0; flist_locate(receiver->dest.list, ndx, &pos); ndx++)
		if (!(pos.entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)))
			print_entry(receiver, pos.dir, pos.entry);
}

static void list_whole(struct receiver *receiver)
{
	receiver_load_everything(receiver);
	if (receiver->dest.options->prune_empty_dirs)
		receiver_prune(receiver);
	if (receiver_goes_by_path(receiver)) {
		list_by_path(receiver);
		return;
	}
	for (size_t i = 0; i < receiver->order.count; i++)
		print_node(receiver, receiver->order.items[i]);
}

void receiver_list_run(struct receiver *receiver)
{
	struct contents *contents = receiver->dest.contents;
	int32_t node = 0;

	if (receiver->dest.options->prune_empty_dirs || receiver_goes_by_path(receiver)) {
		list_whole(receiver);
		return;
	}
	while (node >= 0) {
		receiver->loaded_entries += flist_dir(receiver->dest.list, node)->entries->count;
		receiver_debug_list(receiver, node);
		print_node(receiver, node);
		contents->calls->node_done(contents, node);
		node = contents->calls->next_list(contents);
	}
}
