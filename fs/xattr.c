/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading extended attributes and ACLs of held objects. */
#include "fs/xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/proc.h"
#include "fs/root.h"
#include "lib/alloc.h"
#include "lib/vec.h"

#define RACE_ATTEMPTS 8 /* an attribute may grow between asking for its length and reading it */

/*
 * A held object. The f* calls refuse O_PATH descriptors, and nothing but O_PATH may hold symlinks and devices: then the object
 * is named through proc. Without proc regular files and directories are opened, the others have no attributes.
 */
struct held {
	int fd;
	bool by_path; /* use `path`, else fd */
	char path[FS_PROC_PATH_SIZE];
	struct fs_stat st;
};

static int hold_opened(struct held *held, const struct fs_root *root, const char *path)
{
	struct fs_stat opened;
	int fd;

	if (!S_ISREG(held->st.mode) && !S_ISDIR(held->st.mode))
		return fs_fail(ENOTSUP);
	fd = fs_open(root, path, O_RDONLY, 0);
	if (fd < 0)
		return -1;
	if (fs_stat_at_fd(fd, &opened) < 0 || opened.ino != held->st.ino || opened.dev != held->st.dev) {
		close(fd);
		return fs_fail(ENOENT); /* replaced meanwhile: what was looked at is gone */
	}
	close(held->fd);
	held->fd = fd;
	return 0;
}

static int hold(struct held *held, const struct fs_root *root, const char *path)
{
	int error;

	held->fd = fs_open(root, path, O_PATH, 0);
	if (held->fd < 0)
		return -1;
	held->by_path = fs_proc_path(held->fd, held->path);
	if (fs_stat_at_fd(held->fd, &held->st) == 0 && (held->by_path || hold_opened(held, root, path) == 0))
		return 0;
	error = errno;
	close(held->fd);
	return fs_fail(error);
}

static void release(struct held *held)
{
	int error = errno;

	close(held->fd);
	errno = error;
}

static ssize_t list_names(const struct held *held, char *names, size_t size)
{
	return held->by_path ? listxattr(held->path, names, size) : flistxattr(held->fd, names, size);
}

static ssize_t get_value(const struct held *held, const char *name, void *value, size_t size)
{
	return held->by_path ? getxattr(held->path, name, value, size) : fgetxattr(held->fd, name, value, size);
}

/* All names, each with its NUL, malloc'ed. */
static int read_names(const struct held *held, char **names, size_t *length)
{
	for (int i = 0; i < RACE_ATTEMPTS; i++) {
		ssize_t size = list_names(held, NULL, 0);
		if (size < 0)
			return -1;
		*names = xmalloc((size_t)size);
		size = size ? list_names(held, *names, (size_t)size) : 0;
		if (size >= 0) {
			*length = (size_t)size;
			return 0;
		}
		free(*names);
		if (errno != ERANGE)
			return -1;
	}
	return fs_fail(EBUSY);
}

static int read_value(const struct held *held, const char *name, void **value, size_t *length)
{
	for (int i = 0; i < RACE_ATTEMPTS; i++) {
		ssize_t size = get_value(held, name, NULL, 0);
		if (size < 0)
			return -1;
		*value = xmalloc((size_t)size);
		size = size ? get_value(held, name, *value, (size_t)size) : 0;
		if (size >= 0) {
			*length = (size_t)size;
			return 0;
		}
		free(*value);
		if (errno != ERANGE)
			return -1;
	}
	return fs_fail(EBUSY);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct fs_xattr *)a)->name, ((const struct fs_xattr *)b)->name);
}

/* A name that has gone since it was listed is no error. */
static int read_all(const struct held *held, struct fs_xattr_list *list)
{
	VEC(struct fs_xattr) items = VEC_INIT;
	char *names;
	size_t length;
	int result = 0;

	if (read_names(held, &names, &length) < 0)
		return errno == ENOTSUP ? 0 : -1;
	for (char *name = names; result == 0 && name < names + length; name += strlen(name) + 1) {
		struct fs_xattr item = { .name = name };
		if (read_value(held, name, &item.value, &item.length) == 0) {
			item.name = xstrdup(name);
			vec_push(&items, item);
		} else if (errno != ENODATA) {
			result = -1;
		}
	}
	int error = errno;

	free(names);
	list->items = items.items;
	list->count = items.count;
	if (result < 0)
		fs_xattr_list_free(list);
	else if (list->count > 1)
		qsort(list->items, list->count, sizeof *list->items, compare_names);
	errno = error;
	return result;
}

int fs_xattr_read(const struct fs_root *root, const char *path, struct fs_xattr_list *list)
{
	struct held held;

	list->items = NULL;
	list->count = 0;
	if (hold(&held, root, path) < 0)
		return errno == ENOTSUP ? 0 : -1;
	int result = read_all(&held, list);

	release(&held);
	return result;
}

int fs_xattr_get(const struct fs_root *root, const char *path, const char *name, void **value, size_t *length)
{
	struct held held;

	if (hold(&held, root, path) < 0)
		return -1;
	int result = read_value(&held, name, value, length);

	release(&held);
	return result;
}

void fs_xattr_list_free(struct fs_xattr_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].name);
		free(list->items[i].value);
	}
	free(list->items);
	list->items = NULL;
	list->count = 0;
}

/* The kernel's form of an ACL, protocol/05 section 5.6.7. */
#define ACL_VERSION 2
#define ACL_HEADER_SIZE 4
#define ACL_ENTRY_SIZE 8
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
	if (acl->named_count > 1)
		qsort(acl->named, acl->named_count, sizeof *acl->named, compare_acl_entries);
	return 0;
}

/* What an object has that carries no ACL of this kind: its mode, or no default. */
static void acl_without_attribute(struct fs_acl *acl, uint32_t mode, int default_acl)
{
	if (default_acl)
		set_all(acl, FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT);
	else
		set_all(acl, mode >> 6 & 7, mode >> 3 & 7, mode & 7);
}

static int read_acl(const struct held *held, int default_acl, struct fs_acl *acl)
{
	void *value;
	size_t length;

	acl_without_attribute(acl, held->st.mode, default_acl);
	if (S_ISLNK(held->st.mode) || (default_acl && !S_ISDIR(held->st.mode)))
		return 0;
	if (read_value(held, default_acl ? "system.posix_acl_default" : "system.posix_acl_access", &value, &length) < 0)
		return errno == ENODATA || errno == ENOTSUP || errno == ENOSYS ? 0 : -1;
	int result = parse_acl(acl, value, length);

	free(value);
	return result;
}

int fs_acl_read(const struct fs_root *root, const char *path, int default_acl, struct fs_acl *acl)
{
	struct held held;

	set_all(acl, FS_ACL_ABSENT, FS_ACL_ABSENT, FS_ACL_ABSENT);
	if (hold(&held, root, path) < 0) {
		struct fs_stat st;
		if (errno != ENOTSUP || fs_lstat(root, path, &st) < 0)
			return -1;
		acl_without_attribute(acl, st.mode, default_acl);
		return 0;
	}
	int result = read_acl(&held, default_acl, acl);

	release(&held);
	return result;
}

void fs_acl_free(struct fs_acl *acl)
{
	free(acl->named);
	acl->named = NULL;
	acl->named_count = 0;
}
