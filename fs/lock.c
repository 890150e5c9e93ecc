/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns at a job, by flock; record locks that mark living daemons and their connections. */
#include "fs/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/file.h"
#include "fs/operator.h"

/*
 * --- turns ---
 *
 * The lock file of a job: eight bytes with the number of requests that have been served, then one byte for each request. Only
 * the holder of the lock writes the number; requests are appended without the lock, so that one is never lost.
 */

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
	fs_close(fd);
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

bool fs_turn_end(struct fs_turn *turn, bool good)
{
	if (good && pwrite(turn->fd, &turn->asked, sizeof turn->asked, 0) != sizeof turn->asked)
		good = false;
	flock(turn->fd, LOCK_UN);
	/* Who found the lock taken has gone away; whoever asks from now on finds it free. */
	if (good && requests(turn->fd) != turn->asked && flock(turn->fd, LOCK_EX | LOCK_NB) == 0
	    && served(turn->fd) <= turn->asked) {
		turn->asked = requests(turn->fd);
		return true;
	}
	close(turn->fd);
	turn->fd = -1;
	return false;
}

/* --- slots and pid file --- */

#define SLOT_BYTES 4
#define HOLDER_BYTES (INT64_C(1) << 20)  /* places of one holder: more than any limit */
#define FIRST_HOLDER (INT64_C(1) << 62)  /* far behind the slots of the daemons that share the file */
#define PID_FILE_LIMIT 32 /* a file longer than this is not one of ours */

static int lock_range(int fd, off_t start, off_t length)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length };

	return fcntl(fd, F_SETLK, &lock);
}

int fs_slots_take(int fd, const uint64_t *holder, int slots)
{
	const uint64_t holders = (uint64_t)(FIRST_HOLDER / HOLDER_BYTES);
	const off_t start = holder ? (off_t)(FIRST_HOLDER + (int64_t)(*holder % holders) * HOLDER_BYTES) : 0;
	const off_t length = holder ? 1 : SLOT_BYTES;

	for (int i = 0; i < slots; i++) {
		if (lock_range(fd, start + i * length, length) == 0)
			return 0;
		if (errno != EACCES && errno != EAGAIN)
			return -1;
	}
	return fs_fail(EBUSY);
}

/* Where others may write, too, the file could be theirs, to say what they like later, or another name of a precious one. */
static bool is_ours(const struct fs_stat *st)
{
	return S_ISREG(st->mode) && st->nlink == 1 && (st->uid == 0 || st->uid == geteuid());
}

/* 0, or -1 with errno; *what names the step that has failed. */
static int write_pid(struct fs_own_name *file, const char **what)
{
	struct fs_stat st, named;
	char text[32];

	*what = "unlink";
	if (fs_lstat_at(file->dir_fd, file->name, &st) < 0) {
		if (errno != ENOENT)
			return -1;
	} else if (!is_ours(&st) && fs_unlink_at(file->dir_fd, file->name) < 0) {
		return -1;
	}
	*what = "open";
	file->fd = fs_open_at(file->dir_fd, file->name, O_RDWR | O_CREAT, 0664);
	if (file->fd < 0)
		return -1;
	*what = "lock";
	if (lock_range(file->fd, 0, SLOT_BYTES) < 0)
		return -1;
	*what = "find small";
	if (fs_stat_at_fd(file->fd, &st) < 0)
		return -1;
	if (st.size > PID_FILE_LIMIT)
		return fs_fail(EFBIG);
	*what = "verify stat info for";
	if (!is_ours(&st))
		return fs_fail(EINVAL);
	*what = "avoid file overwrite race for";
	if (fs_lstat_at(file->dir_fd, file->name, &named) < 0)
		return -1;
	if (st.dev != named.dev || st.ino != named.ino)
		return fs_fail(ESTALE);
	file->dev = st.dev;
	file->ino = st.ino;
	*what = "truncate";
	if (ftruncate(file->fd, 0) < 0)
		return -1;
	*what = "write";
	return fs_write_all(file->fd, text, (size_t)snprintf(text, sizeof text, "%ld\n", (long)getpid()));
}

int fs_pid_file_write(struct fs_own_name *file, const char *path, const char **what)
{
	*file = (struct fs_own_name)FS_OWN_NAME_INIT;
	*what = "create";
	file->dir_fd = fs_operator_parent(path, 0, file->name);
	if (file->dir_fd < 0)
		return -1;
	if (write_pid(file, what) < 0) {
		fs_own_name_close(file);
		return -1;
	}
	file->owner = getpid();
	return 0;
}
