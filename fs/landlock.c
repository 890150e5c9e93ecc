/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Landlock's three system calls. The numbers and bits stand here: headers are often older than the kernel. */
#include "fs/landlock.h"

#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs/error.h"

/* New system calls have one number on all architectures but alpha, where it is 110 more. */
#ifndef SYS_landlock_create_ruleset
#ifdef __alpha__
#define FIRST_CALL 554
#else
#define FIRST_CALL 444
#endif
#define SYS_landlock_create_ruleset FIRST_CALL
#define SYS_landlock_add_rule (FIRST_CALL + 1)
#define SYS_landlock_restrict_self (FIRST_CALL + 2)
#endif

#define QUERY_VERSION 1u
#define BENEATH_PATH 1

#define BIT(n) (UINT64_C(1) << (n))
#define WRITE_FILE BIT(1)
#define READ_FILE BIT(2)
#define READ_DIR BIT(3)
#define CHANGE_ENTRIES (BIT(13) - BIT(4)) /* remove and make entries of every type */
#define RENAME_BETWEEN BIT(13)
#define TRUNCATE BIT(14)
#define OF_FILES (BIT(0) | WRITE_FILE | READ_FILE | TRUNCATE)

struct ruleset {
	uint64_t files, network, scope;
};

struct beneath {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

int fs_landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, QUERY_VERSION);

	return version > 0 ? (int)version : 0;
}

int fs_landlock_confine(int version, const struct fs_reachable *reachable, size_t count)
{
	/* Everything that a version can forbid. */
	static const unsigned file_bits[] = { 0, 13, 14, 15, 15, 16 };
	const struct ruleset all = {
		.files = BIT(file_bits[version > 5 ? 5 : version]) - 1,
		.network = version >= 4 ? 3 : 0,
		.scope = version >= 6 ? 3 : 0,
	};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0u), result = fd < 0 ? -1 : 0;

	for (size_t i = 0; i < count && result == 0; i++) {
		struct beneath rule = { .allowed = READ_FILE | READ_DIR, .fd = reachable[i].fd };
		struct stat st;

		if (reachable[i].writable)
			rule.allowed |= WRITE_FILE | CHANGE_ENTRIES | RENAME_BETWEEN | TRUNCATE;
		result = fstat(reachable[i].fd, &st);
		if (result < 0)
			break;
		rule.allowed &= all.files & (S_ISDIR(st.st_mode) ? UINT64_MAX : OF_FILES);
		result = (int)syscall(SYS_landlock_add_rule, fd, BENEATH_PATH, &rule, 0u);
	}
	if (result == 0)
		result = (int)syscall(SYS_landlock_restrict_self, fd, 0u);
	fs_close(fd);
	return result;
}
