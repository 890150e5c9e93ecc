/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The swap rig of doc/protocol/08-security.md section 4.9: a directory is exchanged for a symlink to the outside, exactly
 * between resolution and use, and as fast as another process can. Every call hits the original object or fails. S-075
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/xattr.h>

#include "fs/copy.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/root.h"
#include "fs/temp.h"
#include "fs/xattr.h"
#include "fs_tree.h"

#define STRANGER 12345

/*
 * m/d/        f ("inside"), sub/, empty/, l -> "inside-target"
 * m/trap      -> ../out: what m/d is exchanged for
 * out/        the same names with other contents
 */
static void make_side(const char *dir, const char *content, const char *target)
{
	char path[64];

	tree_dir(dir);
	snprintf(path, sizeof path, "%s/f", dir);
	tree_file(path, content);
	lsetxattr(path, "user.side", content, strlen(content), 0);
	snprintf(path, sizeof path, "%s/l", dir);
	tree_link(target, path);
	snprintf(path, sizeof path, "%s/empty", dir);
	tree_dir(path);
	snprintf(path, sizeof path, "%s/sub", dir);
	tree_dir(path);
	snprintf(path, sizeof path, "%s/sub/g", dir);
	tree_file(path, content);
}

static struct fs_root root;

static int make_tree(void **state)
{
	if (tree_setup(state))
		return -1;
	tree_dir("m");
	make_side("m/d", "inside", "inside-target");
	make_side("out", "secret", "secret-target");
	tree_link("../out", "m/trap");
	return fs_root_open(&root, "m");
}

static int end_tree(void **state)
{
	fs_root_close(&root);
	return tree_teardown(state);
}

static void swap(void)
{
	if (renameat2(root.fd, "d", root.fd, "trap", RENAME_EXCHANGE) < 0)
		_exit(9);
}

/* The held directory is m/d, which is m/trap by now; m/d is the link to out. */
static void read_calls(int dir)
{
	struct fs_stat st, outside;
	char target[64];
	struct fs_dir listing;
	struct fs_dirent entry;

	assert_string_equal(tree_content_of(fs_open_at(dir, "f", O_RDONLY, 0)), "inside");
	assert_int_equal(fs_readlink_at(dir, "l", target, sizeof target), 13);
	assert_string_equal(target, "inside-target");
	assert_int_equal(fs_lstat_at(dir, "f", &st), 0);
	assert_int_equal(fs_lstat_at(AT_FDCWD, "out/f", &outside), 0);
	assert_int_not_equal(st.ino, outside.ino);
	assert_int_equal(fs_mkdir_at(dir, "only-inside", 0755), 0);
	fs_dir_start(&listing, fs_open_at(dir, ".", O_RDONLY | O_DIRECTORY, 0));
	bool found = false;

	while (fs_dir_next(&listing, &entry) > 0)
		found = found || !strcmp(entry.name, "only-inside");
	fs_dir_finish(&listing);
	assert_true(found);
	assert_int_equal(fs_rmdir_at(dir, "only-inside"), 0);
}

static void change_calls(int dir)
{
	struct timespec times[2] = { { 1, 0 }, { 2, 0 } };
	struct fs_temp temp;

	assert_int_equal(fs_chmod_at(dir, "f", 0640), 0);
	assert_int_equal(fs_utimens_at(dir, "f", times), 0);
	if (geteuid() == 0)
		assert_int_equal(fs_chown_at(dir, "f", STRANGER, STRANGER), 0);
	assert_int_equal(fs_link_at(dir, "f", dir, "hard"), 0);
	assert_int_equal(fs_rename_at(dir, "hard", dir, "renamed"), 0);
	assert_int_equal(fs_symlink_at("x", dir, "soft"), 0);
	assert_int_equal(fs_mknod_at(dir, "fifo", S_IFIFO | 0600, 0, 0), 0);
	assert_int_equal(fs_unlink_at(dir, "l"), 0);
	assert_int_equal(fs_rmdir_at(dir, "empty"), 0);
	assert_int_equal(fs_temp_create(&temp, dir, "f"), 0);
	assert_int_equal(fs_write_all(temp.fd, "replaced", 8), 0);
	assert_int_equal(fs_temp_commit(&temp, "f"), 0);
	assert_int_equal(fs_temp_create(&temp, dir, "whole"), 0);
	assert_int_equal(fs_temp_commit(&temp, "whole"), 0);
	int fd = fs_unnamed_create(dir, 0600);

	if (fd >= 0) {
		assert_int_equal(fs_unnamed_publish(fd, dir, "published"), 0);
		close(fd);
	}
}

