/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For tests: what a sender's half has written (delta_support.h) is received, from memory into files without a name. */
#ifndef TESTSUITE_DELTA_RECEIVE_H
#define TESTSUITE_DELTA_RECEIVE_H

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "delta/patch.h"
#include "delta/token.h"
#include "testsuite/unit/delta_support.h"
#include "testsuite/unit/expect_die.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

struct reception {
	struct session session;
	struct token_reader *tokens;
	struct file_digest *digest;
	struct patch_buffer buffer;
	struct patch_outcome outcome;
};

static inline void reception_start(struct reception *reception, enum compress_algorithm compress, int protocol,
				   enum sum_algorithm sum, const void *stream, size_t length)
{
	*reception = (struct reception){ .session = {
		.wire = wire_new_memory(stream, length), .compress = compress, .xfer_sum = sum,
		.seed = SEED, .seed_first = true,
	} };
	session_set_protocol(&reception->session, protocol);
	reception->tokens = token_reader_new(&reception->session);
	reception->digest = file_digest_new();
}

/* Everything that the transfer has written so far. */
static inline void reception_of(struct reception *reception, struct transfer *transfer)
{
	size_t length;
	const uint8_t *stream = wire_test_output(transfer->session.wire, &length);

	reception_start(reception, transfer->setting.compress, transfer->setting.protocol, transfer->setting.sum, stream,
			length);
}

static inline void reception_end(struct reception *reception)
{
	token_reader_free(reception->tokens);
	file_digest_free(reception->digest);
	free(reception->buffer.bytes);
	wire_free(reception->session.wire);
}

static inline bool everything_was_read(struct reception *reception)
{
	struct wire *wire = reception->session.wire;
	bool too_bad;
	char byte[2];

	return !wire_read_line(wire, byte, sizeof byte, 256, -1, &too_bad) && !too_bad && !*byte;
}

/* Tokens and digest of one file, as a sender writes them. */
static inline void send_file(struct transfer *transfer, struct bytes basis, struct bytes source)
{
	make_sums(transfer, basis);
	send_bytes(transfer, source);
	wire_write(transfer->session.wire, transfer->digest, (size_t)transfer->digest_length);
}

/* --- files --- */

static inline int file_of(struct bytes content)
{
	int fd = memfd_create("delta", MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, content.data, content.length, 0), content.length);
	return fd;
}

static inline int empty_file(void)
{
	return file_of((struct bytes){ NULL, 0 });
}

static inline void expect_content(int fd, struct bytes wanted)
{
	struct bytes got = bytes_of(wanted.length);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, wanted.length);
	assert_int_equal(pread(fd, got.data, got.length, 0), got.length);
	if (wanted.length)
		assert_memory_equal(got.data, wanted.data, wanted.length);
	free(got.data);
}

/* Receive one file: `request` says the rest. */
static inline enum patch_result receive_file(struct reception *reception, const struct sum_head *head,
					     struct patch_request request)
{
	request.session = &reception->session;
	request.tokens = reception->tokens;
	request.digest = reception->digest;
	request.buffer = &reception->buffer;
	request.head = head;
	patch_file(&request, &reception->outcome);
	return reception->outcome.result;
}

#endif
