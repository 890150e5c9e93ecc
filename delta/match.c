/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finding blocks by their weak sum at every offset of the source, confirming them by the strong one
 * (doc/protocol/03-transfer.md section 5).
 */
#include "delta/match.h"

#include <stdlib.h>
#include <string.h>

#include "delta/block_sums.h"
#include "fs/file.h"
#include "lib/alloc.h"

/* --- the matcher --- */

#define LITERAL_STEP (256 * 1024)  /* literals are handed on in pieces of this size; whole files are read in such */
#define PENDING_MAX (128 * 1024)   /* literal that a match may still follow */
#define READ_AHEAD (256 * 1024)    /* room for more than the search looks at, so that reads are long */
#define CANDIDATES_MAX 1024        /* blocks looked at for one offset */
#define NONE UINT32_MAX
#define FILTER_BITS 5              /* the filter has as many more bits of the hash than a bucket's number */
#define BUCKET_BITS_MAX (32 - FILTER_BITS)
/* Blocks longer than this (below protocol 30 a peer may ask for 2^29) would need a window of their size: sent literally. */
#define BLOCK_MAX (32 << 20)

/*
 * Work that leads to nothing, in bytes hashed or their equivalent, may cost as much as hashing the source this many times.
 * When it is used up the rest of the file is sent literally (doc/protocol/08-security.md S-056).
 */
#define WASTE_FACTOR 16
#define WASTE_BASE (16 << 20)
#define CANDIDATE_COST 16
#define DIGEST_COST 64

struct matcher {
	const struct match_request *request;
	struct token_writer *tokens;
	struct match_stats *stats;
	struct file_digest *digest;

	/* The source is read with pread(2) into a sliding buffer. */
	uint8_t *buffer;         /* bytes start .. start + length */
	size_t capacity, length;
	uint64_t start;

	const struct block_sums *sums;
	size_t block_length;
	int strong_length;
	uint32_t *heads, *nexts; /* chains of blocks by weak sum */
	uint8_t *filter;         /* a bit for each value of the hash: is there a block? */
	int shift;               /* 32 less the bits of a bucket number */
	uint8_t *kept_place;     /* in place: blocks known to stand unchanged, a bit each */

	uint64_t pending;        /* where the literal not yet written starts */
	uint64_t waste_left;
	int32_t expected;        /* the block after the last match */
};

/* --- the source --- */

/* Prepare for `window` bytes at a time. */
static void open_window(struct matcher *matcher, uint64_t start, size_t window)
{
	uint64_t rest = matcher->request->size - start;

	/* Most files are small. */
	matcher->capacity = rest < window ? (size_t)rest : window;
	matcher->buffer = xmalloc(matcher->capacity);
	matcher->start = start;
}

/*
 * Returns the bytes from `offset` on, of which at least `wanted` are there (fewer only at the end of the file); all that
 * happen to be there are counted in *available. Bytes before `keep` may be forgotten: keep <= offset never goes back, and
 * offset + wanted - keep is at most the window. Every byte goes into the digest once, in order, before it is looked at.
 */
static const uint8_t *look(struct matcher *matcher, uint64_t keep, uint64_t offset, size_t wanted, size_t *available)
{
	const struct match_request *request = matcher->request;
	uint64_t end = matcher->start + matcher->length;

	if (wanted > request->size - offset)
		wanted = (size_t)(request->size - offset);
	if (end < offset + wanted) {
		size_t gone = (size_t)(keep - matcher->start), room = matcher->capacity - matcher->length + gone;
		size_t take = request->size - end < room ? (size_t)(request->size - end) : room;

		if (gone)
			memmove(matcher->buffer, matcher->buffer + gone, matcher->length - gone);
		matcher->length -= gone;
		matcher->start = keep;

		uint8_t *out = matcher->buffer + matcher->length;

		if (request->memory)
			memcpy(out, request->memory + end, take);
		else if (matcher->stats->read_error)
			/* What is left of the file counts as zero bytes (doc/protocol/03-transfer.md section 7.8). */
			memset(out, 0, take);
		else
			matcher->stats->read_error = fs_read_at(request->fd, out, take, end);
		file_digest_update(matcher->digest, out, take);
		wire_keep_alive(token_session(matcher->tokens)->wire);
		matcher->length += take;
	}
	*available = (size_t)(matcher->start + matcher->length - offset);
	return matcher->buffer + (offset - matcher->start);
}

/* --- the table of blocks --- */

static uint32_t hash_of(const struct matcher *matcher, uint32_t weak)
{
	return (weak * 0x9e3779b1u) >> (matcher->shift - FILTER_BITS);
}

