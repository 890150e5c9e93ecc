/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counting server processes. The handshake marks are the only memory that a server process shares with its listener. */
#include "daemon_children.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "lib/alloc.h"
#include "lib/exit.h"

/* What one client is counted by. */
struct origin {
	sa_family_t family;
	uint8_t network[8];
};

struct child {
	pid_t pid; /* 0: free slot */
	struct origin origin;
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

static struct origin origin_of(const struct sockaddr *peer)
{
	struct origin origin = { .family = peer ? peer->sa_family : AF_UNSPEC };

	if (origin.family == AF_INET)
		memcpy(origin.network, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
	else if (origin.family == AF_INET6)
		memcpy(origin.network, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr, 8);
	return origin;
}

static bool same_origin(const struct origin *a, const struct origin *b)
{
	return a->family == b->family && !memcmp(a->network, b->network, sizeof a->network);
}

int children_admit(struct children *children, const struct sockaddr *peer)
{
	const struct origin origin = origin_of(peer);
	int handshakes = 0, free_slot = -1;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		const struct child *child = &children->items[i];

		if (!child->pid)
			free_slot = i;
		else if (!atomic_load(&children->past_handshake[i]) && peer && same_origin(&child->origin, &origin))
			handshakes++;
	}
	if (free_slot < 0 || handshakes >= HANDSHAKES_MAX)
		return -1;
	children->items[free_slot].origin = origin;
	atomic_store(&children->past_handshake[free_slot], false);
	return free_slot;
}

void children_started(struct children *children, int slot, pid_t pid)
{
	children->items[slot].pid = pid;
}

void children_reap(struct children *children)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (int i = 0; i < CHILDREN_MAX; i++)
			if (children->items[i].pid == pid)
				children->items[i].pid = 0;
}

void children_handshake_done(struct children *children, int slot)
{
	atomic_store(&children->past_handshake[slot], true);
}
