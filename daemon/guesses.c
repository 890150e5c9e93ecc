/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * For each client the moment at which its failures are paid off, a second for each. Clients that share a place in the table
 * pay for each other; it is chosen by a secret, so that nobody can aim at it.
 */
#include "daemon/guesses.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/exit.h"

#define PLACES 4096
#define SECOND INT64_C(1000000000)

struct guesses {
	uint64_t seed;
	_Atomic int64_t paid_at[PLACES];
};

struct guesses *guesses_new(void)
{
	struct guesses *guesses =
		mmap(NULL, sizeof *guesses, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (guesses == MAP_FAILED)
		die(EXIT_MALLOC, "cannot share memory with server processes: %s", strerror(errno));
	guesses->seed = origin_seed();
	return guesses;
}

int64_t guesses_failed(struct guesses *guesses, const struct origin *origin, int64_t now)
{
	const int64_t free = GUESSES_AT_ONCE * GUESS_SECONDS * SECOND, most = GUESS_WAIT_MAX_SECONDS * SECOND;
	_Atomic int64_t *paid_at;
	int64_t before, after;

	if (!guesses)
		return 0;
	paid_at = &guesses->paid_at[origin_hash(origin, guesses->seed) % PLACES];
	before = atomic_load(paid_at);
	do {
		after = (before > now ? before : now) + GUESS_SECONDS * SECOND;
		if (after > now + free + most)
			after = now + free + most;
	} while (!atomic_compare_exchange_weak(paid_at, &before, after));
	return after > now + free ? after - now - free : 0;
}
