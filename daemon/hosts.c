/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Distinguishing clients; and the debt of each for its connections and its failed logins. */
#include "daemon/hosts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"

#define MINUTE (60 * CLOCK_SECOND)
#define SET_COUNT 1024
#define SET_SIZE 8
#define PLACES 4096

static struct origin origin_of_ipv4(const void *address)
{
	struct origin origin = { .family = AF_INET };

	memcpy(origin.network, address, 4);
	return origin;
}

/* A socket for both families has IPv4 clients with mapped addresses. The hosts of a link share one network. */
static struct origin origin_of_ipv6(const struct in6_addr *address)
{
	struct origin origin = { .family = AF_INET6 };

	if (IN6_IS_ADDR_V4MAPPED(address))
		return origin_of_ipv4(address->s6_addr + 12);
	memcpy(origin.network, address->s6_addr + (IN6_IS_ADDR_LINKLOCAL(address) ? 8 : 0), sizeof origin.network);
	return origin;
}

struct origin origin_of(const struct sockaddr *peer)
{
	const sa_family_t family = peer ? peer->sa_family : AF_UNSPEC;

	if (family == AF_INET)
		return origin_of_ipv4(&((const struct sockaddr_in *)(const void *)peer)->sin_addr);
	if (family == AF_INET6)
		return origin_of_ipv6(&((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr);
	return (struct origin){ .family = family };
}

struct origin origin_of_address(const char *address)
{
	char plain[INET6_ADDRSTRLEN] = "";
	struct in6_addr network;

	/* A link-local address has the name of its interface behind it. */
	strncpy(plain, address, strnlen(address, sizeof plain - 1));
	plain[strcspn(plain, "%")] = 0;
	if (inet_pton(AF_INET, plain, &network) == 1 && network.s6_addr32[0])
		return origin_of_ipv4(&network);
	if (inet_pton(AF_INET6, plain, &network) == 1)
		return origin_of_ipv6(&network);
	return (struct origin){ .family = AF_UNSPEC };
}

bool origin_is_same(const struct origin *a, const struct origin *b)
{
	return a->family == b->family && !memcmp(a->network, b->network, sizeof a->network);
}

uint64_t origin_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		die(EXIT_IPC, "cannot get random bytes: %s", strerror(errno));
	return seed;
}

uint64_t origin_hash(const struct origin *origin, uint64_t seed)
{
	uint64_t hash;

	memcpy(&hash, origin->network, sizeof hash);
	hash = (hash ^ seed) * UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ hash >> 32 ^ origin->family) * UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

/* --- rates: for each client the moment at which all of its connections have been paid off --- */

struct host {
	struct origin origin;
	int64_t paid_at;
};

struct rates {
	uint64_t seed; /* so that nobody can choose addresses that push others out of their set */
	struct host hosts[SET_COUNT][SET_SIZE];
};

struct rates *rates_new(void)
{
	struct rates *rates = xcalloc(1, sizeof *rates);

	rates->seed = origin_seed();
	return rates;
}

void rates_forget(struct rates *rates)
{
	memset(rates->hosts, 0, sizeof rates->hosts);
}

/* The client's place; a new one takes that of whoever owes least. */
static struct host *find(struct rates *rates, const struct origin *origin)
{
	struct host *set = rates->hosts[origin_hash(origin, rates->seed) % SET_COUNT], *found = set;

	for (int i = 0; i < SET_SIZE; i++) {
		if (origin_is_same(&set[i].origin, origin))
			return &set[i];
		if (set[i].paid_at < found->paid_at)
			found = &set[i];
	}
	*found = (struct host){ .origin = *origin };
	return found;
}

bool rates_take(struct rates *rates, const struct origin *origin, int per_minute, int64_t now)
{
	struct host *host = find(rates, origin);
	int64_t each = MINUTE / per_minute, begin = host->paid_at > now ? host->paid_at : now;

	if (begin + each > now + MINUTE)
		return false;
	host->paid_at = begin + each;
	return true;
}

/* --- failed logins --- */

/*
 * For each client the moment at which its failures are paid off, a second for each. Clients that share a place in the table
 * pay for each other; it is chosen by a secret, so that nobody can aim at it.
 */
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
	const int64_t free = GUESSES_AT_ONCE * GUESS_SECONDS * CLOCK_SECOND, most = GUESS_WAIT_MAX_SECONDS * CLOCK_SECOND;
	_Atomic int64_t *paid_at;
	int64_t before, after;

	if (!guesses)
		return 0;
	paid_at = &guesses->paid_at[origin_hash(origin, guesses->seed) % PLACES];
	before = atomic_load(paid_at);
	do {
		after = (before > now ? before : now) + GUESS_SECONDS * CLOCK_SECOND;
		if (after > now + free + most)
			after = now + free + most;
	} while (!atomic_compare_exchange_weak(paid_at, &before, after));
	return after > now + free ? after - now - free : 0;
}
