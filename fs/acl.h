/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ACLs of an object held by descriptor or named in a held directory, never through a link. */
#ifndef FS_ACL_H
#define FS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/xattr.h"

/* An ACL as doc/protocol/05-xattrs-acls.md section 5.6.1 models it. FS_ACL_ABSENT marks a missing part. */
#define FS_ACL_ABSENT 0xff
struct fs_acl_entry {
	uint32_t id;
	uint8_t bits; /* 0..7 */
	uint8_t is_user;
};
struct fs_acl {
	uint8_t user_obj, group_obj, mask, other; /* 0..7 or FS_ACL_ABSENT */
	struct fs_acl_entry *named;               /* users before groups, each sorted by id */
	size_t named_count;
};

/* Access ACL, or default ACL of a directory (all absent if there is none); what has no access ACL has what its mode says. */
int fs_held_acl(const struct fs_held *held, bool is_default, struct fs_acl *acl);
int fs_acl_read(const struct fs_root *root, const char *path, bool is_default, struct fs_acl *acl);
/* Set an ACL: a whole access ACL, of which the minimal one leaves nothing but a mode, or a default ACL, of which the empty one
 * takes away what was there. */
int fs_held_set_acl(const struct fs_held *held, bool is_default, const struct fs_acl *acl);
bool fs_acl_is_empty(const struct fs_acl *acl); /* no part, no entry */
void fs_acl_sort(struct fs_acl *acl);           /* the named entries */
void fs_acl_free(struct fs_acl *acl);

#endif
