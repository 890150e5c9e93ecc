/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files made of tokens and a basis (doc/protocol/03-transfer.md section 7.1): from what our own sender writes, and from what
 * nobody should.
 */
#include "testsuite/unit/delta_receive.h"
#include "testsuite/unit/wire_memory.h"

static const struct bytes nothing = { NULL, 0 };

/* --- round trips --- */

/* A source made of most of the basis, with literals of many lengths in between. */
static struct bytes edited(struct bytes basis, uint32_t seed)
{
	struct bytes source = bytes_of(2 * basis.length + 70000);
	size_t used = 0, at = 0;

	while (at < basis.length) {
		size_t copy = next_random(&seed) % 9000, fresh = next_random(&seed) % 7 ? next_random(&seed) % 40 : 20000;

		if (copy > basis.length - at)
			copy = basis.length - at;
		memcpy(source.data + used, basis.data + at, copy);
		used += copy;
		at += copy + next_random(&seed) % 50;
		for (size_t i = 0; i < fresh && used < source.length - basis.length; i++)
			source.data[used++] = (uint8_t)(next_random(&seed) >> 8);
	}
	source.length = used;
	return source;
}

static void check_trip(struct reception *reception, struct transfer *transfer, struct bytes basis, struct bytes source,
		       bool is_clone)
{
	int basis_fd = file_of(basis), out_fd = is_clone ? file_of(basis) : empty_file();
	_Atomic uint64_t done = 99;
	struct patch_request request = { .basis_fd = basis_fd, .out_fd = out_fd, .size = source.length, .done = &done,
					 .is_clone = is_clone };

	assert_int_equal(receive_file(reception, &transfer->sums.head, request), PATCH_OK);
	expect_content(out_fd, source);
	assert_int_equal(reception->outcome.length, source.length);
	assert_int_equal(reception->outcome.literal, transfer->stats.literal_bytes);
	assert_int_equal(reception->outcome.matched, transfer->stats.matched_bytes);
	assert_int_equal(reception->outcome.digest_length, transfer->digest_length);
	assert_memory_equal(reception->outcome.digest, transfer->digest, (size_t)transfer->digest_length);
	if (source.length)
		assert_int_equal(done, source.length);
	close(basis_fd);
	close(out_fd);
}

/* Three files of one session, so that what is kept from file to file is kept rightly; one begins as a copy of the basis. */
static void trip(struct setting setting, struct bytes basis, struct bytes source)
{
	struct transfer transfer;
	struct reception reception;

	transfer_start(&transfer, &setting);
	for (int i = 0; i < 3; i++)
		send_file(&transfer, basis, source);
	reception_of(&reception, &transfer);
	check_trip(&reception, &transfer, basis, source, false);
	check_trip(&reception, &transfer, basis, source, true);
	check_trip(&reception, &transfer, basis, source, false);
	assert_true(everything_was_read(&reception));
	reception_end(&reception);
	transfer_end(&transfer);
}

UNIT_TEST(every_method_protocol_and_digest)
{
	static const enum sum_algorithm sums[] = { SUM_MD4, SUM_MD5, SUM_SHA1, SUM_XXH64, SUM_XXH3, SUM_XXH128 };
	struct bytes basis = random_bytes(200000, 1), source = edited(basis, 2);

	for (int compress = COMPRESS_NONE; compress <= COMPRESS_LZ4; compress++) {
		for (int protocol = 27; protocol <= PROTOCOL_MAX; protocol++) {
			struct setting setting = { .compress = (enum compress_algorithm)compress, .protocol = protocol,
						   .sum = protocol < 30 ? SUM_MD4_OLD : sums[(protocol + compress) % 6] };
			trip(setting, basis, source);
		}
	}
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
		struct setting setting = { .sum = sums[i] };
		trip(setting, basis, source);
	}
	free(basis.data);
	free(source.data);
}

