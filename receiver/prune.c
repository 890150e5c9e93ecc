/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * --prune-empty-dirs: directories without anything but directories below them are taken out of the list, unless a rule
 * protects them at the destination (doc/protocol/04-filters.md section 4.12.4). Like names that nobody ever listed they may be
 * deleted there.
 */
#include <stdlib.h>
#include <string.h>

#include "dest/paths.h"
#include "flist/paths.h"
#include "receiver/prune.h"
#include "receiver/run.h"

static bool is_protected(struct receiver *receiver, int32_t node, const struct entry *entry)
{
	struct strbuf path = STRBUF_INIT;

	flist_entry_path(receiver->dest.list, node, entry, &path);
	bool excluded = filter_excludes(receiver->receiver_rules, strbuf_text(&path), true);

	strbuf_free(&path);
	return excluded;
}

/* Does the entry make its directory one that stays? `stays`: of each node, those below this one are decided. */
static bool counts(struct receiver *receiver, int32_t node, const struct entry *entry, const bool *stays)
{
	if (entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN))
		return false;
	if (!entry_is_dir(entry))
		return true;
	if (entry->dir && stays[entry->dir])
		return true;
	return strcmp(entry_name(flist_dir(receiver->dest.list, node)->entries, entry), ".") != 0
	       && is_protected(receiver, node, entry);
}

/* Entries of equal names stand together, the one that counts in front. */
static void prune_entries(struct receiver *receiver, int32_t node, bool *stays)
{
	struct entries *entries = flist_dir(receiver->dest.list, node)->entries;
	const char *pruned = NULL;

	for (uint32_t i = 0; i < entries->count; i++) {
		struct entry *entry = &entries->items[i];
		const char *name = entry_name(entries, entry);
		bool is_hole = entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN);

		if (counts(receiver, node, entry, stays))
			stays[node] = true;
		else if (entry_is_dir(entry) && strcmp(name, ".") != 0 && (!is_hole || (pruned && !strcmp(name, pruned)))) {
			entry->flags |= ENTRY_DUPLICATE | ENTRY_PRUNED;
			pruned = name;
		}
	}
}

static bool is_pruned(struct receiver *receiver, int32_t node, const bool *gone)
{
	const struct flist_dir *dir = flist_dir(receiver->dest.list, node);

	if (!node)
		return false;
	return gone[dir->parent]
	       || flist_dir(receiver->dest.list, dir->parent)->entries->items[dir->parent_entry].flags & ENTRY_PRUNED;
}

void receiver_prune(struct receiver *receiver)
{
	uint32_t nodes = flist_dir_count(receiver->dest.list);
	bool *stays = xcalloc(nodes, sizeof *stays), *gone = xcalloc(nodes, sizeof *gone);
	size_t kept = 0;

	/* What is below a directory comes behind it. */
	for (size_t i = receiver->order.count; i-- > 0;)
		prune_entries(receiver, receiver->order.items[i], stays);
	for (size_t i = 0; i < receiver->order.count; i++) {
		int32_t node = receiver->order.items[i];

		gone[node] = is_pruned(receiver, node, gone);
		if (!gone[node])
			receiver->order.items[kept++] = node;
	}
	receiver->order.count = kept;
	free(stays);
	free(gone);
}
