/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes a new file and fills it. Any thread that holds the task. */
#ifndef DEST_WRITE_H
#define DEST_WRITE_H

#include <stdbool.h>
#include <stdint.h>

struct file_job;

bool job_copy(struct file_job *job);  /* regular content; false: failed, said so */
bool job_make(struct file_job *job);  /* symlink, device, special */
int job_open_source(struct file_job *job, uint64_t *size);
bool job_receive(struct file_job *job); /* regular content from job->incoming; as job_copy */

#endif
