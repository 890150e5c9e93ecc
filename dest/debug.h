/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines of --debug about single objects, by the thread that holds the task. */
#ifndef DEST_DEBUG_H
#define DEST_DEBUG_H

#include <stdint.h>

struct file_job;
struct sum_head;
struct task;

/* An entry, the task's directory is looked at; a device or special will be made. */
void dest_debug_entry(struct task *task, uint32_t index);
void dest_debug_directory(struct task *task);
void dest_debug_node(struct file_job *job);
/* Owner and group of `name` ("": the directory itself) are about to be changed; -1: they are not. */
void dest_debug_owner(struct task *task, const char *name, uint32_t old_uid, uint32_t uid, uint32_t old_gid, uint32_t gid);
/* The permissions that the default ACL of the task's directory leaves to new files. */
void dest_debug_umask(struct task *task);
/* Deltas of a pull: block sums are sent, a basis is used (-1: there is none), the content has come. */
void dest_debug_sums(const struct file_job *job, int32_t ndx, const struct sum_head *head, uint64_t size);
void dest_debug_basis(const struct file_job *job, int basis_fd);
void dest_debug_patched(const struct file_job *job);

#endif
