/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Applies the attributes of an entry to its object in the destination. */
#ifndef DEST_APPLY_H
#define DEST_APPLY_H

#include <stdbool.h>
#include <sys/types.h>

#include "dest/attributes.h"
#include "fs/root.h"
#include "options.h"

struct decide_rules;
struct dest_dir;
struct owner_maps;

/* --- owner maps (main thread) --- */

/* NULL if the ids of a local run stay as they are; else `rules` maps them, until it is freed. Ends the process with EXIT_SYNTAX
 * on maps that are none. */
struct owner_maps *dest_owner_maps_new(const struct options *options, struct decide_rules *rules);
void dest_owner_maps_free(struct owner_maps *maps);

/* --- --fake-super (any thread) --- */

/* What the receiving half may do. */
enum super_level dest_receiving_level(const struct options *options, bool is_local_run);
/* Attributes of an object of the destination as they are, or as they are kept. */
int dest_lstat_at(const struct dest *dest, int dir_fd, const char *name, struct fs_stat *st);
void dir_fake_store(struct dest *dest, const struct dest_dir *dir, const struct attr_subject *subject,
		    const struct fs_held *held);

/* --- one object, by the thread that holds the task --- */

/* To an open file that has this owner and mode so far. Where the owner cannot be set, nothing else is. */
bool apply_to_descriptor(struct file_job *job, int fd, uid_t made_uid, gid_t made_gid, mode_t made_mode);
/* The same with --fake-super: nothing of this needs root. */
bool apply_fake_to_descriptor(struct file_job *job, int fd);
/* Owner, times and mode of an open file that this run has just made. false: something failed, said so. */
bool job_apply_to_file(struct file_job *job, int fd, mode_t made_mode);
/* Give the object `name` (already made) owner, times and mode. */
void job_apply(struct file_job *job, const char *name, mode_t made_mode);
/* Extended attributes of the task's own directory. */
void job_touch_directory(struct file_job *job);
/* Attributes of an up-to-date file, or of one that was written in place; what has not come right keeps the time of now, so that
 * it is looked at again. true if any was set. */
enum touch_reason { TOUCH_UP_TO_DATE, TOUCH_WRITTEN, TOUCH_NOT_RIGHT };
bool job_touch(struct file_job *job, enum touch_reason reason);

#endif
