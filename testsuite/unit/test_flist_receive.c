/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lists from the sender's side and from captured sessions, received; and what must not come (doc/protocol/02-file-list.md
 * section 11).
 */
#include "expect_die.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filter/add.h"
#include "flist/paths.h"
#include "flist/receive.h"
#include "flist/scan.h"
#include "flist/send.h"
#include "fs/ids.h"
#include "lib/charset.h"
#include "lib/strbuf.h"
#include "options.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

/* --- a tree --- */

static void make_file(const char *path, const char *content)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(content, file);
	fclose(file);
}

static void make_dir(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
}

static int make_trees(void **state)
{
	char *place = strdup("/tmp/huai-received-XXXXXX");
	char name[64];

	umask(022);
	if (!mkdtemp(place) || chdir(place))
		return -1;
	*state = place;
	make_dir("A"), make_dir("A/b"), make_dir("A/b/deep"), make_dir("A/b.x"), make_dir("A/empty"), make_dir("A/n.d");
	make_file("A/f", "f"), make_file("A/b/x", "xx"), make_file("A/b/deep/y", "yyy"), make_file("A/b-c", "z");
	make_file("A/b.x/q", "q"), make_file("A/zz", ""), make_file("A/\xc3\xa4", "umlaut"), make_file("A/n", "n");
	make_file("A/o", "o");
	assert_int_equal(link("A/f", "A/b/f2") | link("A/f", "A/g") | link("A/b/x", "A/b/deep/x2"), 0);
	assert_int_equal(symlink("../f", "A/b/link") | mkfifo("A/pipe", 0600), 0);
	make_dir("B"), make_dir("B/b"), make_file("B/b/x", "other"), make_file("B/b/only", "");
	make_dir("B/n"), make_file("B/n/z", ""), make_file("B/o", "another");
	make_dir("big");
	for (int d = 0; d < 40; d++) {
		snprintf(name, sizeof name, "big/d%d", d);
		make_dir(name);
		for (int f = 0; f < 60; f++) {
			snprintf(name, sizeof name, "big/d%d/f%d", d, f);
			make_file(name, "");
		}
	}
	return 0;
}

static int remove_trees(void **state)
{
	char command[128];

	if (chdir("/"))
		return -1;
	snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
	free(*state);
	return system(command);
}

/* --- both sides --- */

struct side {
	struct options options;
	struct session session;
	struct flist *list;
	struct fs_ids *ids;
	struct charset *charset;
	struct flist_sender *sender;
	struct flist_receiver *receiver;
};

static void side_init(struct side *side, int protocol, bool incremental)
{
	memset(side, 0, sizeof *side);
	side->options.recursive = 2;
	side->options.implied_dirs = side->options.links = side->options.owner = side->options.group = true;
	side->options.devices = side->options.specials = true;
	side->options.hard_links = 1;
	session_set_protocol(&side->session, protocol);
	side->session.inc_recurse = incremental;
	side->session.safe_flist = protocol >= 31;
	side->session.varint_flags = side->session.id0_names = protocol >= 32;
	side->session.file_sum = protocol >= 30 ? SUM_MD5 : SUM_MD4;
	side->ids = fs_ids_new(NULL, NULL);
}

static void side_free(struct side *side)
{
	flist_sender_free(side->sender);
	flist_receiver_free(side->receiver);
	flist_free(side->list);
	fs_ids_free(side->ids);
	charset_free(side->charset);
	wire_free(side->session.wire);
}

/* As if the peer had got to the end of what it has. */
static int32_t last_ndx(struct flist *list)
{
	int32_t last = 0;

	for (uint32_t node = 0; node < flist_dir_count(list); node++)
		if (flist_dir(list, (int32_t)node)->own_ndx > last)
			last = flist_dir(list, (int32_t)node)->own_ndx;
	return last;
}

/* Scan and send everything. */
static void send_list(struct side *side, const char *const *arguments)
{
	struct flist_send_setup setup = { .ids = side->ids, .charset = side->charset };

	side->session.wire = wire_new_memory("", 0);
	side->session.is_sender = true;
	wire_settings(side->session.wire)->protocol = side->session.protocol;
	side->list = flist_new(&side->options, &side->session, NULL, NULL, NULL);
	if (side->charset)
		flist_set_charset(side->list, side->charset);
	for (; *arguments; arguments++)
		flist_add_argument(side->list, *arguments, false);
	flist_finish_arguments(side->list);
	side->sender = flist_send_start(side->list, &side->session, &side->options, &setup);
	while (side->session.inc_recurse && !flist_is_complete(side->list))
		flist_send_ahead(side->sender, last_ndx(side->list));
	while (!side->session.inc_recurse && flist_load_next(side->list) >= 0)
		;
}

static void start_receiving(struct side *side, const void *bytes, size_t length, const struct flist_receive_setup *setup)
{
	side->session.wire = wire_new_memory(bytes, length);
	session_limit_memory(&side->session);
	wire_settings(side->session.wire)->protocol = side->session.protocol;
	side->list = flist_new_received(&side->options, &side->session);
	side->receiver = flist_receiver_new(side->list, &side->session, &side->options, setup);
}

static void receive_rest(struct side *side)
{
	int32_t ndx = 0;

	while (side->session.inc_recurse && ndx != NDX_FLIST_EOF) {
		ndx = wire_read_ndx(side->session.wire);
		flist_receive_next(side->receiver, ndx);
	}
}

static void receive_all(struct side *side)
{
	flist_receive_first(side->receiver);
	receive_rest(side);
}

/* --- what a list says, for comparison --- */

static uint32_t wire_flags(const struct entry *entry, int protocol)
{
	uint32_t flags = entry->flags & (ENTRY_TOP_DIR | ENTRY_NO_CONTENT | ENTRY_DUPLICATE);

	/* Below protocol 30 implied parents cannot be distinguished from other directories without content. */
	if (protocol < 30 && flags & ENTRY_NO_CONTENT)
		flags &= ~(uint32_t)ENTRY_TOP_DIR;
	return flags;
}

