/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events of a task: messages and items, which the main thread prints in list order. Any thread that holds the task. */
#ifndef DEST_EVENTS_H
#define DEST_EVENTS_H

#include <stdint.h>

#include "dest/job.h"
#include "dest/task.h"

/* What the task's lock guards as well; under that. */
enum task_state task_state_of(const struct task *task);
void task_event(struct task *task, struct event event);  /* takes over event.text */
/* Keep a place in the order of the events; it is filled with one before the task is released. Places start from 1. */
uint64_t task_reserve_event(struct task *task);
/* Take the events that are there, up to the first that is awaited or has to wait for the worker; at the end all of them. */
void task_take_events(struct task *task, bool is_end, struct events *events);
/* Take every EVENT_REDO, whatever is before it, once the worker has gone through the task. */
void task_take_redos(struct task *task, struct events *events);
void task_text(struct task *task, enum log_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Contents may come when they come: put the items of one task into the order of the list. */
void events_order(struct events *events);
/* An error line with its reason, 0: none; `role`: static, NULL: not to be shown. Takes over the text. */
void task_error(struct task *task, const char *role, int error, char *text);
/* One about a destination object: BEFORE "PATH" AFTER: reason. Returns false, for callers that fail. */
bool task_complain(struct task *task, const char *role, int error, const char *name, const char *before, const char *after);
const char *task_name(const struct task *task, const struct entry *entry);
/* What has become of a file: in its place, if one is kept for that. */
void job_event(struct file_job *job, const struct event *event);
/* false, likewise */
bool job_source_failed(struct file_job *job, int error, enum source_step step);
bool job_write_failed(struct file_job *job, int error);

/* --- lines of --debug --- */

/* An entry, the task's directory is looked at; a device or special will be made. */
void dest_debug_entry(struct task *task, uint32_t index);
void dest_debug_directory(struct task *task);
void dest_debug_node(struct file_job *job);
/* Owner and group of `name` ("": the directory itself) are about to be changed; -1: they are not. */
void dest_debug_owner(struct task *task, const char *name, uint32_t old_uid, uint32_t uid, uint32_t old_gid, uint32_t gid);
/* The permissions that the default ACL of the task's directory leaves to new files. */
void dest_debug_umask(struct task *task);
/* Deltas of a pull: block sums are sent, a basis is used (-1: there is none). */
void dest_debug_sums(const struct file_job *job, int32_t ndx, const struct sum_head *head, uint64_t size);
void dest_debug_basis(const struct file_job *job, int basis_fd);

#endif
