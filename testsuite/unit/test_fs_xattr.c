/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Extended attributes and ACLs are those of the named object, never of what a link points to. */
#include "fs/xattr.h"

#include <sys/xattr.h>

#include "fs/root.h"
#include "fs_tree.h"
#include "testsuite/unit/expect_acl.h"

static struct fs_root root;

static int make_tree(void **state)
{
	if (tree_setup(state) || fs_root_open(&root, "."))
		return -1;
	tree_file("f", "f");
	tree_file("plain", "p");
	tree_dir("d");
	tree_link("f", "l");
	tree_link("../../etc", "out");
	return 0;
}

static int end_tree(void **state)
{
	fs_root_close(&root);
	return tree_teardown(state);
}

static bool set(const char *path, const char *name, const void *value, size_t length)
{
	return lsetxattr(path, name, value, length, 0) == 0;
}

UNIT_TEST(all_attributes_sorted)
{
	struct fs_xattr_list list;
	static const char *const names[] = { "user.b", "user.a", "user.empty", "user.B" };

	for (int i = 0; i < 4; i++)
		if (!set("f", names[i], names[i], i == 2 ? 0 : 6))
			skip();
	assert_int_equal(fs_xattr_read(&root, "f", &list), 0);
	assert_int_equal(list.count, 4);
	assert_string_equal(list.items[0].name, "user.B");
	assert_string_equal(list.items[1].name, "user.a");
	assert_string_equal(list.items[2].name, "user.b");
	assert_string_equal(list.items[3].name, "user.empty");
	assert_int_equal(list.items[1].length, 6);
	assert_memory_equal(list.items[1].value, "user.a", 6);
	assert_int_equal(list.items[3].length, 0);
	fs_xattr_list_free(&list);
	assert_int_equal(list.count, 0);
	assert_int_equal(fs_xattr_read(&root, "plain", &list), 0);
	assert_int_equal(list.count, 0);
	fs_xattr_list_free(&list);
}

/* S-084 */
UNIT_TEST(a_link_has_its_own)
{
	struct fs_xattr_list list;
	void *value;
	size_t length;

	if (!set("f", "user.a", "x", 1))
		skip();
	assert_int_equal(fs_xattr_read(&root, "l", &list), 0);
	for (size_t i = 0; i < list.count; i++)
		assert_string_not_equal(list.items[i].name, "user.a");
	fs_xattr_list_free(&list);
	assert_int_equal(fs_xattr_get(&root, "l", "user.a", &value, &length), -1);
	assert_int_equal(fs_xattr_read(&root, "out/passwd", &list), -1);
	assert_int_equal(errno, ELOOP);
	if (geteuid() == 0 && set("l", "trusted.onlink", "L", 1)) {
		assert_int_equal(fs_xattr_get(&root, "l", "trusted.onlink", &value, &length), 0);
		assert_int_equal(length, 1);
		assert_memory_equal(value, "L", 1);
		free(value);
	}
}

UNIT_TEST(one_value)
{
	void *value;
	size_t length;
	char *big = calloc(1, 3000);

	memset(big, 'v', 3000);
	if (!set("d", "user.big", big, 3000))
		skip();
	assert_int_equal(fs_xattr_get(&root, "d", "user.big", &value, &length), 0);
	assert_int_equal(length, 3000);
	assert_memory_equal(value, big, 3000);
	free(value);
	free(big);
	assert_int_equal(fs_xattr_get(&root, "d", "user.none", &value, &length), -1);
	assert_int_equal(errno, ENODATA);
	assert_int_equal(fs_xattr_get(&root, "none", "user.none", &value, &length), -1);
	assert_int_equal(errno, ENOENT);
}

UNIT_TEST(object_kinds_without_attributes)
{
	struct fs_xattr_list list;

	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(fs_xattr_read(&root, "fifo", &list), 0);
	assert_int_equal(list.count, 0);
	fs_xattr_list_free(&list);
}

/* version 2; then tag, bits, id */
#define ENTRY(tag, bits, id) tag, 0, bits, 0, (id) & 0xff, (id) >> 8 & 0xff, (id) >> 16 & 0xff, (id) >> 24 & 0xff
#define NO_ID 0xffffffffu

UNIT_TEST(extended_acl)
{
	static const unsigned char access[] = { 2, 0, 0, 0, ENTRY(1, 6, NO_ID), ENTRY(2, 4, 33u), ENTRY(2, 7, 1000u),
		ENTRY(4, 4, NO_ID), ENTRY(8, 6, 20u), ENTRY(16, 7, NO_ID), ENTRY(32, 0, NO_ID) };
	struct fs_acl acl;

	if (!set("f", "system.posix_acl_access", access, sizeof access))
		skip();
	assert_int_equal(fs_acl_read(&root, "f", 0, &acl), 0);
	assert_int_equal(acl.user_obj, 6);
	assert_int_equal(acl.group_obj, 4);
	assert_int_equal(acl.mask, 7);
	assert_int_equal(acl.other, 0);
	assert_int_equal(acl.named_count, 3);
	assert_true(acl.named[0].is_user && acl.named[0].id == 33 && acl.named[0].bits == 4);
	assert_true(acl.named[1].is_user && acl.named[1].id == 1000 && acl.named[1].bits == 7);
	assert_true(!acl.named[2].is_user && acl.named[2].id == 20 && acl.named[2].bits == 6);
	fs_acl_free(&acl);
	assert_int_equal(fs_acl_read(&root, "l", 0, &acl), 0);
	assert_int_equal(acl.named_count, 0);
	fs_acl_free(&acl);
}

