/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Resolver R1: one table of decisions, run against openat2 and against the component walk. */
#include "fs/root.h"

#include "fs_tree.h"

/*
 * tree/            the root of the tests is tree/m
 *   out/secret
 *   m/real/f  m/real/deep/g  m/x/y/  m/file
 *   links in m: see below
 */
static char absolute_inside[128], absolute_outside[128];

static int make_tree(void **state)
{
	char target[32];

	if (tree_setup(state))
		return -1;
	tree_dir("out");
	tree_file("out/secret", "secret");
	tree_dir("m");
	tree_dir("m/real");
	tree_file("m/real/f", "inside");
	tree_dir("m/real/deep");
	tree_file("m/real/deep/g", "g");
	tree_dir("m/x");
	tree_dir("m/x/y");
	tree_file("m/file", "file");
	tree_link("real", "m/rin");
	tree_link("real/", "m/rslash");
	tree_link("real/f", "m/lf");
	tree_link("../out", "m/rout");
	tree_link("../out/secret", "m/lout");
	snprintf(absolute_inside, sizeof absolute_inside, "%s/m/real", tree_path);
	snprintf(absolute_outside, sizeof absolute_outside, "%s/out", tree_path);
	tree_link(absolute_inside, "m/ain");
	tree_link(absolute_outside, "m/aout");
	tree_link("../m/real", "m/transit");
	tree_link("../real", "m/x/jump");
	tree_link("../../../out", "m/x/y/far");
	tree_link("x/../real", "m/through");
	tree_link("loop", "m/loop");
	tree_link("nothing", "m/dangling");
	tree_link("/proc/self/root", "m/magic");
	tree_link("real", "m/hop1");
	for (int i = 2; i <= 42; i++) {
		char name[32];
		snprintf(target, sizeof target, "hop%d", i - 1);
		snprintf(name, sizeof name, "m/hop%d", i);
		tree_link(target, name);
	}
	return 0;
}

/* Expected: 0 and the content of a file (or "" for a directory), or an errno. */
static const struct decision {
	const char *path;
	int plain;           /* fs_open */
	int following;       /* fs_open, FS_FOLLOW */
	const char *content;
} decisions[] = {
	{ "file", 0, 0, "file" },
	{ "./file", 0, 0, "file" },
	{ "real/f", 0, 0, "inside" },
	{ "real//f", 0, 0, "inside" },
	{ "rin/f", 0, 0, "inside" },
	{ "rslash/f", 0, 0, "inside" },
	{ "rin/deep/g", 0, 0, "g" },
	{ "x/jump/f", 0, 0, "inside" },
	{ "through/f", 0, 0, "inside" },
	{ "x/../real/f", 0, 0, "inside" },
	{ "x/y/../../real/f", 0, 0, "inside" },
	{ "rin/../file", 0, 0, "file" },
	{ "x/jump/../file", 0, 0, "file" },
	{ "lf", ELOOP, 0, "inside" },
	{ "rin/../lf", ELOOP, 0, "inside" },
	{ "x/../lf", ELOOP, 0, "inside" },
	/* climbing out, even to come back */
	{ "../out/secret", ELOOP, ELOOP, NULL },
	{ "..", ELOOP, ELOOP, NULL },
	{ "../m/real/f", ELOOP, ELOOP, NULL },
	{ "x/../../out/secret", ELOOP, ELOOP, NULL },
	{ "rout/secret", ELOOP, ELOOP, NULL },
	{ "lout", ELOOP, ELOOP, NULL },
	{ "x/y/far/secret", ELOOP, ELOOP, NULL },
	{ "transit/f", ELOOP, ELOOP, NULL },
	/* absolute paths and targets, also those that lead inside */
	{ "/etc/hostname", ELOOP, ELOOP, NULL },
	{ "ain/f", ELOOP, ELOOP, NULL },
	{ "aout/secret", ELOOP, ELOOP, NULL },
	{ "magic/etc/hostname", ELOOP, ELOOP, NULL },
	/* hops: "real" is hop 1, so hop40 has forty of them */
	{ "hop40/f", 0, 0, "inside" },
	{ "hop41/f", ELOOP, ELOOP, NULL },
	{ "loop", ELOOP, ELOOP, NULL },
	{ "loop/f", ELOOP, ELOOP, NULL },
	/* what is not there, and what is no directory */
	{ "none", ENOENT, ENOENT, NULL },
	{ "none/f", ENOENT, ENOENT, NULL },
	{ "dangling", ELOOP, ENOENT, NULL },
	{ "dangling/f", ENOENT, ENOENT, NULL },
	{ "file/f", ENOTDIR, ENOTDIR, NULL },
	{ "file/..", ENOTDIR, ENOTDIR, NULL },
	{ "file/", ENOTDIR, ENOTDIR, NULL },
	{ "lf/", ENOTDIR, ENOTDIR, NULL },
	{ "lf/f", ENOTDIR, ENOTDIR, NULL },
};

