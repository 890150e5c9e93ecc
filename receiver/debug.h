/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --debug says of the list (main thread). */
#ifndef RECEIVER_DEBUG_H
#define RECEIVER_DEBUG_H

#include <stdint.h>

struct receiver;

/* A list that has been loaded, node by node in the order of the walk: what dup and flist say of it. */
void receiver_debug_list(struct receiver *receiver, int32_t node);

#endif
