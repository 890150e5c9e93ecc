/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Directories of the destination: made, entered, and given their final attributes (main thread). */
#ifndef RECEIVER_DIR_H
#define RECEIVER_DIR_H

#include <stdint.h>

struct dest_dir;
struct receiver;
struct task;

/* The destination directory of a node (0: the top), made or opened; events of the directory itself go to `events`. */
struct dest_dir *receiver_dir_prepare(struct receiver *receiver, int32_t node, struct task *task);
/* One of which nothing is known but its path. */
struct dest_dir *receiver_dir_new(struct receiver *receiver, int32_t node);
/* The same directory again, when others below it have been prepared since; NULL: it is none of those. */
struct dest_dir *receiver_dir_return(struct receiver *receiver, int32_t node);
void receiver_dir_finish(struct receiver *receiver, struct dest_dir *dir); /* final attributes */
void receiver_dir_finish_late(struct receiver *receiver);

#endif