static struct fs_root open_module(bool walk)
{
	struct fs_root root;

	assert_return_code(fs_root_open(&root, "m"), errno);
	if (walk)
		root.no_openat2 = true;
	return root;
}

static void expect(int fd, int error, const struct decision *decision, const char *form)
{
	int got = fd < 0 ? errno : 0;

	if (got != error)
		fail_msg("%s (%s): %s, expected %s", decision->path, form, strerror(got), strerror(error));
	if (fd >= 0)
		assert_string_equal(tree_content_of(fd), decision->content);
}

static void check_decisions(bool walk)
{
	struct fs_root root = open_module(walk);

	for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
		const struct decision *d = &decisions[i];
		expect(fs_open(&root, d->path, O_RDONLY, 0), d->plain, d, walk ? "walk" : "openat2");
		expect(fs_open(&root, d->path, O_RDONLY | FS_FOLLOW, 0), d->following, d,
		       walk ? "walk, following" : "openat2, following");
	}
	fs_root_close(&root);
}

/* S-072 */
UNIT_TEST(kernel_form_decides_by_the_table)
{
	struct fs_root root = open_module(false);

	if (root.no_openat2)
		skip();
	fs_root_close(&root);
	check_decisions(false);
}

/* S-073 */
UNIT_TEST(portable_form_decides_by_the_same_table)
{
	check_decisions(true);
}

/* Two answers about one path: the same error, or the same object. */
static void expect_same(const char *call, const char *path, int error, int other_error, const struct fs_stat *st,
			const struct fs_stat *other)
{
	if (error != other_error || (!error && (st->ino != other->ino || st->dev != other->dev)))
		fail_msg("%s(%s): %s by openat2, %s by the walk", call, path, strerror(error), strerror(other_error));
}

static int opendir_and_stat(const struct fs_root *root, const char *path, struct fs_stat *st)
{
	int fd = fs_opendir(root, path);

	if (fd < 0)
		return -1;
	int result = fs_stat_at_fd(fd, st);

	close(fd);
	return result;
}

static const struct {
	const char *name;
	int (*run)(const struct fs_root *root, const char *path, struct fs_stat *st);
} calls[] = { { "fs_opendir", opendir_and_stat }, { "fs_lstat", fs_lstat }, { "fs_stat_follow", fs_stat_follow } };

static void compare_readlink(const struct fs_root *kernel, const struct fs_root *walk, const char *path)
{
	char target[256] = "", other_target[256] = "";
	int error = fs_readlink(kernel, path, target, sizeof target) < 0 ? errno : 0;
	int other_error = fs_readlink(walk, path, other_target, sizeof other_target) < 0 ? errno : 0;

	if (error != other_error || strcmp(target, other_target) != 0)
		fail_msg("fs_readlink(%s): %s by openat2, %s by the walk", path, strerror(error), strerror(other_error));
}

