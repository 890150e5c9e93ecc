/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Preloaded: no file below $QUOTA_DIR gets larger than $QUOTA_BYTES, as if its owner's quota were used up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int exceeds(int fd, off_t end)
{
	const char *directory = getenv("QUOTA_DIR"), *limit = getenv("QUOTA_BYTES");
	char link[64], path[4096];
	struct stat st;
	ssize_t length;

	if (!directory || !limit || end <= atol(limit) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof path - 1);
	if (length < (ssize_t)strlen(directory) || strncmp(path, directory, strlen(directory)) != 0)
		return 0;
	errno = EDQUOT;
	return 1;
}

static off_t position(int fd, const off_t *given)
{
	return given ? *given : lseek(fd, 0, SEEK_CUR);
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *bytes, size_t length)
{
	REAL(write);

	return exceeds(fd, position(fd, NULL) + (off_t)length) ? -1 : real(fd, bytes, length);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	REAL(pwrite);

	return exceeds(fd, offset + (off_t)length) ? -1 : real(fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset)
{
	return pwrite(fd, bytes, length, offset);
}

ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t length, unsigned flags)
{
	REAL(copy_file_range);
	struct stat st;
	off_t left = fstat(from, &st) == 0 ? st.st_size - position(from, from_offset) : 0;

	if (left < (off_t)length)
		length = left > 0 ? (size_t)left : 0;
	return exceeds(to, position(to, to_offset) + (off_t)length) ? -1 : real(from, from_offset, to, to_offset, length, flags);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	REAL(fallocate);

	return exceeds(fd, offset + length) ? -1 : real(fd, mode, offset, length);
}

int fallocate64(int fd, int mode, off_t offset, off_t length)
{
	return fallocate(fd, mode, offset, length);
}

int ioctl(int fd, unsigned long request, ...)
{
	/* No clones: what they would share does not count. */
	(void)fd;
	(void)request;
	errno = EOPNOTSUPP;
	return -1;
}
