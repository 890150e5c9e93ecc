/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a confined process cannot do, and what it still can: each test confines a child and has it try. */
#include "daemon/sandbox.h"

#include <linux/fs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "fs/landlock.h"
#include "fs_tree.h"
#include "lib/seccomp.h"

#define NEWER_THAN_EVERY_KERNEL 9999

static int outside_fd;

static void expect(bool holds, const char *what, int line)
{
	if (holds)
		return;
	dprintf(2, "line %d: %s (errno %d)\n", line, what, errno);
	_exit(1);
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)
#define EXPECT_ERROR(call, error) (errno = 0, expect((call) < 0 && errno == (error), #call, __LINE__))

static int open_directory(const char *path)
{
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The child enters below "in", tries, and ends with 0 if everything was as expected. */
static void confined(bool writable, void (*attempts)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		const struct sandbox sandbox = {
			.attr_root = open_directory("in"), .content_root = open_directory("content"), .writable = writable,
			.as_root = geteuid() == 0, .names_ids = true,
		};

		sandbox_prepare();
		EXPECT(sandbox_enter(&sandbox) == NULL);
		attempts();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int make_tree(void **state)
{
	if (tree_setup(state) < 0)
		return -1;
	tree_dir("in");
	tree_dir("in/sub");
	tree_dir("content");
	tree_file("in/file", "inside");
	tree_file("in/other", "inside");
	tree_file("content/file", "content");
	tree_file("outside", "outside");
	tree_link("../outside", "in/link");
	outside_fd = open("outside", O_RDWR | O_CLOEXEC);
	return outside_fd < 0;
}

/* --- files --- */

static void try_to_read(void)
{
	char byte;

	EXPECT(open("in/file", O_RDONLY) >= 0);
	EXPECT(open("content/file", O_RDONLY) >= 0);
	EXPECT(open("in/sub", O_RDONLY | O_DIRECTORY) >= 0);
	EXPECT(read(outside_fd, &byte, 1) == 1); /* a log that was open before */
	EXPECT(getpwnam("root") != NULL);
	EXPECT_ERROR(open("outside", O_RDONLY), EACCES);
	EXPECT_ERROR(open("in/link", O_RDONLY), EACCES);
	EXPECT_ERROR(open("in/../outside", O_RDONLY), EACCES);
	EXPECT_ERROR(open(".", O_RDONLY | O_DIRECTORY), EACCES);
	EXPECT_ERROR(open("/etc/shadow", O_RDONLY), EACCES);
	EXPECT_ERROR(open("/proc/self/mem", O_RDWR), EACCES);
	EXPECT_ERROR(open("/dev/null", O_RDWR), EACCES);
}

UNIT_TEST(nothing_outside_is_opened)
{
	if (!fs_landlock_version())
		skip();
	confined(false, try_to_read);
	confined(true, try_to_read);
}

static void try_to_change_what_is_read_only(void)
{
	EXPECT_ERROR(open("in/file", O_WRONLY), EACCES);
	EXPECT_ERROR(open("in/new", O_WRONLY | O_CREAT, 0600), EACCES);
	EXPECT_ERROR(open("content/new", O_WRONLY | O_CREAT, 0600), EACCES);
	EXPECT_ERROR(unlinkat(AT_FDCWD, "in/file", 0), EPERM);
	EXPECT_ERROR(renameat(AT_FDCWD, "in/file", AT_FDCWD, "in/new"), EPERM);
	EXPECT_ERROR(fchmodat(AT_FDCWD, "in/file", 0, 0), EPERM);
	EXPECT_ERROR(fchownat(AT_FDCWD, "in/file", 1, 1, 0), EPERM);
	EXPECT_ERROR(utimensat(AT_FDCWD, "in/file", NULL, 0), EPERM);
	EXPECT_ERROR(ftruncate(outside_fd, 0), EPERM);
}

UNIT_TEST(what_is_read_only_stays_as_it_is)
{
	if (!fs_landlock_version() || !seccomp_is_available())
		skip();
	confined(false, try_to_change_what_is_read_only);
}

static void try_to_write(void)
{
	int fd = open("in/made", O_RDWR | O_CREAT | O_EXCL, 0600);

	EXPECT(fd >= 0 && write(fd, "x", 1) == 1 && ftruncate(fd, 0) == 0 && fsync(fd) == 0 && fchmod(fd, 0640) == 0);
	EXPECT(mkdirat(AT_FDCWD, "in/dir", 0700) == 0);
	EXPECT(renameat(AT_FDCWD, "in/made", AT_FDCWD, "in/dir/moved") == 0);
	EXPECT(linkat(AT_FDCWD, "in/dir/moved", AT_FDCWD, "in/linked", 0) == 0);
	EXPECT(symlinkat("target", AT_FDCWD, "in/dir/symlink") == 0);
	EXPECT(mknodat(AT_FDCWD, "in/fifo", S_IFIFO | 0600, 0) == 0);
	EXPECT(utimensat(AT_FDCWD, "in/linked", NULL, 0) == 0);
	EXPECT(unlinkat(AT_FDCWD, "in/linked", 0) == 0 && unlinkat(AT_FDCWD, "in/fifo", 0) == 0);
	EXPECT(unlinkat(AT_FDCWD, "in/dir/moved", 0) == 0 && unlinkat(AT_FDCWD, "in/dir/symlink", 0) == 0);
	EXPECT(unlinkat(AT_FDCWD, "in/dir", AT_REMOVEDIR) == 0);
	EXPECT_ERROR(open("content/file", O_WRONLY), EACCES);
	EXPECT_ERROR(open("outside", O_WRONLY), EACCES);
	EXPECT_ERROR(unlinkat(AT_FDCWD, "outside", 0), EACCES);
	EXPECT_ERROR(renameat(AT_FDCWD, "in/other", AT_FDCWD, "stolen"), EACCES);
	EXPECT_ERROR(linkat(AT_FDCWD, "outside", AT_FDCWD, "in/outside", 0), EXDEV);
}

UNIT_TEST(a_writable_module_is_changed_inside_only)
{
	if (fs_landlock_version() < FS_LANDLOCK_RENAMES)
		skip();
	confined(true, try_to_write);
}

/* --- calls --- */

static void *count_up(void *counter)
{
	atomic_fetch_add((atomic_int *)counter, 1);
	return NULL;
}

static void try_processes(void)
{
	char *const words[] = { "true", NULL };
	atomic_int counter = 0;
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, count_up, &counter) == 0);
	EXPECT(pthread_join(thread, NULL) == 0 && counter == 1);
	signal(SIGUSR1, SIG_IGN);
	EXPECT(raise(SIGUSR1) == 0);
	EXPECT_ERROR(execv("/bin/true", words), EPERM);
	EXPECT_ERROR((int)syscall(SYS_execveat, AT_FDCWD, "/bin/true", words, NULL, 0), EPERM);
	EXPECT_ERROR(fork(), EPERM);
	EXPECT_ERROR(kill(getppid(), 0), EPERM);
	EXPECT_ERROR((int)syscall(SYS_tgkill, getppid(), getppid(), 0), EPERM);
	EXPECT_ERROR((int)syscall(SYS_ptrace, 0, 0, 0, 0), EPERM);
	EXPECT_ERROR((int)syscall(SYS_clone3, NULL, 0), ENOSYS);
	EXPECT_ERROR((int)syscall(NEWER_THAN_EVERY_KERNEL), ENOSYS);
}

