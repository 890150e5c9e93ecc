/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Extended attributes of held objects. */
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

/* The f* calls refuse O_PATH descriptors, and nothing but O_PATH may hold symlinks and devices: then the object is named
 * through proc. Without proc regular files and directories are opened, the others have no attributes. */
static int hold_opened(struct fs_held *held, const struct fs_root *root, const char *path)
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

/* `fd`: opened with O_PATH, or -1. Taken over. */
static int hold_found(struct fs_held *held, int fd, const struct fs_root *root, const char *path)
{
	int error;

	held->fd = fd;
	held->is_borrowed = false;
	if (fd < 0)
		return -1;
	held->by_path = fs_proc_path(held->fd, held->path);
	if (fs_stat_at_fd(held->fd, &held->st) == 0 && (held->by_path || hold_opened(held, root, path) == 0))
		return 0;
	error = errno;
	close(held->fd);
	held->fd = -1;
	return fs_fail(error);
}

int fs_hold(struct fs_held *held, const struct fs_root *root, const char *path)
{
	return hold_found(held, fs_open(root, path, O_PATH, 0), root, path);
}

int fs_hold_follow(struct fs_held *held, const struct fs_root *root, const char *path)
{
	return hold_found(held, fs_open_follow(root, path, O_PATH, 0), root, path);
}

int fs_hold_at(struct fs_held *held, int dir_fd, const char *name)
{
	const struct fs_root here = { .fd = dir_fd };

	return fs_hold(held, &here, name);
}

int fs_hold_open(struct fs_held *held, int fd)
{
	held->fd = fd;
	held->is_borrowed = true;
	held->by_path = false;
	return fs_stat_at_fd(fd, &held->st);
}

void fs_release(struct fs_held *held)
{
	if (held->fd >= 0 && !held->is_borrowed)
		fs_close(held->fd);
	held->fd = -1;
}

static ssize_t list_names(const struct fs_held *held, char *names, size_t size)
{
	return held->by_path ? listxattr(held->path, names, size) : flistxattr(held->fd, names, size);
}

static ssize_t get_value(const struct fs_held *held, const char *name, void *value, size_t size)
{
	return held->by_path ? getxattr(held->path, name, value, size) : fgetxattr(held->fd, name, value, size);
}

/* All names, each with its NUL, malloc'ed. */
static int read_names(const struct fs_held *held, char **names, size_t *length)
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
	char *names;
	size_t length;
	int result = 0;

	list->items = NULL;
	list->count = 0;
	if (read_names(held, &names, &length) < 0)
		return errno == ENOTSUP ? 0 : -1;
	for (char *name = names; result == 0 && name < names + length; name += strlen(name) + 1) {
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

int fs_held_chmod(const struct fs_held *held, mode_t mode)
{
	return held->by_path ? chmod(held->path, mode) : fchmod(held->fd, mode);
}

int fs_xattr_read(const struct fs_root *root, const char *path, struct fs_xattr_list *list)
{
	struct fs_held held;

	list->items = NULL;
	list->count = 0;
	if (fs_hold(&held, root, path) < 0)
		return errno == ENOTSUP ? 0 : -1;
	int result = fs_held_xattrs(&held, list);

	fs_release(&held);
	return result;
}

int fs_xattr_get(const struct fs_root *root, const char *path, const char *name, void **value, size_t *length)
{
	struct fs_held held;

	if (fs_hold(&held, root, path) < 0)
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
