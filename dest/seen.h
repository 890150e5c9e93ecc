/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What was seen of the destination, for its snapshot. Main thread, but for what workers call. */
#ifndef DEST_SEEN_H
#define DEST_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "attrs/entry.h"
#include "fs/root.h"
#include "options.h"

struct dest_dir;
struct file_job;
struct dest;
struct seen;
struct task;

/* What was seen of a directory of the destination. */
struct seen_dir {
	struct entries entries;  /* complete: as of a scan, dir: the node + 1; else of mode 0 where to be looked at */
	struct fs_stat st;       /* when it was entered (new: all 0); complete: now */
	bool names_known;        /* the entries had all of its names when it was entered */
	bool is_complete;
};

struct seen *dest_seen_new(const struct options *options);
void dest_seen_free(struct seen *seen); /* NULL is allowed */
/* A worker begins with a task, is done with a file (job->untouched is set), or anybody changes or unlinks one of these
 * attributes: another name of the same file may have been seen before. */
void dest_seen_start(struct task *task);
void dest_seen_file(const struct file_job *job);
void dest_seen_change(struct dest *dest, const struct fs_stat *st);
/* A directory is entered, as it was before this run touched it; NULL: it is new. */
void dest_seen_enter(struct dest *dest, int32_t node, const struct fs_stat *before);
/* A member of a hard link group is in place. */
void dest_seen_link(struct dest *dest, int32_t node, uint32_t index, const struct fs_stat *st);
void dest_seen_take(struct dest *dest, struct task *task);            /* the task is done */
void dest_seen_finish(struct dest *dest, const struct dest_dir *dir); /* it has got its last change; its fd is open */
/* After all: NULL if the directory has to be scanned. Names of inodes that have changed since are looked at again, unless root
 * is NULL. */
struct seen_dir *dest_seen_dir(struct seen *seen, int32_t node, const struct fs_root *root, const char *path);

#endif
