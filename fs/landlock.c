/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Landlock's three system calls. The numbers and bits stand here: headers are often older than the kernel. */
#include "fs/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* New system calls have one number on all architectures but alpha. */
#if !defined(SYS_landlock_create_ruleset) && !defined(__alpha__)
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
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

/* Everything that a version can forbid. */
static struct ruleset all_of(int version)
{
	static const unsigned file_bits[] = { 0, 13, 14, 15, 15, 16 };
	unsigned known = version > 5 ? 5 : (unsigned)version;

	return (struct ruleset){
		.files = BIT(file_bits[known]) - 1, .network = version >= 4 ? 3 : 0, .scope = version >= 6 ? 3 : 0,
	};
}

#ifdef SYS_landlock_create_ruleset
int fs_landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, QUERY_VERSION);

	return version > 0 ? (int)version : 0;
}

static int make_ruleset(const struct ruleset *ruleset)
{
	return (int)syscall(SYS_landlock_create_ruleset, ruleset, sizeof *ruleset, 0u);
}

static int add_rule(int fd, const struct beneath *rule)
{
	return (int)syscall(SYS_landlock_add_rule, fd, BENEATH_PATH, rule, 0u);
}

static int restrict_self(int fd)
{
	return (int)syscall(SYS_landlock_restrict_self, fd, 0u);
}
#else
int fs_landlock_version(void)
{
	return 0;
}

static int make_ruleset(const struct ruleset *ruleset)
{
	(void)ruleset;
	errno = ENOSYS;
	return -1;
}

static int add_rule(int fd, const struct beneath *rule)
{
	(void)fd, (void)rule;
	return 0;
}

static int restrict_self(int fd)
{
	(void)fd;
	return 0;
}
#endif

static int allow(int ruleset, uint64_t handled, const struct fs_reachable *reachable)
{
	struct beneath rule = { .allowed = READ_FILE | READ_DIR, .fd = reachable->fd };
	struct stat st;

	if (fstat(reachable->fd, &st) < 0)
		return -1;
	if (reachable->writable)
		rule.allowed |= WRITE_FILE | CHANGE_ENTRIES | RENAME_BETWEEN | TRUNCATE;
	rule.allowed &= handled & (S_ISDIR(st.st_mode) ? UINT64_MAX : OF_FILES);
	return add_rule(ruleset, &rule);
}

int fs_landlock_confine(int version, const struct fs_reachable *reachable, size_t count)
{
	const struct ruleset all = all_of(version);
	int fd = make_ruleset(&all), result = fd < 0 ? -1 : 0, error;

	for (size_t i = 0; i < count && result == 0; i++)
		result = allow(fd, all.files, &reachable[i]);
	if (result == 0)
		result = restrict_self(fd);
	error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return result;
}
