/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The server processes of a listener: how many there are, and how many of one address have not got past the handshake yet
 * (doc/protocol/08-security.md section 3.5). The counts are taken before a process is forked, so that clients that only connect
 * can neither fill the machine nor keep others out: if there are too many processes, one of a client that has not been admitted
 * to a module makes room for the next.
 *
 * What their connections are doing stands on a board: memory that the listener shares with them, a slot for each. A server
 * process writes its own slot and needs no system call for that; those of others are out of its reach (children_become). It
 * talks to unknown clients: the listener believes nothing of what it reads but copies it within bounds, with texts made
 * printable (board_read).
 *
 * The sockets are bound here, or handed over by systemd (doc/protocol/07-daemon.md sections 4.5 and 4.6).
 */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "daemon/peer.h"
#include "lib/vec.h"
#include "wire/wire.h"

enum board_state {
	BOARD_HANDSHAKE, BOARD_AUTHENTICATION, BOARD_LISTING, BOARD_SENDING, BOARD_RECEIVING, BOARD_ENDING,
	BOARD_STATES
};

/*
 * How far a client has come. Until it is admitted the listener may dismiss it, to have room for others. Both sides change the
 * step atomically: a client that has been admitted is not dismissed, and one that is dismissed gets no further.
 */
enum board_step {
	BOARD_CONNECTED,
	BOARD_CHOSEN,    /* it has named a module */
	BOARD_ADMITTED,  /* and may use it */
	BOARD_REQUESTED, /* and has sent its request */
	BOARD_DISMISSED
};

#define BOARD_TEXT 128 /* with the NUL; what is longer is cut */

enum board_text { BOARD_ADDRESS, BOARD_MODULE, BOARD_USER, BOARD_TEXTS };
enum board_count { BOARD_FILES, BOARD_STALE, BOARD_MISSING, BOARD_COUNTS };

struct board_slot; /* in shared memory */

/* --- in the server process; a slot NULL is allowed: there is no listener --- */
/* false: the client has been dismissed. */
bool board_reach(struct board_slot *slot, enum board_step step);
void board_set_state(struct board_slot *slot, enum board_state state);
void board_set_text(struct board_slot *slot, enum board_text which, const char *text);
void board_set_count(struct board_slot *slot, enum board_count which, uint64_t value);
void board_count_file(struct board_slot *slot);
/* Bytes that the connection has moved, in and out. */
uint64_t board_traffic(const struct board_slot *slot);
/* For the settings of a connection; NULL for NULL. */
struct wire_meter *board_meter(struct board_slot *slot);

struct board_view {
	enum board_state state;
	char texts[BOARD_TEXTS][BOARD_TEXT]; /* without control bytes */
	uint64_t received, sent;             /* bytes */
	uint64_t counts[BOARD_COUNTS];
};
void board_read(const struct board_slot *slot, struct board_view *view);

#define CHILDREN_MAX 1024       /* server processes at a time; a busy mirror has hundreds */
#define CHILDREN_SLOTS (CHILDREN_MAX + 64) /* with those that have been killed and are not gone yet */
#define HANDSHAKES_MAX 64       /* of one IPv4 address or IPv6 /64 at a time; an honest handshake takes milliseconds */
#define HANDSHAKE_MS 1000       /* that every client has, however many come */

/* The traffic of a session up to a moment, and how long it has waited for its client. */
struct mark {
	int64_t at;
	uint64_t bytes, waited;
};

/* What stands in no board slot is the listener's own. */
struct child {
	pid_t pid;     /* 0: free slot */
	struct origin origin;
	int64_t since; /* Unix time of its start */
	int64_t began; /* clock_nanoseconds */
	bool refused;  /* runs only to say so: it does not count for the client */
	bool killed;   /* to make room: it counts no more */
	struct mark marks[2]; /* a minute ago and the one before that, or when it began */
};

struct children {
	struct child items[CHILDREN_SLOTS];
	char *board;
	size_t stride;         /* of its slots: whole pages, so that a process can be left with its own */
	int killed, slow;      /* not reported yet: clients that were not admitted, and sessions that were too slow */
	int64_t report_at;     /* when that may be, ns */
	char last[BOARD_TEXT], last_slow[BOARD_TEXT]; /* address of the last of them */
	/* Sessions that move fewer bytes in a minute of waiting for their client make room for others, too; 0: none does. */
	int minimum_rate;
	int64_t sampled_at;
	void (*ended)(void *context, int slot, int status); /* of each process, before its slot is free; NULL: nobody */
	void *ended_context;
};

/* Ends the process if there is no memory to share. Lives as long as the process. */
struct children *children_new(void);
/*
 * For the minimum rate: what sessions move is looked at once a minute, by children_sample; children_sample_wait says in how
 * many milliseconds that is due, -1: there is nothing to look at.
 */
void children_sample(struct children *children, int64_t now);
int children_sample_wait(const struct children *children, int64_t now);
/*
 * Returns a free slot for a connection from this address (NULL: a proxy's, which speaks for many) at `now` (clock_nanoseconds).
 * If the limit of processes is reached, the oldest of those whose clients have named no module is killed, or else of those
 * whose clients have not been admitted to theirs; if there are none of these, the slowest of the sessions that are below the
 * minimum rate is ended by a signal. -1: there is no slot, or the client has too many handshakes; *limit is how many there are.
 */
int children_admit(struct children *children, const struct sockaddr *peer, int64_t now, int *limit);
/* How many other processes serve the client of a slot. */
int children_of_host(const struct children *children, int slot);
/* Forget every process that has ended; one that crashed is logged. */
void children_reap(struct children *children);
/* Returns the board slot that the process of this slot writes to; children_admit clears it. */
struct board_slot *children_board(struct children *children, int slot);
/* In the new process: the same, and no other slot can be reached any more. */
struct board_slot *children_become(struct children *children, int slot);
/* Milliseconds until children_report has something to say, -1: never. */
int children_report_wait(const struct children *children, int64_t now);
/* Log how many have been killed to make room: at once, but no more than a line a minute unless it has to be all. */
void children_report(struct children *children, int64_t now, bool all);

typedef VEC(int) listen_sockets;

struct listen_request {
	const char *address;        /* "": every address */
	int port, backlog;
	int family;                 /* 0, 4, 6 */
	const char *socket_options; /* "" for none */
	bool verbose;               /* log what could not be bound even if something else could */
};

/* Bind and listen. Nothing could be bound, or listening failed: logged, false. */
bool listen_open(const struct listen_request *request, listen_sockets *sockets);
/* Bind only: without listening, no client can connect. */
bool listen_bind(const struct listen_request *request, listen_sockets *sockets);
/* Take over the sockets of LISTEN_FDS, if they are meant for this process. */
void listen_from_systemd(listen_sockets *sockets);
/* Tell systemd (NOTIFY_SOCKET) something; nothing happens where nobody listens. */
void listen_notify(const char *state);

#endif
