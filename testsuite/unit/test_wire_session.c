/* SPDX-License-Identifier: GPL-3.0-or-later */
/* wire/: greeting, arguments, version exchange, set-up and algorithm choice, against bytes of real sessions. */
#include "expect_die.h"

#include <stdlib.h>

#include "testsuite/unit/wire_memory.h"
#include "wire/args.h"
#include "wire/session.h"
#include "wire/setup.h"

/* --- greeting, doc/protocol/01-session.md sections 3.1 and 3.2 --- */

UNIT_TEST(greeting_format)
{
	char buf[128];

	assert_int_equal(greeting_format(buf, sizeof buf, PROTOCOL_MAX), 41);
	assert_string_equal(buf, "@RSYNCD: 33.0 sha512 sha256 sha1 md5 md4\n");
}

struct greeting_case { const char *line; enum greeting_error error; int negotiated; const char *digests; };

static const struct greeting_case greetings[] = {
	{ "@RSYNCD: 32.0 sha512 md5", GREETING_OK, 32, "sha512 md5" },
	{ "@RSYNCD: 31.0", GREETING_OK, 31, NULL }, { "@RSYNCD: 31.14", GREETING_OK, 30, NULL },
	{ "@RSYNCD: 32.7 md5", GREETING_OK, 31, "md5" }, { "@RSYNCD: 33.5 md5", GREETING_OK, 32, "md5" },
	{ "@RSYNCD: 33.0 md5", GREETING_OK, 33, "md5" }, { "@RSYNCD: 34.0 md5", GREETING_OK, 33, "md5" },
	{ "@RSYNCD: 34.5 md5", GREETING_OK, 33, "md5" }, { "@RSYNCD: 33.7 md5", GREETING_OK, 32, "md5" },
	{ "@RSYNCD: 33.0", GREETING_NO_DIGESTS, 0, NULL }, { "@RSYNCD: 33 md5", GREETING_NO_SUBPROTOCOL, 0, NULL },
	{ "@RSYNCD: 40.0 md5", GREETING_OK, 33, "md5" }, { "@RSYNCD: 41.0 md5", GREETING_OK, 0, "md5" },
	{ "@RSYNCD: 29", GREETING_OK, 29, NULL }, { "@RSYNCD: 29 md5", GREETING_OK, 29, "md5" },
	{ "@RSYNCD: 29.0 sha512 md5", GREETING_OK, 29, "sha512 md5" }, { "@RSYNCD: 27", GREETING_OK, 27, NULL },
	{ "@RSYNCD: 26", GREETING_OK, 0, NULL }, { "@RSYNCD: 27.1", GREETING_OK, 0, NULL },
	{ "@RSYNCD: 19", GREETING_OK, 0, NULL }, { "@RSYNCD:31.0", GREETING_OK, 31, NULL },
	{ "@RSYNCD: 32 md5", GREETING_NO_SUBPROTOCOL, 0, NULL }, { "@RSYNCD: 30", GREETING_NO_SUBPROTOCOL, 0, NULL },
	{ "@RSYNCD: 31.-1", GREETING_NO_SUBPROTOCOL, 0, NULL }, { "@RSYNCD: 32.0", GREETING_NO_DIGESTS, 0, NULL },
	{ "@RSYNCD: ", GREETING_MALFORMED, 0, NULL }, { "", GREETING_MALFORMED, 0, NULL },
	{ "GET / HTTP/1.0", GREETING_MALFORMED, 0, NULL }, { "@RSYNCD: x", GREETING_MALFORMED, 0, NULL },
	{ "@RSYNCD: 99999999999999999999", GREETING_MALFORMED, 0, NULL },
};

UNIT_TEST(greeting_vectors)
{
	struct greeting greeting;

	for (size_t i = 0; i < sizeof greetings / sizeof *greetings; i++) {
		assert_int_equal(greeting_parse(&greeting, greetings[i].line), greetings[i].error);
		if (greetings[i].error != GREETING_OK)
			continue;
		assert_int_equal(greeting_negotiate(&greeting, PROTOCOL_MAX), greetings[i].negotiated);
		if (greetings[i].digests)
			assert_string_equal(greeting.digests, greetings[i].digests);
		else
			assert_null(greeting.digests);
	}
	greeting_parse(&greeting, "@RSYNCD: 32.0 md5");
	assert_int_equal(greeting_negotiate(&greeting, 29), 29);
}

/* --- arguments, doc/protocol/01-session.md section 5 --- */

