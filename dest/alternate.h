/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Alternate destinations: trees that may already have what is to be at the destination (--compare-dest, --copy-dest and
 * --link-dest; doc/protocol/03-transfer.md section 11.2). They are opened once; everything in them is found below these
 * descriptors, never through a symlink that leads out of them, and never by a symlink as the last component.
 */
#ifndef DEST_ALTERNATE_H
#define DEST_ALTERNATE_H

#include "dest/decide.h"
#include "fs/root.h"

struct file_job;
struct dest;
struct task;

#define ALTERNATES_MAX 20

struct alternates {
	enum alternate_kind kind;
	int count;
	struct fs_root roots[ALTERNATES_MAX]; /* fd -1: there is none, its number stays */
};

/* After the destination has been chosen; freed by the caller, who closes the roots. NULL: none were named. Those that are not
 * there are complained of. */
struct alternates *dest_alternates_open(struct dest *dest);

/* --- by the thread that holds the task --- */

/* The directory of the task in an alternate destination, held until dest_leave_dirs; -1: not there. */
int dest_alternate_dir(struct task *task, int number);
/* What the alternates have for the file; the probe's context is the job, whose `looked_at` says at which object. */
void job_find_alternate(struct file_job *job, const struct decide_probe *probe, struct decide_alternate *found);
/* Make the job's destination a hard link to what decision.alternate has; false with errno. */
bool job_take_link(struct file_job *job);

/* --- any thread --- */

/* The regular file of this name that an alternate destination has in the job's directory, open for reading; -1 with errno. */
int job_open_alternate(const struct file_job *job, int number, const char *name, uint64_t *size);

/* --- main thread --- */

/* What the alternates have for a directory. */
void dest_find_alternate_dir(struct dest *dest, const struct entries *list, const struct entry *entry, const char *path,
			     struct decide_alternate *found);
/* What the alternates have for a member of a hard link group whose leader has the path `leader` and, if it is there already,
 * these attributes. --link-dest: only another name of the leader's file counts. */
void dest_find_alternate_link(struct dest *dest, const struct entries *list, const struct entry *entry, const char *path,
			      const char *leader, const struct fs_stat *leader_st, struct decide_alternate *found);

#endif
