/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes that are asked for one and the same job take turns, so that it is done once after the last of them asked. A
 * lock file keeps who works, how often the job was asked for, and how many of these requests a finished run has served.
 */
#ifndef FS_TURN_H
#define FS_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct fs_turn {
	int fd;          /* -1: not ours */
	uint64_t asked;  /* requests that the run that begins now serves */
};

enum fs_turn_state {
	FS_TURN_OURS,    /* do the job, then fs_turn_end */
	FS_TURN_SERVED,  /* a run that began after we asked has done it */
	FS_TURN_LEFT,    /* somebody is at it, and will do it once more for us */
	FS_TURN_FAILED,  /* errno: the file cannot be made or locked */
};

/* Ask for the job by its lock file, which is made if it is missing (mode 0600). wait: for those who are at it, if any. */
enum fs_turn_state fs_turn_take(struct fs_turn *turn, const char *path, bool wait);

/* The job is done (good), or has failed. True: somebody has asked meanwhile, so it is to be done once more. */
bool fs_turn_end(struct fs_turn *turn, bool good);

#endif
