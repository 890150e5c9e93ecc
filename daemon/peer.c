/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The peer of a connection: address and verified name, and the header of a proxy (doc/protocol/07-daemon.md sections 4.3, 5.3
 * and 5.4); how the listener distinguishes clients, and the debt of each for its connections and its failed logins.
 */
#include "daemon/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "lib/alloc.h"
#include "lib/clock.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "loadparm/hosts.h"

/* --- clients as a listener distinguishes them --- */

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

static uint64_t origin_seed(void)
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

#define LINE_MAX_LENGTH 107 /* of a proxy's header, version 1 */
#define FIXED_LENGTH 16 /* of version 2 */
#define IPV4_LENGTH 12  /* two addresses, two ports */
#define IPV6_LENGTH 36
#define FIELDS 6

static const uint8_t proxy_signature[12] = { 0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a };
static const char proxy_word[] = "PROXY ";

/* --- the address --- */

static void set_name(struct peer *peer, const char *name)
{
	snprintf(peer->real_name, sizeof peer->real_name, "%s", name);
}

static void set_unknown(struct peer *peer)
{
	snprintf(peer->address, sizeof peer->address, "0.0.0.0");
	set_name(peer, "UNKNOWN");
}

static void set_address(struct peer *peer, const struct sockaddr *address, socklen_t length)
{
	const struct sockaddr_in6 *v6 = (const void *)address;

	if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, peer->address, sizeof peer->address);
		return;
	}
	if (getnameinfo(address, length, peer->address, sizeof peer->address, NULL, 0, NI_NUMERICHOST))
		set_unknown(peer);
}

void peer_from_socket(struct peer *peer, int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;

	set_name(peer, "UNDETERMINED");
	/* A Unix-domain peer has no address that an access list could name. */
	if (getpeername(fd, (struct sockaddr *)&address, &length) < 0 ||
	    (address.ss_family != AF_INET && address.ss_family != AF_INET6))
		set_unknown(peer);
	else
		set_address(peer, (struct sockaddr *)&address, length);
}

void peer_from_shell(struct peer *peer)
{
	static const char *const variables[] = { "REMOTE_HOST", "SSH_CONNECTION", "SSH_CLIENT", "SSH2_CLIENT" };
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *found;
	char word[64];

	set_name(peer, "UNDETERMINED");
	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
		const char *value = getenv(variables[i]);

		if (!value)
			continue;
		/* The first word of a variable, if it is an address. */
		if (snprintf(word, sizeof word, "%.*s", (int)strcspn(value, " \t"), value) < (int)sizeof word
		    && !getaddrinfo(word, NULL, &hints, &found)) {
			set_address(peer, found->ai_addr, found->ai_addrlen);
			freeaddrinfo(found);
		} else {
			set_unknown(peer);
		}
		return;
	}
	peer_from_socket(peer, 0);
}

static void show_ipv6(const uint8_t bytes[16], char address[PROXY_ADDRESS_SIZE])
{
	struct in6_addr v6;

	memcpy(&v6, bytes, sizeof v6);
	if (IN6_IS_ADDR_V4MAPPED(&v6))
		inet_ntop(AF_INET, bytes + 12, address, PROXY_ADDRESS_SIZE);
	else
		inet_ntop(AF_INET6, bytes, address, PROXY_ADDRESS_SIZE);
}

/* --- a proxy's header, version 1: a line --- */

static bool read_address(const char *text, char address[PROXY_ADDRESS_SIZE])
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1)
		inet_ntop(AF_INET, bytes, address, PROXY_ADDRESS_SIZE);
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		show_ipv6(bytes, address);
	else
		return false;
	return true;
}

static bool is_port(const char *text)
{
	return *text && strlen(text) <= 5 && text[strspn(text, "0123456789")] == 0 && atoi(text) > 0;
}

static enum proxy_result parse_line(const uint8_t *bytes, size_t length, char address[PROXY_ADDRESS_SIZE])
{
	char line[LINE_MAX_LENGTH + 1], destination[PROXY_ADDRESS_SIZE], *fields[FIELDS], *rest = line, *field;
	int count = 0;

