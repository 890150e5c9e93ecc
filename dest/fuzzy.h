/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * --fuzzy: a file that is not there may resemble another one in its directory, or with -yy in that directory of an alternate
 * destination (doc/protocol/03-transfer.md section 11.3). Such a file is the basis of a delta. By the thread that holds the
 * task.
 */
#ifndef DEST_FUZZY_H
#define DEST_FUZZY_H

#include <stdint.h>

struct file_job;
struct task;

/* Look for one, if that is wanted: job->fuzzy and job->fuzzy_place say which. */
void job_find_fuzzy(struct file_job *job);
/* That file, open for reading; -1 with errno. */
int job_open_fuzzy(const struct file_job *job, uint64_t *size);
void dest_fuzzy_leave(struct task *task); /* forget what its directories hold */

#endif