static void describe(struct side *side, int32_t ndx, struct strbuf *out)
{
	struct flist_pos pos;
	struct strbuf path = STRBUF_INIT;

	strbuf_reset(out);
	if (!flist_locate(side->list, ndx, &pos)) {
		strbuf_add_string(out, "nothing");
		return;
	}
	flist_pos_path(side->list, &pos, &path);
	strbuf_addf(out, "%s gap %d", strbuf_text(&path), pos.gap > 0);
	if (pos.gap < 0)
		strbuf_addf(out, " size %llu mtime %lld.%u mode %o flags %x ids %u:%u target %s",
			    (unsigned long long)pos.entry->size, (long long)pos.entry->mtime,
			    side->session.protocol >= 31 ? pos.entry->mtime_nsec : 0, pos.entry->mode,
			    wire_flags(pos.entry, side->session.protocol), pos.entry->uid, pos.entry->gid,
			    entry_is_symlink(pos.entry) ? entry_target(pos.entries, pos.entry) : "");
	strbuf_free(&path);
}

static void assert_same_numbers(struct side *from, struct side *to)
{
	struct strbuf sent = STRBUF_INIT, received = STRBUF_INIT;
	struct flist_pos pos;
	int32_t ndx = 0, last = 0;

	for (; last < 3; ndx++) {
		describe(from, ndx, &sent);
		describe(to, ndx, &received);
		assert_string_equal(strbuf_text(&received), strbuf_text(&sent));
		last = strcmp(strbuf_text(&sent), "nothing") ? 0 : last + 1;
		if (last || !flist_locate(to->list, ndx, &pos))
			continue;
		if (pos.gap >= 0)
			assert_int_equal(flist_ndx_of(to->list, pos.gap, NULL), ndx);
		else
			assert_int_equal(flist_ndx_of(to->list, pos.dir, pos.entry), ndx);
	}
	assert_memory_equal(flist_totals(to->list), flist_totals(from->list), sizeof(struct flist_totals));
	strbuf_free(&sent);
	strbuf_free(&received);
}

/* The nodes in the order of the walk. */
static int walk_nodes(struct side *side)
{
	int32_t node;
	int count = 0;

	assert_true(flist_await_next(side->list, 0));
	while ((node = flist_load_next(side->list)) >= 0) {
		count++;
		assert_true(flist_dir(side->list, node)->loaded);
	}
	assert_true(flist_is_complete(side->list));
	return count;
}

static bool are_linked(const struct flist_pos *a, const struct flist_pos *b)
{
	const struct entry_side *x = entry_side_of(a->entries, a->entry), *y = entry_side_of(b->entries, b->entry);

	return a->entry->flags & b->entry->flags & ENTRY_HARD_LINKED && x->dev == y->dev && x->ino == y->ino;
}

/* Two entries belong to one group exactly if they are one file. */
static void assert_same_groups(struct side *from, struct side *to)
{
	struct flist_pos sent[2], received[2];

	for (int32_t i = 0; i < 40; i++) {
		if (!flist_locate(from->list, i, &sent[0]) || sent[0].gap >= 0)
			continue;
		assert_true(flist_locate(to->list, i, &received[0]));
		for (int32_t j = 0; j < i; j++) {
			if (!flist_locate(from->list, j, &sent[1]) || sent[1].gap >= 0)
				continue;
			assert_true(flist_locate(to->list, j, &received[1]));
			assert_int_equal(are_linked(&sent[0], &sent[1]), are_linked(&received[0], &received[1]));
		}
	}
}

typedef void adjust(struct options *options);

static void round_trip(int protocol, bool incremental, adjust *change, const char *const *arguments, const char *charset)
{
	struct side from, to;
	struct flist_receive_setup setup;
	size_t length;

	side_init(&from, protocol, incremental);
	side_init(&to, protocol, incremental);
	if (change)
		change(&from.options), change(&to.options);
	if (charset) {
		from.options.iconv = "utf-8";
		to.options.iconv = charset;
		from.charset = charset_new("utf-8");
		to.charset = charset_new(charset);
	}
	send_list(&from, arguments);
	const uint8_t *bytes = wire_test_output(from.session.wire, &length);

	setup = (struct flist_receive_setup){ .ids = to.ids, .charset = to.charset };
	start_receiving(&to, bytes, length, &setup);
	receive_all(&to);
	uint64_t read = wire_bytes_read(to.session.wire);

	assert_int_equal(read, length);
	walk_nodes(&to);
	if (!charset) {
		assert_same_numbers(&from, &to);
		assert_same_groups(&from, &to);
	}
	side_free(&from);
	side_free(&to);
}

static void each_protocol(adjust *change, const char *const *arguments)
{
	for (int protocol = 27; protocol <= PROTOCOL_MAX; protocol++) {
		round_trip(protocol, false, change, arguments, NULL);
		if (protocol >= 30)
			round_trip(protocol, true, change, arguments, NULL);
	}
}

UNIT_TEST(what_is_sent_is_received)
{
	static const char *const one[] = { "A/", NULL }, *const by_name[] = { "A", "B/o", NULL };
	static const char *const two[] = { "A/", "B/", NULL }, *const big[] = { "big", NULL }, *const nothing[] = { NULL };

	each_protocol(NULL, one);
	each_protocol(NULL, by_name);
	each_protocol(NULL, two);
	each_protocol(NULL, big);
	each_protocol(NULL, nothing);
}

static void make_relative(struct options *options)
{
	options->relative = true;
}

static void leave_out_parents(struct options *options)
{
	options->relative = true;
	options->implied_dirs = false;
}

static void list_only_dirs(struct options *options)
{
	options->recursive = 0;
	options->dirs = true;
}

static void keep_much(struct options *options)
{
	options->checksum = true;
	options->numeric_ids = true;
}

static void keep_little(struct options *options)
{
	options->owner = options->group = options->links = options->devices = options->specials = false;
	options->hard_links = 0;
}