static void assert_words(const struct args *args, const char *const *words)
{
	size_t count = 0;

	for (; words[count]; count++) {
		assert_true(count < args->count);
		assert_string_equal(args->items[count], words[count]);
	}
	assert_int_equal(args->count, count);
	assert_null(args->items[count]);
}

UNIT_TEST(arguments_in_both_forms)
{
	static const char *const words[] = { "--server", "--sender", "-tr", ".", "mod/a b", NULL };
	struct wire *wire = wire_new_memory("--server\0--sender\0-tr\0.\0mod/a b\0\0X", 34);
	struct args args = { NULL, 0 };

	args_read(wire, &args, true);
	assert_words(&args, words);
	assert_int_equal(wire_read_byte(wire), 'X');
	args_free(&args);
	wire_free(wire);
	wire = wire_new_memory("--server\n--sender\r-tr\n.\nmod/a b\n\nX", 34);
	args_read(wire, &args, false);
	assert_words(&args, words);
	assert_int_equal(wire_read_byte(wire), 'X');
	args_free(&args);
	wire_free(wire);
}

UNIT_TEST(secluded_block_loses_its_program_name)
{
	static const char *const words[] = { "first", ".", "mod/a file", "mod/b*\r\n", NULL };
	struct wire *wire = wire_new_memory("rsync\0.\0mod/a file\0mod/b*\r\n\0\0\x20", 30);
	struct args args = { NULL, 0 };

	args_append(&args, "first");
	args_read_secluded(wire, &args);
	assert_words(&args, words);
	assert_int_equal(wire_read_byte(wire), 0x20);
	args_free(&args);
	wire_free(wire);
	wire = wire_new_memory("\0Z", 2);
	args_read_secluded(wire, &args);
	assert_int_equal(args.count, 0);
	assert_int_equal(wire_read_byte(wire), 'Z');
	wire_free(wire);
}

UNIT_TEST(option_words_lose_one_level_of_backslashes)
{
	static const char *const words[] = { "--backup-dir", "x y", "--suffix=$z", "a\\b", "end\\", ".", "p\\ q", ".", NULL };
	struct args args = { NULL, 0 };

	args_append(&args, "--backup-dir");
	args_append(&args, "x\\ y");
	args_append(&args, "--suffix=\\$z");
	args_append(&args, "a\\\\b");
	args_append(&args, "end\\");
	args_append(&args, ".");
	args_append(&args, "p\\ q");
	args_append(&args, ".");
	args_unescape_options(&args);
	assert_words(&args, words);
	args_free(&args);
}

/* S-037: up to the limit, at each power of two on the way, the vector has room for its terminator. */
UNIT_TEST(argument_count_is_limited)
{
	char *in = malloc(2 * (ARGS_MAX_COUNT + 2));
	struct args args = { NULL, 0 };
	struct wire *wire;

	for (int i = 0; i <= ARGS_MAX_COUNT; i++)
		memcpy(in + 2 * i, "w", 2);
	in[2 * ARGS_MAX_COUNT] = '\0';
	wire = wire_new_memory(in, 2 * ARGS_MAX_COUNT + 1);
	args_read(wire, &args, true);
	assert_int_equal(args.count, ARGS_MAX_COUNT);
	assert_null(args.items[ARGS_MAX_COUNT]);
	args_free(&args);
	wire_free(wire);
	in[2 * ARGS_MAX_COUNT] = 'w';
	in[2 * ARGS_MAX_COUNT + 1] = '\0';
	in[2 * ARGS_MAX_COUNT + 2] = '\0';
	wire = wire_new_memory(in, 2 * ARGS_MAX_COUNT + 3);
	expect_die(EXIT_PROTOCOL, "too many daemon arguments", args_read(wire, &args, true));
	args_free(&args);
	wire_free(wire);
	free(in);
}

/* S-008 and the length limit. */
UNIT_TEST(bad_argument_words_are_refused)
{
	char in[ARGS_MAX_LENGTH + 3];
	struct args args = { NULL, 0 };
	struct wire *wire;

	memset(in, 'x', sizeof in);
	in[ARGS_MAX_LENGTH] = in[ARGS_MAX_LENGTH + 1] = '\0';
	wire = wire_new_memory(in, ARGS_MAX_LENGTH + 2);
	args_read(wire, &args, true);
	assert_int_equal(strlen(args.items[0]), ARGS_MAX_LENGTH);
	args_free(&args);
	wire_free(wire);
	in[ARGS_MAX_LENGTH] = 'x';
	in[ARGS_MAX_LENGTH + 1] = in[ARGS_MAX_LENGTH + 2] = '\0';
	wire = wire_new_memory(in, ARGS_MAX_LENGTH + 3);
	expect_die(EXIT_PROTOCOL, "longer than 5119 bytes", args_read(wire, &args, true));
	wire_free(wire);
	wire = wire_new_memory("--se\0rver\n\n", 11);
	expect_die(EXIT_PROTOCOL, "contains a NUL", args_read(wire, &args, false));
	wire_free(wire);
	wire = wire_new_memory("--server\0", 9);
	expect_die(EXIT_STREAMIO, "connection unexpectedly closed", args_read(wire, &args, true));
	wire_free(wire);
	args_free(&args);
}

