/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Resolver R2: whose links are followed on paths that the operator names. S-076 */
#include "fs/operator.h"

#include "fs_tree.h"

#define STRANGER 12345

static char absolute[128];

static int make_tree(void **state)
{
	if (tree_setup(state))
		return -1;
	tree_dir("conf");
	tree_file("conf/file", "operator");
	tree_dir("conf/sub");
	tree_link("conf", "parent");
	tree_link("conf/file", "leaf");
	snprintf(absolute, sizeof absolute, "%s/conf", tree_path);
	tree_link(absolute, "absolute");
	tree_link("conf/new", "dangling");
	tree_link("parent/../leaf", "chain");
	tree_link("loop", "loop");
	return 0;
}

static const char *const followed[] = { "conf/file", "parent/file", "leaf", "absolute/file", "conf/sub/../file", "chain",
	"conf/../parent/sub/../file", "absolute/../leaf", "./conf/file" };

UNIT_TEST(own_links_are_followed)
{
	char path[256];

	for (size_t i = 0; i < sizeof followed / sizeof *followed; i++) {
		int fd = fs_operator_open(followed[i], O_RDONLY, 0);
		if (fd < 0)
			fail_msg("%s: %s", followed[i], strerror(errno));
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_string_equal(tree_content_of(fd), "operator");
		snprintf(path, sizeof path, "%s/%s", tree_path, followed[i]);
		fd = fs_operator_open(path, O_RDONLY, 0);
		assert_return_code(fd, errno);
		close(fd);
	}
}

UNIT_TEST(errors_are_those_of_open)
{
	static const struct {
		const char *path;
		int error;
	} cases[] = { { "", ENOENT }, { "none", ENOENT }, { "none/file", ENOENT }, { "conf/file/x", ENOTDIR },
		      { "dangling", ENOENT }, { "loop", ELOOP }, { "conf/file/", ENOTDIR }, { "parent/none", ENOENT } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		errno = 0;
		assert_int_equal(fs_operator_open(cases[i].path, O_RDONLY, 0), -1);
		assert_int_equal(errno, cases[i].error);
	}
}

static void chown_link(const char *path, uid_t uid)
{
	assert_return_code(lchown(path, uid, uid), errno);
}

static void expect_refused(const char *path, int flags)
{
	errno = 0;
	int fd = fs_operator_open(path, flags, 0600);

	if (fd >= 0 || errno != ELOOP)
		fail_msg("%s: %s", path, fd >= 0 ? "opened" : strerror(errno));
}

UNIT_TEST(strangers_links_are_refused_at_leaf_and_parent)
{
	static const char *const links[] = { "parent", "leaf", "absolute", "dangling" };

	if (geteuid() != 0)
		skip();
	for (int i = 0; i < 4; i++)
		chown_link(links[i], STRANGER);
	expect_refused("parent/file", O_RDONLY);
	expect_refused("parent/new", O_WRONLY | O_CREAT);
	expect_refused("leaf", O_RDONLY);
	expect_refused("leaf", O_WRONLY | O_TRUNC);
	expect_refused("absolute/file", O_RDONLY);
	expect_refused("chain", O_RDONLY);
	expect_refused("dangling", O_WRONLY | O_CREAT);
	assert_false(tree_has("conf/new"));
	assert_string_equal(tree_content("conf/file"), "operator");
	/* The directory may belong to anybody, its links decide. */
	chown_link("conf", STRANGER);
	assert_string_equal(tree_content_of(fs_operator_open("conf/file", O_RDONLY, 0)), "operator");
	chown_link("conf", 0);
	for (int i = 0; i < 4; i++)
		chown_link(links[i], 0);
}

static int open_as_stranger(void)
{
	int own = fs_operator_open("own/file", O_RDONLY, 0), roots = fs_operator_open("parent/file", O_RDONLY, 0);
	int other = fs_operator_open("other/file", O_RDONLY, 0), error = errno;

	return (own >= 0) + 2 * (roots >= 0) + 4 * (other < 0 && error == ELOOP);
}

UNIT_TEST(links_of_root_and_of_oneself_are_trusted)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(".", 0755), 0);
	tree_link("conf", "own");
	chown_link("own", STRANGER);
	tree_link("conf", "other");
	chown_link("other", STRANGER + 1);
	assert_int_equal(tree_as_user(STRANGER, open_as_stranger), 7);
}

static int open_in(const char *root, const char *path)
{
	int root_fd = fs_operator_open(root, O_PATH | O_DIRECTORY, 0), fd, error;

	assert_return_code(root_fd, errno);
	fd = fs_operator_open_in(root_fd, path, O_RDONLY);
	error = errno;
	close(root_fd);
	errno = error;
	return fd;
}

