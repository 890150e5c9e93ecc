/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The host lists of the configuration, `hosts allow` and `hosts deny`: grammar and matching (doc/protocol/07-daemon.md
 * section 5.5).
 */
#ifndef LOADPARM_HOSTS_H
#define LOADPARM_HOSTS_H

#include <stdbool.h>

#include "lib/strbuf.h"

/* The client that connects. */
struct host_peer {
	const char *address;   /* numeric, IPv4-mapped IPv6 as IPv4 */
	const char *name;      /* verified name, or "UNKNOWN", "UNDETERMINED" */
	bool forward_lookup;   /* host names in lists may be resolved */
	/* Does `name` resolve to the peer's address? 1 yes, 0 no, -1 cannot be resolved. NULL: the system's resolver. */
	int (*resolves)(void *context, const char *name, const char *address);
	/* Is the client a member of the netgroup? 1 yes, 0 no, -1 nobody can say. NULL: the system's. */
	int (*has_member)(void *context, const char *group, const char *name);
	void *context;
	struct strbuf *learned; /* NULL, or takes the list's host name that an "UNDETERMINED" peer turned out to be */
};

/*
 * The decision for an allow and a deny list; "" means not set. A token that cannot be decided (S-097) denies in a deny list and
 * does not allow in an allow list: it is malformed; names a host or netgroup that cannot be looked up, or one that only the
 * client's name could be compared with, which is not known; is not ASCII; or is the IPv4-mapped form of a client's address.
 */
bool hosts_allowed(const char *allow, const char *deny, const struct host_peer *peer);

/*
 * For the check of a configuration: a line for each token that cannot be decided for any client, though it is well formed.
 * The name in `peer` is "UNDETERMINED" where clients have none, else anything else. Looks names up.
 */
void hosts_list_doubts(const char *list, const struct host_peer *peer, bool denies, struct strbuf *why);

/* Does the name of a host lead to the address? 0: it can be resolved, and *same says so; else the error of getaddrinfo. */
int hosts_look_up(const char *name, int family, const char *address, bool *same);

/* Is the list well formed? else false and `why` names the token. */
bool hosts_list_check(const char *list, struct strbuf *why);

#endif
