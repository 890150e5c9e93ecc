/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rules in a tree: per-directory merge files (doc/protocol/04-filters.md section 4.10), absolute rules (4.7.5), sides (4.12), a
 * module's own rules (4.14) and xattr rules (4.15). The expected results are those of stock rsync.
 */
#include "filter/add.h"
#include "filter/exchange.h"
#include "filter_support.h"
#include "testsuite/unit/wire_memory.h"
#include "wire/setup.h"

/* A tree is a list of names below the base directory; those of directories end in a slash. */
static const char *const tree_r[] = {
	"f1", "f2", "s/", "s/f1", "s/f2", "s/x.o", "s/t/", "s/t/f1", "s/t/f2", "s/t/x.o", "o/", "o/f1", "o/f2", NULL,
};

static bool is_child(const char *name, const char *dir, size_t *length)
{
	size_t dir_length = strlen(dir);

	if (strncmp(name, dir, dir_length) || !name[dir_length])
		return false;
	*length = strlen(name);
	if (name[*length - 1] == '/')
		--*length;
	return !memchr(name + dir_length, '/', *length - dir_length);
}

/* Visit `dir` ("" or with its final slash) as a sender does, and collect what is hidden. */
static void walk(struct filter_list *list, const char *const *tree, const char *dir, struct strbuf *hidden)
{
	char *inside = strndup(dir, strlen(dir) - (*dir != '\0'));
	size_t length;

	for (int pass = 0; pass < 2; pass++) {
		for (const char *const *name = tree; *name; name++) {
			if (!is_child(*name, dir, &length))
				continue;
			bool is_dir = (*name)[length] == '/';
			char *plain = strndup(*name, length);
			filter_set_dir(list, inside);
			bool excluded = filter_excludes(list, plain, is_dir);
			if (pass == 0 && excluded)
				strbuf_addf(hidden, "%s%s", hidden->length ? " " : "", plain);
			if (pass == 1 && is_dir && !excluded)
				walk(list, tree, *name, hidden);
			free(plain);
		}
	}
	free(inside);
}

static struct filter_list *new_list(struct memory_files *files, const struct memory_file *items, enum filter_side side)
{
	*files = (struct memory_files){ .items = items };
	struct filter_setup setup = { .side = side, .open_file = open_memory_file, .context = files };

	return filter_new(&setup);
}

struct scenario {
	const char *const *tree;
	const char *base;
	const char *rules[4];
	struct memory_file files[5];
	const char *hidden;
};

static const char *const tree_src[] = { "a.txt", "sub/", "sub/c.txt", NULL };
static const char *const tree_brackets[] = { "a[b]c/", "a[b]c/foo", "a[b]c/d/", "a[b]c/d/foo", "abc/", "abc/foo", NULL };
static const char *const tree_path[] = { "x", "y", "d/", "d/x", "d/y", "d/path/", "d/path/x", NULL };

