/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --fake-super keeps, byte for byte as doc/protocol/05-xattrs-acls.md section 5.7 has it; and what is no such record. */
#include "fs/fake.h"

#include <sys/xattr.h>

#include "fs_tree.h"
#include "testsuite/unit/expect_acl.h"

#define STAT "user.rsync.%stat"

static struct fs_root root;

static int make_tree(void **state)
{
	if (tree_setup(state) || fs_root_open(&root, "."))
		return -1;
	tree_file("f", "target");
	tree_dir("d");
	return 0;
}

static int end_tree(void **state)
{
	fs_root_close(&root);
	return tree_teardown(state);
}

static bool keep(const char *path, const char *record)
{
	return lsetxattr(path, STAT, record, strlen(record), 0) == 0;
}

UNIT_TEST(records_are_read)
{
	struct fs_stat st;
	char target[64];

	if (!keep("f", "20644 1,3 1234:4321"))
		skip();
	assert_int_equal(fs_fake_lstat(&root, "f", &st), 0);
	assert_int_equal(st.mode, S_IFCHR | 0644);
	assert_int_equal(st.rdev_major, 1);
	assert_int_equal(st.rdev_minor, 3);
	assert_int_equal(st.uid, 1234);
	assert_int_equal(st.gid, 4321);
	assert_int_equal(st.size, 6);
	assert_true(keep("f", "120777 0,0 0:0"));
	assert_int_equal(fs_fake_lstat_at(root.fd, "f", &st), 0);
	assert_true(S_ISLNK(st.mode));
	assert_int_equal(fs_fake_readlink(&root, "f", target, sizeof target), 6);
	assert_string_equal(target, "target");
	assert_int_equal(fs_fake_readlink_at(root.fd, "f", target, 6), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	assert_true(keep("d", "41777 0,0 0:4294967294"));
	assert_int_equal(fs_fake_lstat(&root, "d", &st), 0);
	assert_int_equal(st.mode, S_IFDIR | 01777);
	assert_int_equal(st.gid, 4294967294u);
}

UNIT_TEST(what_is_no_record)
{
	static const char *const records[] = {
		"", "100644", "100644 0,0 0:0 ", "100644 0,0 0:0\n", " 100644 0,0 0:0", "100644 0,0 -1:0", "100644 0,0 +1:0",
		"200000 0,0 0:0", "100648 0,0 0:0", "100644 0,0 4294967296:0", "100644 0,0 99999999999999999999:0",
		"100644 0:0 0,0", "40755 0,0 0:0", "644 0,0 0:0", "0100644  0,0 0:0", "0x1a4 0,0 0:0",
	};
	struct fs_stat st;

	if (!keep("f", "100644 0,0 0:0"))
		skip();
	for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
		assert_true(keep("f", records[i]));
		if (fs_fake_lstat(&root, "f", &st) == 0)
			fail_msg("taken for a record: \"%s\"", records[i]);
		assert_int_equal(errno, EBADMSG);
	}
	char longest[300] = "";

	memset(longest, '0', sizeof longest - 1);
	assert_true(keep("f", longest));
	assert_int_equal(fs_fake_lstat(&root, "f", &st), -1);
}

static void store(const char *path, struct fs_stat *wanted, int expected)
{
	struct fs_held held;

	assert_int_equal(fs_hold(&held, &root, path, false), 0);
	assert_int_equal(fs_fake_store(&held, wanted), expected);
	fs_release(&held);
}

UNIT_TEST(only_what_is_not_so_is_kept)
{
	struct fs_stat st;
	char record[64] = "";

	tree_file("kept", "k");
	assert_int_equal(chmod("kept", 0640), 0);
	assert_int_equal(fs_lstat(&root, "kept", &st), 0);
	store("kept", &st, 0);
	assert_int_equal(lgetxattr("kept", STAT, record, sizeof record), -1);
	st.mode = S_IFREG | 04755;
	store("kept", &st, 1);
	store("kept", &st, 0);
	if (lgetxattr("kept", STAT, record, sizeof record) < 0)
		skip();
	assert_int_equal(strncmp(record, "104755 0,0 ", 11), 0);
	assert_int_equal(fs_lstat(&root, "kept", &st), 0);
	assert_int_equal(st.mode, S_IFREG | 0755);
	st.mode = S_IFREG;
	store("kept", &st, 1);
	assert_int_equal(fs_lstat(&root, "kept", &st), 0);
	assert_int_equal(st.mode, S_IFREG | 0600);
	st.mode = S_IFREG | 0644;
	store("kept", &st, 1);
	assert_int_equal(lgetxattr("kept", STAT, record, sizeof record), -1);
}

/* Not even where the part of it that can be read is what is wanted. */
UNIT_TEST(a_broken_record_is_replaced)
{
	struct fs_stat st, wanted;

	tree_file("broken", "b");
	assert_int_equal(chmod("broken", 0), 0);
	assert_int_equal(fs_lstat(&root, "broken", &wanted), 0);
	if (!keep("broken", "100000 0,0 x:0"))
		skip();
	store("broken", &wanted, 1);
	assert_int_equal(fs_fake_lstat(&root, "broken", &st), 0);
	assert_int_equal(st.mode, S_IFREG);
	store("broken", &wanted, 0);
}

UNIT_TEST(acls)
{
	static const uint8_t f1[] = {
		0x80, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 0x80, 0, 0, 0, 0x21, 0, 0, 0, 4, 0, 0, 0x80,
		0xe8, 3, 0, 0, 7, 0, 0, 0x80, 0x14, 0, 0, 0, 6, 0, 0, 0,
	};
	struct fs_acl_entry named[] = { { 33, 4, 1 }, { 1000, 7, 1 }, { 20, 6, 0 } };
	const struct fs_acl wanted = { FS_ACL_ABSENT, 4, 7, FS_ACL_ABSENT, named, 3 };
	struct fs_held held;
	struct fs_acl acl;
	uint8_t bytes[64];

	assert_int_equal(fs_hold(&held, &root, "d", false), 0);
	if (fs_fake_set_acl(&held, false, &wanted) < 0)
		skip();
	assert_int_equal(lgetxattr("d", "user.rsync.%aacl", bytes, sizeof bytes), sizeof f1);
	assert_memory_equal(bytes, f1, sizeof f1);
	assert_int_equal(fs_fake_acl(&held, false, &acl), 0);
	expect_named(&acl, named, 3);
	assert_int_equal(acl.user_obj, FS_ACL_ABSENT);
	fs_acl_free(&acl);
	assert_int_equal(fs_fake_acl(&held, true, &acl), 0);
	assert_true(fs_acl_is_empty(&acl));
	assert_int_equal(fs_fake_set_acl(&held, false, &acl), 0);
	assert_int_equal(lgetxattr("d", "user.rsync.%aacl", bytes, sizeof bytes), -1);
	assert_int_equal(lsetxattr("d", "user.rsync.%aacl", f1, sizeof f1 - 1, 0), 0);
	assert_int_equal(fs_fake_acl(&held, false, &acl), -1);
	memcpy(bytes, f1, sizeof f1);
	bytes[8] = 8;
	assert_int_equal(lsetxattr("d", "user.rsync.%aacl", bytes, sizeof f1, 0), 0);
	assert_int_equal(fs_fake_acl(&held, false, &acl), -1);
	fs_release(&held);
}

UNIT_GROUP(make_tree, end_tree)
