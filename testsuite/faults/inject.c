/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Preloaded: counts the system calls and allocations of a program and of its children, and lets one of them fail. Only the
 * program that $FAULTS_PROGRAM names is looked at; a shell or a stock rsync in between is left alone. What is to fail, what
 * was counted and where it failed is in the file $FAULTS_STATE (struct state, as faults.py reads it), which all processes map
 * before they confine themselves. The library itself makes no system call later on, so that it works below a seccomp filter.
 *
 * A wrapper takes and passes on seven words, which holds for the functions below where a word is as wide as a pointer.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(sizeof(long) == sizeof(void *) && sizeof(off_t) == sizeof(long), "a wrapper passes words on");

#define FRAMES 24
#define SITE_FRAMES 5
#define LOG_ENTRIES 400000
#define CALLS 160

/* How a function says that it has failed. */
enum failure { MINUS_ONE, NULL_POINTER, NUMBER, ZERO };
/* What becomes of a call that fails: it may have been carried out, or done a part of its work. */
enum effect { NOTHING, DONE, PART };
#define SHORT (-1) /* no error: the third word, or the vector, is cut down */

struct entry {
	uint32_t call, nth;
	uint64_t site;
};

struct state {
	_Atomic uint32_t armed, recording;
	uint32_t call, nth, sticky;
	int32_t error;
	_Atomic uint32_t fired;
	uint32_t frames;
	uint64_t trace[FRAMES];
	_Atomic uint64_t logged;
	_Atomic uint32_t counts[CALLS];
	struct entry log[LOG_ENTRIES];
};

static struct state *state;
static uintptr_t program_start, program_end;
/* A library that is preloaded lies in the first block of thread-local memory: reading this allocates nothing. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

static int find_program(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size, (void)context;
	program_start = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			program_end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	return 1;
}

__attribute__((constructor)) static void map_state(void)
{
	const char *path = getenv("FAULTS_STATE"), *wanted = getenv("FAULTS_PROGRAM");
	char program[4096];
	void *frames[2];

	is_inside = true;
	long length = syscall(SYS_readlink, "/proc/self/exe", program, sizeof program - 1);

	if (path && wanted && length > 0 && (size_t)length == strlen(wanted) && memcmp(program, wanted, (size_t)length) == 0) {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
		long mapped = fd < 0 ? -1 : syscall(SYS_mmap, NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		syscall(SYS_close, fd);
		dl_iterate_phdr(find_program, NULL);
		backtrace(frames, 2); /* loads what it needs */
		state = mapped == -1 ? NULL : (struct state *)mapped;
	}
	is_inside = false;
}

/* The addresses within the program, innermost first. */
static int trace(uint64_t *out, int most)
{
	void *frames[48];
	int count = backtrace(frames, 48), kept = 0;

	for (int i = 0; i < count && kept < most; i++)
		if ((uintptr_t)frames[i] >= program_start && (uintptr_t)frames[i] < program_end)
			out[kept++] = (uintptr_t)frames[i] - program_start;
	return kept;
}

static void record(uint32_t call, uint32_t nth)
{
	uint64_t sites[SITE_FRAMES], hash = 14695981039346656037u, place = atomic_fetch_add(&state->logged, 1);
	int count = trace(sites, SITE_FRAMES);

	for (int i = 0; i < count; i++)
		hash = (hash ^ sites[i]) * 1099511628211u;
	if (place < LOG_ENTRIES)
		state->log[place] = (struct entry){ call, nth, hash };
}

/* 0, or what this call is to fail with. */
static int fault(uint32_t call)
{
	int result = 0;

	if (!state || is_inside)
		return 0;
	is_inside = true;
	uint32_t nth = atomic_fetch_add(&state->counts[call], 1) + 1;

	if (atomic_load(&state->recording))
		record(call, nth);
	if (atomic_load(&state->armed) && state->call == call && (nth == state->nth || (state->sticky && nth > state->nth))) {
		result = state->error;
		if (atomic_fetch_add(&state->fired, 1) == 0)
			state->frames = (uint32_t)trace(state->trace, FRAMES);
	}
	is_inside = false;
	return result;
}

typedef long word_function(long, long, long, long, long, long, long);

static word_function *find_real(_Atomic(word_function *) *known, const char *name)
{
	word_function *real = atomic_load(known);

	if (!real) {
		bool was_inside = is_inside;
		is_inside = true;
		*(void **)&real = dlsym(RTLD_NEXT, name);
		is_inside = was_inside;
		atomic_store(known, real);
	}
	return real;
}

static long fail(int error, enum failure failure)
{
	if (failure == NUMBER)
		return error;
	errno = error;
	return failure == MINUS_ONE ? -1 : 0;
}