/* The same answers of every other call, for more paths than have an entry in the table. */
UNIT_TEST(both_forms_agree_on_all_calls)
{
	static const char *const paths[] = { "", ".", "./", "..", "../", "real", "real/", "real/.", "rin", "rin/", "rin/.",
		"rin/..", "rin/../", "x/jump", "x/jump/", "x/jump/..", "x/..", "x/../..", "lf", "lf/", "rout", "rout/",
		"rout/..", "ain", "ain/", "loop/", "dangling/", "file/.", "hop40", "hop40/", "hop41/", "through",
		"through/deep/../f", "real/deep/../../x/y", "x/y/far", "x/y/far/", "transit/", "none/..", "real/none/..",
		"/", "//", "/real" };
	struct fs_root kernel = open_module(false), walk = open_module(true);
	struct fs_stat st, other_st;

	if (kernel.no_openat2)
		skip();
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
			int error = calls[k].run(&kernel, paths[i], &st) < 0 ? errno : 0;
			int other_error = calls[k].run(&walk, paths[i], &other_st) < 0 ? errno : 0;
			expect_same(calls[k].name, paths[i], error, other_error, &st, &other_st);
		}
		compare_readlink(&kernel, &walk, paths[i]);
	}
	fs_root_close(&kernel);
	fs_root_close(&walk);
}

UNIT_TEST(empty_path_and_dot_are_the_root)
{
	struct fs_root root = open_module(false);
	struct fs_stat self, st;

	assert_int_equal(fs_stat_at_fd(root.fd, &self), 0);
	assert_int_equal(fs_lstat(&root, "", &st), 0);
	assert_int_equal(st.ino, self.ino);
	assert_int_equal(fs_stat_follow(&root, ".", &st), 0);
	assert_int_equal(st.ino, self.ino);
	fs_root_close(&root);
}

UNIT_TEST(trusting_root_follows_like_open)
{
	struct fs_root root = open_module(false);
	struct fs_stat st;

	root.trusting = true;
	assert_string_equal(tree_content_of(fs_open(&root, "rout/secret", O_RDONLY, 0)), "secret");
	assert_string_equal(tree_content_of(fs_open(&root, "aout/secret", O_RDONLY, 0)), "secret");
	assert_string_equal(tree_content_of(fs_open(&root, "../out/secret", O_RDONLY, 0)), "secret");
	assert_string_equal(tree_content_of(fs_open(&root, "lout", O_RDONLY | FS_FOLLOW, 0)), "secret");
	assert_int_equal(fs_open(&root, "lout", O_RDONLY, 0), -1);
	assert_int_equal(fs_stat_follow(&root, "lout", &st), 0);
	assert_true(S_ISREG(st.mode));
	assert_int_equal(fs_lstat(&root, "lout", &st), 0);
	assert_true(S_ISLNK(st.mode));
	fs_root_close(&root);
}

UNIT_TEST(root_below_is_confined_to_itself)
{
	struct fs_root root = open_module(false), inner;

	for (int walk = 0; walk < 2; walk++) {
		root.no_openat2 = root.no_openat2 || walk;
		assert_int_equal(fs_root_open_below(&inner, &root, "rin"), 0);
		assert_int_equal(inner.no_openat2, root.no_openat2);
		assert_string_equal(tree_content_of(fs_open(&inner, "deep/g", O_RDONLY, 0)), "g");
		assert_int_equal(fs_open(&inner, "../file", O_RDONLY, 0), -1);
		assert_int_equal(errno, ELOOP);
		fs_root_close(&inner);
		assert_int_equal(fs_root_open_below(&inner, &root, "rout"), -1);
		assert_int_equal(errno, ELOOP);
	}
	fs_root_close(&root);
}

