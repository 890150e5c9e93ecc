/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines of --debug about the steps of a run. */
#ifndef DEST_DEBUG_H
#define DEST_DEBUG_H

#include <stdbool.h>
#include <stdint.h>

struct dest_dir;
struct entry;
struct event;
struct file_job;
struct receiver;
struct sum_head;
struct task;

/* Are deltas looked for? For those who want to know. */
void dest_say_method(const struct receiver *receiver);
/* Is there to be an event for each entry? */
bool dest_debug_wants_items(const struct receiver *receiver);
/* Main thread. `entries`: what decides about the place of a single one. */
void dest_debug_destination(const struct receiver *receiver, uint64_t entries, const char *destination);
void dest_debug_start(const struct receiver *receiver);
void dest_debug_end(const struct receiver *receiver);
/* By whoever holds the task: an entry, the task's directory is looked at; a device or special will be made. */
void dest_debug_entry(struct task *task, uint32_t index);
void dest_debug_directory(struct task *task);
void dest_debug_node(struct file_job *job);
/* Owner and group of `name` ("": the directory itself) are about to be changed; -1: they are not. */
void dest_debug_owner(struct task *task, const char *name, uint32_t old_uid, uint32_t uid, uint32_t old_gid, uint32_t gid);
/* The permissions that the default ACL of the task's directory leaves to new files. */
void dest_debug_umask(struct task *task);
void dest_debug_touch(const struct receiver *receiver,
		      const struct dest_dir *dir); /* it gets its final attributes (main thread) */
/* A member of a group of hard links is about to be linked to `leader` (main thread). */
void dest_debug_link(struct receiver *receiver, const struct task *task, uint32_t index, const char *leader);
/* Deltas of a pull: block sums are sent, a basis is used (-1: there is none), the content has come. */
void dest_debug_sums(const struct file_job *job, int32_t ndx, const struct sum_head *head, uint64_t size);
void dest_debug_basis(const struct file_job *job, int basis_fd);
void dest_debug_patched(const struct file_job *job);
/* Before and after an item's line (main thread). */
void dest_debug_item(const struct receiver *receiver, int32_t node, const struct entry *entry, const struct event *event);
void dest_debug_item_done(const struct receiver *receiver, int32_t node, const struct entry *entry, const struct event *event);

#endif
