/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The client's part of the set-up: what it makes of a server's flags and lists, and what it answers (doc/protocol/01-session.md
 * section 7).
 */
#include "expect_die.h"

#include <stdlib.h>

#include "testsuite/unit/wire_memory.h"
#include "wire/session.h"
#include "wire/setup.h"

#define SERVER_SUMS "\x23xxh128 xxh3 xxh64 md5 md4 sha1 none"
#define CLIENT_SUMS "\x1exxh128 xxh3 xxh64 md5 md4 sha1"
#define SERVER_COMPRESS "\x18zstd lz4 zlibx zlib none"
#define CLIENT_COMPRESS "\x13zstd lz4 zlibx zlib"
#define SEED "\x07\0\0\0"

/* A literal's bytes, NULs included. */
#define BYTES(text) text, sizeof text - 1

static struct setup_request plain_request(void)
{
	return (struct setup_request){ .max_protocol = PROTOCOL_MAX, .client_info = "", .allow_inc_recurse = true };
}

static struct session set_up(int protocol, bool sends, const struct setup_request *request, const char *in, size_t length)
{
	struct session session = { .wire = wire_new_memory(in, length), .protocol = protocol, .is_sender = sends };

	setup_client(&session, request);
	return session;
}

static void assert_sent(struct session *session, const char *wanted, size_t length)
{
	size_t sent;
	const uint8_t *bytes = wire_test_output(session->wire, &sent);

	assert_int_equal(sent, length);
	if (length)
		assert_memory_equal(bytes, wanted, length);
	wire_free(session->wire);
}

/* The bytes of doc/protocol/01-session.md section 7.7. */
UNIT_TEST(setup_with_a_current_server)
{
	struct setup_request request = plain_request();
	struct session session;

	request.recursive = true;
	session = set_up(32, false, &request, BYTES("\x81\xff" SERVER_SUMS SEED));
	assert_int_equal(session.compat, 0x1ff);
	assert_true(session.inc_recurse && session.varint_flags && session.safe_flist && session.id0_names);
	assert_int_equal(session.xfer_sum, SUM_XXH128);
	assert_int_equal(session.file_sum, SUM_XXH128);
	assert_int_equal(session.seed, 7);
	assert_sent(&session, BYTES(CLIENT_SUMS));
}

UNIT_TEST(setup_with_compression)
{
	struct setup_request request = plain_request();
	struct session session;

	request.compress = true;
	session = set_up(31, true, &request, BYTES("\x81\xfe" SERVER_SUMS SERVER_COMPRESS SEED));
	assert_int_equal(session.compress, COMPRESS_ZSTD);
	assert_int_equal(session.compress_level, 3);
	assert_sent(&session, BYTES(CLIENT_SUMS CLIENT_COMPRESS));
	request.checksum_choice = "md5";
	request.compress_choice = "lz4";
	session = set_up(31, true, &request, BYTES("\x81\xfe" SEED));
	assert_int_equal(session.xfer_sum, SUM_MD5);
	assert_int_equal(session.compress, COMPRESS_LZ4);
	assert_sent(&session, "", 0);
}

UNIT_TEST(setup_with_older_servers)
{
	static const struct { int protocol; const char *in; size_t length; uint32_t compat; enum sum_algorithm sum; } cases[] =
		{
		{ 31, BYTES("\x3f" SEED), 0x3f, SUM_MD5 }, { 31, BYTES("\x0f" SEED), 0x0f, SUM_MD5 },
		{ 30, BYTES("\x03" SEED), 0x03, SUM_MD5 }, { 29, BYTES(SEED), 0, SUM_MD4_OLD }, { 27, BYTES(SEED), 0,
		  SUM_MD4_OLD },
	};
	struct setup_request request = plain_request();
	struct session session;

	request.recursive = request.compress = true;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		session = set_up(cases[i].protocol, false, &request, cases[i].in, cases[i].length);
		assert_int_equal(session.compat, cases[i].compat);
		assert_int_equal(session.inc_recurse, cases[i].compat & 1);
		assert_int_equal(session.xfer_sum, cases[i].sum);
		assert_int_equal(session.compress, COMPRESS_ZLIB);
		assert_int_equal(session.seed, 7);
		assert_sent(&session, "", 0);
	}
}

/* The server's list is read first, and answered by the one name that both sides must come to. */
UNIT_TEST(own_order_is_sent_as_one_name)
{
	struct setup_request request = plain_request();
	struct session session;

	request.compress = true;
	setenv("RSYNC_CHECKSUM_LIST", "sha1 md5 xxh64 & xxh3", 1);
	session = set_up(32, true, &request, BYTES("\x81\xfe" "\x14xxh64 md5 md4 sha1 x" SERVER_COMPRESS SEED));
	assert_int_equal(session.xfer_sum, SUM_SHA1);
	assert_int_equal(session.compress, COMPRESS_ZSTD);
	assert_sent(&session, BYTES("\4sha1\4zstd"));
	expect_die(4, "Failed to negotiate a checksum choice.\nServer list: xxh3\nClient list: sha1 md5 xxh64",
		   set_up(32, true, &request, BYTES("\x81\xfe\4xxh3" SERVER_COMPRESS SEED)));
	unsetenv("RSYNC_CHECKSUM_LIST");
}

/* A list that comes in parts, though we have not offered to take it so, is an attack. */
UNIT_TEST(incremental_recursion_must_have_been_offered)
{
	struct setup_request request = plain_request();
	struct session session;

	expect_die(1, "incremental recursion", set_up(32, false, &request, BYTES("\x81\xff" SERVER_SUMS SEED)));
	request.recursive = request.needs_whole_list = true;
	expect_die(1, "incremental recursion", set_up(32, false, &request, BYTES("\x81\xff" SERVER_SUMS SEED)));
	session = set_up(32, true, &request, BYTES("\x81\xff" SERVER_SUMS SEED));
	assert_true(session.inc_recurse);
	wire_free(session.wire);
}

UNIT_TEST(unknown_flags_mean_nothing)
{
	struct setup_request request = plain_request();
	struct session session;

	session = set_up(32, false, &request, BYTES("\xc0\x06\x0e" SEED));
	assert_int_equal(session.compat, 0x006);
	wire_free(session.wire);
}

UNIT_TEST(symlink_text_is_converted_where_both_can)
{
	struct setup_request request = plain_request();
	struct session session;

	request.iconv = true;
	session = set_up(30, true, &request, BYTES("\x02" SEED));
	assert_false(session.symlink_iconv);
	wire_free(session.wire);
	session = set_up(30, true, &request, BYTES("\x06" SEED));
	assert_true(session.symlink_iconv);
	wire_free(session.wire);
	session = set_up(30, false, &request, BYTES("\x02" SEED));
	assert_true(session.symlink_iconv);
	wire_free(session.wire);
}

UNIT_TEST(lists_are_bounded)
{
	struct setup_request request = plain_request();

	expect_die(2, "over-long vstring received", set_up(32, false, &request, BYTES("\x81\xfe\x81\x00xx")));
	expect_die(12, "connection unexpectedly closed", set_up(32, false, &request, BYTES("\x81\xfe" SERVER_SUMS "\x01")));
}

static int set_environment(void **state)
{
	(void)state;
	unsetenv("RSYNC_CHECKSUM_LIST");
	unsetenv("RSYNC_COMPRESS_LIST");
	return 0;
}

UNIT_GROUP(set_environment, NULL)
