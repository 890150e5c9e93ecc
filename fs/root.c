/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Confined paths: one openat2 where the kernel has it, else the walk of fs/walk.c; directories that have been noted, found by
 * their paths; objects that are changed by their names; and paths as text: clean-up of a peer's path, and whether a symlink
 * target may lead out of the transfer.
 */
#include "fs/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/file.h"
#include "fs/walk.h"
#include "lib/hashmap.h"
#include "lib/vec.h"

/* --- noted directories --- */

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
	fs_close(anchors->fd);
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

	if (find(anchors, path, strlen(path), &hash, &attempt) < anchors->items.count)
		return 0;
	int fd = open_directory(root, path, follow ? 0 : O_NOFOLLOW, &st);

	if (fd < 0)
		return -1;
	struct anchor anchor = { .path = xstrdup(path), .dev = st.st_dev, .ino = st.st_ino };

	hashmap_put(&anchors->by_path, hash, attempt, anchors->items.count, NULL);
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

/* Where the resolution of *path begins if it leads below a noted directory; only with `follow` also if it names that itself.
 * True: *fd is that directory, not the caller's to close, or -1 with errno, and *path is what is left of the path. With
 * root->owned the way there must consist of links of root and of the effective user. */
static bool anchors_begin(struct fs_anchors *anchors, const struct fs_root *root, bool follow, const char **path, int *fd)
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

/* --- opening --- */

#define RACE_RETRIES 16

static int sys_openat2(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
#ifdef SYS_openat2
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags,
		.mode = flags & O_CREAT ? mode & 07777 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
#else
	(void)dir_fd, (void)path, (void)flags, (void)mode, (void)resolve;
	return fs_fail(ENOSYS);
#endif
}

/* The flags that every open gets. openat2 refuses what O_PATH would merely ignore. */
static int complete_flags(int flags)
{
	flags |= O_CLOEXEC;
	if (flags & O_PATH)
		return flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return flags | O_LARGEFILE | (flags & O_DIRECTORY ? 0 : O_NONBLOCK);
}

/* A component that no resolver needs to look at: opening it without following it is all there is to do. */
static bool is_single_name(const char *path)
{
	return !strchr(path, '/') && strcmp(path, "..");
}

static int open_by_walk(const struct fs_root *root, const char *path, int flags, mode_t mode, bool follow)
{
	struct fs_walk_end end;

	if (fs_walk(root->fd, path, FS_WALK_BENEATH, follow, &end) < 0)
		return -1;
	return fs_walk_open(&end, flags, mode);
}

/* EAGAIN: something was renamed while a ".." was resolved. The walk is not troubled by that, so it has the last word. */
static int open_by_kernel(const struct fs_root *root, const char *path, int flags, mode_t mode, bool follow)
{
	for (int i = 0; i < RACE_RETRIES; i++) {
		int fd = sys_openat2(root->fd, path, flags, mode, 0);

		if (fd >= 0)
			return fd;
		if (errno == EXDEV)
			return fs_fail(ELOOP);
		if (errno == ENOSYS)
			break;
		if (errno != EAGAIN)
			return -1;
	}
	return open_by_walk(root, path, flags, mode, follow);
}

/* What `path` leads to by the rules of the root, wherever that lies. */
static int open_found(const struct fs_root *root, const char *path, int flags, mode_t mode, bool follow)
{
	struct fs_root start = *root;

	if (root->fd < 0)
		return fs_fail(root->error ? root->error : EBADF);
	if (root->anchors && !root->trusting && anchors_begin(root->anchors, root, follow, &path, &start.fd)) {
		if (start.fd < 0)
			return -1;
		start.owned = false;
	}
	if (start.trusting || (!follow && is_single_name(path)))
		return openat(start.fd, path, flags, mode);
	if (start.owned) {
		/* A way without any symlink is as good as one with trusted ones, and one call. The others are walked. */
		int fd = start.no_openat2 ? -1 : sys_openat2(start.fd, path, flags, mode, RESOLVE_NO_SYMLINKS);

		return fd >= 0 ? fd : fs_owner_open(start.fd, path, flags, mode);
	}
	if (start.no_openat2)
		return open_by_walk(&start, path, flags, mode, follow);
	return open_by_kernel(&start, path, flags, mode, follow);
}

