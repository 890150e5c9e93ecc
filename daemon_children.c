/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counting server processes. The handshake marks are the only memory that a server process shares with its listener. */
#include "daemon_children.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

struct child {
	pid_t pid; /* 0: free slot */
	struct origin origin;
	bool refused; /* runs only to say so */
};

struct children {
	struct child items[CHILDREN_MAX];
	atomic_bool *past_handshake; /* CHILDREN_MAX, shared; each child writes its own */
};

struct children *children_new(void)
{
	struct children *children = xcalloc(1, sizeof *children);
	size_t size = CHILDREN_MAX * sizeof(atomic_bool);
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		die(EXIT_MALLOC, "cannot share memory with server processes: %s", strerror(errno));
	children->past_handshake = shared;
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
				children->items[i].pid = 0;
	}
}

void children_handshake_done(struct children *children, int slot)
{
	atomic_store(&children->past_handshake[slot], true);
}
