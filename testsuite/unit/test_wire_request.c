/* SPDX-License-Identifier: GPL-3.0-or-later */
/* wire/: requests, checksum headers, block sums and delete statistics (doc/protocol/03-transfer.md sections 2 and 3). */
#include "expect_die.h"

#include <stdlib.h>

#include "testsuite/unit/wire_memory.h"
#include "wire/request.h"
#include "wire/setup.h"

static struct session session_of(const void *bytes, size_t length, int protocol)
{
	struct session session = { .wire = wire_new_memory(bytes, length), .is_sender = true };

	session_set_protocol(&session, protocol);
	return session;
}

UNIT_TEST(attributes_are_echoed_as_they_came)
{
	/* flags with the unused bit 9, basis, extra name */
	static const char in[] = "\x02\x00\xda\x82\x03new";
	struct session session = session_of(in, sizeof in - 1, 32);
	struct item_attrs item;
	const uint8_t *bytes;
	size_t length;
	int32_t ndx;

	ndx = wire_read_ndx(session.wire);
	request_read_attrs(&session, &item);
	assert_int_equal(ndx, 1);
	assert_int_equal(item.flags, 0xda00);
	assert_int_equal(item.basis, BASIS_BACKUP);
	assert_string_equal(item.xname, "new");
	item.flags |= ITEM_DELETED;
	request_write_attrs(&session, ndx, &item);
	bytes = wire_test_output(session.wire, &length);
	assert_int_equal(length, sizeof in - 1);
	assert_memory_equal(bytes, in, length);
	wire_free(session.wire);
}

UNIT_TEST(old_protocols_have_no_attributes)
{
	struct session session = session_of("Z", 1, 28);
	struct item_attrs item;
	const uint8_t *bytes;
	size_t length;

	request_read_attrs(&session, &item);
	assert_int_equal(item.flags, ITEM_TRANSFER | ITEM_MISSING_DATA);
	assert_int_equal(item.basis, BASIS_FILE);
	assert_int_equal(wire_read_byte(session.wire), 'Z');
	request_write_attrs(&session, 258, &item);
	bytes = wire_test_output(session.wire, &length);
	assert_int_equal(length, 4);
	assert_memory_equal(bytes, "\2\1\0\0", 4);
	wire_free(session.wire);
}

static void read_xname(struct item_attrs *item, uint8_t basis, const char *name)
{
	char in[300] = { 0x00, 0x18 };
	struct session session;

	in[2] = (char)basis;
	in[3] = (char)strlen(name);
	strcpy(in + 4, name);
	session = session_of(in, 4 + strlen(name), 31);
	request_read_attrs(&session, item);
	wire_free(session.wire);
}

UNIT_TEST(fuzzy_names_cannot_climb)
{
	static const struct { const char *sent, *kept; } cases[] = {
		{ "../../a//b/", "a/b/" }, { "../../x", "x" }, { "/etc/passwd", "etc/passwd" }, { "a/../b", "b" },
		{ "a/./b", "a/b" },
		{ "..", "." }, { "", "." }, { "/", "." }, { "a/b/../../../c", "c" }, { "...", "..." }, { "a/..", "." },
		{ "plain", "plain" }, { "a/b/..", "a/" }, { "..a/.b", "..a/.b" },
	};
	struct item_attrs item;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		read_xname(&item, BASIS_FUZZY + (i & 1), cases[i].sent);
		assert_string_equal(item.xname, cases[i].kept);
		assert_int_equal(item.xname_length, strlen(cases[i].kept));
	}
	read_xname(&item, BASIS_FILE, "../shown/only");
	assert_string_equal(item.xname, "../shown/only");
}

UNIT_TEST(extra_name_length)
{
	char in[4200];
	struct session session;
	struct item_attrs item;

	memset(in, 'x', sizeof in);
	memcpy(in, "\x00\x10\x8f\xff", 4);
	session = session_of(in, 4 + 4095, 31);
	request_read_attrs(&session, &item);
	assert_int_equal(item.xname_length, 4095);
	wire_free(session.wire);
	memcpy(in, "\x00\x10\x90\x00", 4);
	session = session_of(in, 4 + 4096, 31);
	expect_die(EXIT_PROTOCOL, "over-long vstring received (4096 > 4095)", request_read_attrs(&session, &item));
	wire_free(session.wire);
}

struct head_case { int protocol, digest; int32_t fields[4]; const char *words; };

