/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Extended attributes and ACLs of an object held by descriptor or named in a held directory, never through a link. */
#ifndef FS_XATTR_H
#define FS_XATTR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fs_xattr {
	char *name; /* local name, "user.foo" */
	void *value;
	size_t length;
};

struct fs_xattr_list {
	struct fs_xattr *items; /* sorted by name bytes */
	size_t count;
};

/* All attributes of `path` below the root (the symlink itself, if it is one). ENOTSUP counts as an empty list. */
struct fs_root;
int fs_xattr_read(const struct fs_root *root, const char *path, struct fs_xattr_list *list);
/* One value; 0 and malloc'ed *value, or -1 with errno. */
int fs_xattr_get(const struct fs_root *root, const char *path, const char *name, void **value, size_t *length);
void fs_xattr_list_free(struct fs_xattr_list *list);

/* An ACL as protocol/05 section 5.6.1 models it. ACL_ABSENT marks a missing part. */
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
/* Access ACL, or default ACL of a directory (all absent if there is none). */
int fs_acl_read(const struct fs_root *root, const char *path, int default_acl, struct fs_acl *acl);
void fs_acl_free(struct fs_acl *acl);

#endif