/* S-063 */
UNIT_TEST(fifo_does_not_hang)
{
	struct fs_root root = open_module(false);
	struct fs_stat st;

	assert_return_code(mkfifo("m/fifo", 0644), errno);
	tree_link("fifo", "m/lfifo");
	for (int walk = 0; walk < 2; walk++) {
		root.no_openat2 = root.no_openat2 || walk;
		int fd = fs_open(&root, "x/../fifo", O_RDONLY, 0);
		assert_return_code(fd, errno);
		assert_int_equal(fs_stat_at_fd(fd, &st), 0);
		assert_true(S_ISFIFO(st.mode));
		close(fd);
		fd = fs_open(&root, "lfifo", O_RDONLY | FS_FOLLOW, 0);
		assert_return_code(fd, errno);
		close(fd);
		assert_int_equal(fs_open(&root, "x/../fifo", O_WRONLY, 0), -1);
		assert_int_equal(errno, ENXIO);
	}
	int fd = fs_open_at(root.fd, "fifo", O_RDONLY, 0);
	assert_return_code(fd, errno);
	close(fd);
	fs_root_close(&root);
}

UNIT_TEST(creating_goes_where_the_path_says)
{
	struct fs_root root = open_module(false);

	for (int walk = 0; walk < 2; walk++) {
		root.no_openat2 = root.no_openat2 || walk;
		int fd = fs_open(&root, "rin/new", O_RDWR | O_CREAT | O_EXCL, 0640);
		assert_return_code(fd, errno);
		close(fd);
		assert_true(tree_has("m/real/new"));
		assert_int_equal(fs_open(&root, "rin/new", O_RDWR | O_CREAT | O_EXCL, 0640), -1);
		assert_int_equal(errno, EEXIST);
		assert_int_equal(unlink("m/real/new"), 0);
		assert_int_equal(fs_open(&root, "rout/new", O_RDWR | O_CREAT, 0640), -1);
		assert_int_equal(errno, ELOOP);
		assert_false(tree_has("out/new"));
		/* A dangling link as the last name must not create its target. */
		assert_int_equal(fs_open(&root, "dangling", O_RDWR | O_CREAT, 0640), -1);
		assert_int_equal(errno, ELOOP);
		assert_false(tree_has("m/nothing"));
		assert_int_equal(fs_open(&root, "x/new/", O_RDWR | O_CREAT, 0640), -1);
		assert_int_equal(errno, EISDIR);
	}
	fs_root_close(&root);
}

/* S-043 */
UNIT_TEST(too_long_paths_are_refused_not_cut)
{
	struct fs_root root = open_module(false);
	struct fs_stat st;
	char path[4200], name[300];

	for (size_t length = 4090; length <= 4100; length++) {
		/* "./././real" with the right length: a cut path would name something else that exists. */
		memset(path, '/', length);
		memcpy(path, "x/..", 4);
		memcpy(path + length - 4, "real", 5);
		for (int walk = 0; walk < 2; walk++) {
			root.no_openat2 = walk;
			int result = fs_lstat(&root, path, &st);
			assert_int_equal(result, length < 4096 ? 0 : -1);
			if (result < 0)
				assert_int_equal(errno, ENAMETOOLONG);
		}
	}
	memset(name, 'n', sizeof name);
	strcpy(name + 256, "/f");
	for (int walk = 0; walk < 2; walk++) {
		root.no_openat2 = walk;
		assert_int_equal(fs_lstat(&root, name, &st), -1);
		assert_int_equal(errno, ENAMETOOLONG);
	}
	assert_int_equal(fs_readlink(&root, "rin", path, 5), 4);
	assert_string_equal(path, "real");
	assert_int_equal(fs_readlink(&root, "rin", path, 4), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	fs_root_close(&root);
}

/* S-074: a thousand levels, with a small table of descriptors. */
UNIT_TEST(thousand_levels)
{
	struct fs_root root, top;
	char path[4000] = "";
	struct fs_stat st;

	tree_dir("levels");
	assert_int_equal(fs_root_open(&root, "levels"), 0);
	int fd = dup(root.fd);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(fs_mkdir_at(fd, "ab", 0711), 0);
		int next = fs_open_at(fd, "ab", O_PATH | O_DIRECTORY, 0);
		close(fd);
		fd = next;
		strcat(path, i ? "/ab" : "ab");
	}
	assert_int_equal(fs_symlink_at("x", fd, "leaf"), 0);
	close(fd);
	strcat(path, "/leaf");
	for (int walk = 0; walk < 2; walk++) {
		root.no_openat2 = root.no_openat2 || walk;
		assert_return_code(fs_lstat(&root, path, &st), errno);
		assert_true(S_ISLNK(st.mode));
	}
	/* Below a directory that is itself deep: the whole path would be too long for one call. */
	path[strlen(path) - 5] = '\0';
	assert_int_equal(fs_root_open_below(&top, &root, path), 0);
	assert_int_equal(fs_lstat(&top, "leaf", &st), 0);
	fs_root_close(&top);
	fs_root_close(&root);
}