UNIT_TEST(a_root_that_is_not_entered_is_not_left)
{
	static const char *const inside[] = {
		"/file", "file", "/../file", "../../file", "d/../../file", "top/file", "d/high", "chain/file",
	};

	tree_dir("jail");
	tree_dir("jail/d");
	tree_file("jail/file", "inside");
	tree_file("file", "outside");
	tree_link("/", "jail/top");
	tree_link("../../../file", "jail/d/high");
	tree_link("/d/../top", "jail/chain");
	tree_link("/proc/self/cwd", "jail/kernel");
	for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
		assert_string_equal(tree_content_of(open_in("jail", inside[i])), "inside");
	assert_int_equal(open_in("jail", "kernel/file"), -1);
	assert_int_equal(open_in("jail", "/jail/file"), -1);
	assert_int_equal(errno, ENOENT);
	if (geteuid() != 0)
		return;
	chown_link("jail/top", STRANGER);
	assert_int_equal(open_in("jail", "top/file"), -1);
	assert_int_equal(errno, ELOOP);
}

UNIT_TEST(creating_through_own_dangling_link)
{
	int fd = fs_operator_open("dangling", O_WRONLY | O_CREAT, 0600);

	assert_return_code(fd, errno);
	close(fd);
	assert_true(tree_has("conf/new"));
	assert_int_equal(fs_operator_open("dangling", O_WRONLY | O_CREAT | O_EXCL, 0600), -1);
	assert_int_equal(fs_operator_open("leaf", O_RDONLY | O_NOFOLLOW, 0), -1);
	assert_int_equal(errno, ELOOP);
}

UNIT_TEST(descriptor_links_of_proc_are_followed)
{
	int ends[2];
	char path[64];
	struct strbuf text = STRBUF_INIT;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "piped", 5), 5);
	close(ends[1]);
	snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
	if (!tree_has("/dev/fd"))
		skip();
	assert_return_code(fs_operator_read(path, 0, 100, &text), errno);
	assert_string_equal(strbuf_text(&text), "piped");
	strbuf_free(&text);
	close(ends[0]);
	int fd = fs_operator_open("/proc/self/cwd/conf/file", O_RDONLY, 0);
	assert_return_code(fd, errno);
	close(fd);
}

UNIT_TEST(read_has_a_limit)
{
	struct strbuf text = STRBUF_INIT;

	assert_int_equal(fs_operator_read("conf/file", 0, 8, &text), 0);
	assert_string_equal(strbuf_text(&text), "operator");
	assert_int_equal(fs_operator_read("conf/file", 0, 7, &text), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(fs_operator_read("conf", 0, 100, &text), -1);
	assert_int_equal(errno, EISDIR);
	strbuf_free(&text);
}

UNIT_TEST(parent_and_leaf)
{
	char leaf[256];
	struct stat conf, st;

	assert_int_equal(stat("conf", &conf), 0);
	int fd = fs_operator_parent("parent/missing", 0, leaf);
	assert_return_code(fd, errno);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, conf.st_ino);
	assert_string_equal(leaf, "missing");
	close(fd);
	fd = fs_operator_parent("leaf", 0, leaf);
	assert_return_code(fd, errno);
	assert_string_equal(leaf, "leaf");
	close(fd);
	static const char *const without[] = { "/", "conf/", "conf/..", "." };
	for (int i = 0; i < 4; i++) {
		assert_int_equal(fs_operator_parent(without[i], 0, leaf), -1);
		assert_int_equal(errno, EISDIR);
	}
}

UNIT_TEST(is_inside)
{
	struct fs_root tree, conf, sub;

	assert_int_equal(fs_operator_root(&tree, "."), 0);
	assert_int_equal(fs_operator_root(&conf, "parent"), 0);
	assert_int_equal(fs_operator_root(&sub, "conf/sub"), 0);
	assert_true(fs_is_inside(sub.fd, conf.fd));
	assert_true(fs_is_inside(sub.fd, tree.fd));
	assert_true(fs_is_inside(conf.fd, conf.fd));
	assert_false(fs_is_inside(conf.fd, sub.fd));
	assert_false(fs_is_inside(tree.fd, sub.fd));
	int slash = open("/", O_PATH | O_DIRECTORY);
	assert_true(fs_is_inside(sub.fd, slash));
	assert_false(fs_is_inside(slash, sub.fd));
	close(slash);
	fs_root_close(&tree);
	fs_root_close(&conf);
	fs_root_close(&sub);
	assert_int_equal(fs_operator_root(&sub, "conf/file"), -1);
	assert_int_equal(errno, ENOTDIR);
}

UNIT_GROUP(make_tree, tree_teardown)
