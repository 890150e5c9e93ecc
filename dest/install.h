/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How a file of the destination comes to its name: a temp file is filled, dressed and then installed, or kept as the part that
 * it is (doc/protocol/03-transfer.md sections 7.2 and 7.5). Any thread that holds the task; what fails has been said.
 */
#ifndef DEST_INSTALL_H
#define DEST_INSTALL_H

#include "dest/backup.h"
#include "fs/temp.h"
#include "options.h"

struct file_job;
struct dest;

/* What a new content replaces is to be had again: without its backup the run ends. */
bool job_back_up(struct file_job *job, enum backup_way way);
/* Is the file itself written to? */
bool job_goes_in_place(const struct file_job *job);

/* The backup of a file that will be written in place, before that or anything about it is asked. false: failed, said so. */
bool job_back_up_early(struct file_job *job);
void job_pretend_backup(struct file_job *job); /* what a dry run says of backups */

bool job_create_temp(struct file_job *job, struct fs_temp *temp);
/* It is complete, and looks as it should. Takes the temp file over: by now it is gone, one way or the other. */
bool job_install(struct file_job *job, struct fs_temp *temp);
/* A new, small file of which no part is to be kept needs no name while it is written: its descriptor, or -1: it needs one. */
int job_create_unnamed(struct file_job *job, mode_t mode);
/* It is complete and looks as it should: give it its name. The descriptor stays open. */
bool job_publish(struct file_job *job, int fd);
/* The same for a partial file that has been completed in place. */
bool job_install_partial(struct file_job *job);

/* Do parts of files stay? */
bool dest_keeps_partial(const struct options *options);
/* The process ends (any thread; the temp file's owner must not finish it any more). */
void job_keep_interrupted(struct file_job *job, const struct fs_temp *temp);
/* It came in full, but wrong. false: it has not been kept. The temp file is to be discarded then as well as else. */
bool job_keep_unverified(struct file_job *job, const struct fs_temp *temp);
/* The process is ending (main thread): no object is made under a temp name from now on. */
void dest_close_gate(struct dest *dest);

#endif
