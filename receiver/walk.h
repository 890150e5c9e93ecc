/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The walk over the list, and its tasks (main thread). */
#ifndef RECEIVER_WALK_H
#define RECEIVER_WALK_H

struct receiver;

void receiver_load_everything(struct receiver *receiver); /* loads_all: before receiver_run */
void receiver_run(struct receiver *receiver);

#endif
