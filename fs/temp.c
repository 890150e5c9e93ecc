/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Temp files. The registry is static memory, so that a signal handler can walk it: a slot belongs to the thread that claimed
 * it, and its state says to all others whether name and directory are valid.
 *
 * A thread that is about to make an object says OPENING and then looks whether the process is ending; whoever ends the process
 * says so first and then looks at the slots. One of the two sees the other, so no file is left behind.
 */
#include "fs/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fs/error.h"
#include "fs/root.h"
#include "fs/walk.h"
#include "lib/exit.h"

#define SLOTS 1024          /* temp files at one time: a few for each thread */
#define BASENAME_LIMIT 246  /* doc/protocol/03-transfer.md section 7.4 */
#define NAME_ATTEMPTS 100
#define RANDOM_AHEAD 8      /* names that one system call is good for */

enum slot_state { FREE, CLAIMED, OPENING, LIVE, HELD };

struct slot {
	_Atomic int state;
	int dir_fd; /* this and the name are valid in the last three states, and then do not change */
	_Atomic pid_t process;
	_Atomic uintptr_t thread;
	char name[FS_TEMP_NAME_SIZE];
	/* Only of the one who has claimed it: random numbers for further names. */
	uint64_t random[RANDOM_AHEAD];
	int random_left;
};

static struct {
	struct slot slots[SLOTS];
	_Atomic int used; /* slots from here on have never been claimed */
	_Atomic bool ending, installed;
} registry;

/* ".NAME." for a file NAME; "NAME." in a directory of temp files. Returns the length. */
static size_t name_prefix(char *out, const char *name, bool is_hidden)
{
	if (is_hidden) {
		name += *name == '.';
		*out++ = '.';
	}
	size_t length = strlen(name);

	if (length > BASENAME_LIMIT) {
		bool in_character = (unsigned char)name[BASENAME_LIMIT] >= 0x80;
		length = BASENAME_LIMIT;
		while (in_character && length > 0 && (unsigned char)name[length - 1] >= 0x80)
			length--;
	}
	memcpy(out, name, length); /* NOLINT(bugprone-not-null-terminated-result): its length is returned */
	if (length && out[length - 1] == '.')
		length--;
	if (length || !is_hidden)
		out[length++] = '.';
	return length + is_hidden;
}

static int add_random_suffix(struct slot *slot, char *out)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	if (!slot->random_left) {
		if (getrandom(slot->random, sizeof slot->random, 0) != (ssize_t)sizeof slot->random)
			return -1;
		slot->random_left = RANDOM_AHEAD;
	}
	uint64_t random = slot->random[--slot->random_left];

	for (int i = 0; i < FS_TEMP_SUFFIX_LENGTH; i++) {
		out[i] = letters[random % (sizeof letters - 1)];
		random /= sizeof letters - 1;
	}
	out[FS_TEMP_SUFFIX_LENGTH] = '\0';
	return 0;
}

static int claim_slot(void)
{
	for (int i = 0; i < SLOTS; i++) {
		struct slot *slot = &registry.slots[i];
		int expected = FREE;

		if (!atomic_compare_exchange_strong(&slot->state, &expected, CLAIMED))
			continue;
		int used = atomic_load(&registry.used);
		pid_t process = getpid();

		while (used <= i && !atomic_compare_exchange_weak(&registry.used, &used, i + 1))
			;
		/* A child of this process would go on with the same numbers: it gets others. */
		if (atomic_exchange(&slot->process, process) != process)
			slot->random_left = 0;
		atomic_store(&slot->thread, (uintptr_t)pthread_self());
		return i;
	}
	return fs_fail(EMFILE);
}

/*
 * The owner moves on. Whoever holds the slot, to remove the file or to read its name, puts the state back when done: it is
 * another thread, or a signal handler of this one, which is over by now.
 */
static void change_state(const struct fs_temp *temp, int from, enum slot_state to)
{
	_Atomic int *state = &registry.slots[temp->slot].state;
	int expected = from;

	while (!atomic_compare_exchange_weak(state, &expected, to)) {
		expected = from;
		sched_yield();
	}
}

/* What is made under the temp name, and from what. */
struct maker {
	enum { FILE_OF_OURS, SYMLINK, NODE, LINK, NAME_OF_FILE, NOTHING } kind;
	const char *text; /* symlink target or old name */
	int old_dir_fd;
	int unnamed_fd;
	bool is_elsewhere; /* in a directory of temp files */
	mode_t mode;
	uint32_t major, minor;
};

