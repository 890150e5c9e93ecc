/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --info and --debug words, what -v makes of them, and a daemon's clamp (doc/protocol/06-command-line.md section 7). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "ui/levels.h"

UNIT_TEST(each_v_adds_its_words)
{
	struct ui_levels levels;

	ui_levels_from_verbose(&levels, 0);
	for (int i = 0; i < INFO_COUNT; i++)
		assert_int_equal(levels.info[i], i == INFO_NONREG);
	for (int i = 0; i < DEBUG_COUNT; i++)
		assert_int_equal(levels.debug[i], 0);
	ui_levels_from_verbose(&levels, 1);
	assert_true(levels.info[INFO_NAME] == 1 && levels.info[INFO_STATS] == 1 && levels.info[INFO_BACKUP] == 0);
	ui_levels_from_verbose(&levels, 2);
	assert_true(levels.info[INFO_NAME] == 2 && levels.info[INFO_MISC] == 2 && levels.info[INFO_SKIP] == 1);
	assert_true(levels.debug[DEBUG_FLIST] == 1 && levels.debug[DEBUG_CMD] == 1 && levels.debug[DEBUG_OWN] == 0);
	ui_levels_from_verbose(&levels, 3);
	assert_true(levels.debug[DEBUG_CONNECT] == 2 && levels.debug[DEBUG_TIME] == 1 && levels.debug[DEBUG_PROTO] == 0);
	ui_levels_from_verbose(&levels, 4);
	assert_true(levels.debug[DEBUG_CMD] == 2 && levels.debug[DEBUG_DEL] == 3 && levels.debug[DEBUG_HASH] == 0);
	ui_levels_from_verbose(&levels, 5);
	assert_true(levels.debug[DEBUG_FLIST] == 4 && levels.debug[DEBUG_HLINK] == 1 && levels.debug[DEBUG_IO] == 0);
	assert_true(levels.info[INFO_PROGRESS] == 0);
	ui_levels_from_verbose(&levels, 2000000000);
	assert_true(levels.debug[DEBUG_FLIST] == 4);
	ui_levels_from_verbose(&levels, -1);
	assert_true(levels.info[INFO_NAME] == 0);
}

UNIT_TEST(words_and_their_levels)
{
	static const struct { const char *words; enum info_word word; int level; } vectors[] = {
		{ "name", INFO_NAME, 1 }, { "NAME2", INFO_NAME, 2 }, { "Name9", INFO_NAME, 4 },
		{ "name99999999999", INFO_NAME, 4 },
		{ "name2,name0", INFO_NAME, 0 }, { ",,name3,,", INFO_NAME, 3 }, { "all2", INFO_SYMSAFE, 2 },
		{ "all", INFO_DEL, 1 },
		{ "all9", INFO_DEL, 4 }, { "all,none", INFO_NAME, 0 }, { "none,name", INFO_NAME, 1 },
		{ "none", INFO_NONREG, 0 },
		{ "all0,stats1", INFO_STATS, 1 },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		struct ui_levels levels;
		char *bad = NULL;

		ui_levels_from_verbose(&levels, 0);
		assert_true(ui_levels_parse_info(&levels, vectors[i].words, &bad));
		assert_null(bad);
		if (levels.info[vectors[i].word] != vectors[i].level)
			fail_msg("%s: %d", vectors[i].words, levels.info[vectors[i].word]);
	}
}

UNIT_TEST(unknown_words_are_named_and_the_rest_applied)
{
	static const char *const wrong[] = { "foo", "2name", "name2x", "nam", "names", "name-1", "1", "help", "all2x" };
	struct ui_levels levels;
	char *bad = NULL;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		bad = NULL;
		assert_false(ui_levels_parse_info(&levels, wrong[i], &bad));
		assert_string_equal(bad, wrong[i]);
		free(bad);
	}
	bad = NULL;
	ui_levels_from_verbose(&levels, 0);
	assert_false(ui_levels_parse_debug(&levels, "flist2,foo3,bar,own", &bad));
	assert_string_equal(bad, "foo3");
	assert_true(levels.debug[DEBUG_FLIST] == 2 && levels.debug[DEBUG_OWN] == 1);
	free(bad);
}

UNIT_TEST(a_daemon_clamps)
{
	struct ui_levels levels;
	char *bad = NULL;

	assert_true(ui_levels_parse_info(&levels, "all4", &bad) && ui_levels_parse_debug(&levels, "all4", &bad));
	ui_levels_clamp(&levels, 1);
	assert_true(levels.info[INFO_NAME] == 1 && levels.info[INFO_BACKUP] == 0 && levels.info[INFO_PROGRESS] == 0);
	assert_true(levels.debug[DEBUG_FLIST] == 0);
	assert_true(ui_levels_parse_info(&levels, "all4", &bad));
	ui_levels_clamp(&levels, 0);
	for (int i = 0; i < INFO_COUNT; i++)
		assert_int_equal(levels.info[i], i == INFO_NONREG);
	assert_true(ui_levels_parse_info(&levels, "all4", &bad));
	ui_levels_clamp(&levels, 6);
	assert_int_equal(levels.info[INFO_PROGRESS], 4);
	assert_true(ui_levels_parse_info(&levels, "none", &bad));
	ui_levels_clamp(&levels, 3);
	assert_int_equal(levels.info[INFO_NAME], 0);
}

UNIT_TEST(help_lists_every_word_and_verbosity)
{
	struct strbuf text = STRBUF_INIT;

	assert_true(ui_levels_asks_for_help("name,help") && ui_levels_asks_for_help("HELP2"));
	assert_false(ui_levels_asks_for_help("helpme") || ui_levels_asks_for_help("hel") || ui_levels_asks_for_help(""));
	ui_levels_add_info_help(&text);
	assert_non_null(strstr(text.data, "\nSYMSAFE    "));
	assert_non_null(strstr(text.data, "\n0) NONREG\n1) COPY,DEL,FLIST,MISC,NAME,STATS,SYMSAFE\n"
					  "2) BACKUP,MISC2,MOUNT,NAME2,REMOVE,SKIP\n"));
	strbuf_reset(&text);
	ui_levels_add_debug_help(&text);
	assert_non_null(strstr(text.data, "\n2) BIND,CONNECT,CMD,DEL,DELTASUM,DUP,FILTER,FLIST,ICONV\n"
					  "3) ACL,BACKUP,CONNECT2,DEL2,DELTASUM2,EXIT,FILTER2,FLIST2,FUZZY,"
					  "GENR,OWN,RECV,SEND,TIME\n"
					  "4) CMD2,DEL3,DELTASUM3,EXIT2,FLIST3,ICONV2,OWN2,PROTO,TIME2\n"
					  "5) CHDIR,DELTASUM4,FLIST4,FUZZY2,HASH,HLINK\n"));
	strbuf_free(&text);
}
