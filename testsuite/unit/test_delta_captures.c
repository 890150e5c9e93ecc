/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Real sessions of eleven releases: the files that the server sent, and the block sums that the clients sent of their basis. */
#include "testsuite/unit/delta_receive.h"

#include "delta/block_sums.h"
#include "testsuite/unit/wire_memory.h"

#define HEAD_LENGTH 16
#define CAPTURE_MAX 200000

static const char *const releases[] = {
	"2.6.0", "3.0.0", "3.1.0", "3.1.3", "3.2.0", "3.2.7", "3.3.0", "3.4.0", "3.4.1", "3.5.0", "3.5.1",
};
static const enum sum_algorithm algorithms[] = {
	SUM_MD4_OLD, SUM_MD4, SUM_MD5, SUM_SHA1, SUM_XXH64, SUM_XXH3, SUM_XXH128,
};

/* --- captures --- */

static struct bytes load(const char *release, const char *rest)
{
	struct bytes bytes = bytes_of(CAPTURE_MAX);
	char path[4096];
	int fd;

	/* Beside this file in the source tree. */
	snprintf(path, sizeof path, "%.*s/../captures/%s-%s", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, release,
		 rest);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	ssize_t length = read(fd, bytes.data, CAPTURE_MAX);

	assert_in_range(length, 1, CAPTURE_MAX - 1);
	bytes.length = (size_t)length;
	close(fd);
	return bytes;
}

static uint32_t number_at(struct bytes bytes, size_t at)
{
	const uint8_t *byte = bytes.data + at;

	return byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

/* The payload of the frames from `start` to the end of the session; false: there are no frames there. */
static bool demultiplex(struct bytes stream, size_t start, struct bytes *payload)
{
	payload->length = 0;
	while (start + 4 <= stream.length) {
		uint32_t header = number_at(stream, start), length = header & 0xffffff, code = (header >> 24) - 7;

		if (code > 110 || start + 4 + length > stream.length)
			return false;
		if (!code) {
			memcpy(payload->data + payload->length, stream.data + start + 4, length);
			payload->length += length;
		}
		start += 4 + length;
	}
	return start == stream.length && payload->length > 0;
}

/* The data of a server's stream; *seed: of the checksums, the last thing before the frames begin. */
static struct bytes served(struct bytes stream, int32_t *seed)
{
	struct bytes payload = bytes_of(CAPTURE_MAX);
	size_t start = 4;

	while (!demultiplex(stream, start, &payload))
		assert_true(++start < 300);
	*seed = (int32_t)number_at(stream, start - 4);
	return payload;
}

/* Where `wanted` begins, from `start` on; the length of the stream: nowhere. */
static size_t find(struct bytes stream, size_t start, const void *wanted, size_t length)
{
	const uint8_t *found = NULL;

	if (start < stream.length)
		found = memmem(stream.data + start, stream.length - start, wanted, length);
	return found ? (size_t)(found - stream.data) : stream.length;
}

/* --- the files of the captures' README --- */

static struct bytes b_bin(void)
{
	struct bytes bytes = bytes_of(70000);

	for (size_t i = 0; i < bytes.length; i++)
		bytes.data[i] = (uint8_t)(7 * i + i / 256);
	return bytes;
}

static struct bytes old_b_bin(void)
{
	struct bytes new = b_bin(), old = bytes_of(70001);

	memcpy(old.data, new.data, 35000);
	old.data[35000] = '!';
	memcpy(old.data + 35001, new.data + 35000, 35000);
	free(new.data);
	return old;
}

static const uint8_t delta_head[HEAD_LENGTH] = { 101, 0, 0, 0, 0xbc, 2, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0 };

/* --- deltas --- */

/* Put the file together with this digest; does it come out right? */
static bool receive_delta(struct bytes payload, size_t start, enum sum_algorithm algorithm, int32_t seed)
{
	struct bytes old = old_b_bin(), new = b_bin();
	struct reception reception;
	struct sum_head head;
	int basis_fd = file_of(old), out_fd = empty_file();
	struct patch_request request = { .basis_fd = basis_fd, .out_fd = out_fd, .size = 70000 };

	reception_start(&reception, COMPRESS_NONE, 32, algorithm, payload.data + start, payload.length - start);
	reception.session.seed = seed;
	sum_head_read(&reception.session, &head, 16);
	bool good = receive_file(&reception, &head, request) == PATCH_OK;

	if (good)
		expect_content(out_fd, new);
	assert_int_equal(reception.outcome.literal + reception.outcome.matched, 70000);
	assert_in_range(reception.outcome.literal, 1, 1400);
	reception_end(&reception);
	close(basis_fd);
	close(out_fd);
	free(old.data);
	free(new.data);
	return good;
}

UNIT_TEST(deltas_of_every_release)
{
	for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
		struct bytes stream = load(releases[i], "delta.s2c");
		int32_t seed;
		struct bytes payload = served(stream, &seed);
		size_t start = find(payload, 0, delta_head, HEAD_LENGTH);
		unsigned good = 0;

		assert_true(start < payload.length);
		for (size_t j = 0; j < sizeof algorithms / sizeof *algorithms; j++)
			good |= (unsigned)receive_delta(payload, start, algorithms[j], seed) << algorithms[j];
		/* An xxh128 begins with the bytes of an xxh3. */
		if (good & 1 << SUM_XXH128)
			good &= ~(1u << SUM_XXH3);
		if (!good || good & (good - 1))
			fail_msg("%s: the delta fits digests %#x", releases[i], good);
		free(stream.data);
		free(payload.data);
	}
}

