/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ACLs and extended attributes of received lists: the traces of doc/protocol/05-xattrs-acls.md, and what must not come (S-016,
 * S-017, S-018).
 */
#include "expect_die.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "flist/attributes.h"
#include "flist/receive.h"
#include "flist/receive_attributes.h"
#include "fs/ids.h"
#include "lib/strbuf.h"
#include "options.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

struct side {
	struct options options;
	struct session session;
	struct flist *list;
	struct fs_ids *ids;
	struct flist_receiver *receiver;
	struct strbuf bytes;
};

static void side_init(struct side *side)
{
	memset(side, 0, sizeof *side);
	side->options.recursive = 2;
	side->options.implied_dirs = side->options.links = true;
	side->options.super = SUPER_YES;
	session_set_protocol(&side->session, 32);
	side->session.inc_recurse = side->session.varint_flags = side->session.safe_flist = side->session.id0_names = true;
	side->session.file_sum = SUM_MD5;
	side->ids = fs_ids_new(NULL, NULL);
}

static void side_free(struct side *side)
{
	flist_receiver_free(side->receiver);
	flist_free(side->list);
	fs_ids_free(side->ids);
	wire_free(side->session.wire);
	strbuf_free(&side->bytes);
}

static void put(struct side *side, const void *bytes, size_t length)
{
	strbuf_add(&side->bytes, bytes, length);
}

/* Bytes and strings as a trace shows them. */
#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define TEXT(text) text, strlen(text)
#define NAME(text) text, sizeof(text)

static void receive(struct side *side)
{
	const struct flist_receive_setup setup = { .ids = side->ids };

	side->session.wire = wire_new_memory(side->bytes.data, side->bytes.length);
	session_limit_memory(&side->session);
	wire_settings(side->session.wire)->protocol = 32;
	side->list = flist_new_received(&side->options, &side->session);
	side->receiver = flist_receiver_new(side->list, &side->session, &side->options, &setup);
	flist_receive_first(side->receiver);
}

static const struct entry *entry_named(struct side *side, const char *name, bool is_dir)
{
	struct entries *entries = flist_dir(side->list, 0)->entries;
	int32_t index = entries_find(entries, name, is_dir);

	assert_true(index >= 0);
	return &entries->items[index];
}

/* --- extended attributes: the trace of 5.2.2 --- */

static const uint8_t long33_digest[16] = {
	0x03, 0xca, 0xb3, 0x96, 0xb6, 0xe3, 0x00, 0x66, 0x47, 0x50, 0xaf, 0xb3, 0x05, 0xd7, 0x9f, 0xfd,
};
static const char e32[] = "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB", long33[] = "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC";

static void put_xattr_trace(struct side *side)
{
	side->options.xattrs = 1;
	put(side, BYTES(0x19, 0x01, 0x2e, 0x00, 0x00, 0x10, 0x65, 0x00, 0xf1, 0x53, 0xed, 0x41, 0x00, 0x00));
	put(side, BYTES(0, 0));
	put(side, BYTES(0x80, 0x98, 0x02, 0x66, 0x31, 0x00, 0x06, 0x00, 0xa4, 0x81, 0x00, 0x00));
	put(side, BYTES(0, 4));
	put(side, BYTES(9, 32)), put(side, NAME("user.e32")), put(side, e32, 32);
	put(side, BYTES(11, 0)), put(side, NAME("user.empty"));
	put(side, BYTES(12, 33)), put(side, NAME("user.long33")), put(side, long33_digest, 16);
	put(side, BYTES(11, 3)), put(side, NAME("user.small")), put(side, TEXT("abc"));
	put(side, BYTES(0x80, 0x98, 0x01, 0x6c, 0x00, 0x02, 0x00, 0xff, 0xa1, 0x00, 0x00, 0x02, 0x66, 0x31));
	put(side, BYTES(0, 1, 15, 1)), put(side, NAME("trusted.onlink")), put(side, TEXT("L"));
	put(side, BYTES(0x80, 0x98, 0x02, 0x66, 0x33, 0x00, 0x06, 0x00, 0xa4, 0x81, 0x00, 0x00));
	put(side, BYTES(0, 3));
	put(side, BYTES(13, 1)), put(side, NAME("security.foo")), put(side, TEXT("S"));
	put(side, BYTES(10, 1)), put(side, NAME("trusted.t")), put(side, TEXT("T"));
	put(side, BYTES(12, 33)), put(side, NAME("user.long33")), put(side, long33_digest, 16);
	put(side, BYTES(0x80, 0xba, 0x01, 0x01, 0x32, 0x00, 0x06, 0x00));
	put(side, BYTES(2));
	put(side, BYTES(0, 0));
}

