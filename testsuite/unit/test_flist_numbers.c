/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which entries a list has, and under which indexes (doc/protocol/02-file-list.md sections 5.4, 6.3 and 7). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testsuite/unit/unit.h"

#include "flist.h"
#include "flist/paths.h"
#include "flist/scan.h"
#include "options.h"
#include "wire/setup.h"

static void make_file(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs("x", file);
	fclose(file);
}

static void make_dir(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
}

/* The trees of the vectors, in a directory of their own that becomes the working directory. */
static int make_trees(void **state)
{
	char *place = strdup("/tmp/huai-flist-XXXXXX");

	if (!mkdtemp(place) || chdir(place))
		return -1;
	*state = place;
	make_dir("dupA"), make_dir("dupA/b"), make_file("dupA/b/x"), make_file("dupA/f"), make_file("dupA/n");
	make_dir("dupB"), make_dir("dupB/b"), make_file("dupB/b/x"), make_file("dupB/b/y"), make_file("dupB/f");
	make_dir("dupB/n"), make_file("dupB/n/z");
	make_dir("a"), make_file("a/f1"), make_dir("a/b"), make_file("a/b/f2"), make_dir("a/b/c"), make_file("a/b/c/f3");
	make_dir("a/b/c/d");
	make_dir("x"), make_dir("x/y"), make_file("x/y/f4");
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

struct run {
	struct options options;
	struct session session;
	struct flist *list;
};

static void start(struct run *run, int protocol, bool incremental)
{
	memset(run, 0, sizeof *run);
	run->options.recursive = 2;
	run->options.implied_dirs = true;
	session_set_protocol(&run->session, protocol);
	run->session.inc_recurse = incremental;
}

static void load(struct run *run, const char *const *arguments)
{
	run->list = flist_new(&run->options, &run->session, NULL, NULL, NULL);
	for (; *arguments; arguments++)
		flist_add_argument(run->list, *arguments, false);
	flist_finish_arguments(run->list);
	while (flist_load_next(run->list) >= 0)
		;
}

/* "NAME" of an index: "(gap X)" for a gap, "-NAME" for a hole, NAME with "/" for a directory, "?" for nothing. */
static void describe(struct run *run, int32_t ndx, struct strbuf *out)
{
	struct flist_pos pos;
	struct strbuf path = STRBUF_INIT;

	strbuf_reset(out);
	if (!flist_locate(run->list, ndx, &pos)) {
		strbuf_add_string(out, "?");
		return;
	}
	flist_pos_path(run->list, &pos, &path);
	if (pos.gap >= 0)
		strbuf_addf(out, "(gap %s)", strbuf_text(&path));
	else
		strbuf_addf(out, "%s%s%s", pos.entry->flags & ENTRY_DUPLICATE ? "-" : "", strbuf_text(&path),
			    entry_is_dir(pos.entry) ? "/" : "");
	strbuf_free(&path);
}

static void assert_indexes(struct run *run, const char *const *expected)
{
	struct strbuf text = STRBUF_INIT;
	int32_t ndx = 0;

	for (; *expected; expected++, ndx++) {
		describe(run, ndx, &text);
		assert_string_equal(strbuf_text(&text), *expected);
	}
	describe(run, ndx, &text);
	assert_string_equal(strbuf_text(&text), "?");
	strbuf_free(&text);
	flist_free(run->list);
}

static const char *const two_trees[] = { "dupA/", "dupB/", NULL };

UNIT_TEST(incremental_numbers_have_gaps_and_keep_holes)
{
	static const char *const expected[] = { "(gap .)", "./", "-./", "f", "-f", "-n", "b/", "-b/", "n/", "(gap b)",
			"b/x", "-b/x",
						"b/y", "(gap n)", "n/z", NULL };
	struct run run;

	start(&run, 32, true);
	load(&run, two_trees);
	assert_indexes(&run, expected);
}

UNIT_TEST(one_list_is_numbered_depth_first)
{
	static const char *const expected[] = { "./", "-./", "f", "-f", "-n", "b/", "-b/", "b/x", "-b/x", "b/y", "n/",
			"n/z", NULL };
	struct run run;

	start(&run, 29, false);
	load(&run, two_trees);
	assert_indexes(&run, expected);
}

UNIT_TEST(old_protocols_number_by_full_path)
{
	static const char *const expected[] = { "./", "-./", "b/", "-b/", "b/x", "-b/x", "b/y", "f", "-f", "-n", "n/",
			"n/z", NULL };
	struct run run;

	start(&run, 28, false);
	load(&run, two_trees);
	assert_indexes(&run, expected);
}

UNIT_TEST(relative_arguments_share_implied_parents)
{
	static const char *const arguments[] = { "a/b", "x/y", "a/f1", NULL };
	static const char *const expected[] = { "a/", "-a/", "a/f1", "a/b/", "a/b/f2", "a/b/c/", "a/b/c/f3", "a/b/c/d/", "x/",
						"x/y/", "x/y/f4", NULL };
	struct run run;
	struct flist_pos pos;

	start(&run, 32, false);
	run.options.relative = true;
	load(&run, arguments);
	assert_true(flist_locate(run.list, 0, &pos));
	assert_int_equal(pos.entry->flags & (ENTRY_TOP_DIR | ENTRY_NO_CONTENT), ENTRY_TOP_DIR | ENTRY_NO_CONTENT);
	assert_true(flist_locate(run.list, 3, &pos));
	assert_int_equal(pos.entry->flags & (ENTRY_TOP_DIR | ENTRY_NO_CONTENT), ENTRY_TOP_DIR);
	assert_indexes(&run, expected);
}

UNIT_TEST(relative_cut_point_and_implied_dot)
{
	static const char *const cut[] = { "a/./b/c", NULL };
	static const char *const cut_expected[] = { "b/", "b/c/", "b/c/f3", "b/c/d/", NULL };
	static const char *const dot[] = { "./a/b", NULL };
	static const char *const dot_expected[] = { "./", "a/", "a/b/", "a/b/f2", "a/b/c/", "a/b/c/f3", "a/b/c/d/", NULL };
	struct run run;

	start(&run, 30, false);
	run.options.relative = true;
	load(&run, cut);
	assert_indexes(&run, cut_expected);
	start(&run, 30, false);
	run.options.relative = true;
	load(&run, dot);
	assert_indexes(&run, dot_expected);
}

UNIT_TEST(old_protocols_can_leave_out_implied_parents)
{
	static const char *const arguments[] = { "a/b/c", NULL };
	static const char *const expected[] = { "a/b/c/", "a/b/c/f3", "a/b/c/d/", NULL };
	struct run run;

	start(&run, 29, false);
	run.options.relative = true;
	run.options.implied_dirs = false;
	load(&run, arguments);
	assert_indexes(&run, expected);
}

UNIT_TEST(dirs_without_recursion_lists_one_level)
{
	static const char *const with_slash[] = { "a/", NULL };
	static const char *const slash_expected[] = { "./", "f1", "b/", NULL };
	static const char *const without[] = { "a/b", "a/f1", NULL };
	static const char *const without_expected[] = { "f1", "b/", NULL };
	struct run run;
	struct flist_pos pos;

	start(&run, 32, false);
	run.options.recursive = 0;
	run.options.dirs = true;
	load(&run, with_slash);
	assert_true(flist_locate(run.list, 2, &pos));
	assert_int_equal(pos.entry->flags & (ENTRY_TOP_DIR | ENTRY_NO_CONTENT), ENTRY_NO_CONTENT);
	assert_indexes(&run, slash_expected);
	start(&run, 32, false);
	run.options.recursive = 0;
	run.options.dirs = true;
	load(&run, without);
	assert_indexes(&run, without_expected);
}

UNIT_TEST(same_directory_twice_is_scanned_once)
{
	static const char *const arguments[] = { "x", "x", NULL };
	static const char *const expected[] = { "x/", "-x/", "x/y/", "x/y/f4", NULL };
	struct run run;

	start(&run, 32, false);
	load(&run, arguments);
	assert_indexes(&run, expected);
}

UNIT_TEST(files_from_names_cannot_climb)
{
	static const char *const names[] = { "/f1", "../../a/f1", "b/../f1", NULL };
	struct run run;
	struct flist_pos pos;
	struct strbuf path = STRBUF_INIT;

	start(&run, 32, false);
	run.options.relative = true;
	run.options.recursive = 0;
	run.options.dirs = true;
	run.list = flist_new(&run.options, &run.session, NULL, NULL, NULL);
	flist_set_files_from(run.list, "a");
	for (int i = 0; names[i]; i++)
		flist_add_argument(run.list, names[i], true);
	flist_finish_arguments(run.list);
	while (flist_load_next(run.list) >= 0)
		;
	assert_true(flist_locate(run.list, 0, &pos));
	flist_pos_path(run.list, &pos, &path);
	assert_string_equal(strbuf_text(&path), "f1");
	assert_true(flist_locate(run.list, 1, &pos));
	assert_true(pos.entry->flags & ENTRY_DUPLICATE);
	assert_false(flist_locate(run.list, 2, &pos));
	strbuf_free(&path);
	flist_free(run.list);
}

UNIT_TEST(every_index_of_a_large_tree_is_found)
{
	struct run run;
	static const char *const arguments[] = { "big/", NULL };
	char name[64];

	make_dir("big");
	for (int d = 0; d < 30; d++) {
		snprintf(name, sizeof name, "big/d%d", d);
		make_dir(name);
		for (int f = 0; f < d % 7; f++) {
			snprintf(name, sizeof name, "big/d%d/f%d", d, f);
			make_file(name);
		}
	}
	for (int incremental = 0; incremental < 2; incremental++) {
		start(&run, 32, incremental);
		load(&run, arguments);
		const struct flist_totals *totals = flist_totals(run.list);
		int32_t total = (int32_t)(totals->files + totals->dirs);
		int32_t found = 0;
		for (int32_t ndx = 0; ndx < total * 2 + 40; ndx++) {
			struct flist_pos pos;
			if (flist_locate(run.list, ndx, &pos) && pos.gap < 0)
				found++;
		}
		assert_int_equal(found, total);
		flist_free(run.list);
	}
}

UNIT_GROUP(make_trees, remove_trees)
