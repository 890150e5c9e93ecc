/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the connections of a daemon are doing: memory that the listener shares with its server processes, a slot for each.
 *
 * A server process writes its own slot and needs no system call for that; those of others are out of its reach (board_keep).
 * It talks to unknown clients: the listener believes nothing of what it reads but copies it within bounds, with texts made
 * printable (board_read).
 */
#ifndef DAEMON_BOARD_H
#define DAEMON_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

enum board_state {
	BOARD_HANDSHAKE, BOARD_AUTHENTICATION, BOARD_LISTING, BOARD_SENDING, BOARD_RECEIVING, BOARD_ENDING,
	BOARD_STATES
};
const char *board_state_name(enum board_state state);

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
struct board;

/* Ends the process if there is no memory. Lives as long as the process. */
struct board *board_new(size_t slots);
struct board_slot *board_slot(struct board *board, size_t index);
/* In the listener, before the slot gets a new process. */
void board_clear(struct board_slot *slot);

/* --- in the server process; a slot NULL is allowed: there is no listener --- */
/* At first: all other slots are out of reach from now on. */
void board_keep(struct board *board, size_t index);
/* false: the client has been dismissed. */
bool board_reach(struct board_slot *slot, enum board_step step);
void board_set_state(struct board_slot *slot, enum board_state state);
void board_set_text(struct board_slot *slot, enum board_text which, const char *text);
void board_set_count(struct board_slot *slot, enum board_count which, uint64_t value);
void board_count_file(struct board_slot *slot);
/* Bytes that the connection has moved, in and out. */
uint64_t board_traffic(const struct board_slot *slot);
/* How long it has waited for its client, ns. */
uint64_t board_waited(const struct board_slot *slot);
/* For wire_set_meter; NULL for NULL. */
struct wire_meter *board_meter(struct board_slot *slot);

/* --- in the listener --- */
enum board_step board_step(const struct board_slot *slot);
/* false: it is not at that step any more. */
bool board_dismiss(struct board_slot *slot, enum board_step step);

struct board_view {
	enum board_state state;
	char texts[BOARD_TEXTS][BOARD_TEXT]; /* without control bytes */
	uint64_t received, sent;             /* bytes */
	uint64_t counts[BOARD_COUNTS];
};
void board_read(const struct board_slot *slot, struct board_view *view);

#endif
