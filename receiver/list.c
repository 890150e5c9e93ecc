/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --list-only, or one operand: the file list itself. */
#include <string.h>

#include "dest/private.h"
#include "fs/chmod.h"
#include "ui/listing.h"

static void print_entry(struct local *local, int32_t node, const struct entry *entry)
{
	const struct options *options = local->options;
	struct strbuf path = STRBUF_INIT, line = STRBUF_INIT;
	const char *name;
	bool changed = options->chmod && entry->mode && !entry_is_symlink(entry);
	uint32_t mode = changed ? chmod_apply(options->chmod, entry->mode) : entry->mode;

	flist_entry_path(local->list, node, entry, &path);
	name = strbuf_text(&path) + strspn(strbuf_text(&path), "/");
	listing_line(&line, flist_dir(local->list, node)->entries, entry, mode, name, options->human_readable,
		     options->atimes > 0, options->links);
	log_info("%s", strbuf_text(&line));
	strbuf_free(&path);
	strbuf_free(&line);
}

/* Directories are printed when the walk enters them, so that their contents follow. */
static void print_node(struct local *local, int32_t node)
{
	const struct flist_dir *listed = flist_dir(local->list, node);
	struct entries *entries = listed->entries;

	if (node)
		print_entry(local, listed->parent, &flist_dir(local->list,
				listed->parent)->entries->items[listed->parent_entry]);
	for (uint32_t i = 0; i < entries->count; i++) {
		const struct entry *entry = &entries->items[i];
		bool has_node = entry_is_dir(entry) && strcmp(entry_name(entries, entry), ".") != 0;

		if (!has_node && !(entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)))
			print_entry(local, node, entry);
	}
}

static void list_by_path(struct local *local)
{
	struct flist_pos pos;

	for (int32_t ndx = 0; flist_locate(local->list, ndx, &pos); ndx++)
		if (!(pos.entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN)))
			print_entry(local, pos.dir, pos.entry);
}

static void list_whole(struct local *local)
{
	local_load_everything(local);
	if (local->options->prune_empty_dirs)
		local_prune(local);
	if (local_goes_by_path(local)) {
		list_by_path(local);
		return;
	}
	for (size_t i = 0; i < local->order.count; i++)
		print_node(local, local->order.items[i]);
}

void local_list_run(struct local *local)
{
	struct contents *contents = local->contents;
	int32_t node = 0;

	if (local->options->prune_empty_dirs || local_goes_by_path(local)) {
		list_whole(local);
		return;
	}
	while (node >= 0) {
		local->loaded_entries += flist_dir(local->list, node)->entries->count;
		local_debug_list(local, node);
		print_node(local, node);
		contents->calls->node_done(contents, node);
		node = contents->calls->next_list(contents);
	}
}
