/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The digests of a daemon's challenge and response, as both sides of the connection need them (doc/protocol/07-daemon.md
 * section 5.10).
 */
#ifndef DELTA_AUTH_DIGEST_H
#define DELTA_AUTH_DIGEST_H

#include <stdbool.h>

/* Longest response or challenge, with its NUL. */
#define AUTH_TEXT_MAX 96

/*
 * The strongest digest that this side has and the peer lists; a static string. Without a list (NULL) the protocol decides:
 * "md5" if it has that, or "" for the MD4 of old releases. NULL: they have none in common.
 */
const char *auth_digest_choose(const char *theirs, bool md5);

/* Its place in the order of preference, 0 is the strongest; -1 if nobody knows it. Upper and lower case do not count. */
int auth_digest_rank(const char *name);

/* A challenge nobody has seen before, as long as the digest. */
void auth_challenge(const char *digest, char challenge[AUTH_TEXT_MAX]);

/* What answers the challenge for this password. */
void auth_response(const char *digest, const char *password, const char *challenge, char response[AUTH_TEXT_MAX]);

#endif
