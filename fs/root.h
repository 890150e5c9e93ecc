/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Confined paths (doc/protocol/08-security.md section 4, resolver R1): every call takes a root, a directory held open, and a
 * path relative to it, and never leaves the root: absolute paths and symlinks, and ".." above the root give ELOOP, whatever is
 * renamed meanwhile. Directory symlinks that stay inside are followed; the last component never is (unless a call says so).
 *
 * One system call (openat2 with RESOLVE_BENEATH) where the kernel has it, a component walk with identical decisions where
 * it has not. A root with `trusting` set follows every symlink (--insecure-links; options that copy what links lead to), one
 * with `owned` set those of root and of the effective user, wherever they lead (resolver R2, for the entries of a --files-from
 * list: fs/operator.h). Whichever it is, it holds for every call, each time anew.
 *
 * All return -1 with errno set on failure. Descriptors are O_CLOEXEC. "" and "." as path mean the root itself.
 */
#ifndef FS_ROOT_H
#define FS_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct fs_anchors;

struct fs_root {
	int fd;              /* O_PATH or O_RDONLY directory descriptor, owned by the root */
	int error;           /* fd is -1: why, for every call; 0 is EBADF */
	bool trusting;       /* follow all symlinks */
	bool owned;          /* follow those of root and of the effective user */
	bool no_openat2;     /* use the component walk (set by fs_root_open when the kernel lacks openat2; by tests) */
	const char *confine; /* an absolute path: what is found has to lie in that directory, else ELOOP; NULL: anywhere */
	struct fs_anchors *anchors; /* where paths begin that arguments lead to (fs_anchors_new); NULL: none. Not owned */
};

/* The metadata of one object, as statx gives it. */
struct fs_stat {
	uint32_t mode; /* type and permission bits */
	uint32_t uid, gid;
	uint32_t nlink;
	uint64_t size;
	uint64_t blocks; /* 512-byte units */
	int64_t mtime, atime, ctime;
	uint32_t mtime_nsec, atime_nsec, ctime_nsec;
	uint32_t rdev_major, rdev_minor;
	uint64_t dev, ino;
};

/* Open `path` (of the local operator: resolved as open(2) does) as a root. */
int fs_root_open(struct fs_root *root, const char *path);
/* Take over an open directory descriptor. */
void fs_root_adopt(struct fs_root *root, int fd);
/* Open a directory below `parent` as a root of its own, with the rules of `parent`, but not its anchors. */
int fs_root_open_below(struct fs_root *root, const struct fs_root *parent, const char *path);
void fs_root_close(struct fs_root *root); /* errno stays */

/* Among the flags: a final symlink is followed if it stays inside the root (-L, --copy-unsafe-links, merge files). */
#define FS_FOLLOW (1 << 27)
/* open(2) flags; the last component is not followed (O_NOFOLLOW is added) unless FS_FOLLOW says so. O_NONBLOCK is added for
 * reads of non-directories, so that a FIFO cannot hang the process. */
int fs_open(const struct fs_root *root, const char *path, int flags, mode_t mode);
int fs_opendir(const struct fs_root *root, const char *path); /* O_RDONLY|O_DIRECTORY descriptor; follows inside */

int fs_lstat(const struct fs_root *root, const char *path, struct fs_stat *st);
int fs_stat_follow(const struct fs_root *root, const char *path, struct fs_stat *st);
/* Target text of a symlink, NUL-terminated; returns its length, -1 on error or (ENAMETOOLONG) if it does not fit. */
ssize_t fs_readlink(const struct fs_root *root, const char *path, char *target, size_t size);

/* The same on one name in a held directory (no slash in `name`; fd may be AT_FDCWD-like only in tests). */
int fs_lstat_at(int dir_fd, const char *name, struct fs_stat *st);
int fs_stat_at_fd(int fd, struct fs_stat *st);
int fs_open_at(int dir_fd, const char *name, int flags, mode_t mode); /* adds O_NOFOLLOW, O_CLOEXEC, O_NONBLOCK as above */
ssize_t fs_readlink_at(int dir_fd, const char *name, char *target, size_t size);
/* Changing calls on one name in a held directory; none follows a symlink. */
int fs_mkdir_at(int dir_fd, const char *name, mode_t mode);
int fs_symlink_at(const char *target, int dir_fd, const char *name);
int fs_link_at(int old_dir_fd, const char *old_name, int dir_fd, const char *name);
int fs_rename_at(int old_dir_fd, const char *old_name, int dir_fd, const char *name);
int fs_unlink_at(int dir_fd, const char *name);
int fs_rmdir_at(int dir_fd, const char *name);
int fs_mknod_at(int dir_fd, const char *name, mode_t mode, uint32_t major, uint32_t minor);
int fs_chown_at(int dir_fd, const char *name, uid_t uid, gid_t gid);
int fs_chmod_at(int dir_fd, const char *name, mode_t mode); /* ELOOP on a symlink; fd-based, never follows */
int fs_utimens_at(int dir_fd, const char *name, const struct timespec times[2]);

/*
 * The directories that an operator's arguments have led to (doc/protocol/09-since-3.5.0.md section 6.2). An argument may lead
 * through any symlink; which directory it has come to is noted by device and inode, and whatever is opened below it later
 * begins in that directory: a symlink that was exchanged in between is ELOOP. One directory is held open at a time.
 *
 * They belong to one root, whose `anchors` they are, and to one thread.
 */
struct fs_anchors *fs_anchors_new(void);
void fs_anchors_free(struct fs_anchors *anchors); /* may be NULL */

/* Note the directory `path` below the root, reached through every symlink; follow: also through a last one. A path that is
 * noted already stays as it was. -1 with errno if there is no such directory. */
int fs_anchors_add(struct fs_anchors *anchors, const struct fs_root *root, const char *path, bool follow);

/* Is a symlink target unsafe for --safe-links / --copy-unsafe-links? doc/protocol/08-security.md section 4.6. `link_path` is
 * the link's name in the transfer: the directories in it are what leading ".."s of the target may climb. */
bool fs_symlink_is_unsafe(const char *target, const char *link_path);

/* Lexical clean-up of a peer's path: collapse "//", drop ".", resolve ".." without ever climbing above the start, drop
 * leading slashes. `out` needs strlen(path)+2 bytes; an empty result is ".". A trailing "/" or "/." is kept as "/",
 * and a trailing ".." leaves one: "a/b/.." is the contents of "a". */
void fs_clean_path(char *out, const char *path);

#endif
