/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order in which a whole list is worked off (main thread). */
#ifndef RECEIVER_ORDER_H
#define RECEIVER_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/vec.h"

struct receiver;

/* Files of one directory that stand together in the list, in one task. */
struct receiver_slice {
	int32_t node;
	bool is_first, is_last; /* of the node */
	uint32_t first, last;   /* [first, last) of its entries */
	uint64_t position;      /* of entry 0 in the list, if all of them stood together */
};

struct receiver_slices {
	VEC(struct receiver_slice) list;
};

/* Are contents asked for in the order of the list, though that is not the order of the walk? */
bool receiver_goes_by_path(const struct receiver *receiver);
void receiver_order_by_path(struct receiver *receiver, struct receiver_slices *slices);

/* --prune-empty-dirs, when everything has been loaded: directories without files leave the list and `order`. */
void receiver_prune(struct receiver *receiver);

#endif
