/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Entering the sandbox of a session. The system calls that are left to it are those that a session makes, or the C library for
 * it: nothing here starts a program, opens a socket, changes mounts, traces or signals another process. What only changes files
 * is left to modules that can be written.
 */
#include "daemon/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fs.h>
#include <pwd.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <nss.h>
#endif

#include "fs/landlock.h"
#include "fs/operator.h"
#include "lib/log.h"
#include "lib/seccomp.h"

#define FIRST_WITH_NETWORK 4
#define FIRST_WITH_TRUNCATE 3
#define TABLES_MAX 3

/* --- the system calls --- */

#ifdef SECCOMP_ARCHITECTURE

/* Headers are often older than the kernel. These have one number on both architectures that have a filter. */
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_rseq
#ifdef __x86_64__
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif

#define CALL(name) { SYS_##name, CALL_ALWAYS, 0, 0 }
#define CHECKED(name, check, argument, value) { SYS_##name, check, argument, value }

static const struct call_rule session_calls[] = {
	/* memory; nothing new becomes code */
	CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise), CHECKED(mmap, CALL_IF_CLEAR, 2, PROT_EXEC),
	CHECKED(mprotect, CALL_IF_CLEAR, 2, PROT_EXEC),
	/* what is open */
	CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(pread64), CALL(pwrite64), CALL(lseek), CALL(close),
	/* those that cannot make a descriptor send signals to other processes */
	CHECKED(fcntl, CALL_IF_EQUAL, 1, F_DUPFD), CHECKED(fcntl, CALL_IF_EQUAL, 1, F_DUPFD_CLOEXEC),
	CHECKED(fcntl, CALL_IF_EQUAL, 1, F_GETFD), CHECKED(fcntl, CALL_IF_EQUAL, 1, F_SETFD),
	CHECKED(fcntl, CALL_IF_EQUAL, 1, F_GETFL), CHECKED(fcntl, CALL_IF_EQUAL, 1, F_SETFL), CALL(dup), CALL(dup3),
	CALL(pipe2), CALL(flock), CALL(fadvise64), CALL(fstat), CALL(fstatfs), CALL(fsync), CALL(ppoll), CALL(pselect6),
	CALL(fchdir), CALL(fgetxattr), CALL(flistxattr), CALL(getdents64),
	/* names */
	CALL(openat), CALL(openat2), CALL(newfstatat), CALL(statx), CALL(statfs), CALL(readlinkat), CALL(faccessat),
	CALL(faccessat2), CALL(chdir), CALL(getcwd), CALL(umask), CALL(getxattr), CALL(lgetxattr), CALL(listxattr),
	CALL(llistxattr),
	/* the connection: a datagram may go nowhere else */
	CALL(recvfrom), CALL(shutdown), CALL(getsockopt), CALL(setsockopt), CALL(getpeername), CALL(getsockname),
	CHECKED(sendto, CALL_IF_NULL, 4, 0),
	/* threads, but no processes. The arguments of clone3 cannot be seen: the C library goes back to clone. */
	CHECKED(clone, CALL_IF_SET, 0, CLONE_THREAD), CHECKED(clone3, CALL_UNKNOWN, 0, 0), CALL(futex),
	CALL(set_robust_list), CALL(rseq), CALL(set_tid_address), CALL(exit), CALL(exit_group),
	CALL(sched_yield), CHECKED(setpriority, CALL_IF_ZEROS, 0, 0), /* of itself, not of a group or others */
	CALL(sched_getaffinity), CALL(gettid),
	/* signals, of its own and to itself (see the rule that is made for each process), and its commands' ends */
	CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_sigtimedwait), CALL(rt_sigpending),
	CALL(rt_sigsuspend), CALL(sigaltstack), CALL(restart_syscall), CALL(wait4), CALL(waitid),
	/* time, limits, identity */
	CALL(clock_gettime), CALL(clock_getres), CALL(clock_nanosleep), CALL(nanosleep), CALL(gettimeofday),
	CALL(times), CALL(getrusage), CHECKED(prlimit64, CALL_IF_NULL, 0, 0), CALL(sysinfo), CALL(uname),
	CALL(getrandom), CALL(getpid), CALL(getppid), CALL(getuid), CALL(geteuid), CALL(getgid), CALL(getegid),
	CALL(getgroups), CALL(getresuid), CALL(getresgid),
#ifdef __x86_64__
	CALL(poll), CALL(select), CALL(dup2), CALL(pipe), CALL(getrlimit), CALL(time), CALL(open), CALL(stat),
	CALL(lstat), CALL(access), CALL(readlink), CALL(getdents),
#endif
};