static uint32_t *bucket_of(const struct matcher *matcher, uint32_t weak)
{
	return &matcher->heads[hash_of(matcher, weak) >> FILTER_BITS];
}

static const uint8_t *strong_of(const struct matcher *matcher, uint32_t block)
{
	return matcher->sums->strong + (size_t)block * (size_t)matcher->strong_length;
}

static size_t length_of(const struct matcher *matcher, uint32_t block)
{
	const struct sum_head *head = &matcher->sums->head;

	return block == (uint32_t)head->count - 1 && head->remainder ? (size_t)head->remainder : matcher->block_length;
}

/* Is an equal block in the chain already? In place every copy counts, since each is readable at other times. */
static bool is_repeated(const struct matcher *matcher, uint32_t head, uint32_t block, uint64_t *looks)
{
	uint64_t stop = *looks + CANDIDATES_MAX;

	if (matcher->request->in_place)
		return false;
	for (uint32_t other = head; other != NONE && *looks < stop; other = matcher->nexts[other], ++*looks)
		if (matcher->sums->weak[other] == matcher->sums->weak[block]
		    && !memcmp(strong_of(matcher, other), strong_of(matcher, block), (size_t)matcher->strong_length))
			return true;
	return false;
}

static void build_table(struct matcher *matcher)
{
	uint32_t count = (uint32_t)matcher->sums->head.count;
	/* A peer may forge one long chain: then looking for repetitions stops. */
	uint64_t looks = 0, looks_max = 64ull * count;
	int bits = 10;

	while (bits < BUCKET_BITS_MAX && 1u << bits < count)
		bits++;
	matcher->shift = 32 - bits;
	matcher->heads = xrealloc_array(NULL, (size_t)1 << bits, sizeof *matcher->heads);
	memset(matcher->heads, 0xff, ((size_t)1 << bits) * sizeof *matcher->heads);
	matcher->filter = xcalloc(((size_t)1 << bits << FILTER_BITS) / 8, 1);
	matcher->nexts = xrealloc_array(NULL, count, sizeof *matcher->nexts);
	/* Backwards, so that a chain starts with the earliest block. Only blocks of full length are looked for by rolling. */
	for (uint32_t block = count; block-- > 0;) {
		uint32_t weak = matcher->sums->weak[block], hash = hash_of(matcher, weak);
		uint32_t *head = bucket_of(matcher, weak);
		if (length_of(matcher, block) != matcher->block_length)
			continue;
		if (looks < looks_max && is_repeated(matcher, *head, block, &looks))
			continue;
		matcher->nexts[block] = *head;
		*head = block;
		matcher->filter[hash / 8] |= (uint8_t)(1 << hash % 8);
	}
}

/* --- in place: which blocks can the receiver still read? (5.3) --- */

static bool is_readable(const struct matcher *matcher, uint32_t block, uint64_t offset)
{
	if (!matcher->request->in_place)
		return true;
	return (uint64_t)block * matcher->block_length >= offset || matcher->kept_place[block / 8] & (1 << block % 8);
}

/* --- one offset --- */

/* The window at an offset, its strong sum computed at most once. */
struct window {
	const uint8_t *data;
	size_t length;
	uint64_t offset;
	uint32_t weak;
	bool hashed;
	uint8_t strong[DIGEST_MAX_LENGTH];
};

static void waste(struct matcher *matcher, uint64_t cost)
{
	matcher->waste_left = matcher->waste_left > cost ? matcher->waste_left - cost : 0;
}

static bool block_matches(struct matcher *matcher, struct window *window, uint32_t block)
{
	if (matcher->sums->weak[block] != window->weak || length_of(matcher, block) != window->length
	    || !is_readable(matcher, block, window->offset))
		return false;
	if (!window->hashed) {
		block_digest_compute(&matcher->request->block, window->data, window->length, window->strong);
		window->hashed = true;
		matcher->stats->hash_hits++;
	}
	return !memcmp(window->strong, strong_of(matcher, block), (size_t)matcher->strong_length);
}

/* Walk the window's chain; *looked: candidates on the way. What has been overwritten in place leaves the chain for good. */
static bool candidate_matches(struct matcher *matcher, struct window *window, uint32_t *block, uint32_t *looked)
{
	uint32_t *link = bucket_of(matcher, window->weak);

	while (*link != NONE && *looked < CANDIDATES_MAX) {
		*block = *link;
		if (!is_readable(matcher, *block, window->offset)) {
			*link = matcher->nexts[*block];
			continue;
		}
		++*looked;
		if (block_matches(matcher, window, *block))
			return true;
		link = &matcher->nexts[*block];
	}
	return false;
}

