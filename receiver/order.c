/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order in which a whole list is worked off. */
#include "receiver/order.h"

#include <stdlib.h>
#include <string.h>

#include "dest/contents.h"
#include "dest/paths.h"
#include "flist/paths.h"
#include "receiver/run.h"

/*
 * --- by path ---
 *
 * The order of protocol 27 and 28: files of a directory may stand between its directories (doc/protocol/02-file-list.md section
 * 5.2). What lies below a directory stands together nevertheless; the directory itself may stand further in front.
 */

#define SLICE 1024 /* files of one task */

struct plan {
	struct receiver *receiver;
	struct receiver_slices *slices;
	size_t *last; /* of a node: 1 + its last slice so far, 0: none */
};

bool receiver_goes_by_path(const struct receiver *receiver)
{
	return receiver->dest.contents->is_remote && receiver->session.caps.sorts_by_path && !receiver->dest.options->iconv
	       && !receiver->dest.seen && !receiver->dest.attrs_only;
}

static void begin_node(struct plan *plan, int32_t node)
{
	struct receiver_slice slice = { .node = node, .is_first = true };

	if (plan->last[node])
		return;
	if (node)
		begin_node(plan, flist_dir(plan->receiver->dest.list, node)->parent);
	vec_push(&plan->slices->list, slice);
	plan->last[node] = plan->slices->list.count;
}

static void add_entry(struct plan *plan, int32_t ndx, int32_t node, uint32_t index)
{
	struct receiver_slice *slice, next = { .node = node, .first = index, .last = index };

	begin_node(plan, node);
	slice = &plan->slices->list.items[plan->slices->list.count - 1];
	if (slice->node != node || (slice->first < slice->last && (slice->last != index || index - slice->first >= SLICE))) {
		vec_push(&plan->slices->list, next);
		plan->last[node] = plan->slices->list.count;
		slice = &plan->slices->list.items[plan->slices->list.count - 1];
	}
	if (slice->first == slice->last) {
		slice->first = index;
		slice->position = (uint64_t)ndx - index;
	}
	slice->last = index + 1;
}

void receiver_order_by_path(struct receiver *receiver, struct receiver_slices *slices)
{
	uint32_t nodes = flist_dir_count(receiver->dest.list);
	struct plan plan = { receiver, slices, xcalloc(nodes, sizeof *plan.last) };
	struct flist_pos pos;

	begin_node(&plan, 0);
	for (int32_t ndx = 0; flist_locate(receiver->dest.list, ndx, &pos); ndx++) {
		int32_t node = (int32_t)pos.entry->dir;

		if (!entry_is_dir(pos.entry))
			add_entry(&plan, ndx, pos.dir, (uint32_t)(pos.entry - pos.entries->items));
		else if (node && !(pos.entry->flags & ENTRY_DUPLICATE) && !flist_dir(receiver->dest.list, node)->entries->count)
			begin_node(&plan, node);
	}
	for (uint32_t node = 0; node < nodes; node++)
		if (plan.last[node])
			slices->list.items[plan.last[node] - 1].is_last = true;
	free(plan.last);
}

/*
 * --- without empty directories ---
 *
 * --prune-empty-dirs: directories without anything but directories below them are taken out of the list, unless a rule protects
 * them at the destination (doc/protocol/04-filters.md section 4.12.4). Like names that nobody ever listed they may be deleted
 * there.
 */

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
