/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The daemon's connection slots (doc/protocol/07-daemon.md section 5.9) and its pid file (section 4.4), which live as record
 * locks; and turns at a job.
 */
#ifndef FS_LOCK_H
#define FS_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fs/operator.h"

/* --- turns --- */

/*
 * Processes that are asked for one and the same job take turns, so that it is done once after the last of them asked. A
 * lock file keeps who works, how often the job was asked for, and how many of these requests a finished run has served.
 */
struct fs_turn {
	int fd;         /* -1: not ours */
	uint64_t asked; /* requests that the run that begins now serves */
};

enum fs_turn_state {
	FS_TURN_OURS,   /* do the job, then fs_turn_end */
	FS_TURN_SERVED, /* a run that began after we asked has done it */
	FS_TURN_LEFT,   /* somebody is at it, and will do it once more for us */
	FS_TURN_FAILED, /* errno: the file cannot be made or locked */
};

/* Ask for the job by its lock file, which is made if it is missing (mode 0600). wait: for those who are at it, if any. */
enum fs_turn_state fs_turn_take(struct fs_turn *turn, const char *path, bool wait);

/* The job is done (good), or has failed. True: somebody has asked meanwhile, so it is to be done once more. */
bool fs_turn_end(struct fs_turn *turn, bool good);

/* --- slots and pid file --- */

/*
 * Take one of `slots` connection slots. holder: NULL, or a hash of any kind, which has slots (at most 2^20) for itself. -1:
 * errno is EBUSY if all are taken (always, if slots is not positive). fd: the lock file, open for reading and writing. It holds
 * what is taken on it: never open or close the file otherwise in this process, and let the descriptor end with the process.
 */
int fs_slots_take(int fd, const uint64_t *holder, int slots);

/*
 * Write this process's id to `path` and keep the file locked. On failure -1 with errno and *what: the WHAT of "failed to
 * WHAT pid file PATH: ERR", a static string.
 */
int fs_pid_file_write(struct fs_own_name *file, const char *path, const char **what);

#endif
