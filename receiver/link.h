/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hard links (main thread). */
#ifndef RECEIVER_LINK_H
#define RECEIVER_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct entries;
struct entry;
struct link_group;
struct receiver;
struct task;

void receiver_links_add(struct receiver *receiver, int32_t node); /* loads_all: collect groups */
/* Decide which members of the task are links; before it is submitted. */
void receiver_links_mark(struct receiver *receiver, struct task *task);
void receiver_links_order(struct receiver *receiver); /* members by index instead of by directory */
void receiver_links_free(struct receiver *receiver);
bool link_is_member(const struct entry *entry);
struct link_group *link_group_of(struct receiver *receiver, const struct entries *entries, const struct entry *entry);
/* Link a member whose directory still holds a task to the leader of its group. */
void link_in_task(struct receiver *receiver, struct task *task, uint32_t index, struct link_group *group, bool had_to_wait);
/* A batch of incremental recursion is replayed: who leads a group of which the destination has nothing is known only when the
 * batch comes to its content. */
bool receiver_batch_leads(const struct receiver *receiver);
/* Is this file of such a group, and the group has no content yet? */
bool receiver_link_is_open(struct receiver *receiver, const struct entries *entries, const struct entry *entry);

#endif