/* --- versions, doc/protocol/01-session.md section 7.1 --- */

static struct setup_request plain_request(const char *info)
{
	return (struct setup_request){
		.max_protocol = PROTOCOL_MAX, .client_info = info, .recursive = true, .allow_inc_recurse = true,
	};
}

struct version_case { const char *info; uint8_t theirs[4]; int announced, used; };

UNIT_TEST(versions)
{
	static const struct version_case cases[] = {
		{ ".iLsfxCIvu", { 32 }, 33, 32 }, { "", { 27 }, 33, 27 }, { ".iL", { 40 }, 33, 33 }, { ".iL", { 33 }, 33, 33 },
		{ "31.7iL", { 31 }, 30, 30 }, { "32.0iL", { 32 }, 33, 32 }, { "33.0iL", { 33 }, 33, 33 },
		{ "32.7iL", { 32 }, 31, 31 }, { "33.7iL", { 33 }, 32, 32 }, { "31.0iL", { 31 }, 33, 31 },
		{ "34.7iL", { 34 }, 33, 33 },
	};
	struct setup_request request;
	struct session session;
	const uint8_t *bytes;
	size_t length;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		request = plain_request(cases[i].info);
		session = (struct session){ .wire = wire_new_memory(cases[i].theirs, 4), .is_server = true };
		setup_exchange_versions(&session, &request);
		assert_int_equal(session.protocol, cases[i].used);
		bytes = wire_test_output(session.wire, &length);
		assert_int_equal(length, 4);
		assert_int_equal(bytes[0], cases[i].announced);
		wire_free(session.wire);
	}
}

UNIT_TEST(impossible_versions_are_refused)
{
	static const struct { const char *bytes, *words; } cases[] = {
		{ "hell", "protocol version mismatch -- is your shell clean?" }, { "\x13\0\0\0", "is your shell clean?" },
		{ "\x29\0\0\0", "is your shell clean?" }, { "\xff\xff\xff\xff", "is your shell clean?" },
		{ "\x1a\0\0\0", "the peer speaks protocol 26 at most" },
	};
	struct setup_request request = plain_request("");
	struct session session;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		session = (struct session){ .wire = wire_new_memory(cases[i].bytes, 4), .is_server = true };
		expect_die(EXIT_PROTOCOL, cases[i].words, setup_exchange_versions(&session, &request));
		wire_free(session.wire);
	}
}

/* --- set-up --- */

static struct session set_up(int protocol, bool sender, const struct setup_request *request, const void *in, size_t length)
{
	struct session session = { .wire = wire_new_memory(in, length), .protocol = protocol, .is_server = true,
				   .is_sender = sender };

	setup_server(&session, request);
	return session;
}

#define SERVER_SUMS "\x23xxh128 xxh3 xxh64 md5 md4 sha1 none"
#define CLIENT_SUMS "\x1exxh128 xxh3 xxh64 md5 md4 sha1"

/* The server's bytes of doc/protocol/01-session.md section 7.7, with the seed forced. */
UNIT_TEST(setup_of_a_current_pull)
{
	static const char wanted[] = "\x81\xff" SERVER_SUMS "\x07\0\0\0";
	struct setup_request request = plain_request(".iLsfxCIvu");
	struct session session;
	const uint8_t *bytes;
	size_t length;

	request.checksum_seed = 7;
	session = set_up(33, true, &request, CLIENT_SUMS, 31);
	bytes = wire_test_output(session.wire, &length);
	assert_int_equal(length, sizeof wanted - 1);
	assert_memory_equal(bytes, wanted, length);
	assert_int_equal(session.xfer_sum, SUM_XXH128);
	assert_int_equal(session.file_sum, SUM_XXH128);
	assert_int_equal(session.compress, COMPRESS_NONE);
	assert_true(session.inc_recurse && session.varint_flags && session.safe_flist && session.id0_names);
	assert_true(session.seed_first && session.avoid_xattr_optim && session.inplace_partial);
	assert_int_equal(session.seed, 7);
	assert_string_equal(session.peer_letters, "iLsfxCIvu");
	wire_free(session.wire);
}

