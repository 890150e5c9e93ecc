/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * User and group ids: what those of this process may read, said by the kernel, or by mode bits where nothing but attributes is
 * known; and names of ids, looked up once each; a name converter (daemon) can replace the system's tables.
 */
#ifndef FS_IDS_H
#define FS_IDS_H

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
	gid_t *groups; /* supplementary; owned */
	size_t group_count;
};

enum fs_permission { FS_MAY_READ = 4, FS_MAY_SEARCH = 1 }; /* bits */

void fs_credentials_read(struct fs_credentials *who);
void fs_credentials_free(struct fs_credentials *who); /* back to unknown */
/* Do the mode bits grant all that is wanted? As the kernel decides it where there is no ACL. */
bool fs_permits(const struct fs_credentials *who, uint32_t mode, uint32_t uid, uint32_t gid, unsigned wanted);

struct fs_ids; /* a cache for one session */

/* convert: NULL for the system's tables, else called with "uid"/"gid"/"usr"/"grp" and the text; returns malloc'ed text or
 * NULL when unknown (doc/protocol/07-daemon.md section 9). */
struct fs_ids *fs_ids_new(char *(*convert)(void *context, const char *kind, const char *text), void *context);
void fs_ids_free(struct fs_ids *ids);
/* Names for ids that have none otherwise: NULL or a text that lives as long as the cache. Before the first question. */
void fs_ids_set_fallback(struct fs_ids *ids, const char *(*name)(const void *context, bool group, uint32_t id),
			 const void *context);

/* NULL if the id has no name, or the name is longer than 255 bytes or has control bytes. Owned by the cache. */
const char *fs_id_name(struct fs_ids *ids, bool is_group, uint32_t id);
bool fs_id_find(struct fs_ids *ids, bool is_group, const char *name, uint32_t *id);

#endif
