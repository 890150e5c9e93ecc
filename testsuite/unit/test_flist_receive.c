/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists from the sender's side and from captured sessions, received; and what must not come (protocol/02 section 11). */
#include "expect_die.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flist_receive.h"
#include "lib/charset.h"
#include "lib/strbuf.h"
#include "options.h"

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
	make_dir("B"), make_dir("B/b"), make_file("B/b/x", "other"), make_file("B/b/only", ""), make_dir("B/n"), make_file("B/n/z", "");
	make_file("B/o", "another");
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
	side->session.protocol = protocol;
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
	wire_set_protocol(side->session.wire, side->session.protocol);
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
	wire_set_protocol(side->session.wire, side->session.protocol);
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

	/* Below protocol 30 implied parents cannot be told from other directories without content. */
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

	assert_true(flist_next_is_known(side->list));
	while ((node = flist_load_next(side->list)) >= 0) {
		count++;
		assert_true(flist_dir(side->list, node)->loaded);
		assert_int_equal(flist_has_own_list(side->list, node), side->session.inc_recurse);
	}
	assert_true(flist_is_complete(side->list));
	return count;
}

/* Do two entries belong to one group exactly if they are one file? */
static void assert_same_groups(struct side *from, struct side *to)
{
	struct flist_pos a[2], b[2];

	for (int32_t i = 0; i < 40; i++) {
		for (int32_t j = 0; j < i; j++) {
			if (!flist_locate(from->list, i, &a[0]) || !flist_locate(from->list, j, &b[0]) || a[0].gap >= 0 || b[0].gap >= 0)
				continue;
			assert_true(flist_locate(to->list, i, &a[1]) && flist_locate(to->list, j, &b[1]));
			bool same[2] = { false, false };
			for (int k = 0; k < 2; k++) {
				const struct entry_side *x = entry_side_of(a[k].entries, a[k].entry);
				const struct entry_side *y = entry_side_of(b[k].entries, b[k].entry);
				same[k] = a[k].entry->flags & b[k].entry->flags & ENTRY_HARD_LINKED && x->dev == y->dev && x->ino == y->ino;
			}
			assert_int_equal(same[0], same[1]);
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
	for (int protocol = 27; protocol <= 32; protocol++) {
		round_trip(protocol, false, change, arguments, NULL);
		if (protocol >= 30)
			round_trip(protocol, true, change, arguments, NULL);
	}
}

static void test_what_is_sent_is_received(void **state)
{
	static const char *const one[] = { "A/", NULL }, *const by_name[] = { "A", "B/o", NULL }, *const two[] = { "A/", "B/", NULL };
	static const char *const big[] = { "big", NULL }, *const nothing[] = { NULL };

	(void)state;
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

static void test_relative_names_find_their_directories(void **state)
{
	static const char *const arguments[] = { "A/b/deep", "B/n", "A/f", NULL }, *const dot[] = { "./A/b", NULL };
	char *cwd = getcwd(NULL, 0);
	char absolute[256];

	(void)state;
	snprintf(absolute, sizeof absolute, "%s/A/b", cwd);
	const char *const whole[] = { absolute, "B/b", NULL };

	each_protocol(make_relative, arguments);
	each_protocol(leave_out_parents, arguments);
	each_protocol(make_relative, dot);
	each_protocol(make_relative, whole);
	free(cwd);
}

static void test_other_options_change_the_fields(void **state)
{
	static const char *const one[] = { "A/", NULL }, *const several[] = { "A/b", "A/f", NULL };

	(void)state;
	each_protocol(list_only_dirs, one);
	each_protocol(list_only_dirs, several);
	each_protocol(keep_much, one);
	each_protocol(keep_little, one);
}

static void test_digests_come_with_regular_files(void **state)
{
	static const char *const one[] = { "A/", NULL };
	static const uint8_t md5_of_f[] = { 0x8f, 0xa1, 0x4c, 0xdd, 0x75, 0x4f, 0x91, 0xcc, 0x65, 0x54, 0xc9, 0xe7, 0x19, 0x29, 0xcc, 0xe7 };

	(void)state;
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
static void test_converted_names_are_numbered_as_they_come(void **state)
{
	static const char *const one[] = { "A/", "B/", NULL };

	(void)state;
	for (int protocol = 27; protocol <= 32; protocol++) {
		round_trip(protocol, false, NULL, one, "iso-8859-1");
		if (protocol >= 30)
			round_trip(protocol, true, NULL, one, "iso-8859-1");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_sent_is_received),
		cmocka_unit_test(test_relative_names_find_their_directories),
		cmocka_unit_test(test_other_options_change_the_fields),
		cmocka_unit_test(test_digests_come_with_regular_files),
		cmocka_unit_test(test_converted_names_are_numbered_as_they_come),
	};

	return cmocka_run_group_tests(tests, make_trees, remove_trees);
}