static const struct scenario scenarios[] = {
	/* 4.10.3 */
	{ tree_r, "/w/r", { ": .r" }, { { "base:s/.r", "- /f1\n- t/f2\n" } }, "s/f1 s/t/f2" },
	{ tree_r, "/w/r", { ": .r", "- *.o" }, { { "base:s/.r", "- f1\n" }, { "base:s/t/.r", "!\n- f2\n" } },
	  "s/f1 s/x.o s/t/f2 s/t/x.o" },
	{ tree_r, "/w/r", { ": .r", "- *.o" }, { { "base:s/.r", "- f1\n" }, { "base:s/t/.r", "+ f1\n- f2\n" } },
	  "s/f1 s/x.o s/t/f2 s/t/x.o" },
	{ tree_r, "/w/r", { ":n .r" }, { { "base:s/.r", "- f1\n" } }, "s/f1" },
	{ tree_r, "/w/r", { "- f2", ": .r" }, { { "base:s/t/.r", "!\n" } }, "f2 s/f2 s/t/f2 o/f2" },
	{ tree_r, "/w/r", { ": .r" },
	  { { "base:s/.r", ": .q\n" }, { "base:s/.q", "- f1\n" }, { "base:s/t/.q", "- f2\n" }, { "base:o/.q", "- f2\n" } },
	  "s/f1 s/t/f1 s/t/f2" },
	/* the tail of the whole transfer name */
	{ tree_r, "/w/r", { ": .r" }, { { "base:s/.r", "- s/f2\n" } }, "s/f2" },
	/* kinds of files */
	{ tree_r, "/w/r", { ":C" }, { { "base:s/.cvsignore", "f1 *.o\n" } }, "s/f1 s/x.o" },
	{ tree_r, "/w/r", { ":- .r" }, { { "base:.r", "- f1\n/s\n" } }, "s" },
	{ tree_r, "/w/r", { ":/ .r" }, { { "base:s/.r", "- /f1\n- /w/r/s/f2\n" } }, "s/f2" },
	{ tree_r, "/w/r", { ": .r" }, { { "base:s/.r", "-/ /w/r/s/f1\n-/ /f2\n-/ s/x.o\n" } }, "s/f1 s/x.o" },
	{ tree_r, "/w/r", { ": .r", ":e .q" }, { { "base:o/.r", "P f1\n" }, { "base:o/.q", "H f2\n" } }, "o/f2" },
	/* rules of the other side, and files that hold nothing else */
	{ tree_r, "/w/r", { ":r .r" }, { { "base:s/.r", "- f1\n" } }, "" },
	/* single merges in a per-directory file: base directory, own directory, absolute, climbing */
	{ tree_r, "/w/r", { ": .r" }, { { "base:s/.r", ". m\n" }, { "base:m", "- /f1\n" }, { "base:s/m", "- f2\n" } }, "s/f1" },
	{ tree_r, "/w/r", { ": .r" }, { { "base:s/.r", ". ./m\n" }, { "base:m", "- /f1\n" }, { "base:s/m", "- f2\n" } },
	  "s/f2 s/t/f2" },
	{ tree_r, "/w/r", { ": .r" }, { { "base:s/.r", ". ../../../../m\n" }, { "root:/m", "- f1\n" } }, "s/f1 s/t/f1" },
	{ tree_r, "/w/r", { ": .r" }, { { "base:s/.r", ". /w/r/m\n" }, { "base:m", "- f1\n" } }, "s/f1 s/t/f1" },
	{ tree_r, "/w/r", { ": .r" }, { { "base:s/.r", ". ../../x/m\n" }, { "root:/w/x/m", "- f2\n" } }, "s/f2 s/t/f2" },
	/* wildcards in directory names are no wildcards (4.18 no. 1) */
	{ tree_brackets, "/w", { ": .r" }, { { "base:a[b]c/.r", "- /foo\n- /d/f*\n" } }, "a[b]c/foo a[b]c/d/foo" },
	{ tree_brackets, "/w*", { ": .r" }, { { "base:.r", "- /a[[]b]c/f??\n" } }, "a[b]c/foo" },
	/* 4.10.4: parent scan */
	{ tree_path, "/src/path", { ": /.f" },
	  { { "root:/.f", "- /src/path/y\n" }, { "root:/src/.f", "- /path/x\n" }, { "base:d/.f", "- y\n" } }, "x y d/y" },
	{ tree_path, "/src/path", { ": /src/.f" }, { { "root:/.f", "- y\n" }, { "root:/src/.f", "- x\n" } }, "x d/x d/path/x" },
	{ tree_path, "/src/path", { ": ../.f" }, { { "root:/.f", "- y\n" }, { "root:/src/.f", "- x\n" } }, "x d/x d/path/x" },
	{ tree_path, "/src/path", { ": /other/.f" }, { { "root:/other/.f", "- x\n" }, { "base:d/.f", "- y\n" } }, "d/y" },
	{ tree_path, "/src/path", { ":n /.f" }, { { "root:/src/.f", "- x\n" }, { "base:d/.f", "- y\n" } }, "d/y" },
	{ tree_path, "/src/path", { ": /.f" },
	  { { "root:/.f", ": .g\n" }, { "root:/src/.g", "- /path/d/x\n" }, { "base:.g", "- /y\n" } }, "y d/x" },
	{ tree_path, "/src/path", { ": /.f" }, { { "root:/.f", "- x\n" }, { "root:/src/.f", "!\n- y\n" } }, "y d/y" },
	/* a per-directory file with a merge that looks above it */
	{ tree_path, "/src/path", { ": .f" },
	  { { "base:d/.f", ": ../.g\n" }, { "base:.g", "no such rule\n" }, { "root:/src/path/.g", "- y\n" },
	    { "base:d/path/.g", "- x\n" } },
	  "d/y d/path/x" },
	/* 4.7.5 */
	{ tree_src, "/w/src", { "-/ /w/src/a.txt" }, { { NULL, NULL } }, "a.txt" },
	{ tree_src, "/w/src", { "-/ src/a.txt" }, { { NULL, NULL } }, "a.txt" },
	{ tree_src, "/w/src", { "-/ rc/a.txt" }, { { NULL, NULL } }, "" },
	{ tree_src, "/w/src", { "-/ /sub/c.txt" }, { { NULL, NULL } }, "" },
	{ tree_src, "/w/src", { "-/ sub/c.txt" }, { { NULL, NULL } }, "sub/c.txt" },
	{ tree_src, "/w/src/", { "-/ /w/**/c.txt" }, { { NULL, NULL } }, "sub/c.txt" },
	{ tree_src, "/w/src", { "-/ **/c.txt" }, { { NULL, NULL } }, "sub/c.txt" },
	{ tree_src, "/w/src", { "-/ /w/src/sub/***" }, { { NULL, NULL } }, "sub" },
	{ tree_src, "a/foo", { "-/ /a/foo/a.txt" }, { { NULL, NULL } }, "a.txt" },
	{ tree_src, "a/foo", { "-/ a/foo/a.txt" }, { { NULL, NULL } }, "a.txt" },
	{ tree_src, "a/foo", { "-/ /a.txt" }, { { NULL, NULL } }, "" },
	{ tree_src, "a/foo", { "- /a.txt" }, { { NULL, NULL } }, "a.txt" },
	{ tree_src, "a/foo", { "- /a/foo/a.txt", "- a/foo/a.txt" }, { { NULL, NULL } }, "" },
};