#define TAKE long a, long b, long c, long d, long e, long f, long g
#define PASS a, b, c, d, e, f, g

/* The number of a call is its line in calls.h. */
#define CALL(name, failure, effect) CALL_##name,
#define OWN(name, failure, effect) CALL_##name,
#define RAW(name, number) CALL_##name,
enum {
	CALL_none,
#include "calls.h"
	CALL_end
};
#undef CALL
#undef OWN
#undef RAW
_Static_assert(CALL_end <= CALLS, "more calls than places");

#define CALL(name, failure, effect)                                                                   \
	long wrap_##name(TAKE) __asm__(#name);                                                        \
	__attribute__((visibility("default"))) long wrap_##name(TAKE)                                 \
	{                                                                                             \
		static _Atomic(word_function *) known;                                                \
		word_function *real = find_real(&known, #name);                                       \
		int error = fault(CALL_##name);                                                       \
		\
		if (error == SHORT && (effect) == PART && c > 1)                                      \
			c = (c + 1) / 2;                                                              \
		if (error > 0 && (effect) == DONE)                                                    \
			real(PASS);                                                                   \
		return error > 0 ? fail(error, failure) : real(PASS);                                 \
	}
#define OWN(name, failure, effect)
#define RAW(name, number)
#include "calls.h"
#undef CALL
#undef OWN
#undef RAW

/* A vector is cut to the half of its first part that is not empty. */
static struct iovec half_of(const struct iovec *vector, size_t count)
{
	while (count > 1 && vector->iov_len == 0)
		vector++, count--;
	return (struct iovec){ vector->iov_base, vector->iov_len > 1 ? (vector->iov_len + 1) / 2 : vector->iov_len };
}

#define OWN_CALL(name)                                     \
	long wrap_##name(TAKE) __asm__(#name);             \
	__attribute__((visibility("default"))) long wrap_##name(TAKE)
#define BEGIN(name)                                        \
	static _Atomic(word_function *) known;             \
	word_function *real = find_real(&known, #name);    \
	int error = fault(CALL_##name);                    \
	if (error > 0)                                     \
		return fail(error, MINUS_ONE)

OWN_CALL(writev)
{
	BEGIN(writev);
	if (error == 0 || c < 1)
		return real(PASS);
	struct iovec half = half_of((const struct iovec *)b, (size_t)c);
	return real(a, (long)&half, 1, d, e, f, g);
}

OWN_CALL(pwritev64v2)
{
	BEGIN(pwritev64v2);
	if (error == 0 || c < 1)
		return real(PASS);
	struct iovec half = half_of((const struct iovec *)b, (size_t)c);
	return real(a, (long)&half, 1, d, e, f, g);
}

OWN_CALL(sendmsg)
{
	BEGIN(sendmsg);
	const struct msghdr *message = (const struct msghdr *)b;
	if (error == 0 || message->msg_iovlen < 1)
		return real(PASS);
	struct iovec half = half_of(message->msg_iov, message->msg_iovlen);
	struct msghdr part = *message;
	part.msg_iov = &half;
	part.msg_iovlen = 1;
	return real(a, (long)&part, c, d, e, f, g);
}

OWN_CALL(copy_file_range)
{
	BEGIN(copy_file_range);
	if (error == SHORT && e > 1)
		e = (e + 1) / 2;
	return real(PASS);
}

/* Without a sanitizer allocations are found by other names: what finds a function by its own name allocates. */
#ifdef FAULTS_SANITIZED
#define DECLARE_REAL(name)
#define REAL(name) find_real(&known, #name)
#else
#define DECLARE_REAL(name) long real_##name(TAKE) __asm__("__libc_" #name);
#define REAL(name) real_##name
#endif
#define ALLOCATE(name)                                                           \
	DECLARE_REAL(name)                                                       \
	OWN_CALL(name)                                                           \
	{                                                                        \
		static _Atomic(word_function *) known;                           \
		int error = fault(CALL_##name);                                  \
		(void)known;                                                     \
		return error > 0 ? fail(error, NULL_POINTER) : REAL(name)(PASS); \
	}
ALLOCATE(malloc)
ALLOCATE(calloc)
ALLOCATE(realloc)

/* Those that the C library has no function for count by their own names. */
static uint32_t raw_call(long number)
{
	switch (number) {
#define CALL(name, failure, effect)
#define OWN(name, failure, effect)
#define RAW(name, number) \
	case number: return CALL_##name;
#include "calls.h"
	default: return CALL_syscall;
	}
}

OWN_CALL(syscall)
{
	static _Atomic(word_function *) known;
	word_function *real = find_real(&known, "syscall");
	int error = fault(raw_call(a));

	return error > 0 ? fail(error, MINUS_ONE) : real(PASS);
}
