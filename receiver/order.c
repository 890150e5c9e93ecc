/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The order of protocol 27 and 28: by path, so that files of a directory may stand between its directories
 * (doc/protocol/02-file-list.md section 5.2). What lies below a directory stands together nevertheless; the directory itself
 * may stand further in front.
 */
#include <stdlib.h>

#include "dest/contents.h"
#include "receiver/order.h"
#include "receiver/run.h"

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
