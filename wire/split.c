/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A connection that one thread reads and others write. */
#include <poll.h>
#include <time.h>

#include "wire/internal.h"

enum { CLAIM_SECONDS = 1, AWAIT_MS = 20 };

void wire_set_output_lock(struct wire *wire, pthread_mutex_t *lock)
{
	wire->output_lock = lock;
}

void wire_split(struct wire *wire)
{
	wire->reader = pthread_self();
	wire->split = true;
}

/* What waits is complete frames once the open one is closed, so that a part of them can go and the rest follow. */
static void send_at_once(struct wire *wire)
{
	bool due = wire_keep_alive_due(wire);

	if (wire->out_used + wire_queue_length(wire) <= OUT_SIZE && wire_output_pending(wire))
		due = false;
	if (due && !wire->out_used) {
		wire->sends_keep_alive = true;
		wire_put_empty_frame(wire);
	}
	wire_close_frame(wire);
	if (wire->out_used)
		wire_send_some(wire);
	wire->sends_keep_alive = false;
}

void wire_offer_output(struct wire *wire)
{
	if (!wire->output_lock || pthread_mutex_trylock(wire->output_lock) != 0)
		return;
	send_at_once(wire);
	pthread_mutex_unlock(wire->output_lock);
}

bool wire_claim_output(struct wire *wire)
{
	struct timespec end;

	if (!wire->output_lock)
		return false;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += CLAIM_SECONDS;
	return pthread_mutex_timedlock(wire->output_lock, &end) == 0;
}

void wire_await_close(const struct wire *wire, int64_t end)
{
	while (!wire->in_closed && !wire->exit_heard && monotonic_now() < end)
		poll(NULL, 0, AWAIT_MS);
}
