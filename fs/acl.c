/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ACLs of held objects, in the form of the kernel and in that of doc/protocol/05-xattrs-acls.md. */
#include "fs/acl.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fs/error.h"
#include "lib/alloc.h"

/* The kernel's form of an ACL, doc/protocol/05-xattrs-acls.md section 5.6.7. */
#define ACL_VERSION 2
#define ACL_HEADER_SIZE 4
#define ACL_ENTRY_SIZE 8
#define ACL_PARTS 4 /* besides named entries */
#define NO_ID 0xffffffffu
#define ACCESS_NAME "system.posix_acl_access"
#define DEFAULT_NAME "system.posix_acl_default"
enum acl_tag {
	TAG_USER_OBJ = 0x01, TAG_USER = 0x02, TAG_GROUP_OBJ = 0x04, TAG_GROUP = 0x08, TAG_MASK = 0x10, TAG_OTHER = 0x20,
};

static uint32_t little_endian(const uint8_t *bytes, int count)
{
	uint32_t value = 0;

	for (int i = 0; i < count; i++)
		value |= (uint32_t)bytes[i] << (8 * i);
	return value;
}

static void set_all(struct fs_acl *acl, uint8_t user, uint8_t group, uint8_t other)
{
	acl->user_obj = user;
	acl->group_obj = group;
	acl->mask = FS_ACL_ABSENT;
	acl->other = other;
	acl->named = NULL;
	acl->named_count = 0;
}

static uint8_t *acl_part(struct fs_acl *acl, unsigned tag)
{
	switch (tag) {
	case TAG_USER_OBJ:
		return &acl->user_obj;
	case TAG_GROUP_OBJ:
		return &acl->group_obj;
	case TAG_MASK:
		return &acl->mask;
	case TAG_OTHER:
		return &acl->other;
	default:
		return NULL;
	}
}

static bool add_acl_entry(struct fs_acl *acl, const uint8_t *bytes)
{
	unsigned tag = little_endian(bytes, 2), bits = little_endian(bytes + 2, 2);
	uint32_t id = little_endian(bytes + 4, 4);
	uint8_t *part = acl_part(acl, tag);

	if (bits > 7 || (!part && tag != TAG_USER && tag != TAG_GROUP))
		return false;
	if (part)
		*part = (uint8_t)bits;
	else
		acl->named[acl->named_count++] = (struct fs_acl_entry){ id, (uint8_t)bits, tag == TAG_USER };
	return true;
}