/* Look for a block that equals the window. */
static bool find_block(struct matcher *matcher, struct window *window, uint32_t *block)
{
	const uint64_t own = window->offset / matcher->block_length, count = (uint64_t)matcher->sums->head.count;
	uint32_t looked = 0;
	bool found = false;

	/* In place the block at the output's own position is best: the receiver only seeks. */
	if (matcher->request->in_place && window->offset % matcher->block_length == 0 && own < count) {
		*block = (uint32_t)own;
		found = block_matches(matcher, window, *block);
	}
	if (!found && (uint64_t)matcher->expected < count) {
		*block = (uint32_t)matcher->expected;
		found = block_matches(matcher, window, *block);
	}
	found = found || candidate_matches(matcher, window, block, &looked);

	matcher->stats->candidates += looked;
	/* A long way to a match is waste too. */
	waste(matcher, (uint64_t)looked * CANDIDATE_COST);
	if (!found && window->hashed) {
		matcher->stats->false_alarms++;
		waste(matcher, window->length + DIGEST_COST);
	}
	return found;
}

/* --- output --- */

static void report_progress_of(const struct matcher *matcher)
{
	if (matcher->request->progress)
		matcher->request->progress(matcher->request->context, matcher->pending);
}

/* Write the literal bytes pending .. up_to. */
static void write_literal(struct matcher *matcher, uint64_t up_to)
{
	while (matcher->pending < up_to) {
		size_t available;
		uint64_t rest = up_to - matcher->pending;
		size_t step = rest < LITERAL_STEP ? (size_t)rest : LITERAL_STEP;
		const uint8_t *data = look(matcher, matcher->pending, matcher->pending, step, &available);

		token_literal(matcher->tokens, data, step);
		matcher->stats->literal_bytes += step;
		matcher->pending += step;
		report_progress_of(matcher);
	}
}

/* A match at the window: the literal before it, then the block. The window's data is found again behind the literal. */
static void take_match(struct matcher *matcher, struct window *window, uint32_t block)
{
	const struct match_request *request = matcher->request;
	size_t available;

	write_literal(matcher, window->offset);
	window->data = look(matcher, window->offset, window->offset, window->length, &available);
	if (request->in_place && (uint64_t)block * matcher->block_length == window->offset)
		matcher->kept_place[block / 8] |= (uint8_t)(1 << block % 8);
	if (request->matched)
		request->matched(request->matched_context, window->offset, block, (uint32_t)window->length);
	token_block(matcher->tokens, (int32_t)block, window->data, window->length);
	matcher->stats->matched_bytes += window->length;
	matcher->stats->matches++;
	matcher->expected = (int32_t)block + 1;
	matcher->pending = window->offset + window->length;
	report_progress_of(matcher);
}

/* --- the scan --- */

/*
 * Roll the window until it may match or `steps` are done; data holds steps + block_length bytes. Returns the number of steps.
 */
static size_t roll(const struct matcher *matcher, const uint8_t *data, size_t steps, uint32_t *weak)
{
	uint32_t s1 = *weak & 0xffff, s2 = *weak >> 16;
	uint32_t length = (uint32_t)matcher->block_length;
	const int8_t *out = (const int8_t *)data, *in = out + length;
	size_t step;

	for (step = 0; step < steps; step++) {
		uint32_t sum = (s1 & 0xffff) | s2 << 16, hash = hash_of(matcher, sum);

		if (matcher->filter[hash / 8] & 1 << hash % 8) {
			/* Worth stopping for: a block with this very sum, or a chain that has to be walked to know. */
			uint32_t first = *bucket_of(matcher, sum);
			if (first != NONE && (matcher->sums->weak[first] == sum || matcher->nexts[first] != NONE))
				break;
		}
		s1 += (uint32_t)(in[step] - out[step]);
		s2 += s1 - length * (uint32_t)(int32_t)out[step];
	}
	*weak = (s1 & 0xffff) | s2 << 16;
	return step;
}

