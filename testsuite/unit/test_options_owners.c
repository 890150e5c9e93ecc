/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules of --usermap and --groupmap. */
#include "options/owners.h"

#include <stdlib.h>

#include "expect_die.h"
#include "lib/alloc.h"

/* A machine whose only users are ann (101) and bob (102), and whose only group is crew (201). */
static char *convert(void *context, const char *kind, const char *text)
{
	(void)context;
	if (!strcmp(kind, "usr") && !strcmp(text, "ann"))
		return xstrdup("101");
	if (!strcmp(kind, "usr") && !strcmp(text, "bob"))
		return xstrdup("102");
	return !strcmp(kind, "grp") && !strcmp(text, "crew") ? xstrdup("201") : NULL;
}

enum { NONE = -1 };

static void expect(bool groups, const char *text, uint32_t id, const char *name, int64_t wanted)
{
	struct fs_ids *ids = fs_ids_new(convert, NULL);
	struct id_rules *rules = id_rules_new(groups, text, ids);
	uint32_t mapped = 0;
	bool found = id_rules_apply(rules, id, name, &mapped);

	if (found != (wanted != NONE) || (found && mapped != (uint32_t)wanted))
		fail_msg("\"%s\" makes %u \"%s\" %s %u", text, id, name, found ? "to" : "to nothing, not", mapped);
	id_rules_free(rules);
	fs_ids_free(ids);
}

UNIT_TEST(ids_and_ranges_match_numbers)
{
	expect(false, "5:6", 5, "five", 6);
	expect(false, "5:6", 50, "", NONE);
	expect(false, "005:006", 5, "", 6);
	expect(false, "5-7:1", 5, "", 1);
	expect(false, "5-7:1", 7, "", 1);
	expect(false, "5-7:1", 8, "", NONE);
	expect(false, "7-5:1", 6, "", NONE);
	expect(false, "0-4294967295:4294967295", 4294967295, "", 4294967295);
}

UNIT_TEST(names_match_names)
{
	expect(false, "carl:ann", 9, "carl", 101);
	expect(false, "carl:ann", 9, "Carl", NONE);
	expect(false, "c*:ann", 9, "carl", 101);
	expect(false, "[a-c]?rl:bob", 9, "carl", 102);
	expect(false, "*:ann", 9, "", 101);
	expect(false, "?*:ann", 9, "", NONE);
	expect(false, ":ann", 9, "", 101);
	expect(false, ":ann", 9, "carl", NONE);
	expect(false, "-5:ann", 5, "-5", 101);
	expect(true, "staff:crew", 20, "staff", 201);
}

UNIT_TEST(the_first_rule_counts)
{
	expect(false, "9:ann,carl:bob,*:3", 9, "carl", 101);
	expect(false, "8:ann,carl:bob,*:3", 9, "carl", 102);
	expect(false, "8:ann,dora:bob,*:3", 9, "carl", 3);
	expect(false, "8:ann,dora:bob", 9, "carl", NONE);
	/* One whose target is unknown is none. */
	expect(false, "9:nobody,9:ann", 9, "carl", 101);
	expect(true, "9:ann,9:crew", 9, "carl", 201);
	expect(false, "9:1:2,9:5x,9:+5", 9, "carl", NONE);
}

UNIT_TEST(no_option_maps_nothing)
{
	assert_null(id_rules_new(false, NULL, NULL));
	uint32_t mapped;

	assert_false(id_rules_apply(NULL, 5, "five", &mapped));
	id_rules_free(NULL);
}

static void refuse(bool groups, const char *text, const char *words)
{
	expect_die(EXIT_SYNTAX, words, id_rules_new(groups, text, NULL));
}

UNIT_TEST(what_is_no_list_of_pairs_ends_the_process)
{
	refuse(false, "", "No colon found in --usermap: ");
	refuse(true, "5:6,7", "No colon found in --groupmap: 7");
	refuse(true, ",5:6", "No colon found in --groupmap: ");
	refuse(false, "5:", "No name found after colon --usermap: 5:");
	refuse(false, "5-:6", "Invalid number in --usermap: 5-");
	refuse(false, "5-6-7:8", "Invalid number in --usermap: 5-6-7");
	refuse(false, "5x:8", "Invalid number in --usermap: 5x");
	refuse(true, "5*:8", "Invalid number in --groupmap: 5*");
	refuse(true, "4294967296:8", "Invalid ID number: 4294967296");
	refuse(true, "1-99999999999999999999:8", "Invalid ID number: 99999999999999999999");
	refuse(true, "8:4294967296", "Invalid ID number: 4294967296");
}
