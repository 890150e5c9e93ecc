/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One file after the other. Any thread that holds the task. */
#ifndef DEST_FILE_H
#define DEST_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "dest/job.h"

void dest_process_entry(struct task *task, uint32_t index, enum turn turn);
void job_show_live(struct file_job *job); /* a file begins whose progress may be watched */
/* What was done becomes an event; touched: attributes of an existing object were set. */
void job_note_item(struct file_job *job, bool touched, bool is_attempt);
void job_tried(struct file_job *job);     /* its content has come, but it is wrong: note the item */
void job_lost(struct file_job *job);      /* the same, but it could not be put here, said so */
void job_take_content(struct file_job *job); /* from a file that lies here, or that of an attr tree: now */
void job_change(struct file_job *job);    /* all but contents that come from a peer; notes the item */
/* How a hard link member would fare: no candidate to lead (or to be skipped), a candidate with the right content, or whose
 * content has to be requested, or left out whoever leads. */
enum candidate { CANDIDATE_NOT, CANDIDATE_LEADS, CANDIDATE_REQUESTS, CANDIDATE_LEFT_OUT, CANDIDATE_SKIPPED };
enum candidate dest_leader_candidate(struct task *task, uint32_t index);
/* What a file's attributes are compared with, as its item says: `*name` in the directory that is returned; NULL: nothing. By
 * the worker of its task. */
int job_compared_object(struct file_job *job, const char **name);

#endif