int fs_open(const struct fs_root *root, const char *path, int flags, mode_t mode)
{
	bool follow = flags & FS_FOLLOW;

	flags = complete_flags(flags & ~FS_FOLLOW) | (follow ? 0 : O_NOFOLLOW);
	int fd = open_found(root, *path ? path : ".", flags, mode, follow);

	if (fd < 0 || !root->confine || fs_leads_inside(fd, root->confine))
		return fd;
	close(fd);
	return fs_fail(ELOOP);
}

/* It can be looked at without being opened, in root->fd: nothing but its name counts. */
static bool is_plain(const struct fs_root *root, const char *path, bool follow)
{
	return root->fd >= 0 && !root->confine && *path && (root->trusting || (!follow && is_single_name(path)));
}

int fs_root_open(struct fs_root *root, const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	fs_root_adopt(root, fd);
	return 0;
}

void fs_root_adopt(struct fs_root *root, int fd)
{
	int probe = sys_openat2(fd, ".", O_PATH | O_CLOEXEC, 0, 0);

	*root = (struct fs_root){ .fd = fd };
	/* EPERM is what container sandboxes answer to system calls that they do not know. */
	root->no_openat2 = probe < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == E2BIG);
	fs_close(probe);
}

int fs_root_open_below(struct fs_root *root, const struct fs_root *parent, const char *path)
{
	int fd = fs_open(parent, path, O_PATH | O_DIRECTORY | FS_FOLLOW, 0);

	if (fd < 0)
		return -1;
	*root = *parent;
	root->fd = fd;
	root->anchors = NULL;
	return 0;
}

void fs_root_close(struct fs_root *root)
{
	fs_close(root->fd);
	root->fd = -1;
}

int fs_opendir(const struct fs_root *root, const char *path)
{
	return fs_open(root, path, O_RDONLY | O_DIRECTORY | FS_FOLLOW, 0);
}

static void fill(struct fs_stat *out, const struct stat *st)
{
	out->mode = st->st_mode;
	out->uid = st->st_uid;
	out->gid = st->st_gid;
	out->nlink = (uint32_t)st->st_nlink;
	out->size = (uint64_t)st->st_size;
	out->blocks = (uint64_t)st->st_blocks;
	out->mtime = st->st_mtim.tv_sec;
	out->mtime_nsec = (uint32_t)st->st_mtim.tv_nsec;
	out->atime = st->st_atim.tv_sec;
	out->atime_nsec = (uint32_t)st->st_atim.tv_nsec;
	out->ctime = st->st_ctim.tv_sec;
	out->ctime_nsec = (uint32_t)st->st_ctim.tv_nsec;
	out->rdev_major = major(st->st_rdev);
	out->rdev_minor = minor(st->st_rdev);
	out->dev = st->st_dev;
	out->ino = st->st_ino;
}

/* fstatat rather than statx: about 5 % cheaper per call, and on network file systems not older than what lstat shows. */
static int stat_name(int dir_fd, const char *name, int flags, struct fs_stat *st)
{
	struct stat raw;

	if (fstatat(dir_fd, name, &raw, flags | AT_NO_AUTOMOUNT) < 0)
		return -1;
	fill(st, &raw);
	return 0;
}

static int stat_below(const struct fs_root *root, const char *path, bool follow, struct fs_stat *st)
{
	if (!*path)
		path = ".";
	if (is_plain(root, path, follow))
		return stat_name(root->fd, path, follow ? 0 : AT_SYMLINK_NOFOLLOW, st);
	int fd = fs_open(root, path, O_PATH | (follow ? FS_FOLLOW : 0), 0), result = fd < 0 ? -1 : fs_stat_at_fd(fd, st);

	fs_close(fd);
	return result;
}

