/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a symlink leads to is asked anew by every call, by each rule of a root: doc/protocol/09-since-3.5.0.md
 * sections 6.2 and 6.3.
 */
#include "fs/root.h"

#include "fs/fake.h"
#include "fs/file.h"
#include "fs/ids.h"
#include "fs/xattr.h"
#include "fs_tree.h"
#include "lib/log.h"

#define STRANGER 12345

static char absolute_in[80];

/*
 * base/in/one base/in/two  out: directories with the same names in them
 * base/way -> in/one       base/second -> in/two
 */
static int make_tree(void **state)
{
	static const char *const tops[] = { "base/in/one", "base/in/two", "out" };
	char path[64];

	if (tree_setup(state))
		return -1;
	tree_dir("base");
	tree_dir("base/in");
	for (int i = 0; i < 3; i++) {
		tree_dir(tops[i]);
		snprintf(path, sizeof path, "%s/dir", tops[i]);
		tree_dir(path);
		snprintf(path, sizeof path, "%s/dir/file", tops[i]);
		tree_file(path, tops[i]);
		snprintf(path, sizeof path, "%s/dir/link", tops[i]);
		tree_link("file", path);
	}
	tree_link("in/one", "base/way");
	tree_link("in/two", "base/second");
	snprintf(absolute_in, sizeof absolute_in, "%s/base/in", tree_path);
	return 0;
}

static void exchange(const char *target, const char *name, uid_t owner)
{
	assert_int_equal(unlinkat(AT_FDCWD, name, 0), 0);
	tree_link(target, name);
	if (geteuid() == 0)
		assert_int_equal(lchown(name, owner, owner), 0);
}

/* --- every call that takes a root and a path: 0, or an errno --- */

static int outcome(int fd)
{
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int call_open(const struct fs_root *root, const char *path)
{
	return outcome(fs_open(root, path, O_RDONLY, 0));
}

static int call_open_path(const struct fs_root *root, const char *path)
{
	return outcome(fs_open(root, path, O_PATH, 0));
}

static int call_open_follow(const struct fs_root *root, const char *path)
{
	return outcome(fs_open(root, path, O_RDONLY | FS_FOLLOW, 0));
}

static int call_opendir(const struct fs_root *root, const char *path)
{
	return outcome(fs_opendir(root, path));
}

static int call_lstat(const struct fs_root *root, const char *path)
{
	struct fs_stat st;

	return fs_lstat(root, path, &st) < 0 ? errno : 0;
}

static int call_stat_follow(const struct fs_root *root, const char *path)
{
	struct fs_stat st;

	return fs_stat_follow(root, path, &st) < 0 ? errno : 0;
}

static int call_readlink(const struct fs_root *root, const char *path)
{
	char target[16];

	return fs_readlink(root, path, target, sizeof target) < 0 ? errno : 0;
}

static int call_fake_lstat(const struct fs_root *root, const char *path)
{
	struct fs_stat st;

	return fs_fake_lstat(root, path, &st) < 0 ? errno : 0;
}

static int call_is_readable(const struct fs_root *root, const char *path)
{
	return fs_is_readable(root, path) ? 0 : errno;
}

static int call_read_file(const struct fs_root *root, const char *path)
{
	struct strbuf content = STRBUF_INIT;
	int error = tree_read_below(root, path, 100, &content) < 0 ? errno : 0;

	strbuf_free(&content);
	return error;
}

static int call_hold(const struct fs_root *root, const char *path)
{
	struct fs_held held;

	if (fs_hold(&held, root, path, false) < 0)
		return errno;
	fs_release(&held);
	return 0;
}

static int call_hold_follow(const struct fs_root *root, const char *path)
{
	struct fs_held held;

	if (fs_hold(&held, root, path, true) < 0)
		return errno;
	fs_release(&held);
	return 0;
}

static int call_acl(const struct fs_root *root, const char *path)
{
	struct fs_acl acl;

	if (fs_acl_read(root, path, false, &acl) < 0)
		return errno;
	fs_acl_free(&acl);
	return 0;
}

static int call_xattr(const struct fs_root *root, const char *path)
{
	struct fs_xattr_list list;

	if (fs_xattr_read(root, path, &list) < 0)
		return errno;
	fs_xattr_list_free(&list);
	return 0;
}

static int call_root_below(const struct fs_root *root, const char *path)
{
	struct fs_root below;

	if (fs_root_open_below(&below, root, path) < 0)
		return errno;
	fs_root_close(&below);
	return 0;
}

static const struct {
	const char *name, *below;
	int (*call)(const struct fs_root *root, const char *path);
} calls[] = {
	{ "open", "dir/file", call_open }, { "open O_PATH", "dir/link", call_open_path },
	{ "open_follow", "dir/file", call_open_follow }, { "opendir", "dir", call_opendir },
	{ "lstat", "dir/link", call_lstat },
	{ "stat_follow", "dir/file", call_stat_follow }, { "stat_follow of a directory", "dir", call_stat_follow },
	{ "readlink", "dir/link", call_readlink }, { "fake_lstat", "dir/file", call_fake_lstat },
	{ "is_readable", "dir/file", call_is_readable }, { "read_file", "dir/file", call_read_file },
	{ "hold", "dir/file", call_hold }, { "hold_follow", "dir", call_hold_follow }, { "acl_read", "dir/file", call_acl },
	{ "xattr_read", "dir/file", call_xattr }, { "root_open_below", "dir", call_root_below },
};

static void expect_all(const struct fs_root *root, const char *way, int error, const char *why)
{
	char path[64];

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		snprintf(path, sizeof path, "%s/%s", way, calls[i].below);
		int result = calls[i].call(root, path);

		if (result != error)
			fail_msg("%s of %s, %s: %s", calls[i].name, path, why, strerror(result));
	}
}

