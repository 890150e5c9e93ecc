/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a delta refers to. Any thread that holds the task. */
#ifndef DEST_BASIS_H
#define DEST_BASIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_job;
struct task;

/*
 * --fuzzy: a file that is not there may resemble another one in its directory, or with -yy in that directory of an alternate
 * destination (doc/protocol/03-transfer.md section 11.3). Looks for one, if that is wanted: job->fuzzy and job->fuzzy_place say
 * which.
 */
void job_find_fuzzy(struct file_job *job);
void dest_fuzzy_leave(struct task *task); /* forget what its directories hold */

/* --- how alike two names of files are: pure functions --- */

/* One change of a name; a distance beside it, in the lower bits, says how much the bytes differ. */
#define NAME_DISTANCE_UNIT (UINT32_C(1) << 16)
/* Names that are farther apart have nothing to do with each other. */
#define NAME_DISTANCE_LIMIT (25 * NAME_DISTANCE_UNIT)
/* Too far to have been looked at. */
#define NAME_DISTANCE_FAR (UINT32_C(0xffff) * NAME_DISTANCE_UNIT + 1)

/* The end of a name that shows its kind (".gz"), its own beginning at the dot; *length 0: it has none. Marks of old versions
 * behind it ("~", ".bak", ".~2~") are left out, numbers ("lib.so.1") do not count if there is something else. */
const char *name_suffix(const char *name, size_t *length);

/* Distance of two names, with what their suffixes differ in counted ten times more. NAME_DISTANCE_FAR if their lengths alone
 * are farther apart than `limit`. */
uint32_t name_distance(const char *name, const char *other, uint32_t limit);

/* --- the basis of one file --- */

/* What the blocks of a new content come from (doc/protocol/03-transfer.md sections 2.4 and 8). */
struct basis {
	int fd;          /* a regular file, open for reading; -1: none, the content comes whole */
	uint64_t size;
	uint8_t type;    /* enum basis_type, or the number of an alternate destination */
	char *xname;     /* BASIS_FUZZY: its path, as it is sent to the peer; owned; NULL: none is */
};

void job_choose_basis(const struct file_job *job, struct basis *basis);
/* The one that a reply names: what was chosen, unless the peer lies. */
void job_find_basis(const struct file_job *job, uint8_t type, const char *xname, struct basis *basis);
void basis_close(struct basis *basis);

#endif