UNIT_TEST(setup_with_compression)
{
	static const char wanted[] = "\x81\xfe" SERVER_SUMS "\x18zstd lz4 zlibx zlib none\x07\0\0\0";
	struct setup_request request = plain_request(".LsfxCIvu");
	struct session session;
	const uint8_t *bytes;
	size_t length;

	request.checksum_seed = 7;
	request.compress = true;
	session = set_up(31, true, &request, CLIENT_SUMS "\x13zstd lz4 zlibx zlib", 31 + 20);
	bytes = wire_test_output(session.wire, &length);
	assert_int_equal(length, sizeof wanted - 1);
	assert_memory_equal(bytes, wanted, length);
	assert_int_equal(session.compress, COMPRESS_ZSTD);
	assert_int_equal(session.compress_level, 3);
	assert_false(session.inc_recurse);
	wire_free(session.wire);
}

struct flags_case { int protocol; bool sender; const char *info; const char *bytes; size_t length; };

UNIT_TEST(compat_flags_by_letters)
{
	static const struct flags_case cases[] = {
		{ 30, true, "", "\x06", 1 }, { 30, true, ".iL", "\x07", 1 }, { 31, true, ".iLs", "\x07", 1 },
		{ 30, true, ".iLsf", "\x0f", 1 }, { 31, true, ".iLsfxC", "\x3f", 1 }, { 32, true, ".LsfxCIu", "\x81\x7e", 2 },
		{ 29, true, ".iLsfxCIvu", "", 0 }, { 30, false, ".iLsf", "\x0f", 1 },
	};
	struct setup_request request;
	struct session session;
	const uint8_t *bytes;
	size_t length;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		request = plain_request(cases[i].info);
		request.checksum_seed = 1;
		session = set_up(cases[i].protocol, cases[i].sender, &request, "", 0);
		bytes = wire_test_output(session.wire, &length);
		assert_int_equal(length, cases[i].length + 4);
		assert_memory_equal(bytes, cases[i].bytes, cases[i].length);
		assert_int_equal(session.xfer_sum, cases[i].protocol < 30 ? SUM_MD4_OLD : SUM_MD5);
		assert_int_equal(session.safe_flist, cases[i].protocol >= 31 ||
				 (cases[i].protocol == 30 && strchr(cases[i].info, 'f')));
		wire_free(session.wire);
	}
}

UNIT_TEST(incremental_recursion_can_be_withheld)
{
	struct setup_request request = plain_request(".iL");
	struct session session;

	request.needs_whole_list = true;
	session = set_up(30, true, &request, "", 0);
	assert_true(session.inc_recurse);
	wire_free(session.wire);
	session = set_up(30, false, &request, "", 0);
	assert_false(session.inc_recurse);
	wire_free(session.wire);
	request = plain_request(".iL");
	request.use_qsort = true;
	session = set_up(30, true, &request, "", 0);
	assert_false(session.inc_recurse);
	wire_free(session.wire);
	request.use_qsort = false;
	request.allow_inc_recurse = false;
	session = set_up(30, true, &request, "", 0);
	assert_false(session.inc_recurse);
	wire_free(session.wire);
}

UNIT_TEST(seed_is_random_unless_given)
{
	struct setup_request request = plain_request("");
	struct session one = set_up(29, true, &request, "", 0), two = set_up(29, true, &request, "", 0);

	assert_int_not_equal(one.seed, 0);
	assert_int_not_equal(one.seed, two.seed);
	wire_free(one.wire);
	wire_free(two.wire);
}

struct choice_case { const char *variable, *client; int sum; };

