/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The system calls that a confined session makes, or the C library for it. Nothing here starts a program, opens a socket,
 * changes mounts, traces or signals another process. What only changes files is left to modules that can be written.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "daemon/sandbox.h"

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
	CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise),
	CHECKED(mmap, CALL_IF_CLEAR, 2, PROT_EXEC), CHECKED(mprotect, CALL_IF_CLEAR, 2, PROT_EXEC),
	/* what is open */
	CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(pread64), CALL(pwrite64), CALL(lseek),
	CALL(close),
	/* a descriptor can be told to send signals to others: not by these */
	CHECKED(fcntl, CALL_IF_EQUAL, 1, F_DUPFD), CHECKED(fcntl, CALL_IF_EQUAL, 1, F_DUPFD_CLOEXEC),
	CHECKED(fcntl, CALL_IF_EQUAL, 1, F_GETFD), CHECKED(fcntl, CALL_IF_EQUAL, 1, F_SETFD),
	CHECKED(fcntl, CALL_IF_EQUAL, 1, F_GETFL), CHECKED(fcntl, CALL_IF_EQUAL, 1, F_SETFL),
	CALL(dup), CALL(dup3), CALL(pipe2), CALL(flock), CALL(fadvise64), CALL(fstat), CALL(fstatfs),
	CALL(fsync), CALL(ppoll),
	CALL(pselect6), CALL(fchdir), CALL(fgetxattr), CALL(flistxattr), CALL(getdents64),
	/* names */
	CALL(openat), CALL(openat2), CALL(newfstatat), CALL(statx), CALL(statfs), CALL(readlinkat), CALL(faccessat),
	CALL(faccessat2), CALL(chdir), CALL(getcwd), CALL(umask), CALL(getxattr), CALL(lgetxattr),
	CALL(listxattr), CALL(llistxattr),
	/* the connection: a datagram may go nowhere else */
	CALL(recvfrom), CALL(shutdown), CALL(getsockopt), CALL(setsockopt), CALL(getpeername), CALL(getsockname),
	CHECKED(sendto, CALL_IF_NULL, 4, 0),
	/* threads, but no processes. The arguments of clone3 cannot be seen: the C library goes back to clone. */
	CHECKED(clone, CALL_IF_SET, 0, CLONE_THREAD), CHECKED(clone3, CALL_UNKNOWN, 0, 0),
	CALL(futex), CALL(set_robust_list), CALL(rseq), CALL(set_tid_address), CALL(exit), CALL(exit_group),
	CALL(sched_yield), CHECKED(setpriority, CALL_IF_ZEROS, 0, 0), /* of itself, not of a group or others */
	CALL(sched_getaffinity), CALL(gettid),
	/* signals, of its own and to itself (see the rule that is made for each process), and its commands' ends */
	CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_sigtimedwait), CALL(rt_sigpending),
	CALL(rt_sigsuspend), CALL(sigaltstack), CALL(restart_syscall), CALL(wait4), CALL(waitid),
	/* time, limits, identity */
	CALL(clock_gettime), CALL(clock_getres), CALL(clock_nanosleep), CALL(nanosleep), CALL(gettimeofday),
	CALL(times),
	CALL(getrusage), CHECKED(prlimit64, CALL_IF_NULL, 0, 0), CALL(sysinfo), CALL(uname), CALL(getrandom), CALL(getpid),
	CALL(getppid), CALL(getuid),
	CALL(geteuid), CALL(getgid), CALL(getegid), CALL(getgroups), CALL(getresuid), CALL(getresgid),
#ifdef __x86_64__
	CALL(poll), CALL(select), CALL(dup2), CALL(pipe), CALL(getrlimit), CALL(time), CALL(open), CALL(stat),
	CALL(lstat),
	CALL(access), CALL(readlink), CALL(getdents),
#endif
};

static const struct call_rule writing_calls[] = {
	CALL(mkdirat), CALL(unlinkat), CALL(renameat), CALL(renameat2), CALL(linkat), CALL(symlinkat),
	CALL(mknodat), CALL(fchmod),
	CALL(fchmodat), CALL(fchmodat2), CALL(fchown), CALL(fchownat), CALL(utimensat), CALL(truncate),
	CALL(ftruncate),
	CALL(fallocate), CALL(copy_file_range), CALL(sendfile), CALL(fdatasync), CALL(sync_file_range), CALL(syncfs),
	CALL(setxattr), CALL(lsetxattr), CALL(fsetxattr), CALL(removexattr), CALL(lremovexattr), CALL(fremovexattr),
	CHECKED(ioctl, CALL_IF_EQUAL, 1, (uint32_t)FICLONE), CHECKED(ioctl, CALL_IF_EQUAL, 1, (uint32_t)FICLONERANGE),
#ifdef __x86_64__
	CALL(mkdir), CALL(unlink), CALL(rmdir), CALL(rename), CALL(link), CALL(symlink), CALL(mknod),
	CALL(chmod), CALL(chown),
	CALL(lchown), CALL(utime), CALL(utimes), CALL(futimesat),
#endif
};

/* A module that is served as root can be asked to touch its files as another user. */
static const struct call_rule identity_calls[] = {
	CALL(setresuid), CALL(setresgid), CALL(setgroups), CALL(setuid), CALL(setgid),
};

#define TABLE(calls) (struct call_table){ calls, sizeof calls / sizeof *calls }

size_t sandbox_calls(const struct sandbox *sandbox, struct call_table tables[SANDBOX_TABLES])
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

size_t sandbox_calls(const struct sandbox *sandbox, struct call_table tables[SANDBOX_TABLES])
{
	(void)sandbox;
	(void)tables;
	return 0;
}

#endif