static void expect_outside_untouched(const struct stat *before)
{
	static const char *const there[] = { "out/f", "out/l", "out/empty", "out/sub" };
	static const char *const absent[] = { "out/renamed", "out/soft", "out/fifo", "out/whole", "out/published", "out/hard" };
	struct stat st;

	for (int i = 0; i < 4; i++)
		assert_true(tree_has(there[i]));
	for (int i = 0; i < 6; i++)
		assert_false(tree_has(absent[i]));
	assert_int_equal(stat("out/f", &st), 0);
	assert_int_equal(st.st_mode, before->st_mode);
	assert_int_equal(st.st_uid, before->st_uid);
	assert_int_equal(st.st_mtim.tv_sec, before->st_mtim.tv_sec);
	assert_string_equal(tree_content("out/f"), "secret");
}

UNIT_TEST(held_directory_stays_the_same)
{
	struct stat before;
	struct fs_root held;

	assert_int_equal(stat("out/f", &before), 0);
	assert_int_equal(fs_root_open_below(&held, &root, "d"), 0);
	swap();
	read_calls(held.fd);
	change_calls(held.fd);
	assert_string_equal(tree_content_of(fs_open(&held, "f", O_RDONLY, 0)), "replaced");
	fs_root_close(&held);
	expect_outside_untouched(&before);
	/* A path that is resolved after the swap is refused. */
	struct fs_stat st;

	assert_int_equal(fs_lstat(&root, "d/f", &st), -1);
	assert_int_equal(errno, ELOOP);
	swap();
	assert_string_equal(tree_content_of(fs_open(&root, "d/f", O_RDONLY, 0)), "replaced");
	/* as before, for the next test */
	assert_int_equal(close(fs_open_at(root.fd, "x", O_WRONLY | O_CREAT, 0600)), 0);
	tree_file("m/d/f", "inside");
	lsetxattr("m/d/f", "user.side", "inside", 6, 0);
	tree_link("inside-target", "m/d/l");
}

/* A process that runs `act` until it is stopped, or this one ends, or a minute is over. */
static pid_t start_racer(void (*act)(void))
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		for (;;)
			act();
	}
	return child;
}

static void stop_racer(pid_t racer)
{
	assert_int_equal(kill(racer, SIGKILL), 0);
	assert_int_equal(waitpid(racer, NULL, 0), racer);
	if (!tree_has("m/trap"))
		fail_msg("the racer lost the trap");
	struct stat st;

	if (lstat("m/d", &st) == 0 && S_ISLNK(st.st_mode))
		swap();
}

/* What the calls by path got in one round; nothing may ever be of the outside. */
static int race_open(const struct fs_root *confined)
{
	int fd = fs_open(confined, "d/f", O_RDONLY, 0);

	if (fd < 0)
		return -1;
	assert_string_equal(tree_content_of(fd), "inside");
	return 0;
}

static int race_open_follow(const struct fs_root *confined)
{
	int fd = fs_open(confined, "d/sub/../f", O_RDONLY | FS_FOLLOW, 0);

	if (fd < 0)
		return -1;
	assert_string_equal(tree_content_of(fd), "inside");
	return 0;
}

static int race_read_file(const struct fs_root *confined)
{
	struct strbuf text = STRBUF_INIT;
	int result = tree_read_below(confined, "d/sub/g", 100, &text);

	if (result == 0)
		assert_string_equal(strbuf_text(&text), "inside");
	strbuf_free(&text);
	return result;
}

static int race_opendir(const struct fs_root *confined)
{
	int fd = fs_opendir(confined, "d");

	if (fd < 0)
		return -1;
	assert_string_equal(tree_content_of(fs_open_at(fd, "f", O_RDONLY, 0)), "inside");
	close(fd);
	return 0;
}

static int race_stat(const struct fs_root *confined)
{
	struct fs_stat st, outside;
	int result = fs_stat_follow(confined, "d/f", &st);

	assert_int_equal(fs_lstat_at(AT_FDCWD, "out/f", &outside), 0);
	if (result == 0)
		assert_int_not_equal(st.ino, outside.ino);
	if (fs_lstat(confined, "d/f", &st) == 0)
		assert_int_not_equal(st.ino, outside.ino);
	return result;
}

static int race_readlink(const struct fs_root *confined)
{
	char target[64];

	if (fs_readlink(confined, "d/l", target, sizeof target) < 0)
		return -1;
	assert_string_equal(target, "inside-target");
	return 0;
}

