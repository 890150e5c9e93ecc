/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Extended attributes and ACLs of an object held by descriptor or named in a held directory, never through a link.
 *
 *	if (fs_hold_at(&held, dir_fd, name) == 0) {
 *		fs_held_set(&held, "user.a", "x", 1);
 *		fs_release(&held);
 *	}
 *
 * All functions return 0, or -1 with errno.
 */
#ifndef FS_XATTR_H
#define FS_XATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fs/root.h"
#include "fs/walk.h"

struct fs_xattr {
	char *name; /* local name, "user.foo" */
	void *value;
	size_t length;
};

struct fs_xattr_list {
	struct fs_xattr *items; /* sorted by name bytes */
	size_t count;
};

/* An object whatever its kind, a symlink itself included. */
struct fs_held {
	int fd;           /* -1: nothing is held */
	bool is_borrowed; /* fs_hold_open */
	bool by_path;     /* the calls use `path`, else fd */
	char path[FS_PROC_PATH_SIZE];
	struct fs_stat st;
};

/* ENOTSUP: the object can have no attributes as the process stands (without proc only files and directories have any). */
int fs_hold(struct fs_held *held, const struct fs_root *root, const char *path, bool follow); /* a last symlink, too */
int fs_hold_at(struct fs_held *held, int dir_fd, const char *name);
/* A file or directory that the caller has open, not with O_PATH, and keeps open. */
int fs_hold_open(struct fs_held *held, int fd);
void fs_release(struct fs_held *held); /* errno stays */

/* All attributes; ENOTSUP counts as an empty list, and so it is left on failure. */
int fs_held_xattrs(const struct fs_held *held, struct fs_xattr_list *list);
/* malloc'ed *value. */
int fs_held_get(const struct fs_held *held, const char *name, void **value, size_t *length);
int fs_held_set(const struct fs_held *held, const char *name, const void *value, size_t length);
int fs_held_remove(const struct fs_held *held, const char *name);
/* Set it to a malloc'ed value, which is freed in any case; NULL: there is none afterwards, nor need have been any. */
int fs_held_replace(const struct fs_held *held, const char *name, void *value, size_t length);
int fs_held_chmod(const struct fs_held *held, mode_t mode); /* not of a symlink */
void fs_xattr_list_free(struct fs_xattr_list *list);

/* The same of `path` below the root (the symlink itself, if it is one). */
int fs_xattr_read(const struct fs_root *root, const char *path, struct fs_xattr_list *list);
int fs_xattr_get(const struct fs_root *root, const char *path, const char *name, void **value, size_t *length);

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
/* Nothing but what a mode says; of a default ACL: there is none. */
#define FS_ACL_NOTHING { FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT, NULL, 0 }

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
