/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes a new object and puts it in place. Any thread that holds the task; what fails has been reported. */
#ifndef DEST_WRITE_H
#define DEST_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "dest/backup.h"
#include "fs/temp.h"
#include "options.h"

struct file_job;

/* Is the file itself written to? */
bool job_goes_in_place(const struct file_job *job);

/* The backup of what is there, once; of a file that will be written in place before that or anything about it is asked. A dry
 * run just says so. false: failed, said so. */
bool job_back_up(struct file_job *job, enum backup_way way);

/* Do parts of files stay? */
bool dest_keeps_partial(const struct options *options);
/* The process ends (any thread; the temp file's owner must not finish it any more). */
void job_keep_interrupted(struct file_job *job, const struct fs_temp *temp);

bool job_copy(struct file_job *job);  /* regular content */
bool job_make(struct file_job *job);  /* symlink, device, special */
int job_open_source(struct file_job *job, uint64_t *size);
bool job_receive(struct file_job *job); /* regular content from job->incoming; as job_copy */

#endif
