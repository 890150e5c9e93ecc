/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Getting room for a snapshot while processors have little else to do. */
#include "attrs/snapshot_room.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "fs/file.h"
#include "fs/operator.h"
#include "fs/unnamed.h"
#include "lib/alloc.h"
#include "lib/threads.h"

struct snapshot_room {
	int fd;                  /* -1: taken */
	uint64_t bytes;
	bool is_waited_for;      /* the thread has to be */
	pthread_t thread;
};

/* Whether there is room enough is for the writing to say. What is too much goes when the file gets its real length. */
static void *get_room(void *room_void)
{
	const struct snapshot_room *room = room_void;

	if (ftruncate(room->fd, (off_t)room->bytes) == 0)
		(void)fs_preallocate(room->fd, room->bytes);
	return NULL;
}

static int create_file(const char *path)
{
	char name[256];
	int dir_fd = fs_operator_target(path, name), fd;

	if (dir_fd < 0)
		return -1;
	fd = fs_unnamed_create(dir_fd, 0600);
	close(dir_fd);
	return fd;
}

struct snapshot_room *snapshot_room_new(const char *path, uint64_t bytes)
{
	int fd = create_file(path);

	if (fd < 0)
		return NULL;
	struct snapshot_room *room = xmalloc(sizeof *room);

	*room = (struct snapshot_room){ .fd = fd, .bytes = bytes };
	room->is_waited_for = thread_start(&room->thread, get_room, room);
	return room;
}

int snapshot_room_take(struct snapshot_room *room)
{
	int fd = room ? room->fd : -1;

	if (fd < 0)
		return -1;
	if (room->is_waited_for)
		pthread_join(room->thread, NULL);
	room->fd = -1;
	return fd;
}

void snapshot_room_free(struct snapshot_room *room)
{
	int fd = snapshot_room_take(room);

	if (fd >= 0)
		close(fd);
	free(room);
}
