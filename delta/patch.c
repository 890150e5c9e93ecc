/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Making a file of tokens and a basis. Bytes collect in a buffer, so that reads, writes and the digest go in long pieces. */
#include "delta/patch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "delta/block_sums.h"
#include "fs/copy.h"
#include "fs/file.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"

#define BUFFER_MAX (256 * 1024)
#define BUFFER_MIN 4096

struct patch {
	const struct patch_request *request;
	struct patch_outcome *outcome;
	int out_fd;          /* -1: the rest is thrown away */
	bool is_file;        /* out_fd is a regular file */
	bool has_content;    /* and had some at the beginning, or reserved blocks */
	struct fs_sparse sparse;
	bool makes_holes;    /* with that */
	uint64_t start;      /* append: where the new part begins */
	uint64_t offset;     /* where the buffer's first byte belongs */
	uint8_t *buffer;     /* of the request */
	size_t used, capacity;
	struct block_count touched;
	/* Blocks that follow each other in the basis, not yet read. */
	uint64_t run_start, run_length;
};

static void fail(struct patch *patch, enum patch_result result, int error)
{
	patch->outcome->result = result;
	patch->outcome->error = error;
	patch->out_fd = -1;
}

/* --- out --- */

static void flush(struct patch *patch)
{
	if (patch->used && patch->out_fd >= 0) {
		file_digest_update(patch->request->digest, patch->buffer, patch->used);
		if (!patch->makes_holes)
			block_count_add(&patch->touched, patch->offset, patch->used);
		int result = patch->makes_holes
				     ? fs_sparse_write(&patch->sparse, patch->buffer, patch->used, patch->offset, false)
				     : fs_write_all_at(patch->out_fd, patch->buffer, patch->used, patch->offset);

		if (result < 0)
			fail(patch, PATCH_WRITE_FAILED, errno);
		else
			patch->offset += patch->used;
	}
	patch->used = 0;
}

/* The length of the buffer's free part, which is never empty. */
static size_t room(struct patch *patch, uint64_t wanted)
{
	if (patch->used == patch->capacity)
		flush(patch);
	size_t free_length = patch->capacity - patch->used;

	return wanted < free_length ? (size_t)wanted : free_length;
}

static void append(struct patch *patch, const uint8_t *data, size_t length)
{
	while (length && patch->out_fd >= 0) {
		size_t step = room(patch, length);

		memcpy(patch->buffer + patch->used, data, step);
		patch->used += step;
		data += step;
		length -= step;
	}
}

/* --- the basis --- */

static bool read_basis(struct patch *patch, uint8_t *to, size_t length, uint64_t offset)
{
	int fd = patch->request->basis_fd, error = fd < 0 ? ENOENT : fs_read_at(fd, to, length, offset);

	if (error)
		fail(patch, PATCH_READ_FAILED, error);
	return !error;
}

/* The pending blocks become part of the file. What stands there already is only read, for the digest and for zeros. */
static void finish_run(struct patch *patch)
{
	const struct patch_request *request = patch->request;
	bool stays = (request->in_place || request->is_clone) && patch->run_start == patch->offset + patch->used;

	if (stays && patch->run_length)
		flush(patch);
	while (patch->run_length && patch->out_fd >= 0) {
		size_t length = room(patch, patch->run_length);
		uint8_t *data = patch->buffer + patch->used;

		if (patch->out_fd < 0 || !read_basis(patch, data, length, patch->run_start))
			break;
		token_reader_see_block(request->tokens, data, length);
		patch->run_start += length;
		patch->run_length -= length;
		if (stays) {
			file_digest_update(request->digest, data, length);
			/* Only shared with the basis: anybody else would have copied it. */
			if (request->is_clone)
				block_count_add(&patch->touched, patch->offset, length);
			if (patch->makes_holes && fs_sparse_write(&patch->sparse, data, length, patch->offset, true) < 0)
				fail(patch, PATCH_WRITE_FAILED, errno);
			patch->offset += length;
		} else {
			patch->used += length;
		}
	}
	token_reader_see_block(request->tokens, NULL, (size_t)patch->run_length);
	patch->run_length = 0;
}

/* Before anything of it is written: what comes after it is thrown away. */
static void check_length(struct patch *patch, uint64_t more)
{
	const uint64_t most = patch->request->most;
	const uint64_t before = patch->start + patch->outcome->literal + patch->outcome->matched;

	if (most && patch->out_fd >= 0 && (before > most || more > most - before))
		fail(patch, PATCH_TOO_LONG, EFBIG);
}