static int race_xattr(const struct fs_root *confined)
{
	void *value;
	size_t length;

	if (fs_xattr_get(confined, "d/f", "user.side", &value, &length) < 0)
		return errno == ENOTSUP ? 0 : -1;
	assert_int_equal(length, 6);
	assert_memory_equal(value, "inside", 6);
	free(value);
	return 0;
}

static int race_create(const struct fs_root *confined)
{
	int fd = fs_open(confined, "d/created", O_WRONLY | O_CREAT, 0600);
	int error = errno;

	assert_false(tree_has("out/created"));
	if (fd >= 0)
		close(fd);
	errno = error;
	return fd;
}

static int race_make_path(const struct fs_root *confined)
{
	int result = fs_make_path(confined, "d/made/path", 0700);
	int error = errno;

	assert_false(tree_has("out/made"));
	errno = error;
	return result;
}

static const struct {
	const char *name;
	int (*run)(const struct fs_root *confined);
} races[] = {
	{ "open", race_open }, { "open_follow", race_open_follow }, { "read_file", race_read_file },
	{ "opendir", race_opendir }, { "stat", race_stat }, { "readlink", race_readlink }, { "xattr", race_xattr },
	{ "create", race_create }, { "make_path", race_make_path },
};

#define ROUNDS 400

/* On a busy machine the racer may not get its turn soon: go on until both sides have won once. */
static bool more_rounds(int round, int good, int refused)
{
	return round < ROUNDS || ((!good || !refused) && round < 500 * ROUNDS);
}

static void check_races(bool walk)
{
	struct fs_root confined = root;
	int good = 0, refused = 0;

	if (walk)
		confined.no_openat2 = true;
	pid_t racer = start_racer(swap);

	for (size_t i = 0; i < sizeof races / sizeof *races; i++) {
		for (int round = 0; more_rounds(round, good, refused); round++) {
			if (races[i].run(&confined) >= 0)
				good++;
			else if (errno == ELOOP || errno == ENOTDIR || errno == EEXIST)
				refused++; /* the last two: it became a symlink after it had been looked at */
			else
				fail_msg("%s: %s", races[i].name, strerror(errno));
		}
	}
	stop_racer(racer);
	print_message("%s: %d inside, %d refused\n", walk ? "walk" : "openat2", good, refused);
	assert_true(good > 0 && refused > 0);
}

UNIT_TEST(racing_renames_against_openat2)
{
	if (root.no_openat2)
		skip();
	check_races(false);
}

UNIT_TEST(racing_renames_against_the_walk)
{
	check_races(true);
}

/* m/d/sub goes out of the tree and comes back: ".." of a directory that has left must not lead outside. */
static void leave_and_return(void)
{
	if (renameat(root.fd, "d/sub", AT_FDCWD, "sub-away") < 0 || renameat(AT_FDCWD, "sub-away", root.fd, "d/sub") < 0)
		_exit(9);
}

UNIT_TEST(parent_of_a_directory_that_left)
{
	struct fs_root confined = root;
	int good = 0;

	tree_file("f", "secret"); /* beside sub-away, as m/d/f is beside sub */
	pid_t racer = start_racer(leave_and_return);

	for (int round = 0; round < 4 * ROUNDS; round++) {
		confined.no_openat2 = root.no_openat2 || round % 2;
		int fd = fs_open(&confined, "d/sub/../f", O_RDONLY, 0);
		if (fd >= 0) {
			assert_string_equal(tree_content_of(fd), "inside");
			good++;
		}
	}
	assert_int_equal(kill(racer, SIGKILL), 0);
	assert_int_equal(waitpid(racer, NULL, 0), racer);
	if (tree_has("sub-away"))
		assert_int_equal(renameat(AT_FDCWD, "sub-away", root.fd, "d/sub"), 0);
	assert_true(good > 0);
}

/* R2: the trap belongs to a stranger, so whichever of the two is met decides. */
UNIT_TEST(racing_renames_against_operator_paths)
{
	int good = 0, refused = 0;

	if (geteuid() != 0)
		skip();
	assert_int_equal(fchownat(root.fd, "trap", STRANGER, STRANGER, AT_SYMLINK_NOFOLLOW), 0);
	pid_t racer = start_racer(swap);

	for (int round = 0; more_rounds(round, good, refused); round++) {
		int fd = fs_operator_open("m/d/f", O_RDONLY, 0);
		if (fd < 0) {
			assert_int_equal(errno, ELOOP);
			refused++;
		} else {
			assert_string_equal(tree_content_of(fd), "inside");
			good++;
		}
	}
	stop_racer(racer);
	assert_true(good > 0 && refused > 0);
}

UNIT_GROUP(make_tree, end_tree)