UNIT_TEST(sender_hides_what_stock_hides)
{
	int wrong = 0;

	for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
		const struct scenario *scenario = &scenarios[i];
		struct memory_files files;
		struct filter_list *list = new_list(&files, scenario->files, FILTER_SENDER);
		struct strbuf hidden = STRBUF_INIT;
		for (size_t k = 0; k < 4 && scenario->rules[k]; k++)
			filter_add(list, scenario->rules[k], FILTER_NEW_STYLE);
		filter_set_base(list, scenario->base);
		walk(list, scenario->tree, "", &hidden);
		if (strcmp(strbuf_text(&hidden), scenario->hidden)) {
			print_error("scenario %zu (%s): hides \"%s\", not \"%s\"; opened %s\n", i, scenario->rules[0],
				    strbuf_text(&hidden), scenario->hidden, strbuf_text(&files.opened));
			wrong++;
		}
		strbuf_free(&hidden);
		strbuf_free(&files.opened);
		filter_free(list);
	}
	assert_int_equal(wrong, 0);
}

/* --- which files are read, and when --- */

static void expect_opened(struct memory_files *files, const char *expected)
{
	assert_string_equal(strbuf_text(&files->opened), expected);
	strbuf_reset(&files->opened);
}

UNIT_TEST(files_of_ancestors_are_read_once)
{
	struct memory_files files;
	struct filter_list *list = new_list(&files, NULL, FILTER_SENDER);

	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_set_base(list, "/w");
	filter_set_dir(list, "");
	expect_opened(&files, "base:.r ");
	filter_set_dir(list, "a");
	filter_set_dir(list, "a/b");
	expect_opened(&files, "base:a/.r base:a/b/.r ");
	filter_set_dir(list, "a/b");
	filter_set_base(list, "/w/");
	filter_set_dir(list, "a/b");
	expect_opened(&files, "");
	filter_set_dir(list, "a/c");
	expect_opened(&files, "base:a/c/.r ");
	filter_set_dir(list, "ab/c");
	expect_opened(&files, "base:ab/.r base:ab/c/.r ");
	filter_free(list);
	strbuf_free(&files.opened);
}

