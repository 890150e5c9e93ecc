/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The frame of a program of unit tests: tests that register themselves, and main(). Included by one file of each program.
 *
 *	UNIT_TEST(sizes_are_rounded) { ... }
 *	UNIT_TEST_WITH(set_up, tear_down, a_rule_counts) { ... }
 *	UNIT_GROUP(make_tree, remove_tree)
 *
 * A test runs between set_up() and tear_down(), and finds in *state what set_up() has left there. The functions of UNIT_GROUP()
 * run once, before the first test and after the last one. Either function of a pair may be NULL. Tests run in the order of the
 * file. */
#ifndef TESTSUITE_UNIT_H
#define TESTSUITE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { UNIT_MOST = 100 };

static struct unit_program {
	struct CMUnitTest tests[UNIT_MOST];
	int lines[UNIT_MOST]; /* where each test stands: constructors run in no given order */
	size_t count;
	CMFixtureFunction set_up, tear_down;
} unit_program;

static void unit_add(int line, struct CMUnitTest test)
{
	size_t at = unit_program.count;

	assert_true(unit_program.count < UNIT_MOST);
	for (; at > 0 && unit_program.lines[at - 1] > line; at--) {
		unit_program.tests[at] = unit_program.tests[at - 1];
		unit_program.lines[at] = unit_program.lines[at - 1];
	}
	unit_program.tests[at] = test;
	unit_program.lines[at] = line;
	unit_program.count++;
}

#define UNIT_TEST_WITH(set_up, tear_down, name) \
	static void test_##name(void **state); \
	__attribute__((constructor)) static void add_test_##name(void) \
	{ \
		unit_add(__LINE__, (struct CMUnitTest)cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)); \
	} \
	static void test_##name(void **state __attribute__((unused)))

#define UNIT_TEST(name) UNIT_TEST_WITH(NULL, NULL, name)

#define UNIT_GROUP(group_set_up, group_tear_down) \
	__attribute__((constructor)) static void add_group(void) \
	{ \
		unit_program.set_up = group_set_up; \
		unit_program.tear_down = group_tear_down; \
	}

int main(void)
{
	return _cmocka_run_group_tests("tests", unit_program.tests, unit_program.count, unit_program.set_up,
				       unit_program.tear_down);
}

#endif
