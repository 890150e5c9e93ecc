/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matching a client against hosts allow and hosts deny. */
#include "loadparm_hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "lib/alloc.h"

#define SEPARATORS " \t\n,"

/* What one token says of one peer. BLIND: the token is malformed, or nothing is known that it could be compared with. */
enum verdict { MISS, MATCH, BLIND };

struct address {
	int family;
	uint8_t bytes[16];
	size_t length;
	uint32_t scope;
};

static bool only_has(const char *text, const char *set)
{
	return text[strspn(text, set)] == 0;
}

/* Short IPv4 forms count: "127.1" is 127.0.0.1. */
static bool parse_address(const char *text, struct address *address)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_family = AF_INET6, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	struct in_addr v4;

	*address = (struct address){ .family = AF_INET, .length = 4 };
	if (!strchr(text, ':')) {
		if (!inet_aton(text, &v4))
			return false;
		memcpy(address->bytes, &v4, 4);
		return true;
	}
	if (getaddrinfo(text, NULL, &hints, &found))
		return false;
	address->family = AF_INET6;
	address->length = 16;
	memcpy(address->bytes, &((struct sockaddr_in6 *)(void *)found->ai_addr)->sin6_addr, 16);
	address->scope = ((struct sockaddr_in6 *)(void *)found->ai_addr)->sin6_scope_id;
	freeaddrinfo(found);
	return true;
}

/* A number of leading bits, or a bit pattern in the family's own notation. */
static bool parse_mask(const char *text, const struct address *address, struct address *mask)
{
	char *end;
	unsigned long bits;

	if (strpbrk(text, ".:"))
		return parse_address(text, mask) && mask->family == address->family;
	*mask = (struct address){ .family = address->family, .length = address->length };
	bits = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || bits > address->length * 8)
		return false;
	for (size_t i = 0; i < bits; i++)
		mask->bytes[i / 8] |= (uint8_t)(0x80 >> (i % 8));
	return true;
}

struct network {
	struct address address, mask;
};

/* Could the token be meant as an address? Names with a mask cannot be anything. */
static bool looks_like_network(const char *token)
{
	return strchr(token, ':') || strchr(token, '/') || only_has(token, "0123456789.");
}

static bool parse_network(const char *token, struct network *network)
{
	const char *slash = strchr(token, '/');
	char *text = xstrndup(token, slash ? (size_t)(slash - token) : strlen(token));
	bool ok = (strchr(text, ':') || only_has(text, "0123456789.")) && parse_address(text, &network->address);

	free(text);
	if (!slash) {
		memset(network->mask.bytes, 0xff, sizeof network->mask.bytes);
		return ok;
	}
	return ok && parse_mask(slash + 1, &network->address, &network->mask);
}

static enum verdict match_network(const char *token, const struct host_peer *peer)
{
	struct network network;
	struct address address;

	if (!parse_network(token, &network))
		return BLIND;
	if (!parse_address(peer->address, &address) || address.family != network.address.family)
		return MISS;
	if (network.address.scope && network.address.scope != address.scope)
		return MISS;
	for (size_t i = 0; i < address.length; i++)
		if ((address.bytes[i] ^ network.address.bytes[i]) & network.mask.bytes[i])
			return MISS;
	return MATCH;
}

static int system_resolves(const char *name, const char *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found, *at;
	char text[INET6_ADDRSTRLEN + 32];
	int same = 0;

	if (getaddrinfo(name, NULL, &hints, &found))
		return -1;
	for (at = found; at && !same; at = at->ai_next)
		same = !getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) &&
		       !strcmp(text, address);
	freeaddrinfo(found);
	return same;
}

static enum verdict match_by_lookup(const char *token, const struct host_peer *peer)
{
	int same = peer->resolves ? peer->resolves(peer->context, token, peer->address) : system_resolves(token, peer->address);

	if (same < 0)
		return BLIND;
	if (same && peer->learned && !strcmp(peer->name, "UNDETERMINED")) {
		strbuf_reset(peer->learned);
		strbuf_add_string(peer->learned, token);
	}
	return same ? MATCH : MISS;
}

static enum verdict match_name(const char *token, const struct host_peer *peer)
{
	char *name = xstrdup(peer->name);
	bool same;

	for (char *at = name; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	same = wildmatch(token, name);
	free(name);
	if (same)
		return MATCH;
	if (peer->forward_lookup && !strpbrk(token, "*?["))
		return match_by_lookup(token, peer);
	return strcmp(peer->name, "UNKNOWN") ? MISS : BLIND;
}

static enum verdict match_token(const char *token, const struct host_peer *peer)
{
	if (token[0] == '@' && token[1])
		return innetgr(token + 1, peer->name, NULL, NULL) ? MATCH : MISS;
	if (looks_like_network(token))
		return match_network(token, peer);
	return match_name(token, peer);
}

/* `blind`: what a token that cannot be judged counts as. */
static bool list_matches(const char *list, const struct host_peer *peer, bool blind)
{
	char *copy = xstrdup(list), *rest, *token;
	bool found = false;

	for (char *at = copy; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	for (token = strtok_r(copy, SEPARATORS, &rest); token && !found; token = strtok_r(NULL, SEPARATORS, &rest)) {
		enum verdict verdict = match_token(token, peer);

		found = verdict == MATCH || (verdict == BLIND && blind);
	}
	free(copy);
	return found;
}

bool hosts_allowed(const char *allow, const char *deny, const struct host_peer *peer)
{
	if (*allow && list_matches(allow, peer, false))
		return true;
	if (*allow && !*deny)
		return false;
	return !*deny || !list_matches(deny, peer, true);
}

bool hosts_list_check(const char *list, struct strbuf *why)
{
	char *copy = xstrdup(list), *rest, *token;
	struct network network;
	bool ok = true;

	for (token = strtok_r(copy, SEPARATORS, &rest); token && ok; token = strtok_r(NULL, SEPARATORS, &rest)) {
		ok = *token == '@' || !looks_like_network(token) || parse_network(token, &network);
		if (!ok)
			strbuf_addf(why, "malformed address or mask \"%s\"", token);
	}
	free(copy);
	return ok;
}
