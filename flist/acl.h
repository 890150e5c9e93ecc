/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ACLs as a file list has them (doc/protocol/05-xattrs-acls.md section 5.6): an access ACL travels without what the mode says,
 * and one that has come is made whole again for each file that has it. Pure functions.
 */
#ifndef FLIST_ACL_H
#define FLIST_ACL_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/acl.h"

/* Nothing but what a mode says; of a default ACL: there is none. */
#define ACL_NOTHING { FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT, NULL, 0 }

/* Take out of an access ACL what `mode` says (5.6.2). */
void acl_reduce(struct fs_acl *acl, uint32_t mode);
/* Of an ACL as it came: where named entries need a mask that was not sent, there is one (5.6.5 step 2). */
void acl_complete(struct fs_acl *acl, bool is_default, uint32_t mode);
/* The whole access ACL of a file with this mode. The named entries are those of `reduced`. */
struct fs_acl acl_of_file(const struct fs_acl *reduced, uint32_t mode);
/* A default ACL as the kernel wants it; entries likewise. */
struct fs_acl acl_of_directory(const struct fs_acl *defaults);

/* Does a file that has (or is to have) this mode have the access ACL already? Its permission bits are not compared (5.6.6). */
bool acl_same_access(const struct fs_acl *reduced, uint32_t mode, const struct fs_acl *have);
bool acl_same_default(const struct fs_acl *wanted, const struct fs_acl *have);
/* Does it say more than a mode does? */
bool acl_is_extended(const struct fs_acl *acl);

#endif
