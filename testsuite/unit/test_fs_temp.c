/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Temp files: names, modes, replacement, and that none is left behind. S-083 */
#include "fs/temp.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fs/file.h"
#include "fs_tree.h"
#include "lib/exit.h"

static int entries_of(const char *path)
{
	DIR *dir = opendir(path);
	int count = -2;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* A new directory for one test. */
static int fresh_dir(const char *name)
{
	tree_dir(name);
	int fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_return_code(fd, errno);
	return fd;
}

UNIT_TEST(names)
{
	static char xs[256], e_acute[256], cut_ascii[256], cut_dot[256];
	int dir = fresh_dir("names");

	memset(xs, 'x', 255);
	for (int i = 0; i < 127; i++)
		memcpy(e_acute + 2 * i, "\xc3\xa9", 2);
	memset(cut_ascii, 'x', 255);
	memcpy(cut_ascii + 243, "\xc3\xa9\xc3\xa9\xc3\xa9", 6); /* the cut at 246 falls inside a character */
	memset(cut_dot, 'x', 255);
	cut_dot[245] = '.';
	const struct {
		const char *name;
		size_t shown; /* bytes of the name that are kept, after a leading dot */
		size_t length; /* of the whole temp name */
	} names[] = { { "foo", 3, 11 }, { ".foo", 3, 11 }, { "foo.", 3, 11 }, { xs, 246, 254 }, { e_acute, 0, 7 },
		      { cut_ascii, 243, 251 }, { cut_dot, 245, 253 }, { "..x", 2, 10 } };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct fs_temp temp;
		const char *name = names[i].name + (*names[i].name == '.');
		assert_return_code(fs_temp_create(&temp, dir, names[i].name), errno);
		assert_int_equal(strlen(temp.name), names[i].length);
		assert_int_equal(temp.name[0], '.');
		if (names[i].shown)
			assert_memory_equal(temp.name + 1, name, names[i].shown);
		assert_int_equal(temp.name[strlen(temp.name) - 7], '.');
		assert_int_equal(strspn(temp.name + strlen(temp.name) - 6,
					"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), 6);
		fs_temp_discard(&temp);
	}
	assert_int_equal(entries_of("names"), 0);
	close(dir);
}

UNIT_TEST(file_is_private_and_replaces_atomically)
{
	struct fs_temp temp;
	struct stat st, before;
	int dir = fresh_dir("replace");
	mode_t mask = umask(0);

	tree_file("replace/f", "old");
	assert_int_equal(stat("replace/f", &before), 0);
	assert_int_equal(fs_temp_create(&temp, dir, "f"), 0);
	assert_int_equal(fstat(temp.fd, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_true(fcntl(temp.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(temp.fd, "new", 3), 3);
	assert_string_equal(tree_content("replace/f"), "old");
	assert_int_equal(entries_of("replace"), 2);
	assert_int_equal(fs_temp_commit(&temp, "f"), 0);
	assert_string_equal(tree_content("replace/f"), "new");
	assert_int_equal(entries_of("replace"), 1);
	assert_int_equal(stat("replace/f", &st), 0);
	assert_int_not_equal(st.st_ino, before.st_ino);
	umask(mask);
	close(dir);
}

UNIT_TEST(failed_commit_leaves_nothing)
{
	struct fs_temp temp;
	int dir = fresh_dir("failed");

	tree_dir("failed/d");
	assert_int_equal(fs_temp_create(&temp, dir, "d"), 0);
	assert_int_equal(fs_temp_commit(&temp, "d"), -1);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(entries_of("failed"), 1);
	close(dir);
}

UNIT_TEST(symlinks_nodes_and_links)
{
	struct fs_temp temp;
	char target[16] = "";
	struct stat st, link_st;
	int dir = fresh_dir("kinds");

	tree_file("kinds/f", "f");
	tree_file("kinds/l", "to be a link");
	assert_int_equal(fs_temp_symlink(&temp, dir, "l", "target"), 0);
	assert_int_equal(fs_temp_commit(&temp, "l"), 0);
	assert_int_equal(readlink("kinds/l", target, sizeof target), 6);
	assert_int_equal(fs_temp_mknod(&temp, dir, "l", S_IFIFO | 0600, 0, 0), 0);
	assert_int_equal(fs_temp_commit(&temp, "l"), 0);
	assert_int_equal(lstat("kinds/l", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	/* Twice: the second time the name is a link of the same file already, and rename alone would leave the temp name. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fs_temp_link(&temp, dir, "l", dir, "f"), 0);
		assert_int_equal(fs_temp_commit(&temp, "l"), 0);
		assert_int_equal(lstat("kinds/l", &link_st), 0);
		assert_int_equal(lstat("kinds/f", &st), 0);
		assert_int_equal(st.st_ino, link_st.st_ino);
		assert_int_equal(entries_of("kinds"), 2);
	}
	assert_int_equal(fs_temp_reserve(&temp, dir, "f"), 0);
	assert_int_equal(temp.fd, -1);
	assert_int_equal(entries_of("kinds"), 2);
	fs_temp_discard(&temp);
	close(dir);
}

UNIT_TEST(an_unnamed_file_gets_its_name_when_it_is_complete)
{
	int dir = fresh_dir("unnamed");
	struct fs_temp temp;

	int fd = fs_unnamed_create(dir, 0600);

	if (fd < 0) {
		assert_int_equal(errno, EOPNOTSUPP);
		close(dir);
		skip();
	}
	tree_file("unnamed/f", "old");
	assert_int_equal(fs_write_all(fd, "new", 3), 0);
	assert_int_equal(entries_of("unnamed"), 1);
	assert_int_equal(fs_temp_name(&temp, dir, "f", fd), 0);
	assert_int_equal(temp.fd, fd);
	assert_int_equal(entries_of("unnamed"), 2);
	assert_string_equal(tree_content("unnamed/f"), "old");
	assert_int_equal(fs_temp_commit(&temp, "f"), 0);
	assert_int_equal(entries_of("unnamed"), 1);
	assert_string_equal(tree_content("unnamed/f"), "new");

	/* One that the process ends with is removed; one that comes later gets no name. */
	fd = fs_unnamed_create(dir, 0600);
	assert_int_equal(fs_temp_name(&temp, dir, "f", fd), 0);
	fs_temp_remove_all();
	assert_int_equal(entries_of("unnamed"), 1);
	assert_int_equal(fs_temp_commit(&temp, "f"), -1);
	assert_int_equal(errno, ECANCELED);
	fd = fs_unnamed_create(dir, 0600);
	assert_int_equal(fs_temp_name(&temp, dir, "f", fd), -1);
	assert_int_equal(errno, ECANCELED);
	assert_int_equal(entries_of("unnamed"), 1);
	fs_temp_install();
	close(fd);
	close(dir);
}

/* Kernels before 6.10 let only a few name a descriptor's file without /proc. */
static void forget_empty_paths(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOENT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(77);
}

/* A tree with the names of the proc file system, as anybody can push one into a module that becomes the root directory. */
static void publish_in_jail(int fd, int dir)
{
	int result;

	umask(027);
	if (chroot("jail") < 0 || chdir("/") < 0)
		_exit(77);
	forget_empty_paths();
	result = fs_unnamed_publish(fd, dir, "published");
	if (result == 0 || faccessat(dir, "published", F_OK, 0) == 0)
		_exit(1);
	_exit(fs_umask() == 027 ? 0 : 2);
}

UNIT_TEST(a_false_proc_names_no_descriptor)
{
	char path[64];
	int status;

	tree_dir("jail");
	tree_dir("jail/proc");
	tree_dir("jail/proc/self");
	tree_dir("jail/proc/self/fd");
	tree_dir("jail/proc/thread-self");
	tree_file("jail/proc/thread-self/status", "Umask:\t0000\n");
	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof path, "jail/proc/self/fd/%d", i);
		tree_file(path, "planted");
	}
	int dir = fresh_dir("jail/out"), fd = fs_unnamed_create(dir, 0600);
	pid_t child = fork();

	if (child == 0)
		publish_in_jail(fd, dir);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(fd);
	close(dir);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77 || fd < 0)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

UNIT_TEST(names_are_unpredictable)
{
	enum { COUNT = 500 };
	static struct fs_temp temps[COUNT];
	int dir = fresh_dir("random"), same[6] = { 0 };

	for (int i = 0; i < COUNT; i++) {
		assert_return_code(fs_temp_create(&temps[i], dir, "f"), errno);
		for (int k = 0; k < 6; k++)
			same[k] += temps[i].name[3 + k] == temps[0].name[3 + k];
	}
	for (int k = 0; k < 6; k++)
		assert_true(same[k] < COUNT / 10);
	for (int i = 0; i < COUNT; i++)
		fs_temp_discard(&temps[i]);
	assert_int_equal(entries_of("random"), 0);
	close(dir);
}

UNIT_TEST(remove_all_removes_and_stops)
{
	struct fs_temp file, link, done, late;
	int dir = fresh_dir("all");

	assert_int_equal(fs_temp_create(&file, dir, "a"), 0);
	assert_int_equal(fs_temp_symlink(&link, dir, "b", "x"), 0);
	assert_int_equal(fs_temp_create(&done, dir, "c"), 0);
	assert_int_equal(fs_temp_commit(&done, "c"), 0);
	assert_int_equal(entries_of("all"), 3);
	errno = 77;
	fs_temp_remove_all();
	assert_int_equal(errno, 77);
	assert_int_equal(entries_of("all"), 1);
	assert_int_equal(fs_temp_create(&late, dir, "d"), -1);
	assert_int_equal(errno, ECANCELED);
	/* The owner may still try to finish. */
	assert_int_equal(fs_temp_commit(&file, "a"), -1);
	assert_int_equal(errno, ECANCELED);
	fs_temp_discard(&link);
	assert_int_equal(entries_of("all"), 1);
	fs_temp_install();
	assert_int_equal(fs_temp_create(&late, dir, "d"), 0);
	fs_temp_discard(&late);
	close(dir);
}

UNIT_TEST(child_leaves_its_parents_files)
{
	struct fs_temp temp;
	int dir = fresh_dir("fork"), status;

	assert_int_equal(fs_temp_create(&temp, dir, "f"), 0);
	pid_t child = fork();

	if (child == 0) {
		struct fs_temp own;
		if (fs_temp_create(&own, dir, "own") < 0)
			_exit(1);
		fs_temp_remove_all();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(entries_of("fork"), 1);
	assert_true(faccessat(dir, temp.name, F_OK, 0) == 0);
	fs_temp_discard(&temp);
	close(dir);
}

/* A process whose threads create, commit and discard as fast as they can is ended in the midst of it. */
enum { THREADS = 4 };
static int busy_dir, busy_pipe[2];

static void *keep_busy(void *context)
{
	char name[32];

	for (unsigned i = 0;; i++) {
		struct fs_temp temp;
		snprintf(name, sizeof name, "%s-%u", (const char *)context, i % 50);
		int result = i % 3 ? fs_temp_create(&temp, busy_dir, name) : fs_temp_symlink(&temp, busy_dir, name, "12345678");
		if (result < 0) {
			if (errno == ECANCELED)
				return NULL;
			_exit(3);
		}
		if (temp.fd >= 0 && write(temp.fd, "12345678", 8) != 8)
			_exit(4);
		if (i % 5 == 0)
			fs_temp_discard(&temp);
		else
			fs_temp_commit(&temp, name);
		if (i == 10 && write(busy_pipe[1], "", 1) != 1)
			_exit(6);
	}
}

/* Returns when every thread has made some files, however busy the machine is; false if the process has ended before. */
static bool await_busy_threads(void)
{
	char byte;

	for (int i = 0; i < THREADS; i++)
		if (read(busy_pipe[0], &byte, 1) != 1)
			return false;
	return true;
}

static void end_by_signal(int signal)
{
	(void)signal;
	fs_temp_remove_all();
	_exit(7);
}

/* The threads are born detached: one that ends between its creation and a later pthread_detach counts as leaked. */
static void run_busy_process(bool by_signal)
{
	static const char *const names[THREADS] = { "a", "b", "c", "d" };
	pthread_attr_t detached;
	pthread_t thread;

	fs_temp_install();
	signal(SIGTERM, end_by_signal);
	if (pthread_attr_init(&detached) || pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED))
		_exit(5);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, &detached, keep_busy, (void *)names[i]))
			_exit(5);
	if (by_signal)
		for (;;)
			pause();
	if (!await_busy_threads())
		_exit(8);
	exit_set_quiet(true);
	exit_with(7);
}

static void check_busy_process(const char *dir, bool by_signal)
{
	int status;

	tree_dir(dir);
	busy_dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(pipe(busy_pipe), 0);
	pid_t child = fork();

	if (child == 0)
		run_busy_process(by_signal);
	close(busy_pipe[1]);
	if (by_signal) {
		assert_true(await_busy_threads());
		kill(child, SIGTERM);
	}
	close(busy_pipe[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	DIR *names = opendir(dir);

	for (struct dirent *entry; (entry = readdir(names));)
		if (entry->d_name[0] == '.' && strlen(entry->d_name) > 2)
			fail_msg("%s/%s was left behind", dir, entry->d_name);
	closedir(names);
	close(busy_dir);
}

UNIT_TEST(nothing_is_left_by_a_signal_or_an_exit)
{
	char dir[32];

	for (int i = 0; i < 20; i++) {
		snprintf(dir, sizeof dir, "busy%d", i);
		check_busy_process(dir, i % 2);
	}
}

UNIT_TEST(own_names_are_known_while_they_are_there)
{
	int dir = fresh_dir("own"), other = fresh_dir("other");
	struct fs_temp temp;

	assert_return_code(fs_temp_create(&temp, dir, "f"), errno);
	assert_true(fs_temp_is_own(dir, temp.name));
	assert_false(fs_temp_is_own(other, temp.name));
	assert_false(fs_temp_is_own(dir, "f"));
	if (!fork())
		_exit(fs_temp_is_own(dir, temp.name));
	int status;

	assert_true(wait(&status) > 0 && status == 0);
	assert_return_code(fs_temp_commit(&temp, "f"), errno);
	assert_false(fs_temp_is_own(dir, temp.name));
	close(dir);
	close(other);
}

UNIT_GROUP(tree_setup, tree_teardown)