static const struct xattr_list *list_of(struct side *side, const char *name, bool is_dir)
{
	return flist_received_xattrs(side->list, 0, entry_named(side, name, is_dir));
}

static void assert_item(const struct xattr_list *list, size_t place, const char *name, int32_t number, const char *value)
{
	const struct xattr_item *item = &list->items[place];
	const struct xattr_value *known = atomic_load(&item->value);

	assert_true(place < list->count);
	assert_string_equal(item->name, name);
	assert_int_equal(item->number, number);
	assert_int_equal(known != NULL, value != NULL);
	if (value) {
		assert_int_equal(known->length, strlen(value));
		assert_memory_equal(known->bytes, value, strlen(value));
	}
}

UNIT_TEST(lists_are_shared)
{
	struct side side;

	side_init(&side);
	put_xattr_trace(&side);
	receive(&side);
	assert_int_equal(list_of(&side, ".", true)->count, 0);
	const struct xattr_list *f1 = list_of(&side, "f1", false), *f3 = list_of(&side, "f3", false);

	assert_int_equal(f1->count, 4);
	assert_item(f1, 0, "user.e32", 1, e32);
	assert_item(f1, 1, "user.empty", 2, "");
	assert_item(f1, 2, "user.long33", 3, NULL);
	assert_item(f1, 3, "user.small", 4, "abc");
	assert_true(xattr_item_matches(&f1->items[2], long33, 33) && !xattr_item_matches(&f1->items[2], long33, 32));
	assert_ptr_equal(list_of(&side, "f2", false), f1);
	assert_item(f3, 0, "security.foo", 1, "S");
	assert_item(f3, 2, "user.long33", 3, NULL);
	assert_item(list_of(&side, "l", false), 0, "trusted.onlink", 1, "L");
	side_free(&side);
}

/* Nobody but root keeps other name spaces; the numbers of the others stay (S-018). */
UNIT_TEST(dropped_items_keep_their_numbers)
{
	struct side side;

	side_init(&side);
	side.options.super = SUPER_NO;
	put_xattr_trace(&side);
	receive(&side);
	assert_int_equal(list_of(&side, "f3", false)->count, 1);
	assert_item(list_of(&side, "f3", false), 0, "user.long33", 3, NULL);
	assert_int_equal(list_of(&side, "l", false)->count, 0);
	side_free(&side);
}

/* Names are sorted as they are kept; --fake-super keeps foreign ones below a prefix of its own. */
UNIT_TEST(items_are_sorted_by_local_name)
{
	struct side side;

	side_init(&side);
	side.options.super = SUPER_FAKE;
	put_xattr_trace(&side);
	receive(&side);
	const struct xattr_list *f3 = list_of(&side, "f3", false);

	assert_int_equal(f3->count, 3);
	assert_item(f3, 0, "user.long33", 3, NULL);
	assert_item(f3, 1, "user.rsync.security.foo", 1, "S");
	assert_item(f3, 2, "user.rsync.trusted.t", 2, "T");
	side_free(&side);
}