UNIT_TEST(base_directory_counts_only_when_it_is_scanned)
{
	struct memory_files files;
	struct filter_list *list = new_list(&files, NULL, FILTER_SENDER);

	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_set_base(list, "/w");
	filter_set_dir(list, "src");
	expect_opened(&files, "base:src/.r ");
	filter_set_base(list, "/v");
	filter_set_dir(list, "");
	filter_set_dir(list, "x");
	expect_opened(&files, "base:.r base:x/.r ");
	/* Back again: each base directory is remembered by itself. */
	filter_set_base(list, "/w");
	filter_set_dir(list, "src");
	expect_opened(&files, "base:src/.r ");
	filter_set_base(list, "/v");
	filter_set_dir(list, "x");
	expect_opened(&files, "base:.r base:x/.r ");
	filter_free(list);
	strbuf_free(&files.opened);
}

UNIT_TEST(parents_of_an_argument_count_but_not_its_base)
{
	static const struct memory_file items[] = {
		{ "base:.r", "- f0\n" }, { "base:src/.r", "- f1\n" }, { "base:src/a/.r", "- f2\n" }, { NULL, NULL },
	};
	struct memory_files files;
	struct filter_list *list = new_list(&files, items, FILTER_SENDER);

	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_set_base(list, "/w");
	filter_set_argument(list, "src/a/f1");
	assert_true(filter_excludes(list, "src/a/f1", false));
	assert_true(filter_excludes(list, "src/a/f2", false));
	assert_false(filter_excludes(list, "src/a/f0", false));
	filter_set_argument(list, "f1");
	assert_false(filter_excludes(list, "f1", false));
	filter_free(list);
	strbuf_free(&files.opened);
}

UNIT_TEST(absolute_transfer_names_need_no_base)
{
	static const struct memory_file items[] = { { "root:/w/src/.r", "- /f1\n" }, { NULL, NULL } };
	struct memory_files files;
	struct filter_list *list = new_list(&files, items, FILTER_SENDER);

	filter_add(list, "- /w/src/a.txt", FILTER_NEW_STYLE);
	filter_add(list, "-/ /w/src/b.txt", FILTER_NEW_STYLE);
	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_set_base(list, "/home/me");
	filter_set_dir(list, "/w/src");
	expect_opened(&files, "root:/w/.r root:/w/src/.r ");
	assert_true(filter_excludes(list, "/w/src/a.txt", false));
	assert_true(filter_excludes(list, "/w/src/b.txt", false));
	assert_true(filter_excludes(list, "/w/src/f1", false));
	assert_false(filter_excludes(list, "/w/src/f2", false));
	filter_free(list);
	strbuf_free(&files.opened);
}

/* Stock forgets what the scan found when it leaves the first directory, and never scans again. */
UNIT_TEST(parent_scan_counts_for_the_first_directory_only)
{
	static const struct memory_file items[] = { { "root:/a/.f", "- x\n: .g\n" }, { "base:.g", "- z\n" }, { NULL, NULL } };
	struct memory_files files;
	struct filter_list *list = new_list(&files, items, FILTER_SENDER);

	filter_add(list, ": /.f", FILTER_NEW_STYLE);
	filter_set_base(list, "/a/one");
	filter_set_dir(list, "");
	expect_opened(&files, "root:/.f root:/a/.f root:/a/.g base:.f base:.g ");
	filter_set_dir(list, "d");
	expect_opened(&files, "base:d/.f base:d/.g ");
	assert_true(filter_excludes(list, "d/x", false));
	assert_true(filter_excludes(list, "d/z", false));
	filter_set_base(list, "/a/two");
	filter_set_dir(list, "");
	expect_opened(&files, "base:.f ");
	assert_false(filter_excludes(list, "x", false));
	assert_false(filter_excludes(list, "z", false));
	filter_free(list);
	strbuf_free(&files.opened);
}

