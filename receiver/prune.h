/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --prune-empty-dirs (main thread). */
#ifndef RECEIVER_PRUNE_H
#define RECEIVER_PRUNE_H

struct receiver;

/* --prune-empty-dirs, when everything has been loaded: directories without files leave the list and `order`. */
void receiver_prune(struct receiver *receiver);

#endif