UNIT_TEST(relative_names_find_their_directories)
{
	static const char *const arguments[] = { "A/b/deep", "B/n", "A/f", NULL }, *const dot[] = { "./A/b", NULL };
	char *cwd = getcwd(NULL, 0);
	char absolute[256];

	snprintf(absolute, sizeof absolute, "%s/A/b", cwd);
	const char *const whole[] = { absolute, "B/b", NULL };

	each_protocol(make_relative, arguments);
	each_protocol(leave_out_parents, arguments);
	each_protocol(make_relative, dot);
	each_protocol(make_relative, whole);
	free(cwd);
}

UNIT_TEST(other_options_change_the_fields)
{
	static const char *const one[] = { "A/", NULL }, *const several[] = { "A/b", "A/f", NULL };

	each_protocol(list_only_dirs, one);
	each_protocol(list_only_dirs, several);
	each_protocol(keep_much, one);
	each_protocol(keep_little, one);
}

UNIT_TEST(digests_come_with_regular_files)
{
	static const char *const one[] = { "A/", NULL };
	static const uint8_t md5_of_f[] = {
		0x8f, 0xa1, 0x4c, 0xdd, 0x75, 0x4f, 0x91, 0xcc, 0x65, 0x54, 0xc9, 0xe7, 0x19, 0x29, 0xcc, 0xe7,
	};

	for (int incremental = 0; incremental < 2; incremental++) {
		struct side from, to;
		struct flist_receive_setup setup = { .ids = NULL };
		size_t length;
		int found = 0;

		side_init(&from, 31, incremental), side_init(&to, 31, incremental);
		from.options.checksum = to.options.checksum = true;
		send_list(&from, one);
		const uint8_t *bytes = wire_test_output(from.session.wire, &length);
		start_receiving(&to, bytes, length, &setup);
		receive_all(&to);
		for (int32_t ndx = 0; ndx < 40; ndx++) {
			struct flist_pos pos;
			if (!flist_locate(to.list, ndx, &pos) || pos.gap >= 0)
				continue;
			const char *name = entry_name(pos.entries, pos.entry);
			const uint8_t *digest = flist_received_digest(to.list, pos.dir, pos.entry);
			assert_int_equal(digest != NULL, entry_is_regular(pos.entry));
			if (strcmp(name, "f") && strcmp(name, "f2") && strcmp(name, "g"))
				continue;
			assert_memory_equal(digest, md5_of_f, sizeof md5_of_f);
			found++;
		}
		assert_int_equal(found, 3);
		side_free(&from);
		side_free(&to);
	}
}

/* With --iconv indexes are those of arrival: here, of the sender's order. */
UNIT_TEST(converted_names_are_numbered_as_they_come)
{
	static const char *const one[] = { "A/", "B/", NULL };

	for (int protocol = 27; protocol <= PROTOCOL_MAX; protocol++) {
		round_trip(protocol, false, NULL, one, "iso-8859-1");
		if (protocol >= 30)
			round_trip(protocol, true, NULL, one, "iso-8859-1");
	}
}

/* --- two threads --- */

static void *read_lists(void *side_void)
{
	receive_rest(side_void);
	return NULL;
}

UNIT_TEST(nodes_are_handed_over_while_they_come)
{
	static const char *const big[] = { "big", "A/", NULL };
	struct flist_receive_setup setup = { .ids = NULL };
	struct side from, to;
	struct strbuf path = STRBUF_INIT;
	uint64_t length_of_paths = 0;
	uint32_t entries = 0;
	size_t length;
	pthread_t reader;
	int32_t node = 0;

	side_init(&from, 32, true), side_init(&to, 32, true);
	send_list(&from, big);
	const uint8_t *bytes = wire_test_output(from.session.wire, &length);
	start_receiving(&to, bytes, length, &setup);
	flist_receive_first(to.receiver);
	assert_int_equal(pthread_create(&reader, NULL, read_lists, &to), 0);
	for (; node >= 0; node = flist_load_next(to.list)) {
		const struct flist_dir *dir = flist_dir(to.list, node);

		for (uint32_t i = 0; i < dir->count; i++) {
			flist_entry_path(to.list, node, &dir->entries->items[i], &path);
			length_of_paths += path.length;
			assert_int_equal(flist_ndx_of(to.list, node, &dir->entries->items[i]), dir->first_ndx + (int32_t)i);
			entries++;
		}
		if (node)
			flist_drop_entries(to.list, node);
	}
	pthread_join(reader, NULL);
	assert_true(flist_is_complete(to.list));
	assert_int_equal(entries, flist_totals(to.list)->files + flist_totals(to.list)->dirs + flist_totals(to.list)->symlinks
			 + flist_totals(to.list)->specials);
	assert_true(length_of_paths > 2400 * strlen("big/d0/f0"));
	strbuf_free(&path);
	side_free(&from);
	side_free(&to);
}

/* --- lists written by hand --- */

struct hand {
	struct side side;
	uint8_t bytes[16384];
	size_t length;
};

/* Protocol 30 with -r and no more unless `line` says so: "H" hard links, "L" links, "R" relative, "I" incremental, "M" missing
 * arguments, "V" protocol 32 with long flags, "9" and "7" protocol 29 and 27, "D" devices, "d" -d instead of -r, "C" iconv. */
static void hand_start(struct hand *hand, const char *line)
{
	memset(hand, 0, sizeof *hand);
	struct options *options = &hand->side.options;
	struct session *session = &hand->side.session;

	options->recursive = strchr(line, 'd') ? 0 : 2;
	options->dirs = strchr(line, 'd') != NULL;
	options->hard_links = strchr(line, 'H') != NULL;
	options->links = strchr(line, 'L') != NULL;
	options->relative = strchr(line, 'R') != NULL;
	options->devices = options->specials = strchr(line, 'D') != NULL;
	options->delete_missing_args = strchr(line, 'M') != NULL;
	options->iconv = strchr(line, 'C') ? "iso-8859-1" : NULL;
	options->implied_dirs = true;
	session_set_protocol(session, strchr(line, 'V') ? 32 : strchr(line, '9') ? 29 : strchr(line, '7') ? 27 : 30);
	session->varint_flags = session->safe_flist = session->protocol >= 32;
	session->inc_recurse = strchr(line, 'I') != NULL;
	session->file_sum = SUM_MD5;
}