int fs_lstat(const struct fs_root *root, const char *path, struct fs_stat *st)
{
	return stat_below(root, path, false, st);
}

int fs_stat_follow(const struct fs_root *root, const char *path, struct fs_stat *st)
{
	return stat_below(root, path, true, st);
}

/* `name` may be "" for a held symlink, where the kernel says ENOENT for "not a symlink". */
static ssize_t read_target(int fd, const char *name, char *target, size_t size)
{
	ssize_t length = readlinkat(fd, name, target, size);

	if (length < 0)
		return !*name && errno == ENOENT ? fs_fail(EINVAL) : -1;
	if ((size_t)length >= size)
		return fs_fail(ENAMETOOLONG);
	target[length] = '\0';
	return length;
}

ssize_t fs_readlink(const struct fs_root *root, const char *path, char *target, size_t size)
{
	if (is_plain(root, path, false) && is_single_name(path))
		return read_target(root->fd, path, target, size);
	int fd = fs_open(root, path, O_PATH, 0);
	ssize_t length = fd < 0 ? -1 : read_target(fd, "", target, size);

	fs_close(fd);
	return length;
}

int fs_lstat_at(int dir_fd, const char *name, struct fs_stat *st)
{
	return stat_name(dir_fd, name, AT_SYMLINK_NOFOLLOW, st);
}

int fs_stat_at_fd(int fd, struct fs_stat *st)
{
	struct stat raw;

	if (fstat(fd, &raw) < 0)
		return -1;
	fill(st, &raw);
	return 0;
}

int fs_open_at(int dir_fd, const char *name, int flags, mode_t mode)
{
	return openat(dir_fd, name, complete_flags(flags) | O_NOFOLLOW, mode);
}

ssize_t fs_readlink_at(int dir_fd, const char *name, char *target, size_t size)
{
	return read_target(dir_fd, name, target, size);
}

int fs_mkdir_at(int dir_fd, const char *name, mode_t mode)
{
	return mkdirat(dir_fd, name, mode);
}

int fs_symlink_at(const char *target, int dir_fd, const char *name)
{
	return symlinkat(target, dir_fd, name);
}

int fs_link_at(int old_dir_fd, const char *old_name, int dir_fd, const char *name)
{
	return linkat(old_dir_fd, old_name, dir_fd, name, 0);
}

int fs_rename_at(int old_dir_fd, const char *old_name, int dir_fd, const char *name)
{
	return renameat(old_dir_fd, old_name, dir_fd, name);
}

int fs_unlink_at(int dir_fd, const char *name)
{
	return unlinkat(dir_fd, name, 0);
}

int fs_rmdir_at(int dir_fd, const char *name)
{
	return unlinkat(dir_fd, name, AT_REMOVEDIR);
}

int fs_mknod_at(int dir_fd, const char *name, mode_t mode, uint32_t major, uint32_t minor)
{
	return mknodat(dir_fd, name, mode, makedev(major, minor));
}

int fs_chown_at(int dir_fd, const char *name, uid_t uid, gid_t gid)
{
	return fchownat(dir_fd, name, uid, gid, AT_SYMLINK_NOFOLLOW);
}

int fs_utimens_at(int dir_fd, const char *name, const struct timespec times[2])
{
	return utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW);
}

/* --- permission bits, without ever following a symlink --- */

/* Linux 6.6; headers are often older than the kernel. New system calls have one number on all architectures but alpha, where it
 * is 110 more. */
#ifndef SYS_fchmodat2
#ifdef __alpha__
#define SYS_fchmodat2 562
#else
#define SYS_fchmodat2 452
#endif
#endif