static int make(struct fs_temp *temp, const struct maker *maker)
{
	struct fs_stat st;

	switch (maker->kind) {
	case FILE_OF_OURS:
		temp->fd = openat(temp->dir_fd, temp->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		return temp->fd < 0 ? -1 : 0;
	case SYMLINK:
		return fs_symlink_at(maker->text, temp->dir_fd, temp->name);
	case NODE:
		return fs_mknod_at(temp->dir_fd, temp->name, maker->mode, maker->major, maker->minor);
	case LINK:
		return fs_link_at(maker->old_dir_fd, maker->text, temp->dir_fd, temp->name);
	case NAME_OF_FILE:
		return fs_unnamed_publish(maker->unnamed_fd, temp->dir_fd, temp->name);
	case NOTHING:
		break;
	}
	if (fs_lstat_at(temp->dir_fd, temp->name, &st) == 0)
		return fs_fail(EEXIST);
	return errno == ENOENT ? 0 : -1;
}

static int make_temp(struct fs_temp *temp, int dir_fd, const char *name, const struct maker *maker)
{
	int result = -1;
	struct slot *slot;

	temp->name[0] = '\0';
	if (strlen(name) >= FS_TEMP_NAME_SIZE)
		return fs_fail(ENAMETOOLONG);
	temp->fd = -1;
	temp->is_link = maker->kind == LINK || maker->kind == NOTHING;
	temp->dir_fd = dir_fd;
	temp->slot = claim_slot();
	if (temp->slot < 0)
		return -1;
	slot = &registry.slots[temp->slot];
	size_t prefix = name_prefix(temp->name, name, !maker->is_elsewhere);

	for (int i = 0; i < NAME_ATTEMPTS && result < 0; i++) {
		if (add_random_suffix(slot, temp->name + prefix) < 0)
			break;
		slot->dir_fd = temp->dir_fd;
		memcpy(slot->name, temp->name, sizeof slot->name);
		change_state(temp, CLAIMED, OPENING);
		result = atomic_load(&registry.ending) ? fs_fail(ECANCELED) : make(temp, maker);
		change_state(temp, OPENING, result < 0 ? CLAIMED : LIVE);
		if (result < 0 && errno != EEXIST)
			break;
	}
	if (result < 0)
		change_state(temp, CLAIMED, FREE);
	return result;
}

int fs_temp_create(struct fs_temp *temp, int dir_fd, const char *name)
{
	return make_temp(temp, dir_fd, name, &(struct maker){ .kind = FILE_OF_OURS });
}

int fs_temp_create_elsewhere(struct fs_temp *temp, int dir_fd, const char *name)
{
	return make_temp(temp, dir_fd, name, &(struct maker){ .kind = FILE_OF_OURS, .is_elsewhere = true });
}

int fs_temp_symlink(struct fs_temp *temp, int dir_fd, const char *name, const char *target)
{
	return make_temp(temp, dir_fd, name, &(struct maker){ .kind = SYMLINK, .text = target });
}

int fs_temp_mknod(struct fs_temp *temp, int dir_fd, const char *name, mode_t mode, uint32_t major, uint32_t minor)
{
	return make_temp(temp, dir_fd, name, &(struct maker){ .kind = NODE, .mode = mode, .major = major, .minor = minor });
}

int fs_temp_link(struct fs_temp *temp, int dir_fd, const char *name, int old_dir_fd, const char *old_name)
{
	return make_temp(temp, dir_fd, name, &(struct maker){ .kind = LINK, .text = old_name, .old_dir_fd = old_dir_fd });
}

int fs_temp_name(struct fs_temp *temp, int dir_fd, const char *name, int fd)
{
	if (make_temp(temp, dir_fd, name, &(struct maker){ .kind = NAME_OF_FILE, .unnamed_fd = fd }) < 0)
		return -1;
	temp->fd = fd;
	return 0;
}

int fs_temp_reserve(struct fs_temp *temp, int dir_fd, const char *name)
{
	return make_temp(temp, dir_fd, name, &(struct maker){ .kind = NOTHING });
}

static int close_file(struct fs_temp *temp)
{
	int result = temp->fd < 0 ? 0 : close(temp->fd);

	temp->fd = -1;
	return result;
}

/*
 * Closed before it is renamed: some file systems report only then that the content did not fit. The slot stays LIVE until the
 * rename is over, so that an ending process removes the file or finds it gone.
 */
int fs_temp_commit_to(struct fs_temp *temp, int dir_fd, const char *name)
{
	if (close_file(temp) < 0 || fs_rename_at(temp->dir_fd, temp->name, dir_fd, name) < 0) {
		int error = atomic_load(&registry.ending) ? ECANCELED : errno;
		fs_temp_discard(temp);
		return fs_fail(error);
	}
	/* Between two links of one file rename does nothing. */
	if (temp->is_link)
		fs_unlink_at(temp->dir_fd, temp->name);
	change_state(temp, LIVE, FREE);
	return 0;
}

int fs_temp_commit(struct fs_temp *temp, const char *name)
{
	return fs_temp_commit_to(temp, temp->dir_fd, name);
}

void fs_temp_discard(struct fs_temp *temp)
{
	close_file(temp);
	fs_unlink_at(temp->dir_fd, temp->name);
	change_state(temp, LIVE, FREE);
}

/* Let another thread finish what it is doing with the slot, but not for ever: it may have been stopped. */
static void await_end_of(struct slot *slot, enum slot_state state)
{
	static const struct timespec millisecond = { 0, 1000000 };

	for (int i = 0; i < 100 && atomic_load(&slot->state) == (int)state; i++)
		nanosleep(&millisecond, NULL);
}

/* Take hold of a slot with a name, so that its owner cannot change that while it is used. Returns the state that it is to have
 * afterwards, or FREE: it has none. */
static int hold_slot(struct slot *slot)
{
	int state = atomic_load(&slot->state);

	while (state == OPENING || state == LIVE)
		if (atomic_compare_exchange_weak(&slot->state, &state, HELD))
			return state;
	return FREE;
}

bool fs_temp_is_own(int dir_fd, const char *name)
{
	pid_t process = getpid();
	int used = atomic_load(&registry.used);
	bool is_own = false;

	for (int i = 0; i < used && !is_own; i++) {
		struct slot *slot = &registry.slots[i];

		await_end_of(slot, HELD);
		int state = hold_slot(slot);

		if (state == FREE)
			continue;
		is_own = atomic_load(&slot->process) == process && !strcmp(slot->name, name)
			 && fs_is_same_directory(slot->dir_fd, dir_fd);
		atomic_store(&slot->state, state);
	}
	return is_own;
}

void fs_temp_remove_all(void)
{
	int error = errno;
	pid_t process = getpid();

	atomic_store(&registry.ending, true);
	for (int i = 0, used = atomic_load(&registry.used); i < used; i++) {
		struct slot *slot = &registry.slots[i];

		if (atomic_load(&slot->process) == process && atomic_load(&slot->thread) != (uintptr_t)pthread_self())
			await_end_of(slot, OPENING);
		await_end_of(slot, HELD);
		int state = hold_slot(slot);

		/* One that is still held is so by what this thread was doing when a signal came: its name stands still, too. */
		if (state == FREE && atomic_load(&slot->state) != HELD)
			continue;
		if (atomic_load(&slot->process) == process)
			unlinkat(slot->dir_fd, slot->name, 0);
		if (state != FREE)
			atomic_store(&slot->state, state);
	}
	errno = error;
}

static void remove_on_exit(void *context, int code)
{
	(void)context, (void)code;
	atomic_store(&registry.installed, false); /* a hook leaves the stack when it runs */
	fs_temp_remove_all();
}

void fs_temp_install(void)
{
	atomic_store(&registry.ending, false);
	if (!atomic_exchange(&registry.installed, true))
		exit_push_hook(remove_on_exit, NULL);
}

/* --- files that are complete before they have a name: O_TMPFILE and linkat --- */

int fs_unnamed_create(int dir_fd, mode_t mode)
{
	int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);

	/* What kernels and file systems without the feature make of the flags. */
	if (fd < 0 && (errno == EISDIR || errno == EINVAL || errno == ENOENT))
		errno = EOPNOTSUPP;
	return fd;
}

int fs_unnamed_publish(int fd, int dir_fd, const char *name)
{
	char self[FS_PROC_PATH_SIZE];

	if (linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) == 0)
		return 0;
	/* Without CAP_DAC_READ_SEARCH older kernels want the way through proc. */
	if ((errno != ENOENT && errno != EPERM) || !fs_proc_path(fd, self))
		return -1;
	return linkat(AT_FDCWD, self, dir_fd, name, AT_SYMLINK_FOLLOW);
}