/* Digits of bytes, in twos; blanks between them are nothing; 'text' stands for itself. */
static void hand_add(struct hand *hand, const char *text)
{
	char digits[3] = "";

	while (*text) {
		if (*text == '\'') {
			for (text++; *text != '\''; text++)
				hand->bytes[hand->length++] = (uint8_t)*text;
			text++;
		} else if (*text == ' ') {
			text++;
		} else {
			memcpy(digits, text, 2);
			hand->bytes[hand->length++] = (uint8_t)strtoul(digits, NULL, 16);
			text += 2;
		}
		assert_true(hand->length < sizeof hand->bytes - 8);
	}
}

static void hand_receive(struct hand *hand, struct flist_receive_setup setup)
{
	if (hand->side.options.iconv)
		setup.charset = hand->side.charset = charset_new(hand->side.options.iconv);
	start_receiving(&hand->side, hand->bytes, hand->length, &setup);
	receive_all(&hand->side);
}

static void hand_refused(const char *line, const char *text, int code, const char *words)
{
	static struct hand hand;
	struct flist_receive_setup setup = { .ids = NULL };

	hand_start(&hand, line);
	hand_add(&hand, text);
	expect_die(code, words, hand_receive(&hand, setup));
	side_free(&hand.side);
}

#define ROOT_30 "18 01 '.' 000000 6500f153 ed410000 "
#define NULL_TIME "000000 6500f153 "

UNIT_TEST(names_that_must_not_come)
{
	hand_refused("", ROOT_30 "18 04 '../x' " NULL_TIME "a4810000", EXIT_UNSUPPORTED, "unsafe pathname from sender: ../x");
	hand_refused("", ROOT_30 "18 06 'a/../b' " NULL_TIME "a4810000", EXIT_UNSUPPORTED,
		     "unsafe pathname from sender: a/../b");
	hand_refused("", ROOT_30 "18 02 '..' " NULL_TIME "ed410000", EXIT_UNSUPPORTED, "unsafe pathname from sender: ..");
	hand_refused("", ROOT_30 "18 02 '/x' " NULL_TIME "a4810000", EXIT_UNSUPPORTED, "unsafe pathname from sender: /x");
	hand_refused("", ROOT_30 "18 03 'a/.' " NULL_TIME "ed410000", EXIT_UNSUPPORTED, "unsafe pathname from sender: a/.");
	hand_refused("", "18 01 '.' " NULL_TIME "a4810000", EXIT_PROTOCOL, "rejecting non-directory transfer-root entry");
	hand_refused("R", "18 02 '/.' " NULL_TIME "a4810000", EXIT_PROTOCOL, "rejecting non-directory transfer-root entry");
	hand_refused("", "18 00 " NULL_TIME "a4810000", EXIT_PROTOCOL, "rejecting empty file-list name");
	hand_refused("", "18 03 'a'00'b' " NULL_TIME "a4810000", EXIT_PROTOCOL, "NUL byte inside a file-list name");
	hand_refused("", ROOT_30 "18 01 'x' " NULL_TIME "a4810000 18 03 'x/y' " NULL_TIME "a4810000 00", EXIT_PROTOCOL,
		     "invalid path from sender: x");
	hand_refused("L", ROOT_30 "18 01 'l' " NULL_TIME "ffa10000 01 '/' 18 05 'l/pwn' " NULL_TIME "a4810000 00",
		     EXIT_PROTOCOL, "invalid path from sender: l");
	hand_refused("", ROOT_30 "18 05 'q/r/s' " NULL_TIME "a4810000 00", EXIT_PROTOCOL, "invalid path from sender: q/r");
	hand_refused("", "58 9000 " NULL_TIME, EXIT_MALLOC, "overflow: xflags=0x58 l1=0 l2=4096");
	hand_refused("", "58 f0ffffffff", EXIT_MALLOC, "overflow: xflags=0x58 l1=0 l2=-1");
	hand_refused("", ROOT_30 "38 02 01 'x'", EXIT_PROTOCOL, "shares 2 bytes");
}

UNIT_TEST(fields_that_must_not_come)
{
	hand_refused("", "18 01 'a' " NULL_TIME "00000000", EXIT_PROTOCOL, "invalid file mode 00 for a");
	hand_refused("", "18 01 'a' " NULL_TIME "a4f10000", EXIT_PROTOCOL, "invalid file mode 0170644 for a");
	hand_refused("", "18 01 'a' " NULL_TIME "a4810100", EXIT_PROTOCOL, "invalid file mode 0300644 for a");
	hand_refused("", "18 01 'a' fcffffffffffffffff 6500f153", EXIT_UNSUPPORTED, "file-length is negative");
	hand_refused("V", "a018 01 'a' " NULL_TIME "f000ca9a3b", EXIT_PROTOCOL, "modtime_nsec out of range: 1000000000");
	hand_refused("L", "18 01 'l' " NULL_TIME "ffa10000 00", EXIT_MALLOC, "overflow: linkname_len=0");
	hand_refused("L", "18 01 'l' " NULL_TIME "ffa10000 9000", EXIT_MALLOC, "overflow: linkname_len=4096");
	hand_refused("L", "18 01 'l' " NULL_TIME "ffa10000 03 'a'00'b'", EXIT_PROTOCOL, "NUL byte inside the target");
	hand_refused("", "0410", EXIT_PROTOCOL, "Invalid flist flag: 1004");
	hand_refused("V", "c00080", EXIT_PROTOCOL, "Invalid flist flag");
	hand_refused("V", "ffffffffffff", EXIT_STREAMIO, "Overflow in read_varint()");
	hand_refused("", "9c80 01 'a'", EXIT_PROTOCOL, "Invalid flist flag: 809c");
	hand_refused("", "1c20 01 'a'", EXIT_PROTOCOL, "Invalid flist flag: 201c");
}

