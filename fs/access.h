/* SPDX-License-Identifier: GPL-3.0-or-later */
/* May this process read an object? The kernel says, or mode bits where nothing but attributes is known. */
#ifndef FS_ACCESS_H
#define FS_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fs/root.h"

/* By the effective ids; a final symlink is not followed. */
bool fs_is_readable_at(int dir_fd, const char *name);
bool fs_is_readable(const struct fs_root *root, const char *path);

/* The effective ids of the process, as they were when they were read. */
struct fs_credentials {
	bool known;     /* they have been read */
	bool superuser; /* user 0: mode bits hold nobody up */
	uid_t uid;
	gid_t gid;
	gid_t *groups;  /* supplementary; owned */
	size_t group_count;
};

enum fs_permission { FS_MAY_READ = 4, FS_MAY_SEARCH = 1 }; /* bits */

void fs_credentials_read(struct fs_credentials *who);
void fs_credentials_free(struct fs_credentials *who); /* back to unknown */
/* Do the mode bits grant all that is wanted? As the kernel decides it where there is no ACL. */
bool fs_permits(const struct fs_credentials *who, uint32_t mode, uint32_t uid, uint32_t gid, unsigned wanted);

#endif