static const struct call_rule writing_calls[] = {
	CALL(mkdirat), CALL(unlinkat), CALL(renameat), CALL(renameat2), CALL(linkat), CALL(symlinkat), CALL(mknodat),
	CALL(fchmod), CALL(fchmodat), CALL(fchmodat2), CALL(fchown), CALL(fchownat), CALL(utimensat), CALL(truncate),
	CALL(ftruncate), CALL(fallocate), CALL(copy_file_range), CALL(sendfile), CALL(fdatasync), CALL(sync_file_range),
	CALL(syncfs), CALL(setxattr), CALL(lsetxattr), CALL(fsetxattr), CALL(removexattr), CALL(lremovexattr),
	CALL(fremovexattr), CHECKED(ioctl, CALL_IF_EQUAL, 1, (uint32_t)FICLONE),
	CHECKED(ioctl, CALL_IF_EQUAL, 1, (uint32_t)FICLONERANGE),
#ifdef __x86_64__
	CALL(mkdir), CALL(unlink), CALL(rmdir), CALL(rename), CALL(link), CALL(symlink), CALL(mknod), CALL(chmod),
	CALL(chown), CALL(lchown), CALL(utime), CALL(utimes), CALL(futimesat),
#endif
};

/* A module that is served as root can be asked to touch its files as another user. */
static const struct call_rule identity_calls[] = {
	CALL(setresuid), CALL(setresgid), CALL(setgroups), CALL(setuid), CALL(setgid),
};

#define TABLE(calls) (struct call_table){ (calls), sizeof(calls) / sizeof *(calls) }

static size_t list_calls(const struct sandbox *sandbox, struct call_table tables[TABLES_MAX])
{
	size_t count = 0;

	tables[count++] = TABLE(session_calls);
	if (sandbox->writable)
		tables[count++] = TABLE(writing_calls);
	if (sandbox->as_root)
		tables[count++] = TABLE(identity_calls);
	return count;
}

#else

static size_t list_calls(const struct sandbox *sandbox, struct call_table tables[TABLES_MAX])
{
	(void)sandbox;
	(void)tables;
	return 0;
}

#endif

/* --- the border --- */

void sandbox_prepare(void)
{
	tzset();
	getpwuid(0);
	getgrgid(0);
#ifdef __GLIBC__
	/* Asked for an id that it does not know, the C library would load its other ways to look for one, too. */
	__nss_configure_lookup("passwd", "files");
	__nss_configure_lookup("group", "files");
#endif
}

/* The names of users and groups that clients get come from these two files, of the root that the process has by now. */
static int confine_files(const struct sandbox *sandbox, int version)
{
	static const char *const tables[] = { "/etc/passwd", "/etc/group" };
	struct fs_reachable reachable[4];
	size_t count = 0, roots;
	int result, error;

	reachable[count++] = (struct fs_reachable){ sandbox->attr_root, sandbox->writable };
	if (sandbox->content_root >= 0)
		reachable[count++] = (struct fs_reachable){ sandbox->content_root, false };
	roots = count;
	for (size_t i = 0; i < 2 && sandbox->names_ids; i++) {
		int fd = fs_operator_open(tables[i], O_PATH, 0);

		if (fd >= 0)
			reachable[count++] = (struct fs_reachable){ fd, false };
	}
	result = fs_landlock_confine(version, reachable, count);
	error = errno;
	while (count > roots)
		close(reachable[--count].fd);
	errno = error;
	return result;
}

const char *sandbox_enter(const struct sandbox *sandbox)
{
	const struct call_rule own_signals = { SYS_tgkill, CALL_IF_EQUAL, 0, (uint32_t)getpid() };
	struct call_table tables[TABLES_MAX + 1];
	size_t count = list_calls(sandbox, tables);
	int version = fs_landlock_version();

	/* Moving names between directories is what receiving does; where Landlock always forbids it, a module to write goes
	 * without. */
	if (sandbox->writable && version < FS_LANDLOCK_RENAMES)
		version = 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return "no_new_privs";
	if (version && confine_files(sandbox, version) < 0)
		return "Landlock";
	tables[count++] = (struct call_table){ &own_signals, 1 };
	if (seccomp_is_available() && seccomp_allow_only(tables, count) < 0)
		return "seccomp";
	return NULL;
}

void sandbox_report(void)
{
	int version = fs_landlock_version();

	if (!version)
		log_msg(L_LOG, "sandbox: this kernel has no Landlock; sessions are not confined to their directories by it");
	else if (version < FS_LANDLOCK_ALL)
		log_msg(L_LOG, "sandbox: version %d of Landlock does not restrict%s%s%s signals", version,
			version < FS_LANDLOCK_RENAMES ? " writable modules," : "",
			version < FIRST_WITH_TRUNCATE ? " truncation," : "", version < FIRST_WITH_NETWORK ? " TCP and" : "");
	if (!seccomp_is_available())
		log_msg(L_LOG, "sandbox: no seccomp filter here; sessions may make every system call");
}
