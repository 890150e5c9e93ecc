/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who is at the other end: address and verified name (protocol/07 sections 4.3 and 5.4). */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/proxy.h"
#include "daemon/session.h"
#include "lib/log.h"
#include "loadparm/hosts.h"

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

/* The first word of a variable, if it is an address. */
static bool take_address(struct peer *peer, const char *value)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *found;
	char word[64];
	size_t length = strcspn(value, " \t");

	if (length >= sizeof word)
		return false;
	memcpy(word, value, length);
	word[length] = 0;
	if (getaddrinfo(word, NULL, &hints, &found))
		return false;
	set_address(peer, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return true;
}

void peer_from_shell(struct peer *peer)
{
	static const char *const variables[] = { "REMOTE_HOST", "SSH_CONNECTION", "SSH_CLIENT", "SSH2_CLIENT" };

	set_name(peer, "UNDETERMINED");
	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
		const char *value = getenv(variables[i]);

		if (!value)
			continue;
		if (!take_address(peer, value))
			set_unknown(peer);
		return;
	}
	peer_from_socket(peer, 0);
}

/* Only certain peers may say whom they speak for (S-094). */
static bool may_be_proxy(const struct daemon_session *session)
{
	char *hosts = config_text(session->config->globals.proxy_protocol_hosts);
	const struct host_peer host = { .address = session->peer.address, .name = session->peer.real_name };
	bool allowed = *hosts && hosts_allowed(hosts, "", &host);

	free(hosts);
	if (!allowed)
		log_msg(L_LOG, "proxy protocol rejected from untrusted peer %s (%s)", host.name, host.address);
	return allowed;
}

bool peer_from_proxy(struct daemon_session *session)
{
	enum proxy_result result = PROXY_MORE;
	uint8_t header[PROXY_HEADER_MAX];
	size_t length = 0;

	if (!may_be_proxy(session))
		return false;
	while (result == PROXY_MORE && length < sizeof header && wire_next_byte(session->wire, &header[length]))
		result = proxy_parse(header, ++length, session->peer.address);
	/* The proxy's own rights are not those of a client that it does not name (S-095). */
	if (result == PROXY_UNKNOWN)
		set_unknown(&session->peer);
	return result == PROXY_ADDRESS || result == PROXY_UNKNOWN;
}

/* A name that goes into logs, access lists and the environment of commands: letters a host name may have. */
static bool is_plausible(const char *name)
{
	for (; *name; name++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *name))
			return false;
	return true;
}

/* Does the name lead back to the address? */
static bool confirm(const char *name, const char *address, int family)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM }, *found, *at;
	char text[64];
	bool same = false;
	int error = getaddrinfo(name, NULL, &hints, &found);

	if (error) {
		log_msg(L_LOG, "forward name lookup for %s failed: %s", name, gai_strerror(error));
		return false;
	}
	for (at = found; at && !same; at = at->ai_next)
		same = !getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) &&
		       !strcmp(text, address);
	freeaddrinfo(found);
	if (!same)
		log_msg(L_LOG, "%s is not a known address for \"%s\": spoofed address?", address, name);
	return same;
}

void peer_look_up_name(struct peer *peer)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *found;
	char name[NI_MAXHOST];
	int error;

	if (!strcmp(peer->real_name, "UNKNOWN"))
		return;
	set_name(peer, "UNKNOWN");
	if (getaddrinfo(peer->address, NULL, &hints, &found))
		return;
	error = getnameinfo(found->ai_addr, found->ai_addrlen, name, sizeof name, NULL, 0, NI_NAMEREQD);
	if (error)
		log_msg(L_LOG, "name lookup failed for %s: %s", peer->address, gai_strerror(error));
	else if (strlen(name) < sizeof peer->real_name && is_plausible(name) &&
		 confirm(name, peer->address, found->ai_family))
		set_name(peer, name);
	freeaddrinfo(found);
}
