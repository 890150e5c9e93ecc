/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The daemon's connection slots (doc/protocol/07-daemon.md section 5.9) and its pid file (section 4.4). Both live as record
 * locks.
 */
#ifndef FS_LOCK_H
#define FS_LOCK_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The lock file, which is created with mode 0600 if missing; -1 with errno. The descriptor holds what is taken on it: never
 * open or close the file otherwise in this process, and let the descriptor end with the process.
 */
int fs_slots_open(const char *lock_file);
/* Take one of `slots` connection slots. -1: errno is EBUSY if all are taken (always, if slots is not positive). */
int fs_slots_take(int fd, int slots);
/* The same of slots (at most 2^20) that `holder`, a hash of any kind, has for itself. */
int fs_slots_take_of(int fd, uint64_t holder, int slots);

struct fs_pid_file {
	int fd;     /* -1: none; keeps the lock */
	int dir_fd;
	char name[256];
	pid_t owner;
};

#define FS_PID_FILE_INIT { -1, -1, "", 0 }

/*
 * Write this process's id to `path` and keep the file locked. On failure -1 with errno and *what: the WHAT of "failed to
 * WHAT pid file PATH: ERR", a static string.
 */
int fs_pid_file_write(struct fs_pid_file *pid_file, const char *path, const char **what);
void fs_pid_file_remove(struct fs_pid_file *pid_file); /* only in the process that wrote it; closes in any */
void fs_pid_file_close(struct fs_pid_file *pid_file);  /* in a child: the file stays */

#endif
