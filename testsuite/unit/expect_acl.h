/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Comparing ACLs in tests: entry by entry, because their records have room between fields. */
#ifndef TESTSUITE_EXPECT_ACL_H
#define TESTSUITE_EXPECT_ACL_H

#include "fs/xattr.h"

static inline void expect_named(const struct fs_acl *acl, const struct fs_acl_entry *named, size_t count)
{
	assert_int_equal(acl->named_count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(acl->named[i].id, named[i].id);
		assert_int_equal(acl->named[i].bits, named[i].bits);
		assert_int_equal(acl->named[i].is_user, named[i].is_user);
	}
}

#endif
