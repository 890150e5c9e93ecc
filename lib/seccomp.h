/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A list of the system calls that are left to a process: a seccomp filter made of a table, without a library. */
#ifndef LIB_SECCOMP_H
#define LIB_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The architectures whose system calls the tables were written for. Elsewhere there are none, and no filter. */
#if defined(__x86_64__) && !defined(__ILP32__)
#define SECCOMP_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SECCOMP_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* A call that is allowed if the check of one of its arguments holds. A call may have several rules. */
struct call_rule {
	int number;
	enum {
		CALL_ALWAYS,
		CALL_IF_EQUAL,  /* the argument is `value` (its lower 32 bits are) */
		CALL_IF_SET,    /* ... has all bits of `value` */
		CALL_IF_CLEAR,  /* ... has none of them */
		CALL_IF_NULL,   /* ... is 0 in all of its 64 bits */
		CALL_IF_ZEROS,  /* ... and the next one, too, are 0 (their lower 32 bits are) */
		CALL_UNKNOWN,   /* never: fails with ENOSYS, so that the C library uses an older one */
	} check;
	unsigned argument;
	uint32_t value;
};

struct call_table {
	const struct call_rule *rules;
	size_t count;
};

/* Can it be had here: of this kernel, and with tables? */
bool seccomp_is_available(void);

/*
 * From now on every other call of this thread, and of what it starts, fails with EPERM; one that is newer than this program
 * with ENOSYS, as in an older kernel. Calls of another architecture kill the process. Needs PR_SET_NO_NEW_PRIVS. -1 with errno.
 */
int seccomp_allow_only(const struct call_table *tables, size_t count);

#endif
