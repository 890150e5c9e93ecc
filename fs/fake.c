/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attributes that are kept in extended attributes. */
#include "fs/fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/error.h"
#include "lib/alloc.h"
#include "lib/bytes.h"

#define STAT_NAME "user.rsync.%stat"
#define ACCESS_NAME "user.rsync.%aacl"
#define DEFAULT_NAME "user.rsync.%dacl"
#define STAT_MAX 256          /* bytes of a record, at most one less */
#define MODE_MAX 0177777
#define ACL_ABSENT_PART 0x80
#define ACL_PARTS 4
#define ACL_USER 0x80000000u
#define PERMISSION_BITS 07777

/* --- mode, device, owner --- */

/* One number, and the byte behind it. Digits only: no sign, no blank. */
static bool parse_number(const char **text, int base, uint64_t most, char end, uint32_t *number)
{
	const char *at = *text;
	uint64_t value = 0;

	for (; *at >= '0' && *at < '0' + base; at++) {
		value = value * (unsigned)base + (unsigned)(*at - '0');
		if (value > most)
			return false;
	}
	if (at == *text || *at != end)
		return false;
	*text = at + (end != '\0');
	*number = (uint32_t)value;
	return true;
}

/* "MODE MAJOR,MINOR UID:GID"; of a directory only another directory is made, and the other way round. */
static bool parse_record(const char *text, struct fs_stat *st)
{
	uint32_t mode;

	if (!parse_number(&text, 8, MODE_MAX, ' ', &mode) || !S_ISDIR(mode) != !S_ISDIR(st->mode))
		return false;
	if (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode) && !S_ISCHR(mode) && !S_ISBLK(mode) && !S_ISFIFO(mode)
	    && !S_ISSOCK(mode))
		return false;
	st->mode = mode;
	return parse_number(&text, 10, UINT32_MAX, ',', &st->rdev_major)
	       && parse_number(&text, 10, UINT32_MAX, ' ', &st->rdev_minor)
	       && parse_number(&text, 10, UINT32_MAX, ':', &st->uid)
	       && parse_number(&text, 10, UINT32_MAX, '\0', &st->gid);
}

int fs_fake_overlay(const struct fs_held *held, struct fs_stat *st)
{
	char text[STAT_MAX];
	size_t length;
	void *value;

	*st = held->st;
	if (!S_ISREG(st->mode) && !S_ISDIR(st->mode)) {
		/* It cannot have the attribute: it is as if nobody but root had made it. */
		if (S_ISLNK(st->mode))
			st->uid = st->gid = 0;
		return 0;
	}
	if (fs_held_get(held, STAT_NAME, &value, &length) < 0)
		return errno == ENODATA || errno == ENOTSUP ? 0 : -1;
	bool fits = length < STAT_MAX && !memchr(value, '\0', length);

	if (fits) {
		memcpy(text, value, length);
		text[length] = '\0';
	}
	free(value);
	return fits && parse_record(text, st) ? 0 : fs_fail(EBADMSG);
}

int fs_fake_lstat_at(int dir_fd, const char *name, struct fs_stat *st)
{
	const struct fs_root here = { .fd = dir_fd };

	return fs_fake_lstat(&here, name, st);
}

int fs_fake_lstat(const struct fs_root *root, const char *path, struct fs_stat *st)
{
	struct fs_held held;

	/* Nothing but files and directories keep anything, so only they are held. */
	if (fs_hold(&held, root, path, false) < 0)
		return errno == ENOTSUP ? fs_lstat(root, path, st) : -1;
	int result = fs_fake_overlay(&held, st);

	fs_release(&held);
	return result;
}

static bool same_record(const struct fs_stat *a, const struct fs_stat *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid && a->rdev_major == b->rdev_major
	       && a->rdev_minor == b->rdev_minor;
}

int fs_fake_store(const struct fs_held *held, const struct fs_stat *wanted)
{
	mode_t mode = (wanted->mode & 0777) | (S_ISDIR(wanted->mode) ? 0700 : 0600);
	struct fs_stat kept, real = held->st;
	bool has_record = fs_fake_overlay(held, &kept) == 0 && !same_record(&kept, &real);
	char text[STAT_MAX];
	int changed = 0;

	if ((real.mode & PERMISSION_BITS) != mode) {
		if (fs_held_chmod(held, mode) < 0)
			return -1;
		changed = 1;
	}
	real.mode = (real.mode & S_IFMT) | mode;
	real.rdev_major = real.rdev_minor = 0;
	if (same_record(&real, wanted)) {
		if (fs_held_remove(held, STAT_NAME) == 0)
			return 1;
		return errno == ENODATA || errno == ENOTSUP ? changed : -1;
	}
	if (has_record && same_record(&kept, wanted))
		return changed;
	int length = snprintf(text, sizeof text, "%o %u,%u %u:%u", wanted->mode, wanted->rdev_major, wanted->rdev_minor,
			      wanted->uid, wanted->gid);

	return fs_held_set(held, STAT_NAME, text, (size_t)length) < 0 ? -1 : 1;
}