static void take_block(struct patch *patch, int32_t block)
{
	const struct patch_request *request = patch->request;
	const struct sum_head *head = request->head;
	int32_t count = request->append ? 0 : head->count;

	if (block >= count)
		die(EXIT_PROTOCOL, "Invalid block index %d (count=%d) [%s]", block, count, log_role());
	if (request->out_fd >= 0 && request->basis_fd < 0 && !request->basis_is_gone)
		die(EXIT_PROTOCOL, "got a block match with no basis file for %s [%s]", request->name ? request->name : "it",
		    log_role());
	uint64_t length = (uint64_t)(block == head->count - 1 && head->remainder ? head->remainder : head->block_length);
	uint64_t start = (uint64_t)block * (uint64_t)head->block_length;

	check_length(patch, length);
	patch->outcome->matched += length;
	if (patch->run_length && patch->run_start + patch->run_length != start)
		finish_run(patch);
	if (!patch->run_length)
		patch->run_start = start;
	patch->run_length += length;
	/* The decompressor needs its data before the next token; of others, a buffer full at a time. */
	if (patch->out_fd < 0 || patch->run_length >= BUFFER_MAX || token_reader_wants_block_data(request->tokens))
		finish_run(patch);
}

/* --- beginning and end --- */

static void begin(struct patch *patch)
{
	const struct patch_request *request = patch->request;
	const struct session *session = request->session;
	struct stat st;

	if (request->append)
		patch->start = patch->offset = sum_head_size(request->head);
	patch->is_file = request->is_new && patch->out_fd >= 0;
	if (patch->out_fd >= 0 && !request->is_new && fstat(patch->out_fd, &st) < 0) {
		fail(patch, PATCH_WRITE_FAILED, errno);
	} else if (patch->out_fd >= 0 && !request->is_new) {
		patch->is_file = S_ISREG(st.st_mode);
		patch->has_content = st.st_size > 0 || st.st_blocks > 0;
		/* Where the file has lost a part that the sender does not send there would be a hole. */
		if (patch->is_file && (uint64_t)st.st_size < patch->start)
			fail(patch, PATCH_READ_FAILED, ENODATA);
	}
	if (patch->out_fd < 0)
		return;
	/* Nobody else fills a device with zeros. */
	patch->makes_holes = request->sparse && patch->is_file;
	patch->sparse = (struct fs_sparse){
		.fd = patch->out_fd, .has_blocks = patch->has_content, .keeps_tail = request->keeps_tail,
		.touched = &patch->touched, .data_end = patch->start,
	};
	file_digest_start(request->digest, session->xfer_sum, session->seed);
	/* Most files are small. */
	patch->capacity = request->size < BUFFER_MAX ? (size_t)request->size : BUFFER_MAX;
	if (patch->capacity < BUFFER_MIN)
		patch->capacity = BUFFER_MIN;
	if (request->buffer->capacity < patch->capacity) {
		free(request->buffer->bytes);
		request->buffer->bytes = xmalloc(patch->capacity);
		request->buffer->capacity = patch->capacity;
	}
	patch->buffer = request->buffer->bytes;
	for (uint64_t at = 0; request->append > 1 && at < patch->start && patch->out_fd >= 0;) {
		size_t length = room(patch, patch->start - at);

		if (read_basis(patch, patch->buffer, length, at))
			file_digest_update(request->digest, patch->buffer, length);
		at += length;
	}
}

static void finish(struct patch *patch)
{
	const struct patch_request *request = patch->request;
	struct patch_outcome *outcome = patch->outcome;
	size_t length = (size_t)digest_length(request->session->xfer_sum);
	uint8_t wanted[DIGEST_MAX_LENGTH];

	finish_run(patch);
	flush(patch);
	/* Old content behind the end, a hole at the end, reserved blocks. */
	bool in_place = request->in_place || request->append;

	if (patch->is_file && (in_place ? patch->out_fd >= 0 : request->sparse || patch->has_content)) {
		int result = patch->makes_holes && patch->out_fd >= 0 ? fs_sparse_end(&patch->sparse, patch->offset)
								      : ftruncate(request->out_fd, (off_t)patch->offset);

		if (result < 0 && patch->out_fd >= 0)
			fail(patch, PATCH_WRITE_FAILED, errno);
	}
	wire_read(request->session->wire, wanted, length);
	outcome->length = patch->offset;
	outcome->blocks = patch->touched.total;
	if (patch->out_fd < 0)
		return;
	outcome->digest_length = file_digest_finish(request->digest, outcome->digest);
	if (memcmp(outcome->digest, wanted, length) != 0)
		outcome->result = PATCH_WRONG_DIGEST;
}

void patch_file(const struct patch_request *request, struct patch_outcome *outcome)
{
	struct patch patch = { .request = request, .outcome = outcome, .out_fd = request->out_fd };
	struct token token;

	*outcome = (struct patch_outcome){ .result = PATCH_OK };
	begin(&patch);
	for (;;) {
		/* The connection may end while it is waited for. */
		if (request->is_eager && patch.used && !wire_input_ready(request->session->wire))
			flush(&patch);
		token_read(request->tokens, &token);
		if (token.kind == TOKEN_END)
			break;
		check_length(&patch, token.kind == TOKEN_LITERAL ? token.length : 0);
		if (token.kind == TOKEN_LITERAL) {
			finish_run(&patch);
			outcome->literal += token.length;
			append(&patch, token.data, token.length);
		} else {
			take_block(&patch, token.block);
		}
		if (request->done)
			atomic_store_explicit(request->done, patch.start + outcome->literal + outcome->matched,
					      memory_order_relaxed);
	}
	finish(&patch);
}
