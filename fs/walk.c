/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One component at a time, then the last one; what a descriptor's name on proc says; opening by the owners of links. */
#include "fs/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fs/error.h"
#include "lib/alloc.h"
#include "lib/log.h"

/* --- proc --- */

/* A mount point cannot be renamed away, so what holds now holds for the call that uses the path. */
bool fs_has_proc(void)
{
	struct statfs fs;
	int error = errno;
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool is_proc = proc >= 0 && fstatfs(proc, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;

	if (proc >= 0)
		close(proc);
	errno = error;
	return is_proc;
}

bool fs_proc_path(int fd, char path[FS_PROC_PATH_SIZE])
{
	bool is_proc = fs_has_proc();

	*path = '\0';
	if (is_proc)
		snprintf(path, FS_PROC_PATH_SIZE, "/proc/self/fd/%d", fd);
	return is_proc;
}

/* --- the walk --- */

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

bool fs_is_same_directory(int a, int b)
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
	if (walk->rule == FS_WALK_ROOTED && fs_is_same_directory(walk->top, walk->root_fd))
		return 0;
	int parent = openat(walk->top, "..", DIRECTORY_FLAGS);

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

/*
 * Is it /dev/fd or a name of the standard streams (doc/protocol/09-since-3.5.0.md section 5.1), in a /dev that is a file
 * system of its own in memory? In a chroot it may be a directory that a client has pushed.
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
	struct statfs fs;

	if (++walk->hops > MAX_HOPS)
		return fs_fail(ELOOP);
	if (walk->rule != FS_WALK_BENEATH) {
		bool on_proc = fstatfs(link_fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
		/* Only the kernel makes names on proc. In a user namespace that does not know its root user these belong to
		 * nobody. */
		bool leads_to_us = on_proc && (!strcmp(name, "self") || !strcmp(name, "thread-self"));

		if (st->st_uid != 0 && st->st_uid != geteuid() && !(on_proc ? leads_to_us : is_of_dev(walk, name))) {
			walk->end->foreign_link = true;
			return fs_fail(ELOOP);
		}
		/* It may lead out of a root that the process is not in. */
		if (on_proc && walk->rule == FS_WALK_ROOTED)
			return fs_fail(ELOOP);
		/* Its text need not be a path. `top` is on proc, where nobody else can change names. */
		if (on_proc && last) {
			strcpy(walk->end->leaf, name);
			walk->end->kernel_link = true;
			return 0;
		}
		if (on_proc) {
			int fd = openat(walk->top, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

			return fd < 0 ? -1 : step_into(walk, fd);
		}
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
		fs_close(fd);
	}
	strcpy(walk->end->leaf, name);
	return 0;
}