UNIT_TEST(links_that_must_not_come)
{
	hand_refused("", "1c02 01 'a' 00", EXIT_PROTOCOL, "Invalid flist flag: 21c");
	hand_refused("H", ROOT_30 "1c02 01 'a' 05", EXIT_PROTOCOL, "hard-link reference out of range: 5 (1)");
	hand_refused("H", ROOT_30 "1c02 01 'a' f0ffffffff", EXIT_PROTOCOL, "hard-link reference out of range: -1 (1)");
	hand_refused("H", ROOT_30 "1c02 01 'a' 00", EXIT_PROTOCOL, "hard-link reference out of range: 0 (1)");
	hand_refused("H", ROOT_30 "1c12 01 'd' " NULL_TIME "ed410000", EXIT_PROTOCOL, "hard-linked directory");
	hand_refused("H", ROOT_30 "1c10 01 'd' " NULL_TIME, EXIT_PROTOCOL, "Invalid flist flag: 101c");
}

/* The root and a directory "d", number 1, in the first list. */
#define FIRST_INC ROOT_30 "18 01 'd' " NULL_TIME "ed410000 00 "

UNIT_TEST(lists_that_must_not_come)
{
	hand_refused("I", FIRST_INC "ff66", EXIT_PROTOCOL, "Invalid directory index: 2 (0 - 1)");
	hand_refused("I", FIRST_INC "ff64", EXIT_PROTOCOL, "cleared directory index 0");
	hand_refused("I", FIRST_INC "ff65 00 fffe0000", EXIT_PROTOCOL, "second list of directory index 1");
	hand_refused("I", FIRST_INC "ff63", EXIT_PROTOCOL, "Invalid file index: -100");
	hand_refused("I", FIRST_INC "ff65 18 03 'x/y' " NULL_TIME "a4810000", EXIT_UNSUPPORTED,
		     "invalid path from sender: x/y");
	hand_refused("I", FIRST_INC "ff65 18 01 'x' " NULL_TIME "a4810000", EXIT_UNSUPPORTED, "invalid path from sender: x");
	hand_refused("I", FIRST_INC "ff65 18 05 'd/e/f' " NULL_TIME "a4810000", EXIT_UNSUPPORTED,
		     "invalid path from sender: d/e/f");
	hand_refused("I", ROOT_30 "18 03 'd/x' " NULL_TIME "a4810000", EXIT_UNSUPPORTED, "invalid path from sender: d/x");
	/* "d", "e", then the list of "d/x" after that of "e". */
	hand_refused("I", ROOT_30 "18 01 'd' " NULL_TIME "ed410000 1a 01 'e' " NULL_TIME "00 ff65 1a 03 'd/x' " NULL_TIME
		     "00 ff01 00 ff01", EXIT_PROTOCOL, "out of order");
}

UNIT_TEST(nothing_comes_after_the_last_list)
{
	static struct hand hand;
	struct flist_receive_setup setup = { .ids = NULL };

	hand_start(&hand, "I");
	hand_add(&hand, FIRST_INC "ff01");
	hand_receive(&hand, setup);
	expect_die(EXIT_PROTOCOL, "Invalid file index: -2", flist_receive_next(hand.side.receiver, NDX_FLIST_EOF));
	expect_die(EXIT_PROTOCOL, "Invalid file index: -102", flist_receive_next(hand.side.receiver, NDX_FLIST_OFFSET - 1));
	side_free(&hand.side);
	hand_start(&hand, "");
	hand_add(&hand, ROOT_30 "00");
	hand_receive(&hand, setup);
	expect_die(EXIT_PROTOCOL, "Invalid file index: -101", flist_receive_next(hand.side.receiver, NDX_FLIST_OFFSET));
	side_free(&hand.side);
}

UNIT_TEST(a_list_has_its_limit)
{
	static struct hand hand;
	struct flist_receive_setup setup = { .ids = NULL };

	hand_start(&hand, "");
	hand.side.session.max_alloc = 64;
	for (int i = 0; i < 40; i++)
		hand_add(&hand, "18 01 'a' " NULL_TIME "a4810000 ");
	expect_die(EXIT_MALLOC, "exceeded the memory of a session, 1024 bytes, with a file list", hand_receive(&hand, setup));
	side_free(&hand.side);
}

/* --- what a list says, as text --- */

/* "-" a hole, "~" not listed, "/" a directory, "+" named by an argument, "!" without content. */
static void entry_text(const struct entry *entry, const char *path, bool all, struct strbuf *out)
{
	bool hidden = entry->flags & ENTRY_HIDDEN;

	strbuf_addf(out, "%s%s%s", entry->flags & ENTRY_DUPLICATE ? "-" : "", hidden ? "~" : "", path);
	strbuf_add_string(out, entry_is_dir(entry) ? "/" : "");
	strbuf_add_string(out, entry->flags & ENTRY_TOP_DIR ? "+" : "");
	strbuf_add_string(out, entry->flags & ENTRY_NO_CONTENT && !hidden ? "!" : "");
	if (all)
		strbuf_addf(out, " %o %lld %lld", entry->mode, entry_is_dir(entry) ? 0 : (long long)entry->size,
			    (long long)entry->mtime);
	strbuf_add_string(out, all ? "\n" : " ");
}

static void list_text(struct side *side, bool all, struct strbuf *out)
{
	struct strbuf path = STRBUF_INIT;

	strbuf_reset(out);
	for (int32_t node = 0; node >= 0; node = flist_load_next(side->list)) {
		const struct flist_dir *dir = flist_dir(side->list, node);

		for (uint32_t i = 0; i < dir->count; i++) {
			const struct entry *entry = &dir->entries->items[i];
			flist_entry_path(side->list, node, entry, &path);
			entry_text(entry, strbuf_text(&path), all, out);
		}
	}
	strbuf_free(&path);
}

