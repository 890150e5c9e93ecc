/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a module lies, and what a client's path words mean inside it (doc/protocol/07-daemon.md sections 5.12 and 5.18). */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testsuite/unit/unit.h"

#include "daemon/session.h"
#include "daemon/talk.h"
#include "filter/add.h"
#include "lib/alloc.h"
#include "loadparm/place.h"
#include "server.h"

static void check_place(const char *path, bool chroot, const char *outer, const char *inner, const char *whole)
{
	struct module_place place;

	place_split(&place, path, chroot);
	assert_string_equal(place.outer, outer);
	assert_string_equal(place.inner, inner);
	assert_string_equal(place.path, whole);
	place_free(&place);
}

static void check_prefix(const char *path, bool chroot, const char *daemon_root, const char *prefix, const char *expected)
{
	struct module_place place;
	char *found;

	place_split(&place, path, chroot);
	found = place_prefix_path(&place, daemon_root, prefix);
	assert_string_equal(found, expected);
	free(found);
	place_free(&place);
}

UNIT_TEST(a_prefix_is_seen_from_the_root_that_the_dot_names)
{
	check_prefix("/storage/./mirror-attrs/foo", true, "", "/mirrors/foo", "/storage/mirrors/foo");
	check_prefix("/storage/./mirror-attrs/foo", false, "", "/mirrors/foo", "/mirrors/foo");
	check_prefix("/storage/mirror-attrs/foo", true, "", "/mirrors/foo", "/mirrors/foo");
	check_prefix("/storage/./mirror-attrs/foo", true, "/jail", "/mirrors/foo", "/jail/storage/mirrors/foo");
	check_prefix("/storage/mirror-attrs/foo", true, "/jail/", "/mirrors/foo", "/jail/mirrors/foo");
	check_prefix("/./mirror-attrs/foo", true, "", "/mirrors/foo", "/mirrors/foo");
	check_prefix("/storage/./attrs", true, "", "/../../etc", "/storage/etc");
	check_prefix("/a/./b/./c", true, "", "/m", "/a/m");
}

UNIT_TEST(the_dot_divides_a_path_only_under_chroot)
{
	check_place("/storage/./mirror-attrs/foo", true, "/storage", "mirror-attrs/foo", "/storage/mirror-attrs/foo");
	check_place("/storage/./mirror-attrs/foo", false, "/storage/mirror-attrs/foo", "", "/storage/mirror-attrs/foo");
	check_place("/storage/mirror", true, "/storage/mirror", "", "/storage/mirror");
	check_place("/a/./b/./c", true, "/a", "b/c", "/a/b/c");
	check_place("/./srv", true, "/", "srv", "/srv");
	check_place("/a/x/../b//c/", true, "/a/b/c", "", "/a/b/c");
	check_place("/a/./b/../../../etc", true, "/a", "etc", "/etc");
	check_place("/", true, "/", "", "/");
	check_place("../relative", false, "../relative", "", "../relative");
}

static void check_split(const char *word, const char *expected)
{
	struct args pieces = { NULL, 0 };
	struct strbuf got = STRBUF_INIT;

	argument_split(&pieces, word, "mod", NULL);
	for (size_t i = 0; i < pieces.count; i++)
		strbuf_addf(&got, "%s|", pieces.items[i]);
	assert_string_equal(strbuf_text(&got), expected);
	strbuf_free(&got);
	args_free(&pieces);
}

static void check_word(const char *word, const char *expected)
{
	char *piece = xasprintf("%s%s", expected, *expected ? "|" : "");

	check_split(word, piece);
	free(piece);
}

UNIT_TEST(path_words_become_relative_to_the_module)
{
	check_word("mod/f", "f");
	check_word("mod", "");
	check_word("mod/", ".");
	check_word("f", "f");
	check_word("modx/f", "x/f");
	check_word("other/f", "other/f");
	check_word("mod/../../etc", "etc");
	check_word("mod/../..", ".");
	check_word("/../../etc/passwd", "etc/passwd");
	check_word("mod//abs", "abs");
	check_word("mod/sub/../f", "f");
	check_word("mod/sub/./../f", "f");
	check_word("mod/./sub", "./sub");
	check_word("mod/a/./b/", "a/./b/");
	check_word("mod/sub/", "sub/");
	check_word("mod/sub/.", "sub/.");
	check_word("mod/sub/inner/..", "sub/");
	check_word("mod/sub/..", ".");
	check_word("..", ".");
	check_word("mod/...", "...");
	check_word("mod/..x/.y", "..x/.y");
}