/* --- symlinks --- */

ssize_t fs_fake_readlink_at(int dir_fd, const char *name, char *target, size_t size)
{
	const struct fs_root here = { .fd = dir_fd };

	return fs_fake_readlink(&here, name, target, size);
}

ssize_t fs_fake_readlink(const struct fs_root *root, const char *path, char *target, size_t size)
{
	ssize_t length = fs_readlink(root, path, target, size);

	if (length >= 0 || errno != EINVAL)
		return length;
	int fd = fs_open(root, path, O_RDONLY, 0);

	length = fd < 0 ? -1 : read(fd, target, size);
	fs_close(fd);
	if (length < 0)
		return -1;
	if ((size_t)length == size)
		return fs_fail(ENAMETOOLONG);
	target[length] = '\0';
	return memchr(target, '\0', (size_t)length) ? fs_fail(EBADMSG) : length;
}

/* --- ACLs --- */

static uint32_t number_at(const uint8_t *bytes)
{
	return (uint32_t)bytes_number(bytes, 4);
}

static int parse_acl(const uint8_t *bytes, size_t length, struct fs_acl *acl)
{
	uint8_t *const parts[ACL_PARTS] = { &acl->user_obj, &acl->group_obj, &acl->mask, &acl->other };

	if (length < 16 || (length - 16) % 8)
		return fs_fail(EBADMSG);
	for (int i = 0; i < ACL_PARTS; i++) {
		uint32_t bits = number_at(bytes + 4 * i);

		if (bits > 7 && bits != ACL_ABSENT_PART)
			return fs_fail(EBADMSG);
		*parts[i] = bits > 7 ? FS_ACL_ABSENT : (uint8_t)bits;
	}
	size_t count = (length - 16) / 8;

	acl->named = xcalloc(count, sizeof *acl->named);
	for (; acl->named_count < count; acl->named_count++) {
		const uint8_t *at = bytes + 16 + 8 * acl->named_count;
		uint32_t bits = number_at(at + 4);

		if ((bits & ~ACL_USER) > 7)
			return fs_fail(EBADMSG);
		acl->named[acl->named_count] = (struct fs_acl_entry){ number_at(at), bits & 7, (bits & ACL_USER) != 0 };
	}
	fs_acl_sort(acl);
	return 0;
}

int fs_fake_acl(const struct fs_held *held, bool is_default, struct fs_acl *acl)
{
	size_t length;
	void *value;

	*acl = (struct fs_acl)FS_ACL_NOTHING;
	if (fs_held_get(held, is_default ? DEFAULT_NAME : ACCESS_NAME, &value, &length) < 0)
		return errno == ENODATA || errno == ENOTSUP ? 0 : -1;
	int result = parse_acl(value, length, acl);

	free(value);
	if (result < 0)
		fs_acl_free(acl);
	return result;
}

int fs_fake_set_acl(const struct fs_held *held, bool is_default, const struct fs_acl *acl)
{
	const uint8_t parts[ACL_PARTS] = { acl->user_obj, acl->group_obj, acl->mask, acl->other };
	const char *name = is_default ? DEFAULT_NAME : ACCESS_NAME;

	if (fs_acl_is_empty(acl))
		return fs_held_replace(held, name, NULL, 0);
	uint8_t *bytes = xmalloc(16 + 8 * acl->named_count), *to = bytes;

	for (int i = 0; i < ACL_PARTS; i++)
		to = bytes_put(to, parts[i] == FS_ACL_ABSENT ? ACL_ABSENT_PART : parts[i], 4);
	for (size_t i = 0; i < acl->named_count; i++) {
		to = bytes_put(to, acl->named[i].id, 4);
		to = bytes_put(to, acl->named[i].bits | (acl->named[i].is_user ? ACL_USER : 0), 4);
	}
	return fs_held_replace(held, name, bytes, (size_t)(to - bytes));
}
