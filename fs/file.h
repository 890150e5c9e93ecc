/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whole files, directories and their names: what several roles need on top of single system calls. Calls on an open descriptor
 * that need no path (fsync, fchmod, fchown, futimens, fchdir, ftruncate) are used directly, there is no wrapper for them.
 */
#ifndef FS_FILE_H
#define FS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fs/error.h"
#include "fs/root.h"
#include "lib/strbuf.h"

/* --- reading a directory's names through its descriptor --- */

struct fs_dir {
	int fd; /* owned */
	char *buffer;
	size_t used, length;
};

struct fs_dirent {
	const char *name; /* valid until the next fs_dir_next */
	size_t name_length;
	unsigned char type; /* DT_REG ... DT_UNKNOWN */
};

void fs_dir_start(struct fs_dir *dir, int fd); /* takes over the descriptor */
/* 1: *entry filled ("." and ".." are left out); 0: end; -1: error, errno set. Order is the file system's. */
int fs_dir_next(struct fs_dir *dir, struct fs_dirent *entry);
void fs_dir_finish(struct fs_dir *dir); /* frees and closes */

/* --- files --- */

/* As many bytes as there are, at most `size`; -1 with errno. Short reads and EINTR are taken care of. */
ssize_t fs_read_full(int fd, void *buffer, size_t size);
/* All bytes or -1 with errno; short writes and EINTR are taken care of. */
int fs_write_all(int fd, const void *data, size_t length);
/* The bytes at a place of a file. 0, or the errno of the failure, ENODATA if the file ends before; zero bytes stand for those
 * that could not be read. */
int fs_read_at(int fd, void *buffer, size_t length, uint64_t offset);
/* All bytes at a place, or -1 with errno: several threads may write to one descriptor. */
int fs_write_all_at(int fd, const void *data, size_t length, uint64_t offset);
/* Append everything up to the end of file to `out`; EFBIG if that is more than `limit` bytes. */
int fs_read_all(int fd, size_t limit, struct strbuf *out);

/* What has just been opened, if it is a regular file: `fd` and its size. Else it is closed: -1 with ENOENT. -1 passes. */
int fs_only_regular(int fd, uint64_t *size);

/* Reserve `size` bytes of disk without changing the file's size. 0 also where the file system cannot; -1: ENOSPC etc. */
int fs_preallocate(int fd, uint64_t size);

/* The content of an open device, in bytes; 0: it has no end that could be found. The position is at the start then. */
uint64_t fs_device_size(int fd);

/* 1: nothing in the directory but "." and ".."; 0: something; -1 with errno. The position of dir_fd is not touched. */
int fs_dir_is_empty(int dir_fd);
/* Make every missing directory of `path` (--mkpath). Returns how many were made, -1 with errno. */
int fs_make_path(const struct fs_root *root, const char *path, mode_t mode);

/* The process's umask, without the moment of having none. */
mode_t fs_umask(void);

/* A FIFO that has been opened for reading with O_NONBLOCK: wait until somebody writes to it. Returns at once for a pipe
 * without a name, whose writers were there before. */
void fs_await_writer(int fd);

#endif