/* Sizes about the limits of blocks, of literal runs, of chunks and of the receiver's buffer; all new, all old, and shifted. */
UNIT_TEST(sizes_about_every_limit)
{
	static const size_t sizes[] = {
		0, 1, 699, 700, 701, 4095, 4096, 4097, 16383, 16384, 32767, 32768, 32769, 65535, 65536, 131072, 262143, 262144,
		262145, 524289, 1100000,
	};
	struct bytes noise = random_bytes(1100001, 3);

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct bytes source = { noise.data, sizes[i] }, shifted = { noise.data + 1, sizes[i] };

		for (int compress = COMPRESS_NONE; compress <= COMPRESS_LZ4; compress++) {
			struct setting setting = { .compress = (enum compress_algorithm)compress };
			trip(setting, nothing, source);
			setting.block_length = sizes[i] > 600000 ? 1 << 17 : 700;
			trip(setting, source, source);
			trip(setting, shifted, source);
		}
	}
	free(noise.data);
}

/* Old zlib's history of long blocks, below and from protocol 31 on, also of blocks longer than our buffer. */
UNIT_TEST(long_blocks)
{
	static const int32_t lengths[] = { 65535, 65536, 131070, 131072 };
	struct bytes basis = random_bytes(1 << 20, 4), source = bytes_of((1 << 20) + 40000);

	for (size_t i = 0; i < 4; i++) {
		for (int protocol = 29; protocol <= PROTOCOL_MAX; protocol++) {
			size_t length = (size_t)lengths[i];
			struct setting setting = { .compress = COMPRESS_ZLIB, .protocol = protocol,
						   .block_length = lengths[i] };

			/* Behind the first block a literal that repeats a part of it. */
			memcpy(source.data, basis.data, length);
			memcpy(source.data + length, basis.data + (protocol < 31 ? 100 : length - 20000), 20000);
			memcpy(source.data + length + 20000, basis.data + length, basis.length - length);
			source.length = basis.length + 20000;
			trip(setting, basis, source);
			setting.compress = COMPRESS_ZSTD;
			trip(setting, basis, source);
		}
	}
	struct setting setting = { .compress = COMPRESS_ZLIB, .protocol = 29, .sum = SUM_MD4_OLD, .block_length = 300001 };

	trip(setting, basis, source);
	free(basis.data);
	free(source.data);
}

/* Frames may end anywhere, also inside numbers and literals. */
UNIT_TEST(multiplexed_in_any_pieces)
{
	struct bytes source = random_bytes(70000, 5), framed = bytes_of(400000);
	struct setting setting = { 0 };
	struct transfer transfer;
	struct reception reception;
	uint32_t seed = 6;
	size_t length;

	transfer_start(&transfer, &setting);
	send_file(&transfer, nothing, source);
	const uint8_t *stream = wire_test_output(transfer.session.wire, &length);

	framed.length = 0;
	for (size_t at = 0, piece; at < length; at += piece) {
		piece = next_random(&seed) % (at % 3 ? 9 : 3000);
		piece = piece < length - at ? piece : length - at;
		uint8_t header[4] = { (uint8_t)piece, (uint8_t)(piece >> 8), 0, 7 };
		memcpy(framed.data + framed.length, header, 4);
		memcpy(framed.data + framed.length + 4, stream + at, piece);
		framed.length += 4 + piece;
	}
	reception_start(&reception, COMPRESS_NONE, 32, SUM_MD5, framed.data, framed.length);
	wire_set_mux_in(reception.session.wire, true);
	check_trip(&reception, &transfer, nothing, source, false);
	reception_end(&reception);
	transfer_end(&transfer);
	free(source.data);
	free(framed.data);
}

/* --- in place --- */