/*
 * Older kernels: a held descriptor says what the object is. It can be changed through proc; without proc only an object that
 * may be opened without side effects, and then the opened one must be the same object.
 */
static int chmod_held(int held, int dir_fd, const char *name, mode_t mode)
{
	struct fs_stat st, opened;
	char path[FS_PROC_PATH_SIZE];

	if (fs_stat_at_fd(held, &st) < 0)
		return -1;
	if (S_ISLNK(st.mode))
		return fs_fail(ELOOP);
	if (fs_proc_path(held, path))
		return chmod(path, mode);
	if (!S_ISREG(st.mode) && !S_ISDIR(st.mode))
		return fs_fail(EOPNOTSUPP);
	int fd = fs_open_at(dir_fd, name, O_RDONLY, 0);

	if (fd < 0)
		return -1;
	int result = fs_stat_at_fd(fd, &opened) < 0                 ? -1
		     : opened.ino != st.ino || opened.dev != st.dev ? fs_fail(ELOOP)
								    : fchmod(fd, mode);

	fs_close(fd);
	return result;
}

int fs_chmod_at(int dir_fd, const char *name, mode_t mode)
{
	if (syscall(SYS_fchmodat2, dir_fd, name, mode & 07777, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (errno == EOPNOTSUPP)
		return fs_fail(ELOOP);
	if (errno != ENOSYS && errno != EPERM)
		return -1;
	/* EPERM is also what container sandboxes answer to system calls that they do not know. */
	int held = fs_open_at(dir_fd, name, O_PATH, 0);

	int result = held < 0 ? -1 : chmod_held(held, dir_fd, name, mode & 07777);

	fs_close(held);
	return result;
}

/* --- paths as text --- */

/* The component at `text`: its length; *text is moved past leading slashes. 0 at the end. */
static size_t next_component(const char **text)
{
	*text += strspn(*text, "/");
	return strcspn(*text, "/");
}

static bool is_component(const char *text, size_t length, const char *name)
{
	return length == strlen(name) && !memcmp(text, name, length);
}

void fs_clean_path(char *out, const char *path)
{
	size_t end = 0, length;
	bool slash = *path && path[strlen(path) - 1] == '/';

	while ((length = next_component(&path)) > 0) {
		bool is_dot = is_component(path, length, "."), is_parent = is_component(path, length, "..");

		if (is_parent) {
			while (end > 0 && out[end - 1] != '/')
				end--;
			end -= end > 0;
		} else if (!is_dot) {
			if (end > 0)
				out[end++] = '/';
			memmove(out + end, path, length);
			end += length;
		}
		path += length;
		if (!*path && ((is_dot && end > 0) || is_parent))
			slash = true;
	}
	if (end == 0)
		out[end++] = '.';
	if (slash)
		out[end++] = '/';
	out[end] = '\0';
}

/* Directories between the transfer root and the link. */
static int depth_of(const char *link_path)
{
	int depth = 0;
	size_t length;

	while ((length = next_component(&link_path)) > 0) {
		if (is_component(link_path, length, ".."))
			depth = 0;
		else if (!is_component(link_path, length, "."))
			depth++;
		link_path += length;
	}
	return depth > 0 ? depth - 1 : 0;
}

/*
 * Only leading ".."s can be judged: what any later one climbs out of may be a symlink itself. So "a/../b" is unsafe although
 * its text stays inside, and so is "../..", which ends in one.
 */
bool fs_symlink_is_unsafe(const char *target, const char *link_path)
{
	int depth = depth_of(link_path);
	size_t length = strlen(target);

	if (!length || *target == '/' || (length >= 3 && !strcmp(target + length - 3, "/..")))
		return true;
	while (!strncmp(target, "../", 3)) {
		depth--;
		target += 3;
		target += strspn(target, "/");
	}
	if (!strcmp(target, ".."))
		depth--;
	return depth < 0 || strstr(target, "/../");
}