/* What comes of a list, and the order of its indexes. */
static void hand_makes(const char *line, const char *text, const char *walked, const char *numbered)
{
	static struct hand hand;
	struct flist_receive_setup setup = { .ids = NULL };
	struct strbuf out = STRBUF_INIT, path = STRBUF_INIT;
	struct flist_pos pos;

	hand_start(&hand, line);
	hand_add(&hand, text);
	hand_receive(&hand, setup);
	list_text(&hand.side, false, &out);
	assert_string_equal(strbuf_text(&out), walked);
	strbuf_reset(&out);
	for (int32_t ndx = 0; ndx < 40; ndx++) {
		if (!flist_locate(hand.side.list, ndx, &pos))
			continue;
		flist_pos_path(hand.side.list, &pos, &path);
		strbuf_addf(&out, "%d:%s ", ndx, strbuf_text(&path));
	}
	assert_string_equal(strbuf_text(&out), numbered);
	strbuf_free(&out);
	strbuf_free(&path);
	side_free(&hand.side);
}

#define FILE_OLD "00000000 00000065 a4810000 "
#define DIR_OLD "00000000 00000065 ed410000 "
#define CLASH_OLD "18 01 'n' " DIR_OLD "18 03 'n/z' " FILE_OLD "18 01 'n' " FILE_OLD "18 03 'n-a' " FILE_OLD "00 00000000"

UNIT_TEST(lists_in_any_order_are_put_in_order)
{
	/* 12.1 of doc/protocol/02-file-list.md, and the same with what lies below in front. */
	hand_makes("", ROOT_30 "18 01 'b' " NULL_TIME "a4810000 18 03 's/c' " NULL_TIME "a4810000 18 01 's' " NULL_TIME
		   "ed410000 18 01 'a' " NULL_TIME "a4810000 00", "./ a b s/ s/c ", "0:. 1:a 2:b 3:s 4:s/c ");
	/* Old protocols sort by path; equal names in order of arrival, a directory wins. */
	hand_makes("7", CLASH_OLD, "-n n-a n/! n/z ", "0:n 1:n 2:n-a 3:n/z ");
	hand_makes("9", CLASH_OLD, "-n n-a n/! n/z ", "0:n 1:n-a 2:n 3:n/z ");
	/* A file behind a directory. */
	hand_makes("R", "18 02 '/x' " NULL_TIME "a4810000 18 01 '!' " NULL_TIME "ed410000 18 03 '!/y' " NULL_TIME
		   "a4810000 18 01 'z' " NULL_TIME "ed410000 00", "!/ /x z/ !/y ", "0:! 1:!/y 2:/x 3:z ");
	/* Names are cleaned before. */
	hand_makes("", "18 02 './' " NULL_TIME "ed410000 18 04 'd//x' " NULL_TIME "a4810000 18 04 './d/' " NULL_TIME
		   "ed410000 00", "./ d/ d/x ", "0:. 1:d 2:d/x ");
}

UNIT_TEST(old_directory_classes_follow_the_arguments)
{
	hand_makes("9", "19 01 '.' " DIR_OLD "18 01 'b' " DIR_OLD "18 03 'b/c' " DIR_OLD "00 00000000", "./+ b/ b/c/ ",
		   "0:. 1:b 2:b/c ");
	hand_makes("9R", "18 01 'a' " DIR_OLD "19 03 'a/b' " DIR_OLD "18 05 'a/b/c' " DIR_OLD "18 01 'x' " DIR_OLD
		   "00 00000000", "a/! x/! a/b/+ a/b/c/ ", "0:a 1:a/b 2:a/b/c 3:x ");
	hand_makes("9d", "19 01 '.' " DIR_OLD "18 01 'b' " DIR_OLD "00 00000000", "./+ b/! ", "0:. 1:b ");
}

UNIT_TEST(parents_that_are_not_listed_are_made_up)
{
	hand_makes("9R", "18 05 'a/b/c' " FILE_OLD "00 00000000", "~a/ ~a/b/ a/b/c ", "0:a/b/c ");
	/* A release that names a directory's content "d/.". */
	hand_makes("7R", "18 01 'd' " DIR_OLD "19 03 'd/.' " DIR_OLD "18 03 'd/x' " FILE_OLD "00 00000000", "d/ -d/./+ d/x ",
		   "0:d 1:d/. 2:d/x ");
	/* Missing arguments have no parents to speak of. */
	hand_makes("MR", "18 03 'a/b' 000000 6500f153 00000000 00", "~a/ a/b ", "0:a/b ");
}

UNIT_TEST(converted_names_keep_their_place_of_arrival)
{
	hand_makes("C", ROOT_30 "18 03 'z' c3a4 " NULL_TIME "a4810000 18 01 'a' " NULL_TIME "a4810000 00", "./ a z\xe4 ",
		   "0:. 1:z\xe4 2:a ");
	/* Directory numbers are of arrival, too: "q" is number 1, "b" number 2. */
	hand_makes("CI", ROOT_30 "18 01 'q' " NULL_TIME "ed410000 18 01 'b' " NULL_TIME "ed410000 00 ff66 18 03 'b/x' "
		   NULL_TIME "a4810000 00 fffe80660000 00 fffe80020000", "./ b/ q/ b/x ", "0:. 1:. 2:q 3:b 4:b 5:b/x 6:q ");
}

UNIT_TEST(unconvertible_names_are_holes)
{
	static struct hand hand;
	struct flist_receive_setup setup = { .ids = NULL };
	struct flist_pos pos;
	struct dying dying = { .code = -1, .text = "" };
	struct log_sink sink = log_set_sink((struct log_sink){ dying_emit, &dying });

	hand_start(&hand, "CHI");
	/* U+20AC, first of a group that a later file belongs to. */
	hand_add(&hand, ROOT_30 "1c12 03 e282ac 000300 6500f153 a4810000 1c02 01 'x' 02 00 ff01");
	hand_receive(&hand, setup);
	log_set_sink(sink);
	assert_non_null(strstr(dying.text, "cannot convert filename"));
	assert_int_equal(hand.side.session.io_error, IOERR_GENERAL);
	assert_true(flist_locate(hand.side.list, 2, &pos));
	assert_true(pos.entry->flags & ENTRY_DUPLICATE);
	assert_true(flist_locate(hand.side.list, 3, &pos));
	assert_string_equal(entry_name(pos.entries, pos.entry), "x");
	assert_int_equal(pos.entry->size, 3);
	side_free(&hand.side);
}