/* All windows of full length. */
static void scan_full_windows(struct matcher *matcher)
{
	uint64_t size = matcher->request->size;
	size_t length = matcher->block_length, available;
	uint64_t offset = 0;
	bool fresh = true;
	struct window window = { .length = length };

	while (length <= size - offset && matcher->waste_left) {
		if (offset - matcher->pending >= PENDING_MAX)
			write_literal(matcher, offset);
		window.data = look(matcher, matcher->pending, offset, length + 1, &available);
		if (fresh)
			window.weak = rolling_compute(window.data, length);
		fresh = false;
		/* Not farther than what pends may grow, and than the bytes that are there. */
		size_t steps = available > length ? available - length : 0;
		if (steps > PENDING_MAX)
			steps = PENDING_MAX;
		size_t rolled = roll(matcher, window.data, steps, &window.weak);
		uint32_t block;

		offset += rolled;
		window.data += rolled;
		window.offset = offset;
		window.hashed = false;
		if (rolled == steps && steps)
			continue;
		if (find_block(matcher, &window, &block)) {
			take_match(matcher, &window, block);
			offset = matcher->pending;
			fresh = true;
		} else if (available - rolled > length) {
			uint32_t s1 = window.weak & 0xffff, s2 = window.weak >> 16;
			int32_t out = (int8_t)window.data[0];     /* NOLINT(bugprone-signed-char-misuse): signed sums */
			int32_t in = (int8_t)window.data[length]; /* NOLINT(bugprone-signed-char-misuse) */

			s1 += (uint32_t)(in - out);
			s2 += s1 - (uint32_t)length * (uint32_t)out;
			window.weak = (s1 & 0xffff) | s2 << 16;
			offset++;
		} else {
			break;
		}
	}
}

/* The short last block can only stand at the very end of the source. */
static void match_last_block(struct matcher *matcher)
{
	const struct sum_head *head = &matcher->sums->head;
	uint64_t size = matcher->request->size;
	size_t length = (size_t)head->remainder, available;
	struct window window = { .length = length, .offset = size - length };
	uint32_t block = (uint32_t)head->count - 1;

	if (!length || length >= matcher->block_length || size - matcher->pending < length)
		return;
	/* What pends may be longer than the window holds. */
	if (window.offset - matcher->pending >= PENDING_MAX)
		write_literal(matcher, window.offset);
	window.data = look(matcher, matcher->pending, window.offset, length, &available);
	window.weak = rolling_compute(window.data, length);
	if (block_matches(matcher, &window, block))
		take_match(matcher, &window, block);
}

int match_file(const struct match_request *request, struct token_writer *tokens, struct match_stats *stats,
	       uint8_t digest[DIGEST_MAX_LENGTH])
{
	const struct sum_head *head = &request->sums->head;
	struct matcher matcher = {
		.request = request, .tokens = tokens, .stats = stats, .digest = file_digest_new(), .sums = request->sums,
		.block_length = (size_t)head->block_length, .strong_length = head->strong_length,
		.waste_left = WASTE_BASE + WASTE_FACTOR * (request->size + (uint64_t)head->count),
	};

	stats->read_error = 0;
	file_digest_start(matcher.digest, request->file_sum, request->seed);
	if (head->count > 0 && head->strong_length > 0 && head->block_length <= BLOCK_MAX && !request->append_from
	    && request->sums->weak) {
		if (request->in_place)
			matcher.kept_place = xcalloc((size_t)head->count / 8 + 1, 1);
		build_table(&matcher);
		open_window(&matcher, 0, matcher.block_length * 2 + 2 * PENDING_MAX + READ_AHEAD);
		scan_full_windows(&matcher);
		match_last_block(&matcher);
	} else {
		/* --append: skip what the peer has; the verifying form hashes it. */
		uint64_t from = request->append_from < request->size ? request->append_from : request->size;
		size_t available, step;

		open_window(&matcher, request->append_verify ? 0 : from, LITERAL_STEP);
		for (uint64_t at = 0; request->append_verify && at < from; at += step) {
			step = from - at < LITERAL_STEP ? (size_t)(from - at) : LITERAL_STEP;
			look(&matcher, at, at, step, &available);
		}
		matcher.pending = from;
	}
	write_literal(&matcher, request->size);
	token_end_file(tokens);
	int length = file_digest_finish(matcher.digest, digest);

	if (stats->read_error) {
		/* A digest that cannot be right (doc/protocol/03-transfer.md section 7.8). */
		static const uint8_t zeros[DIGEST_MAX_LENGTH];
		bool is_zero = !memcmp(digest, zeros, (size_t)length);

		memset(digest, 0, DIGEST_MAX_LENGTH);
		if (is_zero)
			digest[length - 1] = 1;
	}
	file_digest_free(matcher.digest);
	free(matcher.buffer);
	free(matcher.heads);
	free(matcher.nexts);
	free(matcher.filter);
	free(matcher.kept_place);
	return length;
}
