/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counting server processes. How far each of them has come stands on the board (daemon/board.h). */
#include "daemon/children.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/log.h"

#define REPORT_MS 60000
#define MINUTE (60 * CLOCK_SECOND)

/* The traffic of a session up to a moment, and how long it has waited for its client. */
struct mark {
	int64_t at;
	uint64_t bytes, waited;
};

struct child {
	pid_t pid; /* 0: free slot */
	struct origin origin;
	int64_t since;
	int64_t began; /* clock_nanoseconds */
	bool refused;  /* runs only to say so */
	bool killed;   /* to make room: it counts no more */
	struct mark marks[2]; /* a minute ago and the one before that, or when it began */
};

struct children {
	struct child items[CHILDREN_SLOTS];
	struct board *board;
	int killed, slow;      /* not reported yet: clients that were not admitted, and sessions that were too slow */
	int64_t report_at;     /* when that may be, ns */
	char last[BOARD_TEXT], last_slow[BOARD_TEXT]; /* address of the last of them */
	int minimum_rate;      /* bytes a minute */
	int64_t sampled_at;
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

static void note_room(struct children *children, int slot, int *count, char last[BOARD_TEXT])
{
	struct board_view view;

	board_read(children_board(children, slot), &view);
	memcpy(last, view.texts[BOARD_ADDRESS], BOARD_TEXT);
	++*count;
	children->items[slot].killed = true;
}

static bool dismiss_stranger(struct children *children, int64_t now)
{
	enum board_step step = BOARD_CONNECTED;
	int slot;

	do {
		slot = find_dispensable(children, now - HANDSHAKE_MS * CLOCK_MILLISECOND, &step);
		if (slot < 0)
			return false;
	} while (!board_dismiss(children_board(children, slot), step));
	note_room(children, slot, &children->killed, children->last);
	kill(children->items[slot].pid, SIGKILL);
	return true;
}

/* --- sessions that are too slow --- */

static struct mark mark_now(struct children *children, int slot, int64_t now)
{
	const struct board_slot *board = children_board(children, slot);

	return (struct mark){ now, board_traffic(board), board_waited(board) };
}

/*
 * Bytes that a session has moved in a minute of waiting for its client, since the mark before the last: at least one minute is
 * looked at. Negative: it has not waited for so long, it is our disk that makes it slow.
 */
static double rate_of(struct children *children, int slot, int64_t now)
{
	const struct mark *then = &children->items[slot].marks[0];
	const struct mark here = mark_now(children, slot, now);
	int64_t waited = (int64_t)(here.waited - then->waited);

	/* It may wait for more than one thing at a time, and it is a process that talks to unknown clients. */
	if (waited > now - then->at)
		waited = now - then->at;
	if (waited < MINUTE)
		return -1;
	return (double)(here.bytes - then->bytes) / ((double)waited / (double)MINUTE);
}

static int find_slowest(struct children *children, int64_t now)
{
	double least = children->minimum_rate;
	int found = -1;

	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		const struct child *child = &children->items[i];
		const enum board_step at = step_of(children, i);
		double rate;

		if (!child->pid || child->killed || (at != BOARD_ADMITTED && at != BOARD_REQUESTED))
			continue;
		rate = rate_of(children, i, now);
		if (rate < 0 || rate >= least)
			continue;
		found = i;
		least = rate;
	}
	return found;
}

/* It may have files to put away, and a command to be run at its end: it gets a signal that it can handle. */
static bool end_slowest(struct children *children, int64_t now)
{
	int slot = children->minimum_rate ? find_slowest(children, now) : -1;

	if (slot < 0)
		return false;
	note_room(children, slot, &children->slow, children->last_slow);
	kill(children->items[slot].pid, SIGTERM);
	return true;
}

void children_set_minimum_rate(struct children *children, int bytes_per_minute)
{
	children->minimum_rate = bytes_per_minute;
}

void children_sample(struct children *children, int64_t now)
{
	if (now - children->sampled_at < MINUTE)
		return;
	children->sampled_at = now;
	for (int i = 0; i < CHILDREN_SLOTS; i++) {
		struct child *child = &children->items[i];

		child->marks[0] = child->marks[1];
		child->marks[1] = mark_now(children, i, now);
	}
}

int children_sample_wait(const struct children *children, int64_t now)
{
	int64_t left = (children->sampled_at + MINUTE - now) / CLOCK_MILLISECOND;

	for (int i = 0; children->minimum_rate && i < CHILDREN_SLOTS; i++)
		if (children->items[i].pid)
			return left > 0 ? (int)left + 1 : 0;
	return -1;
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
	if (census.free_slot < 0
	    || (census.processes >= CHILDREN_MAX && !dismiss_stranger(children, now) && !end_slowest(children, now)))
		return -1;
	children->items[census.free_slot] = (struct child){
		.origin = origin, .began = now, .marks = { { .at = now }, { .at = now } },
	};
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
	int64_t left = (children->report_at - now) / CLOCK_MILLISECOND;

	return !children->killed && !children->slow ? -1 : left > 0 ? (int)left : 0;
}

static void report(int *count, const char *who, const char *last)
{
	if (*count)
		log_msg(L_LOG, "too many server processes: ended %d of %s, the last that of %s", *count, who,
			*last ? last : "an unknown address");
	*count = 0;
}

void children_report(struct children *children, int64_t now, bool all)
{
	if ((!children->killed && !children->slow) || (!all && children_report_wait(children, now) > 0))
		return;
	report(&children->killed, "clients that had not been let in", children->last);
	report(&children->slow, "sessions below the minimum rate", children->last_slow);
	children->report_at = now + REPORT_MS * CLOCK_MILLISECOND;
}