UNIT_TEST(option_F_is_a_merge_and_then_an_exclusion)
{
	struct filter_setup setup = { .side = FILTER_RECEIVER };
	struct filter_list *list = filter_new(&setup);

	for (int times = 1; times <= 3; times++)
		filter_add_shortcut_F(list, times);
	char *sent = sent_rules(list, 32, false, true);
	assert_string_equal(sent, ": /.rsync-filter|- .rsync-filter");
	free(sent);
	filter_free(list);
}

UNIT_TEST(second_merge_of_a_base_name_is_dropped)
{
	struct memory_files files;
	struct filter_list *list = new_list(&files, NULL, FILTER_SENDER);

	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_add(list, ":- x/.r", FILTER_NEW_STYLE);
	filter_set_dir(list, "");
	expect_opened(&files, "base:.r ");
	char *sent = sent_rules(list, 32, false, true);
	assert_string_equal(sent, ": .r");
	free(sent);
	filter_free(list);
	strbuf_free(&files.opened);
}

static void expect_directory_error(const char *dir, int code, const char *text)
{
	static const struct memory_file items[] = {
		{ "base:bad/.r", "\n- ok\nsecret=42\n" },
		{ "base:gone/.r", ". /secret/file\n" },
		{ "base:named/.r", ": .secret\n" },
		{ "base:named/.secret", "password\n" },
		{ NULL, NULL },
	};
	struct memory_files files;
	struct filter_list *list = new_list(&files, items, FILTER_SENDER);
	struct ending ending;

	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_set_base(list, "/w");
	RUN(&ending, filter_set_dir(list, dir));
	assert_int_equal(ending.code, code);
	assert_string_equal(ending.text, text);
	filter_free(list);
	strbuf_free(&files.opened);
}

UNIT_TEST(errors_in_a_directory_show_file_and_line_only)
{
	expect_directory_error("bad", EXIT_SYNTAX, "Unknown filter rule: <rule from /w/bad/.r line 3>\n");
	expect_directory_error("gone", EXIT_FILEIO, "failed to open exclude file <rule from /w/gone/.r line 1>\n");
	expect_directory_error("named", EXIT_SYNTAX,
			       "Unknown filter rule: <rule from a file named at /w/named/.r line 1>\n");
}

UNIT_TEST(merge_files_that_a_module_hides_look_absent)
{
	static const struct memory_file items[] = { { "base:k.key", "- x\n" }, { "base:secret/.r", "- x\n" }, { NULL, NULL } };
	struct memory_files files = { .items = items };
	struct filter_setup module_setup = { .side = FILTER_BOTH, .daemon_rules = true };
	struct filter_list *hidden = filter_new(&module_setup);
	struct filter_setup setup = { .side = FILTER_SENDER, .open_file = open_memory_file, .context = &files,
			.hidden = hidden };
	struct filter_list *list = filter_new(&setup);

	filter_add_words(hidden, "*.key /pub/secret/", FILTER_OLD_EXCLUDE);
	filter_add(list, ": k.key", FILTER_NEW_STYLE);
	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_set_base(list, "pub");
	filter_set_dir(list, "");
	expect_opened(&files, "base:.r ");
	assert_false(filter_excludes(list, "x", false));
	filter_set_dir(list, "secret");
	expect_opened(&files, "");
	filter_free(list);
	filter_free(hidden);
	strbuf_free(&files.opened);
}