/* The client's order decides; names match whatever their case; xxhash is xxh64. */
UNIT_TEST(checksum_choice_follows_the_client)
{
	static const struct choice_case cases[] = {
		{ NULL, "md5 xxh64", SUM_MD5 }, { NULL, "foo SHA1 md5", SUM_SHA1 }, { NULL, "xxhash md5", SUM_XXH64 },
		{ NULL, "none", SUM_NONE }, { "sha1 md5", "xxh128 md5 sha1", SUM_MD5 }, { "md4 & sha1", "md4 sha1", SUM_SHA1 },
		{ "md4 &", "md5 sha1", SUM_MD5 }, { "  ", "xxh3", SUM_XXH3 }, { "foo MD4 md4 xxhash", "xxh64", SUM_XXH64 },
		{ "foo", "md5", -1 }, { NULL, "", -1 }, { NULL, "foo", -1 }, { "md4 & sha1", "md4", -1 },
	};
	struct setup_request request = plain_request(".v");
	struct session session;
	char in[64];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (cases[i].variable)
			setenv("RSYNC_CHECKSUM_LIST", cases[i].variable, 1);
		in[0] = (char)strlen(cases[i].client);
		strcpy(in + 1, cases[i].client);
		if (cases[i].sum < 0) {
			session = (struct session){ .wire = wire_new_memory(in, strlen(in + 1) + 1), .protocol = 31,
						    .is_server = true, .is_sender = true };
			expect_die(EXIT_UNSUPPORTED, "Failed to negotiate a checksum choice.\nClient list: ",
				   setup_server(&session, &request));
		} else {
			session = set_up(31, true, &request, in, strlen(in + 1) + 1);
			assert_int_equal(session.xfer_sum, cases[i].sum);
		}
		wire_free(session.wire);
		unsetenv("RSYNC_CHECKSUM_LIST");
	}
}

UNIT_TEST(environment_list_is_announced)
{
	struct setup_request request = plain_request(".v");
	struct session session;
	const uint8_t *bytes;
	size_t length;

	setenv("RSYNC_CHECKSUM_LIST", "md5 & sha1 bogus  MD5 sha1", 1);
	session = set_up(31, true, &request, "\4sha1", 5);
	bytes = wire_test_output(session.wire, &length);
	assert_memory_equal(bytes, "\x80\x86\x08sha1 md5", 11);
	wire_free(session.wire);
	setenv("RSYNC_CHECKSUM_LIST", "bogus", 1);
	session = (struct session){ .wire = wire_new_memory("\4sha1", 5), .protocol = 31, .is_server = true,
				    .is_sender = true };
	expect_die(EXIT_UNSUPPORTED, "Server list: INVALID", setup_server(&session, &request));
	bytes = wire_test_output(session.wire, &length);
	assert_memory_equal(bytes + 2, "\7INVALID", 8);
	wire_free(session.wire);
	unsetenv("RSYNC_CHECKSUM_LIST");
}

UNIT_TEST(implied_algorithms_obey_the_environment_list)
{
	struct setup_request request = plain_request("");
	struct session session = { .protocol = 29, .is_server = true, .is_sender = true, .wire = wire_new_memory("", 0) };

	setenv("RSYNC_CHECKSUM_LIST", "sha1", 1);
	expect_die(EXIT_UNSUPPORTED, "Failed to negotiate a checksum choice.", setup_server(&session, &request));
	request.checksum_choice = "md5";
	expect_die(EXIT_UNSUPPORTED, "Your --checksum-choice value (md5) was refused by the server.",
		   setup_server(&session, &request));
	request.checksum_choice = "sha1";
	setup_server(&session, &request);
	assert_int_equal(session.xfer_sum, SUM_SHA1);
	unsetenv("RSYNC_CHECKSUM_LIST");
	wire_free(session.wire);
}

UNIT_TEST(checksum_option_replaces_negotiation)
{
	struct setup_request request = plain_request(".v");
	struct session session;
	const uint8_t *bytes;
	size_t length;

	request.checksum_choice = "md4,sha1";
	session = set_up(31, true, &request, "", 0);
	bytes = wire_test_output(session.wire, &length);
	assert_int_equal(length, 6);
	assert_memory_equal(bytes, "\x80\x86", 2);
	assert_int_equal(session.xfer_sum, SUM_MD4);
	assert_int_equal(session.file_sum, SUM_SHA1);
	wire_free(session.wire);
	session = (struct session){ .protocol = 31, .is_server = true, .is_sender = true, .wire = wire_new_memory("", 0) };
	request.checksum_choice = "md5,none";
	request.always_checksum = true;
	expect_die(EXIT_UNSUPPORTED, "Invalid checksum-choice for --checksum: none (0)", setup_server(&session, &request));
	request.checksum_choice = "crc32";
	expect_die(EXIT_UNSUPPORTED, "unknown checksum name: crc32", setup_server(&session, &request));
	wire_free(session.wire);
}

struct level_case { const char *choice; bool set; int level; enum compress_algorithm compress; int used; };

