/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counting server processes. How far each of them has come stands on the board (daemon_board.h). */
#include "daemon_children.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/alloc.h"
#include "lib/log.h"

#define MILLISECOND INT64_C(1000000)
#define REPORT_MS 60000

struct child {
	pid_t pid; /* 0: free slot */
	struct origin origin;
	int64_t since;
	int64_t began; /* ns, as children_admit was told */
	bool refused;  /* runs only to say so */
	bool killed;   /* to make room: it counts no more */
};

struct children {
	struct child items[CHILDREN_SLOTS];
	struct board *board;
	int killed;            /* that have not been reported yet */
	int64_t report_at;     /* when that may be, ns */
	char last[BOARD_TEXT]; /* address of the last of them */
	void (*ended)(void *context, int slot, int status);
	void *ended_context;
};

struct children *children_new(void)
{
	struct children *children = xcalloc(1, sizeof *children);

	children->board = board_new(CHILDREN_SLOTS);
	return children;
}

static enum board_step step_of(struct children *children, int slot)
{
	return board_step(children_board(children, slot));
}

/* The slot whose process makes room, -1: none may be asked to. */
static int find_dispensable(struct children *children, int64_t began_before, enum board_step *step)
{
	int found = -1;

	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		const struct child *child = &children->items[i];
		const enum board_step at = step_of(children, i);

		if (!child->pid || child->killed || at > BOARD_CHOSEN || child->began > began_before)
			continue;
		if (found >= 0 && (at > *step || (at == *step && child->began >= children->items[found].began)))
			continue;
		found = i;
		*step = at;
	}
	return found;
}

static bool make_room(struct children *children, int64_t now)
{
	struct board_view view;
	enum board_step step = BOARD_CONNECTED;
	int slot;

	do {
		slot = find_dispensable(children, now - HANDSHAKE_MS * MILLISECOND, &step);
		if (slot < 0)
			return false;
	} while (!board_dismiss(children_board(children, slot), step));
	board_read(children_board(children, slot), &view);
	memcpy(children->last, view.texts[BOARD_ADDRESS], sizeof children->last);
	children->killed++;
	children->items[slot].killed = true;
	kill(children->items[slot].pid, SIGKILL);
	return true;
}

/* How many processes there are, and how many of them are still in the handshake with this client; a slot for another one. */
struct census {
	int processes, handshakes, free_slot;
};

static struct census take_census(struct children *children, const struct origin *origin)
{
	struct census census = { .free_slot = -1 };

	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		const struct child *child = &children->items[i];

		if (!child->pid)
			census.free_slot = i;
		else if (!child->killed)
			census.processes++;
		if (child->pid && step_of(children, i) < BOARD_REQUESTED && origin_is_same(&child->origin, origin))
			census.handshakes++;
	}
	return census;
}

int children_admit(struct children *children, const struct sockaddr *peer, int64_t now, int *limit)
{
	const struct origin origin = origin_of(peer);
	const struct census census = take_census(children, &origin);

	*limit = HANDSHAKES_MAX;
	if (peer && census.handshakes >= HANDSHAKES_MAX)
		return -1;
	*limit = CHILDREN_MAX;
	if (census.free_slot < 0 || (census.processes >= CHILDREN_MAX && !make_room(children, now)))
		return -1;
	children->items[census.free_slot] = (struct child){ .origin = origin, .began = now };
	board_clear(children_board(children, census.free_slot));
	return census.free_slot;
}

const struct origin *children_origin(const struct children *children, int slot)
{
	return &children->items[slot].origin;
}

int children_of_host(const struct children *children, int slot)
{
	int count = 0;

	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		const struct child *child = &children->items[i];

		count += i != slot && child->pid && !child->refused && !child->killed &&
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

struct board_slot *children_become(struct children *children, int slot)
{
	board_keep(children->board, (size_t)slot);
	return children_board(children, slot);
}

bool children_made_room(const struct children *children, int slot)
{
	return children->items[slot].killed;
}

void children_on_end(struct children *children, void (*ended)(void *context, int slot, int status), void *context)
{
	children->ended = ended;
	children->ended_context = context;
}

static void end_child(struct children *children, int slot, int status)
{
	const struct child *child = &children->items[slot];

	if (WIFSIGNALED(status) && !child->killed)
		log_error("server process %d died of signal %d", (int)child->pid, WTERMSIG(status));
	if (children->ended)
		children->ended(children->ended_context, slot, status);
	children->items[slot].pid = 0;
}

void children_reap(struct children *children)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (int i = 0; i < CHILDREN_SLOTS; i++)
			if (children->items[i].pid == pid)
				end_child(children, i, status);
	}
}

int children_report_wait(const struct children *children, int64_t now)
{
	int64_t left = (children->report_at - now) / MILLISECOND;

	return !children->killed ? -1 : left > 0 ? (int)left : 0;
}

void children_report(struct children *children, int64_t now, bool all)
{
	if (!children->killed || (!all && children_report_wait(children, now) > 0))
		return;
	log_msg(L_LOG, "too many server processes: ended %d of clients that had not been let in, the last that of %s",
		children->killed, *children->last ? children->last : "an unknown address");
	children->killed = 0;
	children->report_at = now + REPORT_MS * MILLISECOND;
}