static int compare_acl_entries(const void *a, const void *b)
{
	const struct fs_acl_entry *x = a, *y = b;

	if (x->is_user != y->is_user)
		return x->is_user ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int parse_acl(struct fs_acl *acl, const uint8_t *bytes, size_t length)
{
	size_t count;

	if (length < ACL_HEADER_SIZE || (length - ACL_HEADER_SIZE) % ACL_ENTRY_SIZE
	    || little_endian(bytes, ACL_HEADER_SIZE) != ACL_VERSION)
		return fs_fail(EINVAL);
	count = (length - ACL_HEADER_SIZE) / ACL_ENTRY_SIZE;
	set_all(acl, FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT);
	acl->named = xcalloc(count, sizeof *acl->named);
	for (size_t i = 0; i < count; i++) {
		if (!add_acl_entry(acl, bytes + ACL_HEADER_SIZE + i * ACL_ENTRY_SIZE)) {
			fs_acl_free(acl);
			return fs_fail(EINVAL);
		}
	}
	fs_acl_sort(acl);
	return 0;
}

/* What an object has that carries no ACL of this kind: its mode, or no default. */
static void acl_without_attribute(struct fs_acl *acl, uint32_t mode, bool is_default)
{
	if (is_default)
		set_all(acl, FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT);
	else
		set_all(acl, mode >> 6 & 7, mode >> 3 & 7, mode & 7);
}

int fs_held_acl(const struct fs_held *held, bool is_default, struct fs_acl *acl)
{
	void *value;
	size_t length;

	acl_without_attribute(acl, held->st.mode, is_default);
	if (S_ISLNK(held->st.mode) || (is_default && !S_ISDIR(held->st.mode)))
		return 0;
	if (fs_held_get(held, is_default ? DEFAULT_NAME : ACCESS_NAME, &value, &length) < 0)
		return errno == ENODATA || errno == ENOTSUP || errno == ENOSYS ? 0 : -1;
	int result = parse_acl(acl, value, length);

	free(value);
	return result;
}

int fs_acl_read(const struct fs_root *root, const char *path, bool is_default, struct fs_acl *acl)
{
	struct fs_held held;

	set_all(acl, FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT);
	if (fs_hold(&held, root, path) < 0) {
		struct fs_stat st;
		if (errno != ENOTSUP || fs_lstat(root, path, &st) < 0)
			return -1;
		acl_without_attribute(acl, st.mode, is_default);
		return 0;
	}
	int result = fs_held_acl(&held, is_default, acl);

	fs_release(&held);
	return result;
}

/* --- setting --- */

static uint8_t *put_number(uint8_t *to, uint32_t value, int count)
{
	for (int i = 0; i < count; i++)
		*to++ = (uint8_t)(value >> (8 * i));
	return to;
}

static uint8_t *put_entry(uint8_t *to, enum acl_tag tag, unsigned bits, uint32_t id)
{
	if (bits == FS_ACL_ABSENT)
		return to;
	to = put_number(to, tag, 2);
	to = put_number(to, bits, 2);
	return put_number(to, id, 4);
}

/* In the order that the kernel wants. */
static uint8_t *put_acl(uint8_t *to, const struct fs_acl *acl)
{
	size_t i = 0;

	to = put_number(to, ACL_VERSION, ACL_HEADER_SIZE);
	to = put_entry(to, TAG_USER_OBJ, acl->user_obj, NO_ID);
	for (; i < acl->named_count && acl->named[i].is_user; i++)
		to = put_entry(to, TAG_USER, acl->named[i].bits, acl->named[i].id);
	to = put_entry(to, TAG_GROUP_OBJ, acl->group_obj, NO_ID);
	for (; i < acl->named_count; i++)
		to = put_entry(to, TAG_GROUP, acl->named[i].bits, acl->named[i].id);
	to = put_entry(to, TAG_MASK, acl->mask, NO_ID);
	return put_entry(to, TAG_OTHER, acl->other, NO_ID);
}

int fs_held_set_acl(const struct fs_held *held, bool is_default, const struct fs_acl *acl)
{
	const char *name = is_default ? DEFAULT_NAME : ACCESS_NAME;

	if (is_default && fs_acl_is_empty(acl)) {
		int result = fs_held_remove(held, name);

		return result < 0 && (errno == ENODATA || errno == ENOTSUP) ? 0 : result;
	}
	uint8_t *bytes = xmalloc(ACL_HEADER_SIZE + (ACL_PARTS + acl->named_count) * ACL_ENTRY_SIZE);
	int result = fs_held_set(held, name, bytes, (size_t)(put_acl(bytes, acl) - bytes));
	int error = errno;

	free(bytes);
	errno = error;
	return result;
}

/* --- what an ACL says --- */

bool fs_acl_is_empty(const struct fs_acl *acl)
{
	return acl->user_obj == FS_ACL_ABSENT && acl->group_obj == FS_ACL_ABSENT && acl->mask == FS_ACL_ABSENT
	       && acl->other == FS_ACL_ABSENT && !acl->named_count;
}

void fs_acl_sort(struct fs_acl *acl)
{
	if (acl->named_count > 1)
		qsort(acl->named, acl->named_count, sizeof *acl->named, compare_acl_entries);
}

void fs_acl_free(struct fs_acl *acl)
{
	free(acl->named);
	acl->named = NULL;
	acl->named_count = 0;
}