static void in_place(const char *old, const char *new, size_t block_length, struct setting setting)
{
	struct bytes basis = spelled(old, block_length), source = spelled(new, block_length);
	struct patch_request request = { .in_place = true, .size = source.length };
	struct transfer transfer;
	struct reception reception;

	setting.in_place = true;
	setting.block_length = (int32_t)block_length;
	transfer_start(&transfer, &setting);
	send_file(&transfer, basis, source);
	reception_of(&reception, &transfer);
	request.out_fd = file_of(basis);
	request.basis_fd = request.out_fd;
	assert_int_equal(receive_file(&reception, &transfer.sums.head, request), PATCH_OK);
	expect_content(request.out_fd, source);
	assert_int_equal(reception.outcome.matched, transfer.stats.matched_bytes);
	reception_end(&reception);
	transfer_end(&transfer);
	close(request.out_fd);
	free(basis.data);
	free(source.data);
}

/* The examples of doc/protocol/03-transfer.md section 5.3 and more, with blocks shorter and longer than the buffer. */
UNIT_TEST(updates_in_place)
{
	static const char *const cases[][2] = {
		{ "ABC", "XABC" }, { "ABCD", "BCD" }, { "ABC", "BAC" }, { "ABC", "ABCA" }, { "ABC", "AXCB" }, { "ABC", "zABC" },
		{ "ABC", "ABC" }, { "ABCD", "AXCD" }, { "ABCD", "" }, { "ABCDE", "AxxxCDE" }, { "ABCDEFGH", "ABDEXGFHHA" },
		{ "ABCabc", "BCabc" }, { "ABCab", "AB" }, { "Aq", "qAq" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int compress = COMPRESS_NONE; compress <= COMPRESS_LZ4; compress++) {
			struct setting setting = { .compress = (enum compress_algorithm)compress };
			in_place(cases[i][0], cases[i][1], 700, setting);
		}
		struct setting old = { .protocol = 29, .sum = SUM_MD4_OLD };

		in_place(cases[i][0], cases[i][1], 300000, old);
	}
}