	if (bytes[length - 1] == 0 || (bytes[length - 1] != '\n' && length == LINE_MAX_LENGTH))
		return PROXY_BAD;
	if (bytes[length - 1] != '\n')
		return PROXY_MORE;
	if (bytes[length - 2] != '\r')
		return PROXY_BAD;
	memcpy(line, bytes, length - 2);
	line[length - 2] = 0;
	while ((field = strsep(&rest, " ")) && count < FIELDS)
		fields[count++] = field;
	if (count >= 2 && !strcmp(fields[1], "UNKNOWN"))
		return PROXY_UNKNOWN;
	if (count != FIELDS || field || (strcmp(fields[1], "TCP4") && strcmp(fields[1], "TCP6"))
	    || !read_address(fields[2], address) || !read_address(fields[3], destination) || !is_port(fields[4])
	    || !is_port(fields[5]))
		return PROXY_BAD;
	return PROXY_ADDRESS;
}

/* --- a proxy's header, version 2: binary --- */

/* Everything behind the addresses is skipped. */
static enum proxy_result parse_binary(const uint8_t *bytes, size_t length, char address[PROXY_ADDRESS_SIZE])
{
	size_t payload, least;
	int command, family;

	if (length < FIXED_LENGTH)
		return PROXY_MORE;
	command = bytes[12] & 0x0f;
	family = bytes[13];
	payload = (size_t)bytes[14] << 8 | bytes[15];
	least = command != 1 ? 0 : family == 0x11 ? IPV4_LENGTH : family == 0x21 ? IPV6_LENGTH : 0;
	if (bytes[12] >> 4 != 2 || command > 1 || payload < least || FIXED_LENGTH + payload > PROXY_HEADER_MAX)
		return PROXY_BAD;
	if (length < FIXED_LENGTH + payload)
		return PROXY_MORE;
	if (!least)
		return PROXY_UNKNOWN;
	if (family == 0x11)
		inet_ntop(AF_INET, bytes + FIXED_LENGTH, address, PROXY_ADDRESS_SIZE);
	else
		show_ipv6(bytes + FIXED_LENGTH, address);
	return PROXY_ADDRESS;
}

/* --- a proxy's header --- */

enum proxy_result proxy_parse(const uint8_t *bytes, size_t length, char address[PROXY_ADDRESS_SIZE])
{
	const size_t mark = sizeof proxy_signature, word = sizeof proxy_word - 1;

	if (!memcmp(bytes, proxy_signature, length < mark ? length : mark))
		return parse_binary(bytes, length, address);
	if (memcmp(bytes, proxy_word, length < word ? length : word))
		return PROXY_BAD;
	return length <= word ? PROXY_MORE : parse_line(bytes, length, address);
}

bool peer_from_proxy(struct peer *peer, const struct config_globals *globals, struct wire *wire)
{
	char *hosts = config_text(globals->proxy_protocol_hosts);
	const struct host_peer host = { .address = peer->address, .name = peer->real_name };
	bool allowed = *hosts && hosts_allowed(hosts, "", &host);
	enum proxy_result result = PROXY_MORE;
	uint8_t header[PROXY_HEADER_MAX];
	size_t length = 0;

	free(hosts);
	/* Only certain peers may say whom they speak for (S-094). */
	if (!allowed) {
		log_msg(L_LOG, "proxy protocol rejected from untrusted peer %s (%s)", host.name, host.address);
		return false;
	}
	while (result == PROXY_MORE && length < sizeof header && wire_next_byte(wire, &header[length]))
		result = proxy_parse(header, ++length, peer->address);
	/* The proxy's own rights are not those of a client that it does not name (S-095). */
	if (result == PROXY_UNKNOWN)
		set_unknown(peer);
	return result == PROXY_ADDRESS || result == PROXY_UNKNOWN;
}

/* --- the name --- */

void peer_look_up_name(struct peer *peer)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *found;
	/* A name that goes into logs, access lists and the environment of commands: letters a host name may have. */
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	char name[NI_MAXHOST];
	bool same;
	int error;

	if (!strcmp(peer->real_name, "UNKNOWN"))
		return;
	set_name(peer, "UNKNOWN");
	if (getaddrinfo(peer->address, NULL, &hints, &found))
		return;
	error = getnameinfo(found->ai_addr, found->ai_addrlen, name, sizeof name, NULL, 0, NI_NAMEREQD);
	if (error) {
		log_msg(L_LOG, "name lookup failed for %s: %s", peer->address, gai_strerror(error));
	} else if (strlen(name) < sizeof peer->real_name && !name[strspn(name, letters)]) {
		/* Does the name lead back to the address? */
		error = hosts_look_up(name, found->ai_family, peer->address, &same);
		if (error)
			log_msg(L_LOG, "forward name lookup for %s failed: %s", name, gai_strerror(error));
		else if (!same)
			log_msg(L_LOG, "%s is not a known address for \"%s\": spoofed address?", peer->address, name);
		else
			set_name(peer, name);
	}
	freeaddrinfo(found);
}