UNIT_TEST(words_are_split_at_the_modules_name)
{
	check_split("mod/f mod/sub", "f|sub|");
	check_split("mod/f ok/sub", "f ok/sub|");
	check_split("mod/a b mod/c d", "a b|c d|");
	check_split("mod", "");
	check_split("mod/f mod/", "f|.|");
	check_split("mod/f[ ]mod/x", "f[ ]mod/x|");
}

/* --- wildcards --- */

struct fixture {
	char directory[64];
	struct daemon_session session;
};

static void make(const struct fixture *fixture, const char *name)
{
	char *path = xasprintf("%s/%s", fixture->directory, name);
	size_t length = strlen(path);

	if (path[length - 1] == '/')
		assert_int_equal(mkdir(path, 0755), 0);
	else
		close(open(path, O_CREAT | O_WRONLY, 0644));
	free(path);
}

static int set_up(void **state)
{
	static const char *const names[] = {
		"d1/", "d1/b", "d1/c", "d2/", "d2/b", "dfile", "star*", "starx", ".dot", "b[1]", "b1", "secret/", "secret/x",
	};
	static const struct filter_setup setup = { .side = FILTER_SENDER, .daemon_rules = true };
	struct fixture *fixture = xcalloc(1, sizeof *fixture);

	strcpy(fixture->directory, "/tmp/test_daemon.XXXXXX");
	if (!mkdtemp(fixture->directory))
		return -1;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		make(fixture, names[i]);
	fixture->session.hidden = filter_new(&setup);
	filter_add(fixture->session.hidden, "- /secret/", FILTER_NEW_STYLE);
	*state = fixture;
	return fs_root_open(&fixture->session.source.attr_root, fixture->directory);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char *command = xasprintf("rm -rf '%s'", fixture->directory);
	int failed = system(command);

	fs_root_close(&fixture->session.source.attr_root);
	filter_free(fixture->session.hidden);
	free(command);
	free(fixture);
	return failed;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_expansion(struct fixture *fixture, const char *pattern, const char *expected)
{
	struct args found = { NULL, 0 };
	struct strbuf got = STRBUF_INIT;
	struct expansion_cost cost = { .budget = NULL };

	operand_expand(&fixture->session.source, fixture->session.hidden, pattern, &cost, &found);
	qsort(found.items, found.count, sizeof *found.items, compare);
	for (size_t i = 0; i < found.count; i++)
		strbuf_addf(&got, "%s|", found.items[i]);
	assert_string_equal(strbuf_text(&got), expected);
	strbuf_free(&got);
	args_free(&found);
}

UNIT_TEST_WITH(set_up, tear_down, wildcards_match_what_is_there)
{
	check_expansion(*state, "star*", "star*|starx|");
	check_expansion(*state, "star\\*", "star*|");
	check_expansion(*state, "b[1]", "b1|");
	check_expansion(*state, "b\\[1]", "b[1]|");
	check_expansion(*state, ".d*", ".dot|");
	check_expansion(*state, "d?", "d1|d2|");
	check_expansion(*state, "d*", "d1|d2|dfile|");
	check_expansion(*state, "*/b", "d1/b|d2/b|");
	check_expansion(*state, "d*/c", "d1/c|d2/c|");
	check_expansion(*state, "d*/[bc]", "d1/b|d1/c|d2/b|");
	check_expansion(*state, "d*/", "d1/|d2/|");
	check_expansion(*state, "./d1/*", "./d1/b|./d1/c|");
}

UNIT_TEST_WITH(set_up, tear_down, what_matches_nothing_stays_as_it_is)
{
	check_expansion(*state, "nope*", "nope*|");
	check_expansion(*state, "nope\\*", "nope\\*|");
	check_expansion(*state, "no\\pe", "no\\pe|");
}

UNIT_TEST_WITH(set_up, tear_down, hidden_names_do_not_match)
{
	check_expansion(*state, "sec*", "sec*|");
	check_expansion(*state, "secret/*", "secret/*|");
	check_expansion(*state, "*/x", "d1/x|d2/x|");
}