/* --- block sums --- */

static bool sums_are(struct bytes sums, enum sum_algorithm algorithm, int32_t seed, bool seed_first)
{
	struct bytes old = old_b_bin();
	struct reception reception;
	struct sum_head head;
	int fd = file_of(old);
	size_t length;

	reception_start(&reception, COMPRESS_NONE, 32, algorithm, NULL, 0);
	reception.session.seed = seed;
	reception.session.seed_first = seed_first;
	sum_head_choose(&head, old.length, 0, BLOCK_LENGTH_MAX, 16, false);
	sum_head_write(&reception.session, &head);
	assert_int_equal(block_sums_write(&reception.session, fd, &head), 0);
	const uint8_t *ours = wire_test_output(reception.session.wire, &length);

	assert_int_equal(length, HEAD_LENGTH + 101 * 6);
	bool same = sums.length >= length && memcmp(sums.data, ours, length) == 0;

	reception_end(&reception);
	close(fd);
	free(old.data);
	return same;
}

/* Is the request, header and sums, that we would send the one that the client sent? Frames may begin anywhere before it. */
static bool request_fits(struct bytes stream, int32_t seed)
{
	struct bytes payload = bytes_of(CAPTURE_MAX);
	bool fits = false;

	for (size_t start = 0; start < stream.length && !fits; start++) {
		/* Below protocol 30 a client does not multiplex. */
		bool is_raw = start == 0;
		struct bytes data = is_raw ? stream : payload;

		if (!is_raw && !demultiplex(stream, start, &payload))
			continue;
		data.length = is_raw ? stream.length : payload.length;
		size_t at = find(data, 0, delta_head, HEAD_LENGTH);
		struct bytes sums = { data.data + at, data.length - at };

		for (size_t j = 0; j < 2 * (sizeof algorithms / sizeof *algorithms) && at < data.length && !fits; j++)
			fits = sums_are(sums, algorithms[j / 2], seed, j & 1);
	}
	free(payload.data);
	return fits;
}

UNIT_TEST(block_sums_of_every_release)
{
	for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
		struct bytes answer = load(releases[i], "delta.s2c"), request = load(releases[i], "delta.c2s");
		int32_t seed;
		struct bytes payload = served(answer, &seed);

		if (!request_fits(request, seed))
			fail_msg("%s: block sums differ", releases[i]);
		assert_false(request_fits(request, seed + 1));
		free(answer.data);
		free(request.data);
		free(payload.data);
	}
}

/* --- compressed sessions --- */

/* All new files of a session, in order, through one reader; returns how many are right with this digest. */
static int receive_new_files(struct bytes payload, enum compress_algorithm compress, enum sum_algorithm algorithm)
{
	static const uint8_t is_new[2 + HEAD_LENGTH] = { 0x00, 0xa0 };
	const struct sum_head none = { 0 };
	struct dying dying = { .code = 0 };
	struct log_sink sink = log_set_sink((struct log_sink){ dying_emit, &dying });
	struct reception reception;
	size_t start = 0;
	volatile int good = 0;
	int out_fd = empty_file();

	reception_start(&reception, compress, 32, algorithm, NULL, 0);
	exit_push_hook(dying_hook, &dying);
	if (!setjmp(dying.jump)) {
		while ((start = find(payload, start, is_new, sizeof is_new)) < payload.length) {
			struct patch_request request = { .basis_fd = -1, .out_fd = out_fd, .in_place = true, .size = 70000 };

			start += sizeof is_new;
			wire_free(reception.session.wire);
			reception.session.wire = wire_new_memory(payload.data + start, payload.length - start);
			if (receive_file(&reception, &none, request) == PATCH_OK)
				good++;
		}
		exit_remove_hook(dying_hook, &dying);
	}
	log_set_sink(sink);
	reception_end(&reception);
	close(out_fd);
	return good;
}

/* From protocol 29 on a request for a new file can be recognised by its flags. There are seven files. */
UNIT_TEST(compressed_files_of_every_release)
{
	for (size_t i = 1; i < sizeof releases / sizeof *releases; i++) {
		struct bytes stream = load(releases[i], "compress.s2c");
		int32_t seed;
		struct bytes payload = served(stream, &seed);
		int best = 0, complete = 0;

		for (int compress = COMPRESS_ZLIB; compress <= COMPRESS_LZ4; compress++) {
			for (size_t j = 1; j < sizeof algorithms / sizeof *algorithms; j++) {
				int good = receive_new_files(payload, (enum compress_algorithm)compress, algorithms[j]);
				best = good > best ? good : best;
				complete += good == 7;
			}
		}
		/* Old and new zlib only differ in blocks, xxh3 and xxh128 in what comes behind the first. */
		if (complete < 1 || complete > 2)
			fail_msg("%s: %d files at best, %d ways to have all", releases[i], best, complete);
		free(stream.data);
		free(payload.data);
	}
}
