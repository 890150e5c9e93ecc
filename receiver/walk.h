/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The walk over the list and its tasks, and the order of a whole list (main thread). */
#ifndef RECEIVER_WALK_H
#define RECEIVER_WALK_H

#include <stdbool.h>

struct receiver;

/* Are contents asked for in the order of the list, though that is not the order of the walk? */
bool receiver_goes_by_path(const struct receiver *receiver);

/* --prune-empty-dirs, when everything has been loaded: directories without files leave the list and `order`. */
void receiver_prune(struct receiver *receiver);

void receiver_load_everything(struct receiver *receiver); /* loads_all: before receiver_run */
void receiver_run(struct receiver *receiver);

#endif