UNIT_TEST(an_answer_gives_values_to_all)
{
	struct side side;

	side_init(&side);
	put_xattr_trace(&side);
	put(&side, BYTES(3, 33)), put(&side, long33, 33), put(&side, BYTES(0));
	receive(&side);
	flist_receive_xattr_answer(side.receiver, 0, entry_named(&side, "f1", false));
	assert_item(list_of(&side, "f2", false), 2, "user.long33", 3, long33);
	assert_item(list_of(&side, "f3", false), 2, "user.long33", 3, NULL);
	side_free(&side);
}

static void expect_answer(const uint8_t *bytes, size_t length, const char *name, int code, const char *words)
{
	struct side side;

	side_init(&side);
	put_xattr_trace(&side);
	put(&side, bytes, length);
	receive(&side);
	expect_die(code, words, flist_receive_xattr_answer(side.receiver, 0, name ? entry_named(&side, name, false) : NULL));
	side_free(&side);
}

UNIT_TEST(answers_that_must_not_come)
{
	expect_answer(BYTES(5, 0, 0), "f1", EXIT_PROTOCOL, "could not find xattr #5");
	expect_answer(BYTES(4, 0, 0), "f1", EXIT_PROTOCOL, "could not find xattr #4"); /* a short one is known */
	expect_answer(BYTES(3, 1, 'x', 0xf0, 0xff, 0xff, 0xff, 0xff, 0, 0), "f1", EXIT_PROTOCOL, "could not find xattr #2");
	expect_answer(BYTES(1, 0, 0), NULL, EXIT_PROTOCOL, "could not find xattr #1");
	expect_answer(BYTES(3, 0xf0, 0xff, 0xff, 0xff, 0xff), "f1", EXIT_PROTOCOL, "datum_len");
	expect_answer(BYTES(3, 0xf0, 0x01, 0x00, 0x00, 0x08), "f1", EXIT_PROTOCOL, "per-value limit");
}

/* --- what must not come in a list --- */

static const uint8_t dot[] = { 0x19, 0x01, 0x2e, 0x00, 0x00, 0x10, 0x65, 0x00, 0xf1, 0x53, 0xed, 0x41, 0x00, 0x00 };

static void expect_refusal(bool acls, const void *bytes, size_t length, int code, const char *words)
{
	struct side side;

	side_init(&side);
	side.options.acls = acls;
	side.options.xattrs = !acls;
	put(&side, dot, sizeof dot);
	put(&side, bytes, length);
	expect_die(code, words, receive(&side));
	side_free(&side);
}

UNIT_TEST(xattr_fields_out_of_range)
{
	expect_refusal(false, BYTES(1), EXIT_STREAMIO, "xa index 1 out of range");
	expect_refusal(false, BYTES(0xf0, 0xff, 0xff, 0xff, 0xff), EXIT_STREAMIO, "xa index -1 out of range");
	expect_refusal(false, BYTES(0, 0xf0, 0xff, 0xff, 0xff, 0xff), EXIT_PROTOCOL, "xattr count");
	expect_refusal(false, BYTES(0, 0xc1, 0x01, 0x00), EXIT_PROTOCOL, "xattr count");     /* 65537 */
	expect_refusal(false, BYTES(0, 1, 0, 0), EXIT_PROTOCOL, "xattr name_len");
	expect_refusal(false, BYTES(0, 1, 0x90, 0x01, 0), EXIT_PROTOCOL, "xattr name_len");  /* 4097 */
	expect_refusal(false, BYTES(0, 1, 2, 0xf0, 0xff, 0xff, 0xff, 0xff), EXIT_PROTOCOL, "xattr datum_len");
	expect_refusal(false, BYTES(0, 1, 2, 0xf0, 0x01, 0x00, 0x00, 0x08), EXIT_PROTOCOL, "per-value limit");
	expect_refusal(false, BYTES(0, 1, 2, 0, 'a', 'b'), EXIT_FILEIO, "missing trailing");
	expect_refusal(false, BYTES(0, 1, 3, 0, 'a', 0, 0), EXIT_PROTOCOL, "NUL inside");
	expect_refusal(false, BYTES(0, 1, 1, 0, 0), EXIT_PROTOCOL, "empty");
}

