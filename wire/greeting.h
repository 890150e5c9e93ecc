/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The daemon's greeting line and the version rule, doc/protocol/01-session.md sections 3.1 and 3.2. Pure functions. */
#ifndef WIRE_GREETING_H
#define WIRE_GREETING_H

#include <stdbool.h>
#include <stddef.h>

struct greeting {
	int version, sub;      /* sub: -1 if omitted */
	const char *digests;   /* into the line; NULL if there is no list */
};

enum greeting_error { GREETING_OK, GREETING_MALFORMED, GREETING_NO_SUBPROTOCOL, GREETING_NO_DIGESTS };

/* The digests of logins, strongest first, blanks between them. */
const char *greeting_digests(void);
/* "@RSYNCD: 32.0 sha512 sha256 sha1 md5 md4\n" for our version. */
size_t greeting_format(char *buf, size_t size, int our_version);
/* `line` without its LF, CRs removed. */
enum greeting_error greeting_parse(struct greeting *greeting, const char *line);
/* The version both sides then use; 0 if the peer's is not in 20..40 or the result is below PROTOCOL_MIN. */
int greeting_negotiate(const struct greeting *theirs, int our_version);

#endif
