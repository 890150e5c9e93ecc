/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Paths that the operator names (configuration, lock, log, motd, filter files, module roots): resolver R2 of
 * doc/protocol/08-security.md section 4.3. A symlink at any component is followed only if the link is owned by uid 0 or the
 * effective uid; else ELOOP. Links of the proc file system (/dev/stdin, /dev/fd/N, a shell's <(...)) are followed by the same
 * rule.
 */
#ifndef FS_OPERATOR_H
#define FS_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fs/root.h"
#include "fs/walk.h"
#include "lib/strbuf.h"

/* open(2) by R2; O_CLOEXEC is added. A link of another user gets a line that says so and how to trust it
 * (doc/protocol/09-since-3.5.0.md section 9), as an error. Returns a descriptor or -1 with errno. Add O_NONBLOCK where a FIFO
 * must not hang; an open descriptor's name (/dev/stdin) is opened without it. */
int fs_operator_open(const char *path, int flags, mode_t mode);

/* The same as a process would whose root directory is `root_fd`: no "/", ".." or link leads above it. */
int fs_operator_open_in(int root_fd, const char *path, int flags);

/*
 * The directory that holds the last component of `path`, as an O_PATH descriptor, for the *_at calls; that component is
 * copied to `leaf` (NAME_MAX + 1 = 256 bytes) and not looked at. EISDIR if the path has none ("/", "a/", "a/.."). flags: 0 or
 * FS_ANY_LINKS; or FS_FOLLOW for a file that is to be replaced: if that component is a symlink, it is the place that the link
 * leads to; EINVAL for a link of the proc file system.
 */
int fs_operator_parent(const char *path, int flags, char leaf[256]);

/* A directory named by the operator, as a confined root: the destination or source of a local run, a module's path. */
int fs_operator_root(struct fs_root *root, const char *path);

/*
 * Append the content of a configuration-type file (regular files, FIFOs and process substitutions) to `out`. EFBIG if it is
 * longer than `limit` bytes, EISDIR for a directory.
 */
int fs_operator_read(const char *path, int flags, size_t limit, struct strbuf *out);

/* A file or socket that is there as long as this process: its pid file, its control socket. */
struct fs_own_name {
	int fd;           /* -1: there is none */
	int dir_fd;
	char name[256];
	uint64_t dev, ino;
	pid_t owner;
};

#define FS_OWN_NAME_INIT { -1, -1, "", 0, 0, 0 }

void fs_own_name_remove(struct fs_own_name *file); /* only in the process that made it; closes in any */
void fs_own_name_close(struct fs_own_name *file);  /* in a child: the name stays */

/* Does the physical directory `inner_fd` lie inside (or equal) `outer_fd`? Walks ".." comparing device and inode. */
bool fs_is_inside(int inner_fd, int outer_fd);

/* May the process, with its effective ids, do R_OK, W_OK and X_OK of access(2) to the object behind a descriptor? errno. */
bool fs_may(int fd, int how);

/* Could the process write to this file, or make it? Nothing is opened for writing. errno. */
bool fs_operator_may_write(const char *path);

/* Make the directory the root and the working directory of this process. -1 with errno; the process must then end. */
int fs_enter_chroot(int dir_fd);

#endif