UNIT_TEST(default_acl)
{
	static const unsigned char defaults[] = { 2, 0, 0, 0, ENTRY(1, 7, NO_ID), ENTRY(2, 5, 1000u), ENTRY(4, 5, NO_ID),
		ENTRY(16, 5, NO_ID), ENTRY(32, 0, NO_ID) };
	struct fs_acl acl;

	assert_int_equal(fs_acl_read(&root, "d", 1, &acl), 0);
	assert_int_equal(acl.user_obj, FS_ACL_ABSENT);
	assert_int_equal(acl.other, FS_ACL_ABSENT);
	if (!set("d", "system.posix_acl_default", defaults, sizeof defaults))
		skip();
	assert_int_equal(fs_acl_read(&root, "d", 1, &acl), 0);
	assert_int_equal(acl.user_obj, 7);
	assert_int_equal(acl.mask, 5);
	assert_int_equal(acl.named_count, 1);
	assert_int_equal(acl.named[0].id, 1000);
	fs_acl_free(&acl);
	assert_int_equal(fs_acl_read(&root, "f", 1, &acl), 0);
	assert_int_equal(acl.user_obj, FS_ACL_ABSENT);
}

UNIT_TEST(mode_only_acl)
{
	struct fs_acl acl;

	assert_int_equal(chmod("plain", 0751), 0);
	assert_int_equal(fs_acl_read(&root, "plain", 0, &acl), 0);
	assert_int_equal(acl.user_obj, 7);
	assert_int_equal(acl.group_obj, 5);
	assert_int_equal(acl.other, 1);
	assert_int_equal(acl.mask, FS_ACL_ABSENT);
	assert_int_equal(acl.named_count, 0);
	fs_acl_free(&acl);
	assert_int_equal(fs_acl_read(&root, "none", 0, &acl), -1);
	assert_int_equal(errno, ENOENT);
}

/* S-084: what is held is changed, whatever has the name by then. */
UNIT_TEST(setting_and_removing)
{
	struct fs_held held;
	void *value;
	size_t length;

	tree_file("target", "t");
	tree_file("victim", "v");
	assert_int_equal(fs_hold_at(&held, root.fd, "target"), 0);
	assert_int_equal(unlink("target") | symlink("victim", "target"), 0);
	if (fs_held_set(&held, "user.set", "value", 5) < 0)
		skip();
	assert_int_equal(fs_held_get(&held, "user.set", &value, &length), 0);
	assert_int_equal(length, 5);
	free(value);
	assert_int_equal(fs_held_remove(&held, "user.set"), 0);
	assert_int_equal(fs_held_get(&held, "user.set", &value, &length), -1);
	fs_release(&held);
	assert_int_equal(fs_hold_at(&held, root.fd, "target"), 0);
	assert_int_equal(fs_held_set(&held, "user.set", "x", 1), -1); /* a link's own: not allowed */
	fs_release(&held);
	assert_int_equal(fs_xattr_get(&root, "victim", "user.set", &value, &length), -1);
}

UNIT_TEST(setting_acls)
{
	struct fs_acl_entry named[] = { { 33, 4, 1 }, { 1000, 7, 1 }, { 20, 6, 0 } };
	const struct fs_acl wanted = { 6, 4, 6, 0, named, 3 }, minimal = { 6, 4, FS_ACL_ABSENT, 0, NULL, 0 };
	const struct fs_acl none = { FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT, NULL, 0 };
	struct fs_held held;
	struct fs_acl acl;

	tree_dir("acls");
	assert_int_equal(fs_hold_at(&held, root.fd, "acls"), 0);
	if (fs_held_set_acl(&held, false, &wanted) < 0)
		skip();
	for (int is_default = 0; is_default < 2; is_default++) {
		assert_int_equal(fs_held_set_acl(&held, is_default, &wanted), 0);
		assert_int_equal(fs_held_acl(&held, is_default, &acl), 0);
		assert_int_equal(acl.mask, 6);
		expect_named(&acl, named, 3);
		fs_acl_free(&acl);
		assert_int_equal(fs_held_set_acl(&held, is_default, is_default ? &none : &minimal), 0);
		assert_int_equal(fs_held_acl(&held, is_default, &acl), 0);
		assert_int_equal(acl.named_count, 0);
		assert_int_equal(acl.mask, FS_ACL_ABSENT);
		fs_acl_free(&acl);
	}
	assert_int_equal(fs_held_set_acl(&held, true, &none), 0); /* there is none already */
	fs_release(&held);
}

/* In a chroot /proc may be anybody's: the same answers without it, and no link in its place is used. */
static int read_in_chroot(void)
{
	struct fs_root here;
	struct fs_xattr_list list;
	void *value;
	size_t length;

	if (chroot(".") < 0 || chdir("/") < 0 || fs_root_open(&here, "/") < 0)
		return 1;
	if (fs_xattr_read(&here, "f", &list) < 0 || list.count == 0)
		return 2;
	if (fs_xattr_get(&here, "f", "user.a", &value, &length) < 0 || length != 1)
		return 3;
	if (fs_xattr_read(&here, "plain", &list) < 0 || list.count != 0)
		return 4;
	if (fs_xattr_read(&here, "l", &list) < 0 || list.count != 0)
		return 5;
	return 0;
}

UNIT_TEST(without_proc)
{
	char link[64];
	int status;

	if (geteuid() != 0 || !set("f", "user.a", "x", 1))
		skip();
	tree_dir("proc");
	tree_dir("proc/self");
	tree_dir("proc/self/fd");
	for (int fd = 3; fd < 30; fd++) {
		snprintf(link, sizeof link, "proc/self/fd/%d", fd);
		tree_link("/f", link); /* what a hostile uploader would put there */
	}
	pid_t child = fork();

	if (child == 0)
		_exit(read_in_chroot());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 0);
}

UNIT_GROUP(make_tree, end_tree)
