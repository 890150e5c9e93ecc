/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tasks of the run (main thread). */
#ifndef RECEIVER_TASK_H
#define RECEIVER_TASK_H

#include "dest/task.h"

struct receiver;

struct task *task_new(struct receiver *receiver, int32_t node, struct dest_dir *dir, uint32_t first, uint32_t last);
void task_free(struct receiver *receiver, struct task *task); /* what was done in it goes into the run's statistics */
/* Hold the source directories that its contents will be read from. */
void task_open_sources(struct receiver *receiver, struct task *task);
/* Print an event that is a message. */
void log_text(const struct event *event);
/* Make room for the crowded task's next entry and decide on it while no worker goes on: what is said of it comes in the task's
 * turn. */
void receiver_give_room(struct receiver *receiver);
/* The reading thread of a replay may wait for a decision that nobody is about to make. True: decide what can be decided. A
 * member of a hard-link group whose content the batch has next leads. */
bool receiver_must_decide(struct receiver *receiver);
/*
 * What the main thread decides itself would wait until the task is done, and the task for files that the batch has later: do it
 * now. To members of hard-link groups that are to be linked nothing is sent.
 */
void receiver_decide_rest(struct receiver *receiver, struct task *task);
/* How long a waiting main thread does not look up. */
int receiver_poll_ms(const struct receiver *receiver);
/* A member that is to be linked: its leader is done. */
void receiver_link_event(struct receiver *receiver, struct task *task, uint32_t index);
/* Finish the members that lead because the batch had their content; true: there are still such. */
bool receiver_await_leaders(struct receiver *receiver);
/* Print and count the events of a task that the main thread processed itself. */
void receiver_handle_events(struct receiver *receiver, struct task *task);
/* Link what had to wait for everything else. */
void receiver_links_finish(struct receiver *receiver);

#endif
