/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of user and group ids, looked up once each; a name converter (daemon) can replace the system's tables. */
#ifndef FS_IDS_H
#define FS_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fs_ids; /* a cache for one session */

/* convert: NULL for the system's tables, else called with "uid"/"gid"/"usr"/"grp" and the text; returns malloc'ed text or
 * NULL when unknown (doc/protocol/07-daemon.md section 9). */
struct fs_ids *fs_ids_new(char *(*convert)(void *context, const char *kind, const char *text), void *context);
void fs_ids_free(struct fs_ids *ids);
/* Names for ids that have none otherwise: NULL or a text that lives as long as the cache. Before the first question. */
void fs_ids_set_fallback(struct fs_ids *ids, const char *(*name)(const void *context, bool group, uint32_t id),
			 const void *context);

/* NULL if the id has no name, or the name is longer than 255 bytes or has control bytes. Owned by the cache. */
const char *fs_user_name(struct fs_ids *ids, uint32_t uid);
const char *fs_group_name(struct fs_ids *ids, uint32_t gid);
bool fs_user_id(struct fs_ids *ids, const char *name, uint32_t *uid);
bool fs_group_id(struct fs_ids *ids, const char *name, uint32_t *gid);

#endif
