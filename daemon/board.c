/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The shared memory in which server processes publish their state. */
#include "daemon/board.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/exit.h"

struct board_slot {
	atomic_int step;
	atomic_int state;
	struct wire_meter meter;
	_Atomic uint64_t counts[BOARD_COUNTS];
	_Atomic char texts[BOARD_TEXTS][BOARD_TEXT];
};

struct board {
	char *slots;
	size_t count;
	size_t stride; /* bytes from one to the next: whole pages, so that a process can be left with its own */
};

const char *board_state_name(enum board_state state)
{
	static const char *const names[BOARD_STATES] = {
		"handshake", "authentication", "listing", "sending", "receiving", "ending",
	};

	return names[state];
}

struct board *board_new(size_t slots)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct board *board = xcalloc(1, sizeof *board);
	void *shared;

	board->count = slots;
	board->stride = (sizeof(struct board_slot) + page - 1) / page * page;
	shared = mmap(NULL, slots * board->stride, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die(EXIT_MALLOC, "cannot share memory with server processes: %s", strerror(errno));
	board->slots = shared;
	return board;
}

struct board_slot *board_slot(struct board *board, size_t index)
{
	return (struct board_slot *)(void *)(board->slots + index * board->stride);
}

void board_keep(struct board *board, size_t index)
{
	char *own = board->slots + index * board->stride, *next = own + board->stride;
	char *end = board->slots + board->count * board->stride;

	if ((own > board->slots && munmap(board->slots, (size_t)(own - board->slots)) < 0) ||
	    (next < end && munmap(next, (size_t)(end - next)) < 0))
		die(EXIT_IPC, "cannot give up the memory of other server processes: %s", strerror(errno));
}

enum board_step board_step(const struct board_slot *slot)
{
	return (enum board_step)atomic_load(&slot->step);
}

bool board_dismiss(struct board_slot *slot, enum board_step step)
{
	int seen = (int)step;

	return atomic_compare_exchange_strong(&slot->step, &seen, BOARD_DISMISSED);
}

bool board_reach(struct board_slot *slot, enum board_step step)
{
	int seen = slot ? atomic_load(&slot->step) : BOARD_DISMISSED;

	while (slot && seen != BOARD_DISMISSED)
		if (atomic_compare_exchange_weak(&slot->step, &seen, (int)step))
			return true;
	return !slot;
}

void board_clear(struct board_slot *slot)
{
	atomic_store(&slot->step, BOARD_CONNECTED);
	board_set_state(slot, BOARD_HANDSHAKE);
	atomic_store_explicit(&slot->meter.received, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->meter.sent, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->meter.waited, 0, memory_order_relaxed);
	for (int i = 0; i < BOARD_COUNTS; i++)
		board_set_count(slot, (enum board_count)i, 0);
	for (int i = 0; i < BOARD_TEXTS; i++)
		board_set_text(slot, (enum board_text)i, "");
}

void board_set_state(struct board_slot *slot, enum board_state state)
{
	if (slot)
		atomic_store_explicit(&slot->state, (int)state, memory_order_relaxed);
}

void board_set_text(struct board_slot *slot, enum board_text which, const char *text)
{
	size_t length = strnlen(text, BOARD_TEXT - 1);

	for (size_t i = 0; slot && i < BOARD_TEXT; i++)
		atomic_store_explicit(&slot->texts[which][i], i < length ? text[i] : 0, memory_order_relaxed);
}

void board_set_count(struct board_slot *slot, enum board_count which, uint64_t value)
{
	if (slot)
		atomic_store_explicit(&slot->counts[which], value, memory_order_relaxed);
}

void board_count_file(struct board_slot *slot)
{
	if (slot)
		atomic_fetch_add_explicit(&slot->counts[BOARD_FILES], 1, memory_order_relaxed);
}

struct wire_meter *board_meter(struct board_slot *slot)
{
	return slot ? &slot->meter : NULL;
}

uint64_t board_traffic(const struct board_slot *slot)
{
	if (!slot)
		return 0;
	return atomic_load_explicit(&slot->meter.received, memory_order_relaxed) +
	       atomic_load_explicit(&slot->meter.sent, memory_order_relaxed);
}

uint64_t board_waited(const struct board_slot *slot)
{
	return atomic_load_explicit(&slot->meter.waited, memory_order_relaxed);
}

static void read_text(const struct board_slot *slot, enum board_text which, char out[BOARD_TEXT])
{
	size_t i;

	for (i = 0; i < BOARD_TEXT - 1; i++) {
		char byte = atomic_load_explicit(&slot->texts[which][i], memory_order_relaxed);

		if (!byte)
			break;
		out[i] = (unsigned char)byte < ' ' || byte == 0x7f ? '?' : byte;
	}
	out[i] = 0;
}

void board_read(const struct board_slot *slot, struct board_view *view)
{
	int state = atomic_load_explicit(&slot->state, memory_order_relaxed);

	view->state = state >= 0 && state < BOARD_STATES ? (enum board_state)state : BOARD_ENDING;
	view->received = atomic_load_explicit(&slot->meter.received, memory_order_relaxed);
	view->sent = atomic_load_explicit(&slot->meter.sent, memory_order_relaxed);
	for (int i = 0; i < BOARD_COUNTS; i++)
		view->counts[i] = atomic_load_explicit(&slot->counts[i], memory_order_relaxed);
	for (int i = 0; i < BOARD_TEXTS; i++)
		read_text(slot, (enum board_text)i, view->texts[i]);
}
