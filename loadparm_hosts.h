/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The host lists of the configuration, `hosts allow` and `hosts deny`: grammar and matching (protocol/07 section 5.5). */
#ifndef LOADPARM_HOSTS_H
#define LOADPARM_HOSTS_H

#include <stdbool.h>

#include "lib/strbuf.h"

/* Who knocks. */
struct host_peer {
	const char *address;   /* numeric, IPv4-mapped IPv6 as IPv4 */
	const char *name;      /* verified name, or "UNKNOWN", "UNDETERMINED" */
	bool forward_lookup;   /* host names in lists may be resolved */
	/* Does `name` resolve to the peer's address? 1 yes, 0 no, -1 cannot be resolved. NULL: the system's resolver. */
	int (*resolves)(void *context, const char *name, const char *address);
	void *context;
	struct strbuf *learned; /* NULL, or takes the list's host name that an "UNDETERMINED" peer turned out to be */
};

/* The decision for an allow and a deny list; "" means not set. A deny token that cannot be judged denies (S-097). */
bool hosts_allowed(const char *allow, const char *deny, const struct host_peer *peer);

/* Is the list well formed? else false and `why` names the token. */
bool hosts_list_check(const char *list, struct strbuf *why);

#endif