static struct fs_root open_base(bool by_walk)
{
	struct fs_root root;

	assert_int_equal(fs_root_open(&root, "base"), 0);
	root.no_openat2 |= by_walk;
	return root;
}

static const char *content_of(const struct fs_root *root, const char *path)
{
	return tree_content_of(fs_open(root, path, O_RDONLY, 0));
}

/* --- the rules --- */

UNIT_TEST(anchor_is_the_directory_it_was)
{
	for (int walk = 0; walk < 2; walk++) {
		struct fs_root root = open_base(walk);

		exchange("../out", "base/way", 0);
		expect_all(&root, "way", ELOOP, "which leads out");
		root.anchors = fs_anchors_new();
		assert_int_equal(fs_anchors_add(root.anchors, &root, "way", true), 0);
		assert_int_equal(fs_anchors_add(root.anchors, &root, "second/dir", true), 0);
		expect_all(&root, "way", 0, "an anchor");
		assert_string_equal(content_of(&root, "way/dir/file"), "out");
		/* It is held open: the exchange goes unnoticed. */
		exchange("in/one", "base/way", 0);
		expect_all(&root, "way", 0, "an anchor that is held");
		assert_string_equal(content_of(&root, "way/dir/file"), "out");
		assert_string_equal(content_of(&root, "second/dir/file"), "base/in/two");
		expect_all(&root, "way", ELOOP, "exchanged");
		exchange("../out", "base/way", 0);
		expect_all(&root, "way", 0, "as it was");
		exchange("in/two", "base/way", 0);
		root.owned = true;
		expect_all(&root, "way", ELOOP, "exchanged, held, and its links are looked at");
		fs_anchors_free(root.anchors);
		fs_root_close(&root);
	}
	exchange("in/one", "base/way", 0);
}

