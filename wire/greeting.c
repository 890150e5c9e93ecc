/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Making and reading "@RSYNCD: 33.0 sha512 ..." lines. */
#include "wire/greeting.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/session.h"

enum {
	LIST_OFFSET = 9,       /* the digest list begins behind the first space from here on */
	SUB_FROM = 30,         /* from this version on the sub-protocol must be there */
	DIGESTS_FROM = 32,     /* and from this one on the digest list */
};

static const char prefix[] = "@RSYNCD:";
static const char our_digests[] = "sha512 sha256 sha1 md5 md4";

const char *greeting_digests(void)
{
	return our_digests;
}

size_t greeting_format(char *buf, size_t size, int our_version)
{
	return (size_t)snprintf(buf, size, "%s %d.0 %s\n", prefix, our_version, our_digests);
}

/* A decimal integer, with a sign if need be; NULL if there is none or it does not fit. */
static const char *parse_integer(const char *text, int *value)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (end == text || errno || number < INT_MIN || number > INT_MAX)
		return NULL;
	*value = (int)number;
	return end;
}

enum greeting_error greeting_parse(struct greeting *greeting, const char *line)
{
	const char *rest, *space;

	*greeting = (struct greeting){ .version = 0, .sub = -1, .digests = NULL };
	if (strncmp(line, prefix, sizeof prefix - 1) != 0)
		return GREETING_MALFORMED;
	rest = parse_integer(line + sizeof prefix - 1, &greeting->version);
	if (!rest)
		return GREETING_MALFORMED;
	if (*rest == '.' && (!parse_integer(rest + 1, &greeting->sub) || greeting->sub < 0))
		greeting->sub = -1;
	if (greeting->sub < 0 && greeting->version >= SUB_FROM)
		return GREETING_NO_SUBPROTOCOL;
	space = strlen(line) > LIST_OFFSET ? strchr(line + LIST_OFFSET, ' ') : NULL;
	if (space)
		greeting->digests = space + 1;
	else if (greeting->version >= DIGESTS_FROM)
		return GREETING_NO_DIGESTS;
	return GREETING_OK;
}

int greeting_negotiate(const struct greeting *theirs, int our_version)
{
	int version = theirs->version;

	if (version < PEER_PROTOCOL_MIN || version > PEER_PROTOCOL_MAX)
		return 0;
	/* A pre-release (sub-protocol not 0) speaks what is certain: the version before. Ours is never one. */
	if (version <= our_version && theirs->sub > 0)
		version--;
	if (version > our_version)
		version = our_version;
	return version < PROTOCOL_MIN ? 0 : version;
}
