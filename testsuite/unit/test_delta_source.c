/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sources: appended to, shrinking, unreadable, of every size (doc/protocol/03-transfer.md sections 3.4 and 7.8). */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "testsuite/unit/delta_support.h"

/* --- append, doc/protocol/03-transfer.md section 3.4 --- */

static void append(struct bytes source, struct sum_head head, uint64_t from, bool verify, struct bytes *sent,
		   uint8_t digest[16])
{
	struct setting setting = { 0 };
	struct match_request request = {
		.memory = source.data, .size = source.length, .append_from = from, .append_verify = verify,
	};
	struct transfer transfer;

	transfer_start(&transfer, &setting);
	transfer.sums.head = head;
	send_source(&transfer, &request);
	receive(&transfer, (struct bytes){ NULL, 0 });
	assert_int_equal(transfer.digest_length, 16);
	memcpy(digest, transfer.digest, 16);
	*sent = bytes_of(transfer.decoder.out_length);
	if (sent->length)
		memcpy(sent->data, transfer.decoder.out, sent->length);
	transfer_end(&transfer);
}

static void expect_append(struct bytes source, uint64_t from, bool verify)
{
	struct sum_head head = { (int32_t)((from + 699) / 700), 700, 2, (int32_t)(from % 700) };
	struct file_digest *running = file_digest_new();
	uint64_t start = from < source.length ? from : source.length;
	uint8_t digest[16], expected[DIGEST_MAX_LENGTH];
	struct bytes sent;

	append(source, head, from, verify, &sent, digest);
	assert_int_equal(sent.length, source.length - start);
	if (sent.length)
		assert_memory_equal(sent.data, source.data + start, sent.length);
	file_digest_start(running, SUM_MD5, SEED);
	file_digest_update(running, source.data + (verify ? 0 : start), source.length - (verify ? 0 : start));
	file_digest_finish(running, expected);
	assert_memory_equal(digest, expected, 16);
	file_digest_free(running);
	free(sent.data);
}

UNIT_TEST(append_sends_the_rest)
{
	struct bytes source = random_bytes(1500, 16), large = random_bytes(1000000, 17), empty = bytes_of(0);

	for (int verify = 0; verify < 2; verify++) {
		expect_append(source, 1000, verify);
		expect_append(source, 1499, verify);
		expect_append(source, 1500, verify);
		expect_append(large, 999000, verify);
		expect_append(large, 400001, verify);
		/* More than there is, even of nothing (doc/protocol/08-security.md S-031). */
		expect_append(source, 100000, verify);
		expect_append(empty, 100000, verify);
	}
	free(source.data);
	free(large.data);
	free(empty.data);
}

/* --- sources with trouble, doc/protocol/03-transfer.md section 7.8 --- */

static int file_with(struct bytes content)
{
	char path[] = "/tmp/test_delta_XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, content.data, content.length), content.length);
	return fd;
}

static void send_fd(struct transfer *transfer, int fd, uint64_t size, bool *failed, int *error)
{
	struct match_request request = { .fd = fd, .size = size };

	send_source(transfer, &request);
	*failed = transfer->stats.read_error != 0;
	*error = transfer->stats.read_error;
}

UNIT_TEST(files_are_read_from_descriptors)
{
	struct bytes content = random_bytes(2000001, 18), basis = copy_of(content);
	struct setting setting = { .block_length = 1400 };
	struct transfer transfer;
	int fd = file_with(content), error;
	bool failed;

	memset(basis.data + 1000000, 0, 300000);
	transfer_start(&transfer, &setting);
	make_sums(&transfer, basis);
	send_fd(&transfer, fd, content.length, &failed, &error);
	receive(&transfer, basis);
	expect_file(&transfer, content);
	assert_false(failed);
	/* A file that grows is sent up to the size it had. */
	send_fd(&transfer, fd, 1000, &failed, &error);
	receive(&transfer, basis);
	expect_file(&transfer, (struct bytes){ content.data, 1000 });
	assert_false(failed);
	transfer_end(&transfer);
	close(fd);
	free(content.data);
	free(basis.data);
}

static void expect_spoilt(struct transfer *transfer, struct bytes content, size_t readable)
{
	static const uint8_t zeros[DIGEST_MAX_LENGTH];

	assert_int_equal(transfer->decoder.out_length, content.length);
	if (readable)
		assert_memory_equal(transfer->decoder.out, content.data, readable);
	for (size_t i = readable; i < content.length; i++)
		assert_int_equal(transfer->decoder.out[i], 0);
	assert_memory_equal(transfer->digest, zeros, (size_t)transfer->digest_length);
}

UNIT_TEST(shrunken_file_is_zeros_and_a_wrong_digest)
{
	struct bytes content = random_bytes(1000000, 19);
	int fd = file_with((struct bytes){ content.data, 600123 }), error;
	bool failed;

	for (int delta = 0; delta < 2; delta++) {
		struct setting setting = { 0 };
		struct transfer transfer;

		transfer_start(&transfer, &setting);
		make_sums(&transfer, delta ? content : (struct bytes){ NULL, 0 });
		send_fd(&transfer, fd, content.length, &failed, &error);
		receive(&transfer, content);
		expect_spoilt(&transfer, content, 600123);
		assert_true(failed);
		assert_int_equal(error, ENODATA);
		transfer_end(&transfer);
	}
	close(fd);
	free(content.data);
}

UNIT_TEST(unreadable_file_is_zeros_and_a_wrong_digest)
{
	struct bytes content = random_bytes(5000, 20);
	int fd = open("/", O_RDONLY | O_DIRECTORY), error;
	struct setting setting = { 0 };
	struct transfer transfer;
	bool failed;

	transfer_start(&transfer, &setting);
	send_fd(&transfer, fd, content.length, &failed, &error);
	receive(&transfer, content);
	expect_spoilt(&transfer, content, 0);
	assert_true(failed);
	assert_int_equal(error, EISDIR);
	transfer_end(&transfer);
	close(fd);
	free(content.data);
}

/* "none" has one byte, and it is zero when all is well. */
UNIT_TEST(the_wrong_digest_is_never_the_right_one)
{
	struct setting setting = { 0 };
	struct transfer transfer;
	int fd = open("/", O_RDONLY | O_DIRECTORY), error;
	bool failed;

	transfer_start(&transfer, &setting);
	transfer.setting.sum = SUM_NONE;
	send_fd(&transfer, fd, 10, &failed, &error);
	assert_int_equal(transfer.digest_length, 1);
	assert_int_equal(transfer.digest[0], 1);
	transfer_end(&transfer);
	close(fd);
}