UNIT_TEST(io_errors_come_with_their_list)
{
	static struct hand hand;
	struct flist_receive_setup setup = { .ids = NULL };

	hand_start(&hand, "VI");
	hand_add(&hand, "18 01 '.' 000000 6500f153 ed410000 18 01 'd' 000000 6500f153 ed410000 0002 ff65 000f ff01");
	start_receiving(&hand.side, hand.bytes, hand.length, &setup);
	flist_receive_first(hand.side.receiver);
	assert_int_equal(hand.side.session.io_error, IOERR_VANISHED);
	assert_false(flist_await_next(hand.side.list, 0));
	flist_receive_next(hand.side.receiver, wire_read_ndx(hand.side.session.wire));
	assert_int_equal(hand.side.session.io_error, IOERR_VANISHED);
	assert_true(flist_load_next(hand.side.list) > 0);
	assert_int_equal(hand.side.session.io_error, 7);
	side_free(&hand.side);
}

/* --- what was asked for: the vectors of doc/protocol/02-file-list.md section 11.3 --- */

struct asking {
	const char *line, *argument, *names; /* names: "+name" accepted, "-name" refused; "/" behind a directory */
};

static void receive_name(struct hand *hand, const char *name, const char *argument, struct filter_list *rules)
{
	char *items[] = { xstrdup(argument), NULL };
	struct args asked = { items, 1 };
	struct flist_receive_setup setup = { .asked = &asked, .rules = rules };
	size_t length = strlen(name);
	bool is_dir = name[length - 1] == '/';

	hand->bytes[hand->length++] = 0x18;
	hand->bytes[hand->length++] = (uint8_t)(length - is_dir);
	memcpy(hand->bytes + hand->length, name, length - is_dir);
	hand->length += length - is_dir;
	hand_add(hand, NULL_TIME);
	hand_add(hand, is_dir ? "ed410000" : "a4810000");
	start_receiving(&hand->side, hand->bytes, hand->length, &setup);
	free(items[0]);
	flist_receive_first(hand->side.receiver);
}

static void ask(const struct asking *asking)
{
	static struct hand hand;
	char *names = xstrdup(asking->names), *rest = names, *name;

	while ((name = strsep(&rest, " "))) {
		hand_start(&hand, asking->line);
		/* What is accepted is read up to the end of the stream. */
		bool accepted = *name == '+';

		expect_die(accepted ? EXIT_STREAMIO : EXIT_UNSUPPORTED,
			   accepted ? "connection unexpectedly closed" : "rejecting unrequested file-list name",
			   receive_name(&hand, name + 1, asking->argument, NULL));
		side_free(&hand.side);
	}
	free(names);
}

