/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matching a client against hosts allow and hosts deny. */
#include "loadparm/hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "filter/wildmatch.h"
#include "lib/alloc.h"
#include "lib/charset.h"

#define SEPARATORS " \t\n,"

/* The result of comparing a token with a peer. BLIND: it is malformed, or nothing is known that it could be compared with. */
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

static bool is_mapped(const struct address *address)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return address->family == AF_INET6 && !memcmp(address->bytes, prefix, sizeof prefix);
}

static bool is_inside(const struct address *address, const struct network *network)
{
	for (size_t i = 0; i < address->length; i++)
		if ((address->bytes[i] ^ network->address.bytes[i]) & network->mask.bytes[i])
			return false;
	return true;
}

static enum verdict match_network(const char *token, const struct host_peer *peer)
{
	struct network network;
	struct address address, mapped = { .family = AF_INET6, .length = 16, .bytes = { [10] = 0xff, [11] = 0xff } };
	static const uint8_t nobody[4];

	if (!parse_network(token, &network) || !parse_address(peer->address, &address))
		return BLIND;
	if (address.family == AF_INET && is_mapped(&network.address)) {
		/* It means this client, but no client is written so: as a refusal it counts, as a right it does not. */
		memcpy(mapped.bytes + 12, address.bytes, 4);
		return is_inside(&mapped, &network) ? BLIND : MISS;
	}
	if (address.family == network.address.family && is_inside(&address, &network) &&
	    (!network.address.scope || network.address.scope == address.scope))
		return MATCH;
	/* Clients whom nobody knows (behind a proxy that does not say, at a socket without addresses) are 0.0.0.0. */
	return address.family == AF_INET && !memcmp(address.bytes, nobody, sizeof nobody) ? BLIND : MISS;
}

int hosts_look_up(const char *name, int family, const char *address, bool *same)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = family }, *found, *at;
	char text[INET6_ADDRSTRLEN + 32];
	int error = getaddrinfo(name, NULL, &hints, &found);

	*same = false;
	if (error)
		return error;
	for (at = found; at && !*same; at = at->ai_next)
		*same = !getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) &&
			!strcmp(text, address);
	freeaddrinfo(found);
	return 0;
}

/* The client's family is asked for alone: addresses of the other one must not hide that a server has not answered. */
static int resolves(const struct host_peer *peer, const char *name)
{
	bool same;
	int error;

	if (peer->resolves)
		return peer->resolves(peer->context, name, peer->address);
	error = hosts_look_up(name, strchr(peer->address, ':') ? AF_INET6 : AF_INET, peer->address, &same);
	if (!error)
		return same;
	if (error == EAI_NODATA || error == EAI_ADDRFAMILY)
		return 0;
	return error == EAI_NONAME && !hosts_look_up(name, AF_UNSPEC, peer->address, &same) ? 0 : -1;
}

static bool has_name(const struct host_peer *peer)
{
	return strcmp(peer->name, "UNKNOWN") != 0 && strcmp(peer->name, "UNDETERMINED") != 0;
}

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text > 0x7f)
			return false;
	return true;
}

static bool is_pattern(const char *token)
{
	return strpbrk(token, "*?[");
}

static enum verdict match_name(const char *token, const struct host_peer *peer)
{
	char *name = xstrdup(peer->name);
	bool same;
	int found;

	for (char *at = name; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	same = wildmatch(token, name);
	free(name);
	if (same)
		return MATCH;
	if (peer->forward_lookup && !is_pattern(token)) {
		found = resolves(peer, token);
		if (found > 0 && peer->learned && !strcmp(peer->name, "UNDETERMINED")) {
			strbuf_reset(peer->learned);
			strbuf_add_string(peer->learned, token);
		}
		return found < 0 ? BLIND : found ? MATCH : MISS;
	}
	/* Names of clients are ASCII: what is not cannot be compared with them. */
	return has_name(peer) && is_ascii(token) ? MISS : BLIND;
}

/* 1 member, 0 not, -1 there is no such group, or nobody who could say. */
static int has_member(const struct host_peer *peer, const char *group, const char *name)
{
	bool known;

	if (peer->has_member)
		return peer->has_member(peer->context, group, name);
	if (innetgr(group, name, NULL, NULL))
		return 1;
	known = setnetgrent(group);
	endnetgrent();
	return known ? 0 : -1;
}

static enum verdict match_token(const char *token, const struct host_peer *peer)
{
	char *ascii;
	enum verdict verdict;

	if (token[0] == '@' && token[1]) {
		int member = has_member(peer, token + 1, peer->name);

		return member > 0 ? MATCH : member < 0 || !has_name(peer) ? BLIND : MISS;
	}
	ascii = idn_to_ascii(token, true);
	token = ascii ? ascii : token;
	verdict = looks_like_network(token) ? match_network(token, peer) : match_name(token, peer);
	free(ascii);
	return verdict;
}

/* ASCII only: the rest may be UTF-8. */
static char *lower_case(const char *list)
{
	char *copy = xstrdup(list);

	for (char *at = copy; *at; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at - 'A' + 'a');
	return copy;
}

/* `blind`: what a token that cannot be judged counts as. */
static bool list_matches(const char *list, const struct host_peer *peer, bool blind)
{
	char *copy = lower_case(list), *rest, *token;
	bool found = false;

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

static const char *doubt_of_name(const char *token, const struct host_peer *peer)
{
	bool same;
	int failed;

	if (!strcmp(token, "*") || !strcmp(token, "unknown") || !strcmp(token, "undetermined"))
		return NULL;
	if (!is_ascii(token) && (is_pattern(token) || !peer->forward_lookup))
		return "names of clients are ASCII";
	if (is_pattern(token) || !peer->forward_lookup)
		return has_name(peer) ? NULL : "clients have no names without \"reverse lookup\"";
	failed = peer->resolves ? peer->resolves(peer->context, token, "") < 0 : hosts_look_up(token, AF_UNSPEC, "", &same);
	return failed ? "it cannot be resolved" : NULL;
}

/* Why a token can be decided for no client that it is about; NULL. */
static const char *doubt_of(const char *token, const struct host_peer *peer)
{
	struct network network;

	if (token[0] == '@' && token[1]) {
		if (!has_name(peer))
			return "clients have no names without \"reverse lookup\"";
		return has_member(peer, token + 1, "") < 0 ? "there is no such netgroup, or nobody who knows it" : NULL;
	}
	if (!looks_like_network(token)) {
		char *ascii = idn_to_ascii(token, true);
		const char *doubt = doubt_of_name(ascii ? ascii : token, peer);

		free(ascii);
		return doubt;
	}
	return parse_network(token, &network) && is_mapped(&network.address) ? "write it as an IPv4 address" : NULL;
}

void hosts_list_doubts(const char *list, const struct host_peer *peer, bool denies, struct strbuf *why)
{
	char *copy = lower_case(list), *rest, *token;

	for (token = strtok_r(copy, SEPARATORS, &rest); token; token = strtok_r(NULL, SEPARATORS, &rest)) {
		const char *doubt = doubt_of(token, peer);

		if (doubt)
			strbuf_addf(why, "\"%s\" cannot be decided and %s: %s\n", token,
				    denies ? "denies" : "lets nobody in", doubt);
	}
	free(copy);
}
