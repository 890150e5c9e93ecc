/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counting server processes. The handshake marks and the board (daemon_board.h) are what a server process shares with it. */
#include "daemon_children.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

struct child {
	pid_t pid; /* 0: free slot */
	struct origin origin;
	int64_t since;
	bool refused; /* runs only to say so */
};

struct children {
	struct child items[CHILDREN_MAX];
	atomic_bool *past_handshake; /* CHILDREN_MAX, shared; each child writes its own */
	struct board *board;
	void (*ended)(void *context, int slot, int status);
	void *ended_context;
};

struct children *children_new(void)
{
	struct children *children = xcalloc(1, sizeof *children);
	size_t size = CHILDREN_MAX * sizeof(atomic_bool);
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		die(EXIT_MALLOC, "cannot share memory with server processes: %s", strerror(errno));
	children->past_handshake = shared;
	children->board = board_new(CHILDREN_MAX);
	return children;
}

int children_admit(struct children *children, const struct sockaddr *peer, int *limit)
{
	const struct origin origin = origin_of(peer);
	int handshakes = 0, free_slot = -1;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		const struct child *child = &children->items[i];

		if (!child->pid)
			free_slot = i;
		else if (!atomic_load(&children->past_handshake[i]) && peer && origin_is_same(&child->origin, &origin))
			handshakes++;
	}
	*limit = free_slot < 0 ? CHILDREN_MAX : HANDSHAKES_MAX;
	if (free_slot < 0 || handshakes >= HANDSHAKES_MAX)
		return -1;
	children->items[free_slot].origin = origin;
	children->items[free_slot].refused = false;
	atomic_store(&children->past_handshake[free_slot], false);
	board_clear(board_slot(children->board, (size_t)free_slot));
	return free_slot;
}

const struct origin *children_origin(const struct children *children, int slot)
{
	return &children->items[slot].origin;
}

int children_of_host(const struct children *children, int slot)
{
	int count = 0;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		const struct child *child = &children->items[i];

		count += i != slot && child->pid && !child->refused &&
			 origin_is_same(&child->origin, &children->items[slot].origin);
	}
	return count;
}

void children_refuse(struct children *children, int slot)
{
	children->items[slot].refused = true;
}

void children_started(struct children *children, int slot, pid_t pid)
{
	children->items[slot].pid = pid;
	children->items[slot].since = time(NULL);
}

pid_t children_pid(const struct children *children, int slot, int64_t *since)
{
	*since = children->items[slot].since;
	return children->items[slot].pid;
}

struct board_slot *children_board(struct children *children, int slot)
{
	return board_slot(children->board, (size_t)slot);
}

void children_on_end(struct children *children, void (*ended)(void *context, int slot, int status), void *context)
{
	children->ended = ended;
	children->ended_context = context;
}

static void end_child(struct children *children, int slot, int status)
{
	if (children->ended)
		children->ended(children->ended_context, slot, status);
	children->items[slot].pid = 0;
}

void children_reap(struct children *children)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (WIFSIGNALED(status))
			log_error("server process %d died of signal %d", (int)pid, WTERMSIG(status));
		for (int i = 0; i < CHILDREN_MAX; i++)
			if (children->items[i].pid == pid)
				end_child(children, i, status);
	}
}

void children_handshake_done(struct children *children, int slot)
{
	atomic_store(&children->past_handshake[slot], true);
}