/* Resolve a whole path or link target from `top` on. last: its last component is the last one of the whole walk. */
static int walk_text(struct walk *walk, const char *text, bool last)
{
	if (*text == '/') {
		/* R2 alone may start again at the root directory. */
		if (walk->rule == FS_WALK_BENEATH)
			return fs_fail(ELOOP);
		int fd = walk->rule == FS_WALK_ROOTED ? fcntl(walk->root_fd, F_DUPFD_CLOEXEC, 0) : open("/", DIRECTORY_FLAGS);

		if (fd < 0)
			return -1;
		close(walk->top);
		walk->top = fd;
	}
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

static int walk_once(struct walk *walk, int start_fd, const char *path)
{
	walk->hops = walk->depth = 0;
	walk->must_hold = false;
	memset(walk->end, 0, sizeof *walk->end);
	strcpy(walk->end->leaf, ".");
	walk->top = start_fd == AT_FDCWD ? open(".", DIRECTORY_FLAGS) : fcntl(start_fd, F_DUPFD_CLOEXEC, 0);
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
	if (end->directory && flags & O_CREAT) {
		close(end->dir_fd);
		return fs_fail(EISDIR);
	}
	if (end->directory)
		flags |= O_DIRECTORY;
	int fd = openat(end->dir_fd, end->leaf, flags | O_CLOEXEC | (end->kernel_link ? 0 : O_NOFOLLOW), mode);

	fs_close(end->dir_fd);
	return fd;
}

/* --- opening by the owners of links --- */

#define OWN_FLAGS (FS_ANY_LINKS | FS_NO_ANONYMOUS | FS_SILENT)

int fs_owner_walk(int dir_fd, const char *path, enum fs_walk_rule rule, int flags, struct fs_walk_end *end)
{
	int result = fs_walk(dir_fd, path, rule, !(flags & O_NOFOLLOW), end);

	if (result < 0 && end->foreign_link && !(flags & FS_SILENT)) {
		log_error("refusing to follow a symlink owned by an untrusted user; use --insecure-links locally or \"insecure "
			  "links = yes\" in a daemon module ONLY if every path component is trusted");
		errno = ELOOP;
	}
	return result;
}

/*
 * Whoever has the descriptor may put something else in its place at any time, so the link is followed once: what it led to
 * is held, judged, and opened by its own descriptor.
 */
static int open_kernel_link(struct fs_walk_end *end, int flags, mode_t mode)
{
	char name[FS_PROC_PATH_SIZE];
	int held = fs_walk_open(end, (flags & ~(OWN_FLAGS | O_NOFOLLOW)) | O_PATH, 0), fd;

	struct statfs fs;

	if (held < 0)
		return -1;
	/* A pipe, a socket or the like, to which no path leads. A named FIFO lies on the file system that names it. */
	bool has_no_path = fstatfs(held, &fs) == 0
			   && (fs.f_type == PIPEFS_MAGIC || fs.f_type == SOCKFS_MAGIC || fs.f_type == ANON_INODE_FS_MAGIC
			       || fs.f_type == NSFS_MAGIC);

	if (flags & FS_NO_ANONYMOUS && has_no_path)
		fd = fs_fail(ENOENT);
	else if (flags & O_PATH)
		return held;
	else if (!fs_proc_path(held, name))
		fd = fs_fail(ELOOP);
	else
		fd = open(name, (flags & ~(OWN_FLAGS | O_NOFOLLOW)) | O_CLOEXEC, mode);
	fs_close(held);
	/* Who holds the other end of a descriptor of ours is waited for, as with "-". */
	if (fd >= 0 && has_no_path && flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int fs_owner_open(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct fs_walk_end end;

	if (flags & FS_ANY_LINKS)
		return openat(dir_fd, path, (flags & ~OWN_FLAGS) | O_CLOEXEC, mode);
	if (!*path)
		return fs_fail(ENOENT);
	if (fs_owner_walk(dir_fd, path, FS_WALK_OWNER, flags, &end) < 0)
		return -1;
	if (end.kernel_link)
		return open_kernel_link(&end, flags, mode);
	return fs_walk_open(&end, flags & ~OWN_FLAGS, mode);
}

static bool name_of(int fd, char *name, size_t size)
{
	char link[FS_PROC_PATH_SIZE];
	ssize_t length = fs_proc_path(fd, link) ? readlink(link, name, size - 1) : -1;

	if (length <= 0 || *name != '/')
		return false;
	name[length] = '\0';
	return true;
}

char *fs_path_of(int fd)
{
	char name[PATH_MAX];

	return name_of(fd, name, sizeof name) ? xstrdup(name) : NULL;
}

bool fs_leads_inside(int fd, const char *dir)
{
	int dir_fd = fs_owner_open(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	char inner[PATH_MAX], outer[PATH_MAX];
	bool known = dir_fd >= 0 && name_of(fd, inner, sizeof inner) && name_of(dir_fd, outer, sizeof outer);
	size_t length = known ? strlen(outer) : 0;

	fs_close(dir_fd);
	if (known && outer[length - 1] == '/')
		length--;
	return known && !strncmp(inner, outer, length) && (!inner[length] || inner[length] == '/');
}
