/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Applies the attributes of an entry to its object in the destination. By the thread that holds the task. */
#ifndef DEST_APPLY_H
#define DEST_APPLY_H

#include <stdbool.h>
#include <sys/types.h>

struct file_job;

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
/* Attributes of an up-to-date file; true if any was set. */
bool job_touch(struct file_job *job);
/* To a file that was written in place. What has not come right keeps the time of now, so that it is looked at again. */
void apply_in_place(struct file_job *job, bool with_times);

#endif