UNIT_TEST(files_named_by_a_peer_are_capped)
{
	struct strbuf content = STRBUF_INIT;

	for (int i = 0; i < 70000; i++)
		strbuf_add_string(&content, "a\n");
	const struct memory_file items[] = { { "base:big", content.data }, { NULL, NULL } };
	struct memory_files files = { .items = items };
	struct filter_setup setup = { .side = FILTER_SENDER, .open_file = open_memory_file, .context = &files };
	struct filter_list *list = filter_new(&setup);
	struct session session = { .wire = wire_new_memory("\7\0\0\0:-n big\0\0\0\0", 15), .is_sender = true };
	struct ending ending;

	session_set_protocol(&session, 32);
	filter_receive(list, &session);
	wire_free(session.wire);
	RUN(&ending, filter_set_dir(list, ""));
	assert_int_equal(ending.code, EXIT_MALLOC);
	filter_free(list);

	/* The local user's own files are not. */
	list = filter_new(&setup);
	filter_add(list, ":-n big", FILTER_NEW_STYLE);
	filter_set_dir(list, "");
	assert_true(filter_excludes(list, "a", false));
	filter_free(list);
	strbuf_free(&content);
	strbuf_free(&files.opened);
}

/* --- sides, perishable, xattrs --- */

static bool receiver_protects(const char *rules, bool delete_excluded, const char *name, bool is_dir, bool doomed)
{
	struct filter_setup setup = { .side = FILTER_RECEIVER, .delete_excluded = delete_excluded };
	struct filter_list *list = filter_new(&setup);

	filter_add_words(list, rules, FILTER_NEW_STYLE);
	bool excluded = doomed ? filter_excludes_doomed(list, name, is_dir) : filter_excludes(list, name, is_dir);
	filter_free(list);
	return excluded;
}

UNIT_TEST(deletion_spares_what_the_receivers_rules_protect)
{
	assert_true(receiver_protects("- x", false, "gone/x", false, true));
	assert_true(receiver_protects("P x", false, "x", false, false));
	assert_true(receiver_protects("-r x", false, "x", false, false));
	assert_true(receiver_protects("-sr x", false, "x", false, false));
	assert_false(receiver_protects("H x", false, "x", false, false));
	assert_false(receiver_protects("-s x", false, "x", false, false));
	assert_true(receiver_protects("-p x", false, "x", false, false));
	assert_false(receiver_protects("-p x", false, "gone/x", false, true));
	assert_false(receiver_protects("- x", true, "x", false, false));
	assert_true(receiver_protects("P x", true, "x", false, false));
	assert_true(receiver_protects("-sr x", true, "gone/x", false, true));
	assert_false(receiver_protects("-! x", false, "x", false, false));
	assert_true(receiver_protects("-! x", false, "gone", true, false));
	assert_false(receiver_protects("R x P *", false, "x", false, false));
	assert_true(receiver_protects("R x P *", false, "y", false, false));
}

UNIT_TEST(unsided_rules_of_a_file_become_the_senders_under_delete_excluded)
{
	static const struct memory_file items[] = { { "base:.r", "- a\nP b\n" }, { NULL, NULL } };
	struct memory_files files = { .items = items };
	struct filter_setup setup = {
		.side = FILTER_RECEIVER, .delete_excluded = true, .open_file = open_memory_file, .context = &files,
	};
	struct filter_list *list = filter_new(&setup);

	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_set_dir(list, "");
	assert_false(filter_excludes(list, "a", false));
	assert_true(filter_excludes(list, "b", false));
	filter_free(list);
	/* A merge with sides of its own makes its rules count there. */
	list = filter_new(&setup);
	filter_add(list, ":r .r", FILTER_NEW_STYLE);
	struct ending ending;
	RUN(&ending, filter_set_dir(list, ""));
	assert_int_equal(ending.code, EXIT_SYNTAX);
	filter_free(list);
	strbuf_free(&files.opened);
}