/* What stays where it is must not be written: a file that cannot be written shows it. */
UNIT_TEST(blocks_are_not_written_over_themselves)
{
	struct bytes basis = random_bytes(1 << 20, 7);
	struct setting setting = { .in_place = true };
	struct patch_request request = { .in_place = true, .size = basis.length };
	struct transfer transfer;
	struct reception reception;

	transfer_start(&transfer, &setting);
	send_file(&transfer, basis, basis);
	reception_of(&reception, &transfer);
	request.out_fd = request.basis_fd = file_of(basis);
	assert_int_equal(fcntl(request.out_fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	assert_int_equal(receive_file(&reception, &transfer.sums.head, request), PATCH_OK);
	assert_int_equal(reception.outcome.matched, basis.length);
	expect_content(request.out_fd, basis);
	close(request.out_fd);
	reception_end(&reception);
	transfer_end(&transfer);
	free(basis.data);
}

/* --- append --- */

/* A file of `have` bytes gets the rest of the source; damaged: its first byte is another. */
static enum patch_result append_to(int append, size_t have, bool damaged, bool shorter, struct bytes source)
{
	struct setting setting = { 0 };
	struct match_request match = {
		.memory = source.data, .size = source.length, .append_from = have, .append_verify = append > 1,
	};
	struct bytes old = copy_of(source);
	struct patch_request request = { .append = append, .in_place = true, .size = source.length };
	struct transfer transfer;
	struct reception reception;

	old.length = have;
	transfer_start(&transfer, &setting);
	make_sums(&transfer, old);
	send_source(&transfer, &match);
	wire_write(transfer.session.wire, transfer.digest, (size_t)transfer.digest_length);
	reception_of(&reception, &transfer);
	if (damaged)
		old.data[0] ^= 1;
	old.length -= shorter;
	request.out_fd = request.basis_fd = file_of(old);
	enum patch_result result = receive_file(&reception, &transfer.sums.head, request);

	assert_true(everything_was_read(&reception));
	if (shorter) {
		expect_content(request.out_fd, old);
		assert_int_equal(reception.outcome.error, ENODATA);
	} else {
		assert_int_equal(reception.outcome.length, source.length);
		assert_int_equal(reception.outcome.literal, source.length - have);
		uint8_t first = source.data[0];
		source.data[0] = old.data[0];
		expect_content(request.out_fd, source);
		source.data[0] = first;
	}
	close(request.out_fd);
	reception_end(&reception);
	transfer_end(&transfer);
	free(old.data);
	return result;
}

UNIT_TEST(append)
{
	struct bytes source = random_bytes(600000, 8);

	for (int append = 1; append <= 2; append++) {
		for (size_t have = 700; have <= 599999; have += 149825) {
			assert_int_equal(append_to(append, have, false, false, source), PATCH_OK);
			assert_int_equal(append_to(append, have, true, false, source),
					 append == 1 ? PATCH_OK : PATCH_WRONG_DIGEST);
			assert_int_equal(append_to(append, have, false, true, source), PATCH_READ_FAILED);
		}
	}
	source.length = 1500;
	assert_int_equal(append_to(1, 1000, false, false, source), PATCH_OK);
	assert_int_equal(append_to(2, 1000, false, false, source), PATCH_OK);
	free(source.data);
}

/* --- holes and reserved blocks --- */

static struct bytes with_zeros(void)
{
	struct bytes bytes = random_bytes(3 << 20, 9);

	memset(bytes.data, 0, 100000);
	memset(bytes.data + 300001, 0, 500000);
	memset(bytes.data + 900000, 0, 1023);
	memset(bytes.data + (2 << 20), 0, 1 << 20);
	return bytes;
}

static int64_t blocks_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_blocks;
}

/* Into `out_fd`, sparse; returns the bytes that the file takes. */
static int64_t receive_sparse(int out_fd, struct bytes source, bool update)
{
	struct setting setting = { 0 };
	struct patch_request request = { .basis_fd = -1, .out_fd = out_fd, .sparse = true, .size = source.length,
					 .in_place = update };
	struct transfer transfer;
	struct reception reception;

	transfer_start(&transfer, &setting);
	send_file(&transfer, nothing, source);
	reception_of(&reception, &transfer);
	assert_int_equal(receive_file(&reception, &transfer.sums.head, request), PATCH_OK);
	expect_content(out_fd, source);
	reception_end(&reception);
	transfer_end(&transfer);
	return blocks_of(out_fd) * 512;
}

UNIT_TEST(sparse_files)
{
	struct bytes source = with_zeros(), old = random_bytes(5 << 20, 10), zeros = filled(3 << 20, 0);
	int64_t data = (3 << 20) - 100000 - 500000 - (1 << 20);
	int fd = empty_file();

	assert_in_range(receive_sparse(fd, source, false), data, data + 20000);
	close(fd);
	/* Old content gives its blocks back; reserved ones as well. */
	fd = file_of(old);
	assert_in_range(receive_sparse(fd, source, true), data, data + 20000);
	assert_int_equal(receive_sparse(fd, zeros, true), 0);
	close(fd);
	fd = empty_file();
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 3 << 20), 0);
	assert_in_range(receive_sparse(fd, source, false), data, data + 20000);
	close(fd);
	free(source.data);
	free(old.data);
	free(zeros.data);
}

/* A file that turns out shorter than it was announced gives back what was reserved for it. */
UNIT_TEST(reserved_blocks_behind_the_end)
{
	struct bytes source = random_bytes(100000, 11);
	struct setting setting = { 0 };
	struct transfer transfer;
	struct reception reception;
	int fd = empty_file();

	transfer_start(&transfer, &setting);
	send_file(&transfer, nothing, source);
	reception_of(&reception, &transfer);
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 3 << 20), 0);
	struct patch_request request = { .basis_fd = -1, .out_fd = fd, .size = 3 << 20 };

	assert_int_equal(receive_file(&reception, &transfer.sums.head, request), PATCH_OK);
	expect_content(fd, source);
	assert_in_range(blocks_of(fd) * 512, 100000, 110000);
	close(fd);
	reception_end(&reception);
	transfer_end(&transfer);
	free(source.data);
}