UNIT_TEST(compression_levels)
{
	static const struct level_case cases[] = {
		{ "zlib", false, 0, COMPRESS_ZLIB, 6 }, { "zlibx", true, 9, COMPRESS_ZLIBX, 9 },
		{ "zlib", true, 99, COMPRESS_ZLIB, 9 },
		{ "zlib", true, -1, COMPRESS_ZLIB, 6 }, { "zlib", true, 0, COMPRESS_NONE, 0 },
		{ "zstd", true, 0, COMPRESS_ZSTD, 3 },
		{ "zstd", true, 99, COMPRESS_ZSTD, 22 }, { "zstd", true, -999999, COMPRESS_ZSTD, -131072 },
		{ "lz4", true, 5, COMPRESS_LZ4, 0 }, { "none", false, 0, COMPRESS_NONE, 0 },
		{ NULL, false, 0, COMPRESS_ZLIB, 6 },
	};
	struct setup_request request = plain_request("");
	struct session session;

	request.compress = true;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		request.compress_choice = cases[i].choice;
		request.compress_level_set = cases[i].set;
		request.compress_level = cases[i].level;
		session = set_up(30, true, &request, "", 0);
		assert_int_equal(session.compress, cases[i].compress);
		assert_int_equal(session.compress_level, cases[i].used);
		wire_free(session.wire);
	}
}

UNIT_TEST(options_that_the_protocol_cannot_carry)
{
	static const struct { size_t option; int protocol; const char *words; } cases[] = {
		{ offsetof(struct setup_request, fuzzy), 28, "--fuzzy requires protocol 29 or higher (negotiated 28)." },
		{ offsetof(struct setup_request, prune_empty_dirs), 28, "--prune-empty-dirs requires protocol 29" },
		{ offsetof(struct setup_request, acls), 29, "--acls requires protocol 30 or higher (negotiated 29)." },
		{ offsetof(struct setup_request, xattrs), 29, "--xattrs requires protocol 30 or higher (negotiated 29)." },
	};
	struct setup_request request;
	struct session session;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		request = plain_request("");
		memcpy((char *)&request + cases[i].option, &(bool){ true }, sizeof(bool));
		session = (struct session){ .protocol = cases[i].protocol, .is_server = true, .wire = wire_new_memory("", 0) };
		expect_die(EXIT_PROTOCOL, cases[i].words, setup_server(&session, &request));
		wire_free(session.wire);
	}
}

UNIT_TEST(long_negotiation_strings_are_refused)
{
	char in[300];
	struct setup_request request = plain_request(".v");
	struct session session = { .protocol = 31, .is_server = true, .is_sender = true };

	memset(in, 'x', sizeof in);
	memcpy(in, "\x80\xff" "md5 ", 6);
	session.wire = wire_new_memory(in, 2 + 255);
	setup_server(&session, &request);
	assert_int_equal(session.xfer_sum, SUM_MD5);
	wire_free(session.wire);
	memcpy(in, "\x81\x00", 2);
	session.wire = wire_new_memory(in, 2 + 256);
	expect_die(EXIT_PROTOCOL, "over-long vstring received (256 > 255)", setup_server(&session, &request));
	wire_free(session.wire);
}

struct mux_case { int protocol; bool server, sender, remove; bool out, in; };

/* doc/protocol/01-session.md section 9.2 */
UNIT_TEST(each_direction_is_framed_when_the_protocol_says)
{
	static const struct mux_case cases[] = {
		{ 30, true, true, false, true, true }, { 29, true, true, false, true, false },
		{ 29, true, true, true, true, true },
		{ 29, true, false, true, true, false }, { 30, true, false, false, true, true },
		{ 27, false, false, false, false, true },
		{ 29, false, false, true, true, true }, { 29, false, true, true, false, true },
		{ 32, false, true, false, true, true },
	};
	struct session session;
	uint8_t byte;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		session = (struct session){ .is_server = cases[i].server, .is_sender = cases[i].sender,
					    .wire = wire_new_memory("\1\0\0\7Z", 5) };
		session_set_protocol(&session, cases[i].protocol);
		setup_start_mux(&session, cases[i].remove);
		assert_int_equal(wire_mux_out(session.wire), cases[i].out);
		byte = wire_read_byte(session.wire);
		assert_int_equal(byte, cases[i].in ? 'Z' : 1);
		wire_free(session.wire);
	}
}

static int set_environment(void **state)
{
	(void)state;
	unsetenv("RSYNC_CHECKSUM_LIST");
	unsetenv("RSYNC_COMPRESS_LIST");
	return 0;
}

UNIT_GROUP(set_environment, NULL)
