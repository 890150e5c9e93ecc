/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Temp files and the registry that removes them on every exit (a documented exception to "no globals"). A file is written
 * under a temp name in the directory of its destination and renamed over it when complete. Thread-safe.
 */
#ifndef FS_TEMP_H
#define FS_TEMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FS_TEMP_NAME_SIZE 256
#define FS_TEMP_SUFFIX_LENGTH 6 /* random letters at the end */

struct fs_temp {
	int fd;                       /* open for reading and writing, mode 0600 */
	int dir_fd;                   /* not owned; must stay open until commit or discard */
	char name[FS_TEMP_NAME_SIZE]; /* ".NAME.XXXXXX", doc/protocol/03-transfer.md section 7.4; unless it lies elsewhere */
	int slot;                     /* place in the registry */
	bool is_link;                 /* may be another name of the file that it is to replace */
};

/*
 * Create a temp file for `name` in dir_fd: O_EXCL|O_CREAT|O_NOFOLLOW, random suffix from getrandom. -1 with errno; ECANCELED
 * says that the process is ending (temp files have been removed): a worker thread then stops without a message. Otherwise
 * `name` is what was tried last, "" if nothing was.
 */
int fs_temp_create(struct fs_temp *temp, int dir_fd, const char *name);
/* The same in a directory that is not that of the file: "NAME.XXXXXX". */
int fs_temp_create_elsewhere(struct fs_temp *temp, int dir_fd, const char *name);
/* The same for an object without content that is to replace `name`; fd is -1. */
int fs_temp_symlink(struct fs_temp *temp, int dir_fd, const char *name, const char *target);
int fs_temp_mknod(struct fs_temp *temp, int dir_fd, const char *name, mode_t mode, uint32_t major, uint32_t minor);
int fs_temp_link(struct fs_temp *temp, int dir_fd, const char *name, int old_dir_fd, const char *old_name);
/* Give a file that is complete and has no name yet a temp name; on success `fd` belongs to *temp. */
int fs_temp_name(struct fs_temp *temp, int dir_fd, const char *name, int fd);
/* Reserve just a unique name, for an object that the caller makes under it; fd is -1. */
int fs_temp_reserve(struct fs_temp *temp, int dir_fd, const char *name);
/*
 * Close and rename over `name` in the same directory; on failure the temp file is removed, -1 with errno (ECANCELED as above).
 * A hard link to the file that already has that name is removed as well.
 */
int fs_temp_commit(struct fs_temp *temp, const char *name);
/* The same into another directory of the same file system. */
int fs_temp_commit_to(struct fs_temp *temp, int dir_fd, const char *name);
void fs_temp_discard(struct fs_temp *temp);

/* Is this the name of one that this process has there at the moment? Any thread. */
bool fs_temp_is_own(int dir_fd, const char *name);

/*
 * Unlink every temp file that this process has registered (not those of its parent) and let no thread make another one.
 * Async-signal-safe. Registered as exit hook by fs_temp_install, which also ends the ban.
 */
void fs_temp_remove_all(void);
void fs_temp_install(void);

/* --- files that are complete before they have a name: nothing is left behind by a crash --- */

/* An empty file without a name on the file system of the held directory, open for reading and writing. -1 with errno:
 * EOPNOTSUPP where the file system cannot. */
int fs_unnamed_create(int dir_fd, mode_t mode);
/* Give it a name that is not taken (EEXIST). */
int fs_unnamed_publish(int fd, int dir_fd, const char *name);

#endif