static int open_below_0711(void)
{
	struct fs_root root;
	struct fs_stat st;

	if (fs_root_open(&root, "0711") < 0)
		return 1;
	for (int walk = 0; walk < 2; walk++) {
		root.no_openat2 = root.no_openat2 || walk;
		int fd = fs_open(&root, "a/b/f", O_RDONLY, 0);
		if (fd < 0)
			return 2 + walk;
		close(fd);
		if (fs_lstat(&root, "a/../a/b/f", &st) < 0)
			return 4 + walk;
		if (fs_opendir(&root, "a/b") >= 0 || errno != EACCES)
			return 6 + walk;
		if (fs_open(&root, "closed/f", O_RDONLY, 0) >= 0 || errno != EACCES)
			return 8 + walk;
		if (fs_lstat(&root, "closed/../a", &st) == 0 || errno != EACCES)
			return 10 + walk;
	}
	return 0;
}

/* S-074: search permission is enough for every directory on the way, and needed. */
UNIT_TEST(search_permission_is_enough)
{
	tree_dir("0711");
	tree_dir("0711/a");
	tree_dir("0711/a/b");
	tree_dir("0711/closed");
	tree_file("0711/a/b/f", "f");
	chmod("0711/closed", 0600);
	chmod("0711/a/b", 0111);
	chmod("0711/a", 0711);
	chmod("0711", 0711);
	chmod(".", 0711);
	if (geteuid() != 0)
		skip();
	assert_int_equal(tree_as_user(65534, open_below_0711), 0);
}

UNIT_TEST(descriptors_are_not_leaked)
{
	struct fs_root root = open_module(true);
	int before = dup(0), after;

	close(before);
	for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
		int fd = fs_open(&root, decisions[i].path, O_RDONLY | FS_FOLLOW, 0);
		if (fd >= 0) {
			assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
			close(fd);
		}
	}
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
	fs_root_close(&root);
}

UNIT_TEST(stat_reports_what_the_object_has)
{
	struct fs_root root = open_module(false);
	struct timespec times[2] = { { 1000000001, 123456789 }, { -5, 999999999 } };
	struct fs_stat st;

	tree_file("m/stat", "12345");
	assert_int_equal(fs_utimens_at(root.fd, "stat", times), 0);
	assert_int_equal(fs_link_at(root.fd, "stat", root.fd, "stat2"), 0);
	assert_int_equal(fs_chmod_at(root.fd, "stat", 04751), 0);
	assert_int_equal(fs_lstat(&root, "stat2", &st), 0);
	assert_int_equal(st.mode, S_IFREG | 04751);
	assert_int_equal(st.nlink, 2);
	assert_int_equal(st.size, 5);
	assert_int_equal(st.atime, 1000000001);
	assert_int_equal(st.atime_nsec, 123456789);
	assert_int_equal(st.mtime, -5);
	assert_int_equal(st.mtime_nsec, 999999999);
	assert_int_equal(st.uid, geteuid());
	if (geteuid() == 0 && fs_mknod_at(root.fd, "device", S_IFCHR | 0600, 300, 70000) == 0) {
		assert_int_equal(fs_lstat_at(root.fd, "device", &st), 0);
		assert_int_equal(st.rdev_major, 300);
		assert_int_equal(st.rdev_minor, 70000);
	}
	fs_root_close(&root);
}

UNIT_GROUP(make_tree, tree_teardown)
