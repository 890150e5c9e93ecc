/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The receiver's half of the delta: tokens and a basis become a file, checked by the digest at its end
 * (doc/protocol/03-transfer.md section 7).
 */
#ifndef DELTA_PATCH_H
#define DELTA_PATCH_H

#include <stdatomic.h>

#include "delta/digest.h"
#include "delta/token.h"
#include "wire/request.h"

/* Room in which bytes collect, kept from file to file. Starts as all zeros; `bytes` is malloc'ed. */
struct patch_buffer {
	uint8_t *bytes;
	size_t capacity;
};

struct patch_request {
	struct session *session;
	struct token_reader *tokens;
	struct file_digest *digest;
	struct patch_buffer *buffer;
	const struct sum_head *head;  /* as it came with the reply: says what the block numbers mean */
	const char *name;             /* for the words that end a session; NULL: none */
	int basis_fd;                 /* -1: none; a block token is then a protocol error */
	bool basis_is_gone;           /* -1 because it has vanished since it was chosen: a block token cannot be read then */
	int out_fd;                   /* -1: read the stream to its end and throw it away (dry run, no file could be made) */
	uint64_t size;                /* that the list says */
	uint64_t most;                /* bytes that the new file may have; 0: any number */
	bool in_place;                /* out_fd has the content of the basis: blocks that stay where they are are not written */
	bool is_clone;                /* neither do they where out_fd, a new file, begins as a copy of the basis */
	bool is_new;                  /* out_fd is a regular file that has just been made, and is empty */
	bool sparse;                  /* runs of zeros become holes */
	bool keeps_tail;              /* blocks that are reserved behind the last data stay */
	int append;                   /* 0; 1: begin behind the basis; 2: the same, and the digest covers the basis */
	bool is_eager;                /* nothing that has come lies in memory while more is waited for */
	_Atomic uint64_t *done;       /* bytes so far, for progress; NULL: nobody wants to know */
};

/* READ_FAILED: the basis could not be read, or is shorter than the header says. TOO_LONG: more has come than there may be. */
enum patch_result { PATCH_OK, PATCH_WRONG_DIGEST, PATCH_WRITE_FAILED, PATCH_READ_FAILED, PATCH_TOO_LONG };

struct patch_outcome {
	enum patch_result result;     /* out_fd -1: always OK, nothing was compared */
	int error;                    /* errno of a failed write or of reading the basis */
	uint64_t length;              /* of the new file: out_fd has been cut to it, unless writing in place has failed */
	uint64_t literal, matched;    /* bytes */
	/* Blocks of 4 KiB that were written to, whether the file is good or not (doc/protocol/09-since-3.5.0.md section 3.1) */
	uint64_t blocks;
	uint8_t digest[DIGEST_MAX_LENGTH]; /* of the whole file, as computed */
	int digest_length;            /* 0 if the file has not been made in full */
};

/*
 * Read tokens up to the end and the digest behind them; the stream is always read in full. Nothing is logged. out_fd is
 * written by offset, from 0 on or from behind the basis; a new one may have been preallocated. A device is not cut.
 */
void patch_file(const struct patch_request *request, struct patch_outcome *outcome);

#endif