/* --- what goes wrong, and the next file that must be none the worse --- */

UNIT_TEST(failures_leave_the_stream_in_step)
{
	struct bytes basis = random_bytes(900000, 12), source = edited(basis, 13), cut = { basis.data, 400000 };
	int whole_fd = file_of(basis), cut_fd = file_of(cut), sealed_fd = empty_file();

	assert_int_equal(fcntl(sealed_fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	for (int compress = COMPRESS_NONE; compress <= COMPRESS_LZ4; compress++) {
		struct setting setting = { .compress = (enum compress_algorithm)compress, .protocol = compress & 1 ? 30 : 32 };
		struct patch_request request = { .basis_fd = whole_fd, .out_fd = sealed_fd, .size = source.length };
		struct transfer transfer;
		struct reception reception;

		transfer_start(&transfer, &setting);
		for (int i = 0; i < 5; i++)
			send_file(&transfer, basis, source);
		reception_of(&reception, &transfer);
		assert_int_equal(receive_file(&reception, &transfer.sums.head, request), PATCH_WRITE_FAILED);
		assert_int_equal(reception.outcome.error, EPERM);
		assert_int_equal(reception.outcome.digest_length, 0);
		check_trip(&reception, &transfer, basis, source, false);
		request.out_fd = empty_file();
		request.basis_fd = cut_fd;
		assert_int_equal(receive_file(&reception, &transfer.sums.head, request), PATCH_READ_FAILED);
		assert_int_equal(reception.outcome.error, ENODATA);
		close(request.out_fd);
		request.out_fd = request.basis_fd = -1;
		assert_int_equal(receive_file(&reception, &transfer.sums.head, request), PATCH_OK);
		assert_int_equal(reception.outcome.matched, transfer.stats.matched_bytes);
		check_trip(&reception, &transfer, basis, source, false);
		assert_true(everything_was_read(&reception));
		reception_end(&reception);
		transfer_end(&transfer);
	}
	close(whole_fd);
	close(cut_fd);
	close(sealed_fd);
	free(basis.data);
	free(source.data);
}

/* Receive `stream` with this header; basis: of 1400 bytes. */
static enum patch_result receive_stream(struct sum_head head, const char *stream, size_t length, struct patch_request request)
{
	struct bytes basis = filled(1400, 'b');
	struct reception reception;
	int basis_fd = file_of(basis);

	reception_start(&reception, COMPRESS_NONE, 32, SUM_NONE, stream, length);
	request.basis_fd = request.basis_fd ? -1 : basis_fd;
	request.out_fd = request.out_fd ? -1 : empty_file();
	receive_file(&reception, &head, request);
	assert_true(everything_was_read(&reception));
	close(request.out_fd);
	close(basis_fd);
	free(basis.data);
	reception_end(&reception);
	return reception.outcome.result;
}

#define STREAM(text) text, sizeof text - 1

/* Two literals of three bytes and a block of 700, or the block first; the NUL is the digest of a session without one. */
UNIT_TEST(more_than_there_may_be_is_not_written)
{
	static const char last[] = "\3\0\0\0abc\3\0\0\0def\xff\xff\xff\xff\0\0\0\0";
	static const char first[] = "\xff\xff\xff\xff\3\0\0\0abc\3\0\0\0def\0\0\0\0";
	static const char *const streams[] = { last, first };
	const struct sum_head two = { 2, 700, 2, 0 };

	for (int i = 0; i < 2; i++) {
		const struct patch_request any = { .most = 0 }, enough = { .most = 706 }, short_of = { .most = 705 };
		const struct patch_request one = { .most = 1 }, drain = { .most = 1, .out_fd = 1, .basis_fd = 1 };

		assert_int_equal(receive_stream(two, streams[i], sizeof last, any), PATCH_OK);
		assert_int_equal(receive_stream(two, streams[i], sizeof last, enough), PATCH_OK);
		assert_int_equal(receive_stream(two, streams[i], sizeof last, short_of), PATCH_TOO_LONG);
		assert_int_equal(receive_stream(two, streams[i], sizeof last, one), PATCH_TOO_LONG);
		assert_int_equal(receive_stream(two, streams[i], sizeof last, drain), PATCH_OK);
	}
}

UNIT_TEST(blocks_that_are_not_there)
{
	const struct sum_head none = { 0 }, two = { 2, 700, 2, 0 }, too_much = { 3, 700, 2, 1 };
	const struct patch_request usual = { 0 }, drain = { .out_fd = 1, .basis_fd = 1 }, append = { .append = 1 };
	const struct patch_request no_basis = { .basis_fd = 1, .name = "x/y" };

	expect_die(EXIT_PROTOCOL, "Invalid block index 2 (count=2)", receive_stream(two, STREAM("\xfd\xff\xff\xff"), usual));
	expect_die(EXIT_PROTOCOL, "Invalid block index 2147483647 (count=2)", receive_stream(two, STREAM("\0\0\0\x80"), usual));
	expect_die(EXIT_PROTOCOL, "Invalid block index 0 (count=0)", receive_stream(none, STREAM("\xff\xff\xff\xff"), usual));
	expect_die(EXIT_PROTOCOL, "Invalid block index 0 (count=0)", receive_stream(none, STREAM("\xff\xff\xff\xff"), drain));
	expect_die(EXIT_PROTOCOL, "Invalid block index 0 (count=0)", receive_stream(two, STREAM("\xff\xff\xff\xff"), append));
	expect_die(EXIT_PROTOCOL, "got a block match with no basis file for x/y",
		   receive_stream(two, STREAM("\xff\xff\xff\xff"), no_basis));
	assert_int_equal(receive_stream(two, STREAM("\xff\xff\xff\xff\0\0\0\0\0"), usual), PATCH_OK);
	assert_int_equal(receive_stream(two, STREAM("\xff\xff\xff\xff\0\0\0\0\0"), drain), PATCH_OK);
	assert_int_equal(receive_stream(too_much, STREAM("\xfd\xff\xff\xff\0\0\0\0\0"), usual), PATCH_READ_FAILED);
}

/* All bytes of the digest count, even the one of "none". */
UNIT_TEST(digests_are_compared)
{
	struct bytes source = random_bytes(5000, 14);
	const struct sum_head none = { 0 };
	const struct patch_request usual = { 0 };

	assert_int_equal(receive_stream(none, STREAM("\3\0\0\0abc\0\0\0\0\0"), usual), PATCH_OK);
	assert_int_equal(receive_stream(none, STREAM("\3\0\0\0abc\0\0\0\0\1"), usual), PATCH_WRONG_DIGEST);
	for (int i = 0; i < 16; i++) {
		struct setting setting = { 0 };
		struct patch_request request = { .basis_fd = -1, .out_fd = empty_file() };
		struct transfer transfer;
		struct reception reception;

		transfer_start(&transfer, &setting);
		make_sums(&transfer, nothing);
		send_bytes(&transfer, source);
		transfer.digest[i] ^= 0x10;
		wire_write(transfer.session.wire, transfer.digest, 16);
		reception_of(&reception, &transfer);
		assert_int_equal(receive_file(&reception, &none, request), PATCH_WRONG_DIGEST);
		expect_content(request.out_fd, source);
		assert_int_equal(reception.outcome.digest_length, 16);
		close(request.out_fd);
		reception_end(&reception);
		transfer_end(&transfer);
	}
	free(source.data);
}