UNIT_TEST(xattr_rules_are_about_xattr_names_only)
{
	struct filter_setup setup = { .side = FILTER_SENDER };
	struct filter_list *list = filter_new(&setup);

	filter_add(list, "- user.*", FILTER_NEW_STYLE);
	assert_int_equal(filter_excludes_xattr(list, "user.a"), -1);
	filter_add(list, "-rx user.b", FILTER_NEW_STYLE);
	assert_int_equal(filter_excludes_xattr(list, "user.b"), 0);
	filter_add(list, "-x user.a", FILTER_NEW_STYLE);
	assert_int_equal(filter_excludes_xattr(list, "user.a"), 1);
	assert_int_equal(filter_excludes_xattr(list, "security.selinux"), 0);
	assert_true(filter_excludes(list, "user.a", false));
	assert_true(filter_excludes(list, "user.z", false));
	filter_free(list);
}

struct explained {
	struct memory_files files;
	struct strbuf text;
};

static int open_explained(void *context, enum filter_place place, const char *path)
{
	return open_memory_file(&((struct explained *)context)->files, place, path);
}

static void note_explanation(void *context, const char *text)
{
	strbuf_addf(&((struct explained *)context)->text, "%s\n", text);
}

UNIT_TEST(decisions_are_explained_without_text_from_files)
{
	struct explained explained = { .files.items = (const struct memory_file[]){ { "base:.r", "- secret*\n" }, { 0 } } };
	struct filter_setup setup = {
		.side = FILTER_SENDER, .open_file = open_explained, .explain = note_explanation, .context = &explained,
		.cvs_home = "/nonexistent",
	};
	struct filter_list *list = filter_new(&setup);

	unsetenv("CVSIGNORE");
	filter_add(list, "+ sub/", FILTER_NEW_STYLE);
	filter_add(list, "*.o", FILTER_OLD_EXCLUDE);
	filter_add(list, ": .r", FILTER_NEW_STYLE);
	filter_add(list, "-C", FILTER_NEW_STYLE);
	filter_set_dir(list, "");
	filter_excludes(list, "secrets", false);
	filter_excludes(list, "a.o", false);
	filter_excludes(list, "x/sub", true);
	filter_excludes(list, "/abs/f.bak", false);
	filter_excludes(list, "none", false);
	assert_string_equal(strbuf_text(&explained.text),
			    "hiding file secrets because of pattern <rule from a file read earlier> [per-dir .r]\n"
			    "hiding file a.o because of pattern *.o\n"
			    "showing directory x/sub because of pattern sub/\n"
			    "hiding file /abs/f.bak because of pattern *.bak [global CVS]\n");
	filter_free(list);
	strbuf_free(&explained.text);
	strbuf_free(&explained.files.opened);
}

/* --- a module's own rules --- */

static bool module_hides(const char *excludes, const char *includes, const char *path, bool is_dir)
{
	struct filter_setup setup = { .side = FILTER_BOTH, .daemon_rules = true };
	struct filter_list *list = filter_new(&setup);

	if (includes)
		filter_add_words(list, includes, FILTER_OLD_INCLUDE);
	filter_add_words(list, excludes, FILTER_OLD_EXCLUDE);
	bool hides = filter_hides_path(list, path, is_dir);
	filter_free(list);
	return hides;
}

UNIT_TEST(module_rules_hide_paths_and_what_lies_below)
{
	static const char secret[] = "/secret/ *.key";

	assert_true(module_hides(secret, NULL, "secret", true));
	assert_true(module_hides(secret, NULL, "secret/s.txt", false));
	assert_true(module_hides(secret, NULL, "secret/deep/d.txt", false));
	assert_true(module_hides(secret, NULL, "/pub/k.key", false));
	assert_false(module_hides(secret, NULL, "pub/p.txt", false));
	assert_false(module_hides(secret, NULL, "pub/secret", true));
	assert_true(module_hides("foo/", NULL, "foo", true));
	assert_true(module_hides("foo/", NULL, "a/foo/x", false));
	assert_false(module_hides("foo/bar", NULL, "foo", true));
	assert_true(module_hides("foo/bar", NULL, "foo/bar/y", false));
	assert_true(module_hides("/secret", NULL, "secret/deep/nn", false));
	assert_false(module_hides("+ pub/k.key - *.key /secret /a/", "*.txt", "pub/k.key", false));
	assert_true(module_hides("+ pub/k.key - *.key /secret /a/", "*.txt", "top.key", false));
	assert_true(module_hides("+ pub/k.key - *.key /secret /a/", "*.txt", "a/foo/x", false));
	assert_false(module_hides("/secret/", "/secret/***", "secret/s.txt", false));
	assert_false(module_hides("- *", "*", "", true));
}

