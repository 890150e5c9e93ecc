/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The strong checksums of doc/protocol/03-transfer.md section 4: of a block (seeded), of a whole file, of a file in the
 * list.
 */
#ifndef DELTA_DIGEST_H
#define DELTA_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/session.h"

#define DIGEST_MAX_LENGTH 20

/* A digest as it is shown: those of the xxh family travel with their low bytes first. */
void digest_for_display(enum sum_algorithm algorithm, const uint8_t *digest, int length, uint8_t *shown);

int digest_length(enum sum_algorithm algorithm); /* bytes on the wire: 16, 20, 8, 1 for none */

/* How blocks are seeded in this session (doc/protocol/03-transfer.md section 4.3). */
struct block_digest {
	enum sum_algorithm algorithm;
	int32_t seed;
	bool seed_first; /* md5: CF_CHKSUM_SEED_FIX */
};
/* Full-length digest of one block; out has DIGEST_MAX_LENGTH bytes. */
void block_digest_compute(const struct block_digest *how, const void *data, size_t length, uint8_t *out);

/* A running digest of a whole file; opaque, reusable. */
struct file_digest;
struct file_digest *file_digest_new(void);
void file_digest_free(struct file_digest *digest);
/* Transfer digest (doc/protocol/03-transfer.md section 4.4: only SUM_MD4_OLD takes the seed). */
void file_digest_start(struct file_digest *digest, enum sum_algorithm algorithm, int32_t seed);
/* File-list digest (4.5: never seeded). */
void file_digest_start_plain(struct file_digest *digest, enum sum_algorithm algorithm);
void file_digest_update(struct file_digest *digest, const void *data, size_t length);
int file_digest_finish(struct file_digest *digest, uint8_t out[DIGEST_MAX_LENGTH]); /* returns the length */

/* --- a daemon's challenge and response, for both sides of the connection (doc/protocol/07-daemon.md section 5.10) --- */

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
