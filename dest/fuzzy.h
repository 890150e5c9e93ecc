/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * --fuzzy: a file that is not there may resemble another one in its directory, or with -yy in that directory of an alternate
 * destination (doc/protocol/03-transfer.md section 11.3). Such a file is the basis of a delta. By the thread that holds the
 * task.
 */
#ifndef DEST_FUZZY_H
#define DEST_FUZZY_H

#include <stddef.h>
#include <stdint.h>

struct file_job;
struct task;

/* Look for one, if that is wanted: job->fuzzy and job->fuzzy_place say which. */
void job_find_fuzzy(struct file_job *job);
/* That file, open for reading; -1 with errno. */
int job_open_fuzzy(const struct file_job *job, uint64_t *size);
void dest_fuzzy_leave(struct task *task); /* forget what its directories hold */

/* --- how alike two names of files are: pure functions --- */

/* One change of a name; a distance beside it, in the lower bits, says how much the bytes differ. */
#define NAME_DISTANCE_UNIT (UINT32_C(1) << 16)
/* Names that are farther apart have nothing to do with each other. */
#define NAME_DISTANCE_LIMIT (25 * NAME_DISTANCE_UNIT)
/* Too far to have been looked at. */
#define NAME_DISTANCE_FAR (UINT32_C(0xffff) * NAME_DISTANCE_UNIT + 1)

/* The end of a name that tells its kind (".gz"), its own beginning at the dot; *length 0: it has none. Marks of old versions
 * behind it ("~", ".bak", ".~2~") are left out, numbers ("lib.so.1") do not count if there is something else. */
const char *name_suffix(const char *name, size_t *length);

/* Distance of two names, with what their suffixes differ in counted ten times more. NAME_DISTANCE_FAR if their lengths alone
 * are farther apart than `limit`. */
uint32_t name_distance(const char *name, const char *other, uint32_t limit);

#endif