/* S-001, S-019, S-020: each bound of doc/protocol/08-security.md section 2.2 from both sides; NULL words: accepted. */
static const struct head_case heads[] = {
	{ 32, 16, { 0, 0, 0, 0 }, NULL }, { 32, 16, { 0, 700, 16, 700 }, NULL }, { 32, 16, { 1, 131072, 16, 131072 }, NULL },
	{ 32, 16, { 2, 700, 1, 5 }, NULL }, { 32, 8, { 1, 700, 8, 0 }, NULL }, { 32, 20, { 1, 700, 20, 0 }, NULL },
	{ 29, 16, { 1, 1 << 29, 2, 0 }, NULL }, { 32, 16, { INT32_MAX, 700, 2, 0 }, NULL },
	{ 32, 16, { -1, 700, 2, 0 }, "Invalid checksum count -1 [" },
	{ 32, 16, { INT32_MIN, 0, 0, 0 }, "Invalid checksum count -2147" },
	{ 32, 16, { 1, -1, 2, 0 }, "Invalid block length -1 [" },
	{ 32, 16, { 1, 131073, 2, 0 }, "Invalid block length 131073 [" },
	{ 29, 16, { 1, (1 << 29) + 1, 2, 0 }, "Invalid block length 536870913" },
	{ 32, 16, { 1, INT32_MIN, 2, 0 }, "Invalid block length -2147483648" },
	{ 32, 16, { 1, 0, 2, 0 }, "Invalid zero block length [" },
	{ 32, 16, { 1, 700, 17, 0 }, "Invalid checksum length 17 [" },
	{ 32, 8, { 1, 700, 9, 0 }, "Invalid checksum length 9 [" },
	{ 32, 20, { 1, 700, 21, 0 }, "Invalid checksum length 21 [" },
	{ 32, 16, { 1, 700, -1, 0 }, "Invalid checksum length -1 [" },
	{ 32, 16, { 1, 700, INT32_MIN, 0 }, "Invalid checksum length -2147483648" },
	{ 32, 16, { 1, 700, 0, 0 }, "Invalid checksum length 0 [" },
	{ 32, 16, { 1, 700, 2, 701 }, "Invalid remainder length 701 [" },
	{ 32, 16, { 1, 700, 2, -1 }, "Invalid remainder length -1 [" },
	{ 32, 16, { 0, 0, 0, 1 }, "Invalid remainder length 1 [" },
	{ 32, 16, { 1, 700, 2, INT32_MIN }, "Invalid remainder length -2147483648" },
};

static void put_fields(uint8_t *bytes, const int32_t *fields)
{
	for (int i = 0; i < 16; i++)
		bytes[i] = (uint8_t)((uint32_t)fields[i / 4] >> 8 * (i % 4));
}

UNIT_TEST(checksum_header_bounds)
{
	const struct head_case *c;
	struct session session;
	struct sum_head head;
	uint8_t in[16];
	const uint8_t *bytes;
	size_t length;

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		c = &heads[i];
		put_fields(in, c->fields);
		session = session_of(in, sizeof in, c->protocol);
		if (c->words) {
			expect_die(EXIT_PROTOCOL, c->words, sum_head_read(&session, &head, c->digest));
		} else {
			sum_head_read(&session, &head, c->digest);
			assert_int_equal(head.count, c->fields[0]);
			assert_int_equal(head.block_length, c->fields[1]);
			assert_int_equal(head.strong_length, c->fields[2]);
			assert_int_equal(head.remainder, c->fields[3]);
			sum_head_write(&session, &head);
			bytes = wire_test_output(session.wire, &length);
			assert_int_equal(length, 16);
			assert_memory_equal(bytes, in, 16);
		}
		wire_free(session.wire);
	}
}

UNIT_TEST(block_sums_are_read_in_place)
{
	struct session session = session_of("\1\2\3\4ab\5\6\7\x88" "cdZ", 13, 32);
	struct block_sums sums = { .head = { 2, 700, 2, 0 } };

	block_sums_read(&session, &sums);
	assert_int_equal(sums.weak[0], 0x04030201);
	assert_int_equal(sums.weak[1], 0x88070605);
	assert_memory_equal(sums.strong, "abcd", 4);
	assert_int_equal(wire_read_byte(session.wire), 'Z');
	block_sums_free(&sums);
	assert_null(sums.weak);
	sums.head.count = 0;
	block_sums_read(&session, &sums);
	assert_null(sums.strong);
	wire_free(session.wire);
}

/* S-004, S-005 */
UNIT_TEST(huge_counts_are_refused_before_allocation)
{
	static const int32_t counts[] = { 1 << 26, INT32_MAX };
	struct block_sums sums = { .head = { 0, 700, 2, 0 } };
	struct session session = session_of("", 0, 32);

	for (int i = 0; i < 2; i++) {
		sums.head.count = counts[i];
		expect_die(EXIT_MALLOC, "exceeded --max-alloc=1073741824 setting", block_sums_read(&session, &sums));
	}
	session.max_alloc = 3200;
	sums.head.count = 101;
	expect_die(EXIT_MALLOC, "exceeded --max-alloc=3200 setting", block_sums_read(&session, &sums));
	assert_null(sums.weak);
	wire_free(session.wire);
}

/* S-025 */
UNIT_TEST(delete_statistics)
{
	struct session session = session_of("\2\1\0\0\xf0\0\0\0\x10", 9, 32);
	const uint8_t *bytes;
	size_t length;

	delete_stats_read(&session);
	assert_int_equal(session.deleted.files, 2);
	assert_int_equal(session.deleted.dirs, 1);
	assert_int_equal(session.deleted.specials, 1 << 28);
	delete_stats_write(&session);
	bytes = wire_test_output(session.wire, &length);
	assert_int_equal(length, 11);
	assert_memory_equal(bytes, "\xff\2\2\1\0\0\xf0\0\0\0\x10", 11);
	wire_free(session.wire);
	session = session_of("\xf0\xff\xff\xff\xff", 5, 32);
	expect_die(EXIT_PROTOCOL, "wire value deleted_files out of range: -1 not in", delete_stats_read(&session));
	wire_free(session.wire);
	session = session_of("\0\xf0\1\0\0\x10", 6, 32);
	expect_die(EXIT_PROTOCOL, "wire value deleted_dirs out of range: 268435457 not in", delete_stats_read(&session));
	wire_free(session.wire);
}