UNIT_TEST(module_rules_know_no_sides)
{
	struct filter_setup setup = { .side = FILTER_BOTH, .daemon_rules = true };
	struct filter_list *list = filter_new(&setup);

	filter_add_words(list, "H top.key P new.key -,! */", FILTER_NEW_STYLE);
	assert_true(filter_hides_path(list, "top.key", false));
	assert_true(filter_hides_path(list, "new.key", false));
	/* A negated directory rule stays what it says (4.18 no. 3). */
	assert_true(filter_hides_path(list, "file", false));
	assert_false(filter_hides_path(list, "dir", true));
	filter_free(list);
}

UNIT_TEST(inner_slashes_of_module_rules_mean_the_module_path)
{
	struct filter_setup setup = { .side = FILTER_BOTH, .daemon_rules = true };
	struct filter_list *list = filter_new(&setup);

	filter_add_words(list, "foo/bar /pub/x", FILTER_OLD_EXCLUDE);
	filter_set_base(list, "x/foo");
	assert_true(filter_hides_entry(list, "bar", false));
	filter_set_base(list, "pub");
	assert_true(filter_hides_entry(list, "x", false));
	assert_false(filter_hides_entry(list, "bar", false));
	/* Whole paths count from the module root whatever the base directory. */
	assert_false(filter_hides_path(list, "x", false));
	filter_free(list);
}

/* Whatever rule hides it, no spelling of a name below the module's root brings it back. */
UNIT_TEST(no_spelling_evades_a_modules_rules)
{
	static const char *const rules[] = {
		"x", "x/", "/a/x", "/a/x/", "/a/x/***", "/a/x/**", "*/x", "a/x", "/*/x", "**/x", "/a/**", "+ */ - *",
	};
	static const char *const spellings[] = {
		"a/x/f", "/a/x/f", "./a/x/f", "/./a/x/f", "a/./x/f", "a//x/f", "//a/x/f", "a/b/../x/f", "b/../a/x/./f",
		"../a/x/f", "./../a/x/f", "../../a/./x//f", "a/x/g/../f",
	};

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		for (size_t j = 0; j < sizeof spellings / sizeof *spellings; j++)
			assert_true(module_hides(rules[i], NULL, spellings[j], false));
	assert_true(module_hides("/a/x/", NULL, "./a/x/", false));
	assert_true(module_hides("/a/x/", NULL, "a/x/.", false));
	assert_false(module_hides("/a/x/", NULL, "./a/x", false));
	assert_false(module_hides("/a/x", NULL, "./a/xx", false));
	assert_false(module_hides("*", NULL, "./", true));
	assert_false(module_hides("*", NULL, "a/..", true));
}

UNIT_TEST(names_of_a_scan_are_hidden_like_paths)
{
	static const char *const rules[] = { "x", "/a/x", "*/x", "a/x", "**/x", "/a/*", "a/**", "/**/x" };
	static const char *const bases[] = { "a", "/a", "./a", "a/", "a/.", "/./a/", "a//", "b/../a", "../a" };
	struct filter_setup setup = { .side = FILTER_BOTH, .daemon_rules = true };

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		for (size_t j = 0; j < sizeof bases / sizeof *bases; j++) {
			struct filter_list *list = filter_new(&setup);

			filter_add_words(list, rules[i], FILTER_OLD_EXCLUDE);
			filter_set_base(list, bases[j]);
			assert_true(filter_hides_entry(list, "x", false));
			filter_set_base(list, "./");
			assert_true(filter_hides_entry(list, "a/x", false));
			assert_true(filter_hides_entry(list, "/a/x", false));
			filter_free(list);
		}
}
