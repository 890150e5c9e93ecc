/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a delta refers to. Any thread that holds the task. */
#ifndef DEST_BASIS_H
#define DEST_BASIS_H

#include <stdbool.h>
#include <stdint.h>

struct file_job;
struct task;

/*
 * --fuzzy: a file that is not there may resemble another one in its directory, or with -yy in that directory of an alternate
 * destination (doc/protocol/03-transfer.md section 11.3). Looks for one, if that is wanted: job->fuzzy and job->fuzzy_place say
 * which.
 */
void job_find_fuzzy(struct file_job *job);
/* Let go of the task's directories in alternate destinations, and forget what all of its directories hold. */
void dest_leave_dirs(struct task *task);

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
