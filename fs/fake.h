/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What --fake-super keeps in extended attributes instead of doing it (doc/protocol/05-xattrs-acls.md section 5.7): owner,
 * special bits and kind of an object in user.rsync.%stat, its ACLs in user.rsync.%aacl and %dacl. A symlink is a file of its
 * target, a device or special an empty one.
 *
 * All functions return 0, or -1 with errno; EBADMSG: what is kept cannot be read.
 */
#ifndef FS_FAKE_H
#define FS_FAKE_H

#include "fs/xattr.h"

/* Attributes as they are kept: what lstat would say if it had been done. */
int fs_fake_lstat_at(int dir_fd, const char *name, struct fs_stat *st);
int fs_fake_lstat(const struct fs_root *root, const char *path, struct fs_stat *st);
/* The same of an object that is held: *st is filled with what it is in fact, and becomes what is kept. */
int fs_fake_overlay(const struct fs_held *held, struct fs_stat *st);
/* The target of a symlink, kept or real; as fs_readlink. */
ssize_t fs_fake_readlink_at(int dir_fd, const char *name, char *target, size_t size);
ssize_t fs_fake_readlink(const struct fs_root *root, const char *path, char *target, size_t size);

/* Keep mode, device numbers and owner of *wanted, and give the object the permission bits for that (and its owner's to
 * read and write, or to enter). 1: it was otherwise. */
int fs_fake_store(const struct fs_held *held, const struct fs_stat *wanted);

/* ACLs in the reduced form (flist/attributes.h): absent parts are those of the mode. None is kept: all parts are absent. */
int fs_fake_acl(const struct fs_held *held, bool is_default, struct fs_acl *acl);
int fs_fake_set_acl(const struct fs_held *held, bool is_default, const struct fs_acl *acl);

#endif
