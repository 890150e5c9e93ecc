/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finding a basis file's blocks in a source file (doc/protocol/03-transfer.md section 5) and saying the result as tokens. */
#ifndef DELTA_MATCH_H
#define DELTA_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "delta/digest.h"
#include "delta/token.h"
#include "wire/request.h"

struct match_stats {
	uint64_t literal_bytes, matched_bytes;
	uint64_t hash_hits, false_alarms, matches;
	uint64_t candidates; /* blocks compared in search of a match: the work that is bounded */
	int read_error;      /* of the last file: errno, ENODATA if it has become shorter, or 0 */
};

struct match_request {
	int fd;                         /* the source, read through pread(2), never mapped, once and front to back */
	const uint8_t *memory;          /* the bytes of a source without a file; NULL: fd */
	uint64_t size;                  /* of the source, as fstat gave it at open time */
	const struct block_sums *sums;  /* count 0: everything is literal */
	struct block_digest block;      /* seeding of block sums */
	enum sum_algorithm file_sum;    /* transfer digest over the whole file */
	int32_t seed;
	bool in_place;                  /* doc/protocol/03-transfer.md section 5.3 applies */
	uint64_t append_from;           /* --append: bytes the peer has; only the rest is sent (clamped to size) */
	bool append_verify;             /* the digest covers the first append_from bytes too */
	/* Told now and then how many bytes of the source have been dealt with, or NULL. */
	void (*progress)(void *context, uint64_t done);
	void *context;
	/* Told of each block that is found at this place of the source, or NULL. */
	void (*matched)(void *context, uint64_t at, uint32_t block, uint32_t length);
	void *matched_context;
};

/*
 * Write tokens for the whole source through `tokens` (including the end token) and compute the whole-file digest into
 * digest (returns its length). Work is bounded: at most 1024 candidates per offset, equal (weak, strong) pairs stored once,
 * and in all c * (size + count) steps, after which the rest is literal (S-056). What cannot be read (error, or the
 * file shrank) is delivered as zero bytes, and the digest is the deliberately wrong one of doc/protocol/03-transfer.md section
 * 7.8. Calls wire_keep_alive through the token writer.
 */
int match_file(const struct match_request *request, struct token_writer *tokens, struct match_stats *stats,
	       uint8_t digest[DIGEST_MAX_LENGTH]);

#endif