UNIT_TEST(acl_fields_out_of_range)
{
	expect_refusal(true, BYTES(1), EXIT_STREAMIO, "ACL_TYPE_ACCESS ACL index 1 > 0");
	expect_refusal(true, BYTES(0, 0, 2), EXIT_STREAMIO, "ACL_TYPE_DEFAULT ACL index 2 > 0");
	expect_refusal(true, BYTES(0, 0x20), EXIT_STREAMIO, "value out of range");
	expect_refusal(true, BYTES(0, 0x04, 8), EXIT_STREAMIO, "value out of range: 8");
	expect_refusal(true, BYTES(0, 0x10, 0xc1, 0x01, 0x00), EXIT_PROTOCOL, "ACL count");
	expect_refusal(true, BYTES(0, 0x10, 1, 33, 8 << 2), EXIT_STREAMIO, "value out of range: 8");
}

/* A list cannot make us take more memory than the ceiling allows, however it is put together. */
UNIT_TEST(memory_is_bounded)
{
	struct side side;

	side_init(&side);
	side.options.xattrs = 1;
	side.session.max_alloc = 4096;
	put(&side, dot, sizeof dot);
	put(&side, BYTES(0, 0xc1, 0x00, 0x00)); /* 65536 */
	for (int i = 0; i < 65536; i++)
		put(&side, BYTES(8, 0, 'u', 's', 'e', 'r', '.', (uint8_t)('a' + i % 26), (uint8_t)('a' + i / 26 % 26), 0));
	expect_die(EXIT_MALLOC, "exceeded the memory of a session, 65536 bytes, with attributes of files", receive(&side));
	side_free(&side);
}

/* --- ACLs: the trace of 5.6.4 --- */

static void put_acl_trace(struct side *side)
{
	side->options.acls = side->options.owner = side->options.group = true;
	put(side, BYTES(0x8c, 0x01, 0x01, 0x2e, 0x00, 0x00, 0x10, 0x65, 0x00, 0xf1, 0x53, 0xed, 0x41, 0x00, 0x00));
	put(side, BYTES(0x00, 0x04, 'r', 'o', 'o', 't', 0x00, 0x04, 'r', 'o', 'o', 't'));
	put(side, BYTES(0, 0, 0, 0));
	put(side, BYTES(0x80, 0x98, 0x02, 0x66, 0x31, 0x00, 0x00, 0x00, 0xb8, 0x81, 0x00, 0x00));
	put(side, BYTES(0, 0x12, 4, 3));
	put(side, BYTES(0x21, 0x13, 8)), put(side, TEXT("www-data"));
	put(side, BYTES(0x83, 0xe8, 0x1f, 8)), put(side, TEXT("no-such!"));
	put(side, BYTES(0x14, 0x19, 7)), put(side, TEXT("dialout"));
	put(side, BYTES(0x80, 0xb8, 0x01, 0x01, 0x30, 0x00, 0x00, 0x00, 0xa0, 0x81, 0x00, 0x00));
	put(side, BYTES(1));
	put(side, BYTES(0x80, 0xb8, 0x01, 0x01, 0x33, 0x00, 0x00, 0x00, 0xb4, 0x81, 0x00, 0x00));
	put(side, BYTES(0, 6, 4, 6));
	put(side, BYTES(0x80, 0xb8, 0x01, 0x01, 0x32, 0x00, 0x00, 0x00, 0xbc, 0x81, 0x00, 0x00));
	put(side, BYTES(2));
	put(side, BYTES(0x80, 0xb8, 0x01, 0x01, 0x35, 0x00, 0x00, 0x00, 0xed, 0x81, 0x00, 0x00));
	put(side, BYTES(0, 0x10, 1, 0x83, 0xe8, 0x16));
	put(side, BYTES(0x80, 0x98, 0x01, 0x64, 0x00, 0x00, 0x10, 0xfd, 0x41, 0x00, 0x00));
	put(side, BYTES(0, 0x12, 5, 1, 0x83, 0xe8, 0x1e));
	put(side, BYTES(0, 0x1f, 7, 5, 5, 0, 1, 0x83, 0xe8, 0x16));
	put(side, BYTES(0x80, 0x98, 0x02, 0x66, 0x34, 0x00, 0x00, 0x00, 0xb4, 0x81, 0x00, 0x00));
	put(side, BYTES(0, 4, 6));
	put(side, BYTES(0, 0));
}

