/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Extended attributes of held objects; their ACLs, in the form of the kernel and in that of doc/protocol/05-xattrs-acls.md. */
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
#include "fs/root.h"
#include "fs/walk.h"
#include "lib/alloc.h"
#include "lib/bytes.h"
#include "lib/vec.h"

#define RACE_ATTEMPTS 8 /* an attribute may grow between asking for its length and reading it */

void fs_release(struct fs_held *held)
{
	if (held->fd >= 0 && !held->is_borrowed)
		fs_close(held->fd);
	held->fd = -1;
}

/* The f* calls refuse O_PATH descriptors, and nothing but O_PATH may hold symlinks and devices: then the object is named
 * through proc. Without proc regular files and directories are opened, the others have no attributes. */
static int hold_opened(struct fs_held *held, const struct fs_root *root, const char *path)
{
	struct fs_stat opened;

	if (!S_ISREG(held->st.mode) && !S_ISDIR(held->st.mode))
		return fs_fail(ENOTSUP);
	int fd = fs_open(root, path, O_RDONLY, 0);

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

int fs_hold(struct fs_held *held, const struct fs_root *root, const char *path, bool follow)
{
	held->fd = fs_open(root, path, O_PATH | (follow ? FS_FOLLOW : 0), 0);
	held->is_borrowed = false;
	if (held->fd < 0)
		return -1;
	held->by_path = fs_proc_path(held->fd, held->path);
	if (fs_stat_at_fd(held->fd, &held->st) == 0 && (held->by_path || hold_opened(held, root, path) == 0))
		return 0;
	fs_release(held);
	return -1;
}

int fs_hold_at(struct fs_held *held, int dir_fd, const char *name)
{
	const struct fs_root here = { .fd = dir_fd };

	return fs_hold(held, &here, name, false);
}

int fs_hold_open(struct fs_held *held, int fd)
{
	held->fd = fd;
	held->is_borrowed = true;
	held->by_path = false;
	return fs_stat_at_fd(fd, &held->st);
}

/* The value of an attribute; name NULL: all names, each with its NUL. */
static ssize_t get_value(const struct fs_held *held, const char *name, void *value, size_t size)
{
	if (!name)
		return held->by_path ? listxattr(held->path, value, size) : flistxattr(held->fd, value, size);
	return held->by_path ? getxattr(held->path, name, value, size) : fgetxattr(held->fd, name, value, size);
}

int fs_held_get(const struct fs_held *held, const char *name, void **value, size_t *length)
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
int fs_held_xattrs(const struct fs_held *held, struct fs_xattr_list *list)
{
	VEC(struct fs_xattr) items = VEC_INIT;
	void *names;
	size_t length;
	int result = 0;

	list->items = NULL;
	list->count = 0;
	if (fs_held_get(held, NULL, &names, &length) < 0)
		return errno == ENOTSUP ? 0 : -1;
	for (char *name = names; result == 0 && name < (char *)names + length; name += strlen(name) + 1) {
		struct fs_xattr item = { .name = name };
		if (fs_held_get(held, name, &item.value, &item.length) == 0) {
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

int fs_held_set(const struct fs_held *held, const char *name, const void *value, size_t length)
{
	return held->by_path ? setxattr(held->path, name, value, length, 0) : fsetxattr(held->fd, name, value, length, 0);
}

int fs_held_remove(const struct fs_held *held, const char *name)
{
	return held->by_path ? removexattr(held->path, name) : fremovexattr(held->fd, name);
}

int fs_held_replace(const struct fs_held *held, const char *name, void *value, size_t length)
{
	int result = value ? fs_held_set(held, name, value, length) : fs_held_remove(held, name), error = errno;

	if (!value && result < 0 && (error == ENODATA || error == ENOTSUP))
		result = 0;
	free(value);
	errno = error;
	return result;
}

int fs_held_chmod(const struct fs_held *held, mode_t mode)
{
	return held->by_path ? chmod(held->path, mode) : fchmod(held->fd, mode);
}

int fs_xattr_read(const struct fs_root *root, const char *path, struct fs_xattr_list *list)
{
	struct fs_held held;

	list->items = NULL;
	list->count = 0;
	if (fs_hold(&held, root, path, false) < 0)
		return errno == ENOTSUP ? 0 : -1;
	int result = fs_held_xattrs(&held, list);

	fs_release(&held);
	return result;
}

int fs_xattr_get(const struct fs_root *root, const char *path, const char *name, void **value, size_t *length)
{
	struct fs_held held;

	if (fs_hold(&held, root, path, false) < 0)
		return -1;
	int result = fs_held_get(&held, name, value, length);

	fs_release(&held);
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

/* --- ACLs --- */

/* The kernel's form of an ACL, doc/protocol/05-xattrs-acls.md section 5.6.7. */
#define ACL_VERSION 2
#define ACL_HEADER_SIZE 4
#define ACL_ENTRY_SIZE 8
#define ACL_PARTS 4 /* besides named entries */
#define NO_ID 0xffffffffu
#define ACCESS_NAME "system.posix_acl_access"
#define DEFAULT_NAME "system.posix_acl_default"
enum acl_tag {
	TAG_USER_OBJ = 0x01,
	TAG_USER = 0x02,
	TAG_GROUP_OBJ = 0x04,
	TAG_GROUP = 0x08,
	TAG_MASK = 0x10,
	TAG_OTHER = 0x20,
};

static bool add_acl_entry(struct fs_acl *acl, const uint8_t *bytes)
{
	unsigned tag = (unsigned)bytes_number(bytes, 2), bits = (unsigned)bytes_number(bytes + 2, 2);
	uint32_t id = (uint32_t)bytes_number(bytes + 4, 4);
	uint8_t *part = tag == TAG_USER_OBJ ? &acl->user_obj : tag == TAG_GROUP_OBJ ? &acl->group_obj : NULL;

	if (tag == TAG_MASK || tag == TAG_OTHER)
		part = tag == TAG_MASK ? &acl->mask : &acl->other;
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
	    || bytes_number(bytes, ACL_HEADER_SIZE) != ACL_VERSION)
		return fs_fail(EINVAL);
	count = (length - ACL_HEADER_SIZE) / ACL_ENTRY_SIZE;
	*acl = (struct fs_acl)FS_ACL_NOTHING;
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
	*acl = (struct fs_acl)FS_ACL_NOTHING;
	if (is_default)
		return;
	acl->user_obj = mode >> 6 & 7;
	acl->group_obj = mode >> 3 & 7;
	acl->other = mode & 7;
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

	*acl = (struct fs_acl)FS_ACL_NOTHING;
	if (fs_hold(&held, root, path, false) < 0) {
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

static uint8_t *put_entry(uint8_t *to, enum acl_tag tag, unsigned bits, uint32_t id)
{
	return bits == FS_ACL_ABSENT ? to : bytes_put(bytes_put(bytes_put(to, tag, 2), bits, 2), id, 4);
}

int fs_held_set_acl(const struct fs_held *held, bool is_default, const struct fs_acl *acl)
{
	const char *name = is_default ? DEFAULT_NAME : ACCESS_NAME;

	size_t i = 0;

	if (is_default && fs_acl_is_empty(acl))
		return fs_held_replace(held, name, NULL, 0);
	uint8_t *bytes = xmalloc(ACL_HEADER_SIZE + (ACL_PARTS + acl->named_count) * ACL_ENTRY_SIZE);
	uint8_t *to = bytes_put(bytes, ACL_VERSION, ACL_HEADER_SIZE);

	/* In the order that the kernel wants. */
	to = put_entry(to, TAG_USER_OBJ, acl->user_obj, NO_ID);
	for (; i < acl->named_count && acl->named[i].is_user; i++)
		to = put_entry(to, TAG_USER, acl->named[i].bits, acl->named[i].id);
	to = put_entry(to, TAG_GROUP_OBJ, acl->group_obj, NO_ID);
	for (; i < acl->named_count; i++)
		to = put_entry(to, TAG_GROUP, acl->named[i].bits, acl->named[i].id);
	to = put_entry(to, TAG_MASK, acl->mask, NO_ID);
	to = put_entry(to, TAG_OTHER, acl->other, NO_ID);
	return fs_held_replace(held, name, bytes, (size_t)(to - bytes));
}

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
