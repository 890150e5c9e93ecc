/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whole files and directories; names by getdents64, without the locks and the copies of readdir. */
#include "fs/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/walk.h"
#include "lib/alloc.h"

/* --- the names in a directory --- */

/* A directory of some 900 names in one call. */
#define BUFFER_SIZE 65536

/* What the kernel fills in. */
struct record {
	uint64_t ino;
	int64_t offset;
	uint16_t length; /* of the whole record */
	uint8_t type;
	char name[];
};

void fs_dir_start(struct fs_dir *dir, int fd)
{
	dir->fd = fd;
	dir->buffer = xmalloc(BUFFER_SIZE);
	dir->used = dir->length = 0;
}

int fs_dir_next(struct fs_dir *dir, struct fs_dirent *entry)
{
	for (;;) {
		if (dir->used == dir->length) {
			long got = syscall(SYS_getdents64, dir->fd, dir->buffer, BUFFER_SIZE);

			if (got <= 0)
				return (int)got;
			dir->used = 0;
			dir->length = (size_t)got;
		}
		const struct record *record = (const void *)(dir->buffer + dir->used);

		dir->used += record->length;
		if (!strcmp(record->name, ".") || !strcmp(record->name, ".."))
			continue;
		entry->name = record->name;
		entry->name_length = strlen(record->name);
		entry->type = record->type;
		return 1;
	}
}

void fs_dir_finish(struct fs_dir *dir)
{
	free(dir->buffer);
	close(dir->fd);
	dir->buffer = NULL;
	dir->fd = -1;
}

/* --- files --- */

ssize_t fs_read_full(int fd, void *buffer, size_t size)
{
	size_t have = 0;

	while (have < size) {
		ssize_t got = read(fd, (char *)buffer + have, size - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (!got)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

int fs_read_at(int fd, void *buffer, size_t length, uint64_t offset)
{
	size_t done = 0;
	int error = 0;

	while (done < length && !error) {
		ssize_t got = pread(fd, (char *)buffer + done, length - done, (off_t)(offset + done));

		if (got > 0)
			done += (size_t)got;
		else if (got == 0)
			error = ENODATA;
		else if (errno != EINTR)
			error = errno;
	}
	memset((char *)buffer + done, 0, length - done);
	return error;
}

#define HERE UINT64_MAX

/* At a place, or HERE: where the descriptor stands. */
static int write_all(int fd, const char *next, size_t length, uint64_t offset)
{
	while (length > 0) {
		ssize_t written = offset == HERE ? write(fd, next, length) : pwrite(fd, next, length, (off_t)offset);

		if (written < 0 && errno != EINTR)
			return -1;
		if (written > 0) {
			next += written;
			length -= (size_t)written;
			offset += offset == HERE ? 0 : (uint64_t)written;
		}
	}
	return 0;
}

int fs_write_all(int fd, const void *data, size_t length)
{
	return write_all(fd, data, length, HERE);
}

int fs_write_all_at(int fd, const void *data, size_t length, uint64_t offset)
{
	return write_all(fd, data, length, offset);
}

int fs_read_all(int fd, size_t limit, struct strbuf *out)
{
	char buffer[8192];
	size_t total = 0;

	for (;;) {
		ssize_t got = read(fd, buffer, sizeof buffer);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return (int)got;
		total += (size_t)got;
		if (total > limit)
			return fs_fail(EFBIG);
		strbuf_add(out, buffer, (size_t)got);
	}
}

int fs_only_regular(int fd, uint64_t *size)
{
	struct fs_stat st;

	if (fd < 0)
		return -1;
	if (fs_stat_at_fd(fd, &st) < 0 || !S_ISREG(st.mode)) {
		close(fd);
		return fs_fail(ENOENT);
	}
	*size = st.size;
	return fd;
}

int fs_preallocate(int fd, uint64_t size)
{
	if (size == 0)
		return 0;
	if (size > INT64_MAX)
		return fs_fail(EFBIG);
	while (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) < 0)
		if (errno != EINTR)
			return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -1;
	return 0;
}

uint64_t fs_device_size(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	lseek(fd, 0, SEEK_SET);
	return end > 0 ? (uint64_t)end : 0;
}

/* A symlink to a directory inside counts. */
static bool is_dir(const struct fs_root *root, const char *path)
{
	struct fs_stat st;

	return fs_stat_follow(root, path, &st) == 0 && S_ISDIR(st.mode);
}

int fs_dir_is_empty(int dir_fd)
{
	struct fs_dir dir;
	struct fs_dirent entry;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	fs_dir_start(&dir, fd);
	int more = fs_dir_next(&dir, &entry), error = errno;

	fs_dir_finish(&dir);
	errno = error;
	return more < 0 ? -1 : !more;
}

/* A directory for the first `length` bytes of `path`: 1 if it was made, 0 if there was one. */
static int make_prefix(const struct fs_root *root, const char *path, size_t length, mode_t mode)
{
	char prefix[PATH_MAX];
	struct fs_root parent = *root;

	memcpy(prefix, path, length);
	prefix[length] = '\0';
	if (is_dir(root, prefix))
		return 0;
	char *slash = strrchr(prefix, '/');

	if (slash) {
		*slash = '\0';
		if (fs_root_open_below(&parent, root, slash == prefix ? "/" : prefix) < 0)
			return -1;
	}
	int result = fs_mkdir_at(parent.fd, slash ? slash + 1 : prefix, mode);

	if (slash) {
		fs_close(parent.fd);
		*slash = '/';
	}
	if (result < 0 && errno == EEXIST)
		return is_dir(root, prefix) ? 0 : fs_fail(path[length] ? ENOTDIR : EEXIST);
	return result < 0 ? -1 : 1;
}

int fs_make_path(const struct fs_root *root, const char *path, mode_t mode)
{
	int made = 0;
	size_t length = 0;

	if (strlen(path) >= PATH_MAX)
		return fs_fail(ENAMETOOLONG);
	while (path[length]) {
		length += strspn(path + length, "/");
		size_t name = strcspn(path + length, "/");
		if (name == 0)
			break;
		length += name;
		int result = make_prefix(root, path, length, mode);
		if (result < 0)
			return -1;
		made += result;
	}
	return made;
}

void fs_await_writer(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC)
		return;
	while (poll(&poll_fd, 1, -1) < 0 && errno == EINTR)
		;
}

/* Setting the umask to learn it would leave other threads without one for a moment; proc has it. */
mode_t fs_umask(void)
{
	FILE *status = fs_has_proc() ? fopen("/proc/thread-self/status", "re") : NULL;
	char line[256];
	mode_t mask = 0;
	bool found = false;

	while (status && !found && fgets(line, sizeof line, status)) {
		found = !strncmp(line, "Umask:", 6);
		mask = found ? (mode_t)strtoul(line + 6, NULL, 8) : 0;
	}
	if (status)
		fclose(status);
	if (!found) {
		mask = umask(077);
		umask(mask);
	}
	return mask & 0777;
}
