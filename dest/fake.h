/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --fake-super: attributes that would need root are kept in extended ones. Any thread. */
#ifndef DEST_FAKE_H
#define DEST_FAKE_H

#include "dest/attributes.h"
#include "fs/root.h"
#include "options.h"

struct dest_dir;
struct file_job;
struct fs_temp;
struct dest;

/* What the receiving half may do. */
enum super_level dest_receiving_level(const struct options *options, bool is_local_run);
/* Attributes of an object of the destination as they are, or as they are kept. */
int dest_lstat_at(const struct dest *dest, int dir_fd, const char *name, struct fs_stat *st);
int dest_lstat(const struct dest *dest, const struct fs_root *root, const char *path, struct fs_stat *st);
/* Keep owner and mode of a file or directory. 1: something was changed, 0: it was so already, -1: failed, said so. */
int job_fake_store(struct file_job *job, const struct attr_subject *subject, const struct fs_held *held);
void dir_fake_store(struct dest *dest, const struct dest_dir *dir, const struct attr_subject *subject,
		    const struct fs_held *held);
/* A file that stands for a symlink, device or special. */
int job_fake_make(struct file_job *job, struct fs_temp *temp);

#endif