static void try_sockets(void)
{
	const struct sockaddr_in address = { .sin_family = AF_INET };

	EXPECT_ERROR(socket(AF_INET, SOCK_STREAM, 0), EPERM);
	EXPECT_ERROR(socket(AF_UNIX, SOCK_DGRAM, 0), EPERM);
	EXPECT_ERROR((int)sendto(0, "x", 1, 0, (const struct sockaddr *)&address, sizeof address), EPERM);
	errno = 0;
	EXPECT(send(outside_fd, "x", 1, 0) < 0 && errno == ENOTSOCK);
}

static void try_others(void)
{
	struct rlimit limit;

	errno = 0;
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EPERM);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(page != MAP_FAILED);
	EXPECT_ERROR(mprotect(page, 4096, PROT_READ | PROT_EXEC), EPERM);
	EXPECT(mprotect(page, 4096, PROT_READ) == 0);
	EXPECT_ERROR(chroot("in"), EPERM);
	EXPECT_ERROR(ioctl(outside_fd, FS_IOC_GETFLAGS, page), EPERM);
	EXPECT_ERROR((int)syscall(SYS_mount, NULL, NULL, NULL, 0, NULL), EPERM);
	EXPECT_ERROR((int)syscall(SYS_bpf, 0, NULL, 0), EPERM);
	/* What would make the kernel send signals, or change others' limits. */
	EXPECT_ERROR(fcntl(outside_fd, F_SETOWN, getppid()), EPERM);
	EXPECT_ERROR(fcntl(outside_fd, F_SETSIG, SIGKILL), EPERM);
	EXPECT_ERROR(fcntl(outside_fd, F_SETLEASE, F_RDLCK), EPERM);
	EXPECT_ERROR(prlimit(getppid(), RLIMIT_NOFILE, NULL, &limit), EPERM);
	EXPECT_ERROR(setpriority(PRIO_PROCESS, (id_t)getppid(), 19), EPERM);
	EXPECT_ERROR(setpriority(PRIO_PGRP, 0, 19), EPERM);
	EXPECT(setpriority(PRIO_PROCESS, 0, 19) == 0);
	EXPECT(fcntl(outside_fd, F_GETFL) >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void clone_contents(void)
{
	int from = open("in/file", O_RDONLY), to = open("in/clone", O_WRONLY | O_CREAT, 0600);

	/* Not every file system can, but nothing forbids it. */
	EXPECT(ioctl(to, FICLONE, from) == 0 || errno == EOPNOTSUPP || errno == EXDEV || errno == EINVAL || errno == ENOTTY);
}

UNIT_TEST(no_process_and_no_socket_is_made)
{
	if (!seccomp_is_available())
		skip();
	for (int writable = 0; writable < 2; writable++) {
		confined(writable, try_processes);
		confined(writable, try_sockets);
		confined(writable, try_others);
	}
	if (fs_landlock_version() >= FS_LANDLOCK_RENAMES)
		confined(true, clone_contents);
}

UNIT_GROUP(make_tree, tree_teardown)
