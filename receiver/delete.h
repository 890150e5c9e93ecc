/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Deletions. Main thread, but for receiver_find_surplus. */
#ifndef RECEIVER_DELETE_H
#define RECEIVER_DELETE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/root.h"

struct dest_dir;
struct entries;
struct entry;
struct receiver;
struct task;

/* What --debug=del says of what is to give way to the task's directory. */
void receiver_say_file_goes(struct task *task, const struct fs_stat *st);
void receiver_find_surplus(struct task *task); /* worker */
/* Delete, or note for later, what the rules let go of these names of a directory, or of none. */
void receiver_delete_names(struct receiver *receiver, struct dest_dir *dir, const struct entries *names);
void receiver_delete_delayed(struct receiver *receiver);
void receiver_delete_pass(struct receiver *receiver); /* --delete-before, --delete-after */
/* No I/O error, or are they ignored by option? Else it is said, once; in the turn of `task`, unless that is NULL. */
bool receiver_may_delete(struct receiver *receiver, struct task *task);
/* Remove what stands in the way of entry `name`; false: it stays, said so. */
bool receiver_make_room(struct receiver *receiver, struct dest_dir *dir, const char *name, const struct entry *entry);
void receiver_delete_argument(struct receiver *receiver, struct task *task, uint32_t index);

#endif
