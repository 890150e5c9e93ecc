/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines of --debug about the list and the steps of a run (main thread). */
#ifndef RECEIVER_DEBUG_H
#define RECEIVER_DEBUG_H

#include <stdbool.h>
#include <stdint.h>

struct entry;
struct event;
struct receiver;
struct task;

/* A list that has been loaded, node by node in the order of the walk: what dup and flist say of it. */
void receiver_debug_list(struct receiver *receiver, int32_t node);
/* Are deltas looked for? For those who want to know. */
void receiver_debug_method(const struct receiver *receiver);
/* `entries`: what decides about the place of a single one. */
void receiver_debug_destination(const struct receiver *receiver, uint64_t entries, const char *destination);
void receiver_debug_start(const struct receiver *receiver);
void receiver_debug_end(const struct receiver *receiver);
/* A member of a group of hard links is about to be linked to `leader`. */
void receiver_debug_link(struct receiver *receiver, const struct task *task, uint32_t index, const char *leader);
/* Before and after an item's line. */
void receiver_debug_item(const struct receiver *receiver, int32_t node, const struct entry *entry, const struct event *event);
void receiver_debug_item_done(const struct receiver *receiver, int32_t node, const struct entry *entry,
			      const struct event *event);

#endif
