/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Noted directories, found by their paths. */
#include "fs/anchors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/owner.h"
#include "lib/hashmap.h"
#include "lib/vec.h"

struct anchor {
	char *path;
	uint64_t dev, ino;
};

struct fs_anchors {
	VEC(struct anchor) items;
	struct hashmap by_path; /* hash of the path -> number in items */
	size_t held;            /* the number of the directory that is open as `fd` */
	int fd;                 /* -1: none */
};

struct fs_anchors *fs_anchors_new(void)
{
	struct fs_anchors *anchors = xcalloc(1, sizeof *anchors);

	anchors->fd = -1;
	return anchors;
}

static void let_go(struct fs_anchors *anchors)
{
	if (anchors->fd >= 0)
		close(anchors->fd);
	anchors->fd = -1;
}

void fs_anchors_free(struct fs_anchors *anchors)
{
	if (!anchors)
		return;
	let_go(anchors);
	for (size_t i = 0; i < anchors->items.count; i++)
		free(anchors->items.items[i].path);
	vec_free(&anchors->items);
	hashmap_free(&anchors->by_path);
	free(anchors);
}

/* The number of the anchor `path`, of `length` bytes, or items.count. *attempt is where it is or would be in the map. */
static size_t find(struct fs_anchors *anchors, const char *path, size_t length, uint64_t *hash, uint64_t *attempt)
{
	*hash = hashmap_hash(&anchors->by_path, path, length);
	for (*attempt = 0;; ++*attempt) {
		const uint64_t *number = hashmap_get(&anchors->by_path, *hash, *attempt);

		if (!number)
			return anchors->items.count;
		const char *own = anchors->items.items[*number].path;

		if (!strncmp(own, path, length) && !own[length])
			return *number;
	}
}

/* Open, and what it is. */
static int open_directory(const struct fs_root *root, const char *path, int flags, struct stat *st)
{
	flags |= O_PATH | O_DIRECTORY;
	int fd = root->owned ? fs_owner_open(root->fd, path, flags, 0) : openat(root->fd, path, flags | O_CLOEXEC);

	if (fd >= 0 && fstat(fd, st) < 0) {
		fs_close(fd);
		fd = -1;
	}
	return fd;
}

int fs_anchors_add(struct fs_anchors *anchors, const struct fs_root *root, const char *path, bool follow)
{
	uint64_t hash, attempt;
	struct stat st;
	bool inserted;

	if (find(anchors, path, strlen(path), &hash, &attempt) < anchors->items.count)
		return 0;
	int fd = open_directory(root, path, follow ? 0 : O_NOFOLLOW, &st);

	if (fd < 0)
		return -1;
	struct anchor anchor = { .path = xstrdup(path), .dev = st.st_dev, .ino = st.st_ino };

	hashmap_put(&anchors->by_path, hash, attempt, anchors->items.count, &inserted);
	vec_push(&anchors->items, anchor);
	let_go(anchors);
	anchors->held = anchors->items.count - 1;
	anchors->fd = fd;
	return 0;
}

/* The directory of an anchor, if it still is what was noted. */
static int enter(struct fs_anchors *anchors, const struct fs_root *root, size_t number)
{
	const struct anchor *anchor = &anchors->items.items[number];
	bool is_held = anchors->fd >= 0 && anchors->held == number;
	struct stat st;

	if (is_held && !root->owned)
		return anchors->fd;
	int fd = open_directory(root, anchor->path, 0, &st);

	if (fd < 0)
		return -1;
	if (st.st_dev != anchor->dev || st.st_ino != anchor->ino) {
		close(fd);
		return fs_fail(ELOOP);
	}
	let_go(anchors);
	anchors->held = number;
	return anchors->fd = fd;
}

bool fs_anchors_begin(struct fs_anchors *anchors, const struct fs_root *root, bool follow, const char **path, int *fd)
{
	size_t length = strlen(*path);
	uint64_t hash, attempt;

	if (!follow)
		while (length && (*path)[length - 1] != '/')
			length--;
	for (; length; length--) {
		if ((*path)[length] && (*path)[length] != '/')
			continue;
		size_t number = find(anchors, *path, length, &hash, &attempt);

		if (number == anchors->items.count)
			continue;
		*path += length;
		*path += strspn(*path, "/");
		if (!**path)
			*path = ".";
		*fd = enter(anchors, root, number);
		return true;
	}
	return false;
}
