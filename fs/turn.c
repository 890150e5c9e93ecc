/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lock file of a job: eight bytes with the number of requests that have been served, then one byte for each request. Only
 * the holder of the lock writes the number; requests are appended without the lock, so that one is never lost.
 */
#include "fs/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/operator.h"

#define HEADER_SIZE sizeof(uint64_t)

static int ask(int fd, uint64_t *position)
{
	char mark = '+';
	struct iovec bytes = { &mark, 1 };
	off_t end;

	if (fallocate(fd, 0, 0, HEADER_SIZE) < 0 || pwritev2(fd, &bytes, 1, -1, RWF_APPEND) != 1)
		return -1;
	end = lseek(fd, 0, SEEK_CUR);
	*position = end < 0 ? 0 : (uint64_t)end - HEADER_SIZE;
	return end < 0 ? -1 : 0;
}

static uint64_t requests(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size > (off_t)HEADER_SIZE ? (uint64_t)st.st_size - HEADER_SIZE : 0;
}

static uint64_t served(int fd)
{
	uint64_t count;

	return pread(fd, &count, sizeof count, 0) == sizeof count ? count : 0;
}

static enum fs_turn_state give_up(int fd, enum fs_turn_state state)
{
	int error = errno;

	close(fd);
	errno = error;
	return state;
}

enum fs_turn_state fs_turn_take(struct fs_turn *turn, const char *path, bool wait)
{
	int fd = fs_operator_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600), result;
	uint64_t position;

	*turn = (struct fs_turn){ .fd = -1 };
	if (fd < 0)
		return FS_TURN_FAILED;
	if (ask(fd, &position) < 0)
		return give_up(fd, FS_TURN_FAILED);
	do
		result = flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
	while (result < 0 && errno == EINTR);
	if (result < 0)
		return give_up(fd, errno == EWOULDBLOCK ? FS_TURN_LEFT : FS_TURN_FAILED);
	if (served(fd) >= position)
		return give_up(fd, FS_TURN_SERVED);
	turn->fd = fd;
	turn->asked = requests(fd);
	return FS_TURN_OURS;
}

/* Who found the lock taken has gone away; whoever asks from now on finds it free. */
static bool asked_again(struct fs_turn *turn)
{
	if (requests(turn->fd) == turn->asked)
		return false;
	if (flock(turn->fd, LOCK_EX | LOCK_NB) < 0 || served(turn->fd) > turn->asked)
		return false;
	turn->asked = requests(turn->fd);
	return true;
}

bool fs_turn_end(struct fs_turn *turn, bool good)
{
	bool again;

	if (good && pwrite(turn->fd, &turn->asked, sizeof turn->asked, 0) != sizeof turn->asked)
		good = false;
	flock(turn->fd, LOCK_UN);
	again = good && asked_again(turn);
	if (!again) {
		close(turn->fd);
		turn->fd = -1;
	}
	return again;
}