UNIT_TEST(names_that_nobody_asked_for)
{
	static const struct asking vectors[] = {
		{ "", "dir", "+dir +dir/x -other -dirx +./" },
		{ "d", "dir/", "+x -x/y" },
		{ "", "dir/", "+anything +any/thing" },
		{ "", "some/dir", "+dir +dir/x/y -some" },
		{ "R", "a/b/c", "+a/ +a/b/ +a/b/c +a/b/c/z -a -a/x -b -a/b/cc" },
		{ "R", "/a/b", "+/a/ +a/ +/a/b +/a/b/c -/b" },
		{ "R", "a/./b/c", "+b/ +b/c +b/c/z -a" },
		{ "", "*.txt", "+x.txt +x.txt/y -x.c" },
		{ "", "[ab]", "+a +b +[ab] -c" },
		{ "R", "a*/b", "+ax/ -ax +ax/b +ax/b/c -b" },
		{ "d", "x", "+x +x/y -x/y/z" },
		{ "dR", "a/b", "+a/ +a/b -a/c -z" },
		{ "dR", "c/", "+c/q -c/q/r" },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
		ask(&vectors[i]);
}

UNIT_TEST(excluded_names_are_refused)
{
	static struct hand hand;
	const struct filter_setup setup = { .side = FILTER_SENDER };
	struct filter_list *rules = filter_new(&setup);

	filter_add(rules, "- *.o", FILTER_NEW_STYLE);
	filter_add(rules, "P *.p", FILTER_NEW_STYLE);
	hand_start(&hand, "");
	expect_die(EXIT_UNSUPPORTED, "rejecting excluded file-list name: x.o", receive_name(&hand, "x.o", "dir/", rules));
	side_free(&hand.side);
	hand_start(&hand, "");
	expect_die(EXIT_STREAMIO, "unexpectedly closed", receive_name(&hand, "x.p", "dir/", rules));
	side_free(&hand.side);
	hand_start(&hand, "");
	filter_add(rules, ": .rules", FILTER_NEW_STYLE);
	expect_die(EXIT_STREAMIO, "unexpectedly closed", receive_name(&hand, "x.o", "dir/", rules));
	side_free(&hand.side);
	filter_free(rules);
}

/* A parent is no content, whatever its sender says. */
UNIT_TEST(a_parent_is_never_swept)
{
	static struct hand hand;
	char *items[] = { NULL, NULL };
	struct args asked = { items, 1 };
	struct flist_receive_setup setup = { .asked = &asked };
	struct strbuf out = STRBUF_INIT;
	char argument[] = "d/f";

	items[0] = argument;
	hand_start(&hand, "R");
	hand_add(&hand, ROOT_30 "19 01 'd' " NULL_TIME "ed410000 18 03 'd/f' " NULL_TIME "a4810000 00");
	hand_receive(&hand, setup);
	list_text(&hand.side, false, &out);
	assert_string_equal(strbuf_text(&out), "./+! d/+! d/f ");
	strbuf_free(&out);
	side_free(&hand.side);
}

/* --- captured sessions --- */

static void read_capture(int directory, const char *name, struct strbuf *out)
{
	char piece[4096];
	ssize_t got;
	int fd = openat(directory, name, O_RDONLY);

	assert_true(fd >= 0);
	while ((got = read(fd, piece, sizeof piece)) > 0)
		strbuf_add(out, piece, (size_t)got);
	close(fd);
}

/* The options of a job of testsuite/captures. */
static void capture_options(struct side *side, const char *job)
{
	side_init(side, 32, false);
	side->options.recursive = 1;
	side->options.hard_links = !strcmp(job, "archive");
	side->options.relative = !strcmp(job, "relative-file");
	side->options.checksum = side->options.numeric_ids = !strcmp(job, "checksum-numeric");
	if (!strcmp(job, "list"))
		keep_little(&side->options);
}

/* What a server says between the greeting and the list (doc/protocol/01-session.md section 7.2). */
static void capture_setup(struct side *side, const char *job, const struct strbuf *client)
{
	struct session *session = &side->session;
	char names[256];
	bool has_xxh128 = memmem(client->data, client->length, "xxh128", 6);

	session_set_protocol(session, session->protocol);
	if (session->protocol >= 30)
		session->compat = (uint32_t)wire_read_varint(session->wire);
	session->inc_recurse = session->compat & CF_INC_RECURSE;
	session->varint_flags = session->compat & CF_VARINT_FLIST_FLAGS;
	session->safe_flist = session->compat & CF_SAFE_FLIST || session->protocol >= 31;
	session->id0_names = session->compat & CF_ID0_NAMES;
	session->file_sum = session->protocol >= 30 ? SUM_MD5 : SUM_MD4;
	/* What the client names first is known to the server. */
	if (session->varint_flags)
		session->file_sum = has_xxh128 ? SUM_XXH128 : SUM_XXH64;
	if (session->varint_flags)
		wire_read_vstring(session->wire, names, sizeof names, "checksum names");
	if (session->varint_flags && !strcmp(job, "compress"))
		wire_read_vstring(session->wire, names, sizeof names, "compression names");
	session->seed = wire_read_int(session->wire);
	wire_set_mux_in(session->wire, true);
}

static const char *expected_of(const char *job)
{
	if (!strcmp(job, "relative-file"))
		return "dir/+! 40755 0 1600000000\ndir/sub/+! 40755 0 1600000000\ndir/sub/d.iso 100444 5000 946684800\n";
	return "./+ 40755 0 1600000000\na.txt 100644 6 1700000000\nb.bin 100600 70000 1700000001\n"
	       "caf\xc3\xa9 100644 10 1700000000\ndir.x 100644 15 1700000000\ndir/ 40755 0 1600000000\n"
	       "empty/ 40755 0 1600000000\ndir/c 100755 0 1500000000\ndir/hardlink 100644 6 1700000000\ndir/link ";
}

static void check_capture(int directory, const char *name)
{
	struct flist_receive_setup setup = { .ids = NULL };
	struct strbuf bytes = STRBUF_INIT, client = STRBUF_INIT, text = STRBUF_INIT;
	struct side side;
	char job[64], client_name[80];
	const char *after_version = strchr(name, '-') + 1;

	snprintf(job, sizeof job, "%.*s", (int)strcspn(after_version, "."), after_version);
	snprintf(client_name, sizeof client_name, "%.*sc2s", (int)strlen(name) - 3, name);
	read_capture(directory, name, &bytes);
	read_capture(directory, client_name, &client);
	capture_options(&side, job);
	session_set_protocol(&side.session, atoi(client.data + strlen("@RSYNCD: ")));
	const char *ok = memmem(bytes.data, bytes.length, "@RSYNCD: OK\n", 12);

	assert_non_null(ok);
	side.session.wire = wire_new_memory(ok + 12, bytes.length - (size_t)(ok + 12 - bytes.data));
	capture_setup(&side, job, &client);
	setup.ids = side.ids;
	side.list = flist_new_received(&side.options, &side.session);
	side.receiver = flist_receiver_new(side.list, &side.session, &side.options, &setup);
	receive_all(&side);
	list_text(&side, true, &text);
	if (side.session.protocol < 30 && side.options.relative)
		assert_non_null(strstr(strbuf_text(&text), "dir/sub/d.iso 100444 5000 946684800\n"));
	else if (strncmp(strbuf_text(&text), expected_of(job), strlen(expected_of(job))))
		fail_msg("%s: %s", name, strbuf_text(&text));
	assert_int_equal(!strstr(strbuf_text(&text), "dir/sub/d.iso 100444 5000"), !strcmp(job, "filter-delete"));
	side_free(&side);
	strbuf_free(&bytes);
	strbuf_free(&client);
	strbuf_free(&text);
}

static int captures = -1;

UNIT_TEST(captured_lists_are_received)
{
	DIR *directory = fdopendir(dup(captures));
	const struct dirent *file;
	int count = 0;

	assert_non_null(directory);
	while ((file = readdir(directory))) {
		/* A push has its list in the other stream (testsuite/system/server/test_server_receive.py). */
		if (!strstr(file->d_name, ".s2c") || strstr(file->d_name, "-push"))
			continue;
		check_capture(captures, file->d_name);
		count++;
	}
	closedir(directory);
	assert_true(count >= 59);
}

/* Beside this file. */
static void find_captures(void)
{
	char path[4096];

	snprintf(path, sizeof path, "%s", __FILE__);
	char *slash = strrchr(path, '/');

	snprintf(slash, (size_t)(path + sizeof path - slash), "/../captures");
	captures = open(path, O_RDONLY | O_DIRECTORY);
}

static int set_up(void **state)
{
	find_captures();
	return make_trees(state);
}

UNIT_GROUP(set_up, remove_trees)
