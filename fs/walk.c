/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One component at a time. */
#include "fs/walk.h"
#include "fs/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAX_HOPS 40    /* as the kernel's own resolution */
#define MAX_DEPTH 1024 /* directories held for ".." */
#define DIRECTORY_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct walk {
	enum fs_walk_rule rule;
	bool follow;
	int hops;
	int root_fd;           /* ROOTED: the start, which stays the caller's */
	int top;               /* the directory reached so far */
	int depth;             /* R1: its distance from the anchor */
	bool hold;             /* R1: keep the ancestors of `top` open, because ".." is in sight */
	bool must_hold;        /* R1: ".." was met without holding: start again */
	int held[MAX_DEPTH];   /* with `hold`: the ancestors, held[0] is the anchor */
	struct fs_walk_end *end;
};

/* Make `fd` the directory reached; takes it over. */
static int step_into(struct walk *walk, int fd)
{
	if (walk->hold && walk->depth == MAX_DEPTH) {
		close(fd);
		return fs_fail(ELOOP);
	}
	if (walk->hold)
		walk->held[walk->depth] = walk->top;
	else
		close(walk->top);
	walk->depth++;
	walk->top = fd;
	return 0;
}

static bool is_same_directory(int a, int b)
{
	struct stat first, second;

	return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/*
 * ".." under R1 goes back to the directory that the walk came through, which need not be the parent any more. That the kernel
 * would let us look it up (search permission on the directory left) is checked by doing so.
 */
static int step_back(struct walk *walk)
{
	int parent;

	if (walk->rule == FS_WALK_ROOTED && is_same_directory(walk->top, walk->root_fd))
		return 0;
	parent = openat(walk->top, "..", DIRECTORY_FLAGS);
	if (parent < 0)
		return -1;
	if (walk->rule != FS_WALK_BENEATH) {
		close(walk->top);
		walk->top = parent;
		return 0;
	}
	close(parent);
	if (walk->depth == 0)
		return fs_fail(ELOOP);
	if (!walk->hold) {
		walk->must_hold = true;
		return fs_fail(EAGAIN);
	}
	close(walk->top);
	walk->top = walk->held[--walk->depth];
	return 0;
}

static int walk_text(struct walk *walk, const char *text, bool last);

static bool is_on_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Only the kernel makes names on proc. In a user namespace that does not know its root user these belong to nobody. */
static bool leads_to_us(const char *name)
{
	return !strcmp(name, "self") || !strcmp(name, "thread-self");
}

/* A link of the proc file system: its text need not be a path. `top` is on proc, where nobody else can change names. */
static int follow_proc_link(struct walk *walk, const char *name, bool last)
{
	if (last) {
		strcpy(walk->end->leaf, name);
		walk->end->kernel_link = true;
		return 0;
	}
	int fd = openat(walk->top, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -1 : step_into(walk, fd);
}

/*
 * The same of /dev/fd and the names of the standard streams (doc/protocol/09-since-3.5.0.md section 5.1), where /dev is a file
 * system of its own in memory: in a chroot it may be a directory that a client has pushed.
 */
static bool is_of_dev(const struct walk *walk, const char *name)
{
	static const char *const names[] = { "fd", "stdin", "stdout", "stderr" };
	struct stat dev, root, here;
	struct statfs fs;
	bool is_name = false;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		is_name |= !strcmp(name, names[i]);
	return is_name && lstat("/dev", &dev) == 0 && lstat("/", &root) == 0 && fstat(walk->top, &here) == 0
	       && here.st_dev == dev.st_dev && here.st_ino == dev.st_ino && dev.st_dev != root.st_dev
	       && fstatfs(walk->top, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* Resolve the text of the symlink held as `link_fd`, named `name` in `top`. */
static int follow_link(struct walk *walk, int link_fd, const struct stat *st, const char *name, bool last)
{
	char target[PATH_MAX];

	if (++walk->hops > MAX_HOPS)
		return fs_fail(ELOOP);
	if (walk->rule != FS_WALK_BENEATH) {
		bool on_proc = is_on_proc(link_fd);

		if (st->st_uid != 0 && st->st_uid != geteuid() && !(on_proc ? leads_to_us(name) : is_of_dev(walk, name))) {
			walk->end->foreign_link = true;
			return fs_fail(ELOOP);
		}
		/* It may lead out of a root that the process is not in. */
		if (on_proc)
			return walk->rule == FS_WALK_ROOTED ? fs_fail(ELOOP) : follow_proc_link(walk, name, last);
	}
	ssize_t length = readlinkat(link_fd, "", target, sizeof target);

	if (length < 0)
		return -1;
	if (length == 0 || length == sizeof target)
		return fs_fail(ELOOP);
	target[length] = '\0';
	return walk_text(walk, target, last);
}

/* A component in the middle: a directory, or a symlink to one. */
static int enter(struct walk *walk, const char *name)
{
	struct stat st;
	int fd = openat(walk->top, name, DIRECTORY_FLAGS);

	if (fd >= 0)
		return step_into(walk, fd);
	if (errno != ENOTDIR && errno != ELOOP)
		return -1;
	fd = openat(walk->top, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return step_into(walk, fd);
	int result = S_ISLNK(st.st_mode) ? follow_link(walk, fd, &st, name, false) : fs_fail(ENOTDIR);

	fs_close(fd);
	return result;
}

/* The last component: the caller opens it, unless it is a symlink to be followed. */
static int arrive(struct walk *walk, const char *name, bool follow)
{
	struct stat st;

	if (follow) {
		int fd = openat(walk->top, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
			int result = follow_link(walk, fd, &st, name, true);
			fs_close(fd);
			return result;
		}
		if (fd >= 0)
			close(fd);
	}
	strcpy(walk->end->leaf, name);
	return 0;
}

/* R2 alone may start again at the root directory. */
static int start_at_root(struct walk *walk)
{
	int fd;

	if (walk->rule == FS_WALK_BENEATH)
		return fs_fail(ELOOP);
	fd = walk->rule == FS_WALK_ROOTED ? fcntl(walk->root_fd, F_DUPFD_CLOEXEC, 0) : open("/", DIRECTORY_FLAGS);
	if (fd < 0)
		return -1;
	close(walk->top);
	walk->top = fd;
	return 0;
}

/* Resolve a whole path or link target from `top` on. last: its last component is the last one of the whole walk. */
static int walk_text(struct walk *walk, const char *text, bool last)
{
	if (*text == '/' && start_at_root(walk) < 0)
		return -1;
	for (;;) {
		char name[FS_NAME_SIZE];
		size_t length;

		text += strspn(text, "/");
		length = strcspn(text, "/");
		if (length == 0)
			return 0;
		if (length >= sizeof name)
			return fs_fail(ENAMETOOLONG);
		memcpy(name, text, length);
		name[length] = '\0';
		text += length;

		bool slash = *text == '/';
		bool is_last = last && text[strspn(text, "/")] == '\0';
		int result = 0;

		if (is_last && slash)
			walk->end->directory = true;
		if (!strcmp(name, ".."))
			result = step_back(walk);
		else if (strcmp(name, ".") && is_last)
			return arrive(walk, name, walk->follow || walk->end->directory);
		else if (strcmp(name, "."))
			result = enter(walk, name);
		if (result < 0)
			return -1;
	}
}

static int open_start(int start_fd)
{
	if (start_fd == AT_FDCWD)
		return open(".", DIRECTORY_FLAGS);
	return fcntl(start_fd, F_DUPFD_CLOEXEC, 0);
}

static int walk_once(struct walk *walk, int start_fd, const char *path)
{
	walk->hops = walk->depth = 0;
	walk->must_hold = false;
	memset(walk->end, 0, sizeof *walk->end);
	strcpy(walk->end->leaf, ".");
	walk->top = open_start(start_fd);
	if (walk->top < 0)
		return -1;
	int result = walk_text(walk, path, true);

	for (int i = 0; walk->hold && i < walk->depth; i++)
		fs_close(walk->held[i]);
	if (result < 0)
		fs_close(walk->top);
	else
		walk->end->dir_fd = walk->top;
	return result;
}

/*
 * Ancestors are held open only by a second attempt, made when the first one met "..": a thousand levels would else need a
 * thousand descriptors.
 */
int fs_walk(int start_fd, const char *path, enum fs_walk_rule rule, bool follow, struct fs_walk_end *end)
{
	struct walk walk;

	walk.rule = rule;
	walk.root_fd = start_fd;
	walk.follow = follow;
	walk.end = end;
	walk.hold = false;
	if (strlen(path) >= PATH_MAX)
		return fs_fail(ENAMETOOLONG);
	int result = walk_once(&walk, start_fd, path);

	if (result < 0 && walk.must_hold) {
		walk.hold = true;
		result = walk_once(&walk, start_fd, path);
	}
	return result;
}

int fs_walk_open(struct fs_walk_end *end, int flags, mode_t mode)
{
	int fd;

	if (end->directory && flags & O_CREAT) {
		close(end->dir_fd);
		return fs_fail(EISDIR);
	}
	if (end->directory)
		flags |= O_DIRECTORY;
	fd = openat(end->dir_fd, end->leaf, flags | O_CLOEXEC | (end->kernel_link ? 0 : O_NOFOLLOW), mode);
	fs_close(end->dir_fd);
	return fd;
}