UNIT_TEST(anchors_are_found_by_whole_names)
{
	struct fs_root root = open_base(false);
	struct fs_stat st;

	root.anchors = fs_anchors_new();
	exchange("../out", "base/way", 0);
	tree_link("../out", "base/wayside");
	assert_int_equal(fs_anchors_add(root.anchors, &root, "way", false), -1);
	assert_int_equal(fs_anchors_add(root.anchors, &root, "way", true), 0);
	assert_int_equal(fs_anchors_add(root.anchors, &root, "none", true), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(fs_anchors_add(root.anchors, &root, "way/dir/file", true), -1);
	assert_int_equal(errno, ENOTDIR);
	/* The name itself is a link to those who do not follow. */
	assert_int_equal(fs_lstat(&root, "way", &st), 0);
	assert_true(S_ISLNK(st.mode));
	assert_int_equal(fs_stat_follow(&root, "way", &st), 0);
	assert_true(S_ISDIR(st.mode));
	assert_int_equal(call_opendir(&root, "way"), 0);
	assert_int_equal(call_open(&root, "wayside/dir/file"), ELOOP);
	/* Below an anchor nothing leads out of it. */
	assert_int_equal(call_open(&root, "way/../in/one/dir/file"), ELOOP);
	assert_int_equal(call_open(&root, "in/one/dir/file"), 0);
	fs_anchors_free(root.anchors);
	fs_root_close(&root);
	exchange("in/one", "base/way", 0);
	assert_int_equal(unlink("base/wayside"), 0);
}

UNIT_TEST(owned_root_asks_who_owns_each_link)
{
	if (geteuid() != 0)
		skip();
	for (int walk = 0; walk < 2; walk++) {
		struct fs_root root = open_base(walk);

		root.owned = true;
		expect_all(&root, "way", 0, "root's");
		exchange("../out", "base/way", 0);
		expect_all(&root, "way", 0, "root's, leading out");
		exchange("../out", "base/way", STRANGER);
		expect_all(&root, "way", ELOOP, "a stranger's");
		exchange("in/one", "base/way", STRANGER);
		expect_all(&root, "way", ELOOP, "a stranger's, leading inside");
		root.anchors = fs_anchors_new();
		root.owned = false;
		assert_int_equal(fs_anchors_add(root.anchors, &root, "way", true), 0);
		expect_all(&root, "way", 0, "a stranger's, but an argument");
		root.owned = true;
		expect_all(&root, "way", ELOOP, "a stranger's, an argument, and looked at");
		fs_anchors_free(root.anchors);
		exchange("in/one", "base/way", 0);
		fs_root_close(&root);
	}
}

UNIT_TEST(confined_root_asks_where_each_object_lies)
{
	for (int rule = 0; rule < 6; rule++) {
		struct fs_root root = open_base(rule % 2);

		root.trusting = rule / 2 == 1;
		root.owned = rule / 2 == 2;
		root.confine = absolute_in;
		expect_all(&root, "way", 0, "inside");
		exchange("../out", "base/way", 0);
		expect_all(&root, "way", ELOOP, "outside");
		/* A directory above the one that confines, and single names in it. */
		assert_int_equal(call_stat_follow(&root, "."), ELOOP);
		assert_int_equal(call_lstat(&root, "way"), ELOOP);
		assert_int_equal(call_readlink(&root, "way"), ELOOP);
		assert_int_equal(call_opendir(&root, "in"), 0);
		exchange("in/one", "base/way", 0);
		fs_root_close(&root);
	}
}

UNIT_TEST(root_that_is_not_there_says_why)
{
	struct fs_root root = { .fd = -1, .error = EACCES };

	expect_all(&root, "way", EACCES, "no root");
	assert_int_equal(call_lstat(&root, "way"), EACCES);
	assert_int_equal(call_readlink(&root, "way"), EACCES);
}

/* The hint about a stranger's link is for users. */
static void drop(void *context, enum log_kind kind, const char *text, size_t length)
{
	(void)context, (void)kind, (void)text, (void)length;
}

static int set_up(void **state)
{
	log_set_sink((struct log_sink){ drop, NULL });
	return make_tree(state);
}

UNIT_GROUP(set_up, tree_teardown)