static struct fs_acl access_of(struct side *side, const char *name, bool is_dir)
{
	const struct entry *entry = entry_named(side, name, is_dir);
	const struct fs_acl *access, *defaults;

	flist_received_acls(side->list, 0, entry, &access, &defaults);
	return acl_of_file(access, entry->mode);
}

static void assert_parts(const struct fs_acl *acl, int user, int group, int mask, int other, size_t named)
{
	assert_int_equal(acl->user_obj, user);
	assert_int_equal(acl->group_obj, group);
	assert_int_equal(acl->mask, mask);
	assert_int_equal(acl->other, other);
	assert_int_equal(acl->named_count, named);
}

UNIT_TEST(acls_become_whole_again)
{
	const struct fs_acl *access, *defaults;
	struct fs_acl acl;
	struct side side;

	side_init(&side);
	put_acl_trace(&side);
	receive(&side);
	acl = access_of(&side, "f0", false), assert_parts(&acl, 6, 4, FS_ACL_ABSENT, 0, 0);
	acl = access_of(&side, ".", true), assert_parts(&acl, 7, 5, FS_ACL_ABSENT, 5, 0);
	acl = access_of(&side, "f1", false), assert_parts(&acl, 6, 4, 7, 0, 3);
	assert_true(acl.named[0].is_user && acl.named[0].bits == 4);
	assert_true(acl.named[1].is_user && acl.named[1].id == 1000 && acl.named[1].bits == 7);
	assert_true(!acl.named[2].is_user && acl.named[2].bits == 6);
	acl = access_of(&side, "f2", false), assert_parts(&acl, 6, 4, 7, 4, 3);
	acl = access_of(&side, "f3", false), assert_parts(&acl, 6, 4, 6, 4, 0);
	acl = access_of(&side, "f4", false), assert_parts(&acl, 6, 6, 6, 4, 0);
	acl = access_of(&side, "f5", false), assert_parts(&acl, 7, 5, 5, 5, 1);
	acl = access_of(&side, "d", true), assert_parts(&acl, 7, 5, 7, 5, 1);
	flist_received_acls(side.list, 0, entry_named(&side, "d", true), &access, &defaults);
	assert_parts(defaults, 7, 5, 5, 0, 1);
	side_free(&side);
}

/* A peer may name an id twice, or one that no file can have. */
UNIT_TEST(odd_entries_of_acls)
{
	const struct fs_acl *access, *defaults;
	struct side side;

	side_init(&side);
	side.options.acls = true;
	put(&side, dot, sizeof dot);
	put(&side, BYTES(0, 0x10, 4, 40, 7 << 2 | 2, 7, 4 << 2 | 2, 40, 2, 0xf0, 0xff, 0xff, 0xff, 0xff, 7 << 2 | 2));
	put(&side, BYTES(0, 0x10, 1, 7, 5 << 2));
	put(&side, BYTES(0, 0));
	receive(&side);
	flist_received_acls(side.list, 0, entry_named(&side, ".", true), &access, &defaults);
	assert_int_equal(access->named_count, 2);
	assert_int_equal(access->named[0].id, 7);
	assert_int_equal(access->named[1].id, 40);
	assert_int_equal(defaults->mask, 5);
	side_free(&side);
}
