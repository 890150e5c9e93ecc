/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Distances of names, as stock rsync prints them with --debug=fuzzy2, and the suffixes behind them. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "testsuite/unit/unit.h"

#include "dest/basis.h"

static void check(const char *name, const char *other, unsigned whole, unsigned part)
{
	uint32_t distance = name_distance(name, other, NAME_DISTANCE_LIMIT);
	char got[64], expected[64];

	snprintf(got, sizeof got, "%s %s %u.%05u", name, other, distance / NAME_DISTANCE_UNIT,
		 distance % NAME_DISTANCE_UNIT);
	snprintf(expected, sizeof expected, "%s %s %u.%05u", name, other, whole, part);
	assert_string_equal(got, expected);
}

UNIT_TEST(distances)
{
	check("same", "same", 0, 0);
	check("file-1.1.tar.gz", "file-1.2.tar.gz", 1, 1);
	check("file-1.22.tar.gz", "file-1.2.tar.gz", 1, 50);
	check("file-1.2.tar.gz~", "file-1.2.tar.gz", 1, 126);
	check("file-1.2.tar.bz2", "file-1.2.tar.gz", 22, 605);
	check("README", "file-1.2.tar.gz", 45, 2922);
	check("README", "renamed", 7, 188);
	check("moved-long-other-name", "only.bin", 58, 4168);
	/* Of two ways the one is taken that is better before bytes count. */
	check(".old", "a9~.so", 36, 2827);
	check(".9~..deb..gz", "oldgz.9~tar", 62, 3370);
	/* A suffix that the other name has not, with bytes above 127. */
	check("soa", ".lib.-1.21.\xc3\xa9.bak", 45, 64705);
}

UNIT_TEST(lengths_too_far_apart)
{
	assert_int_equal(name_distance("a", "aaa", NAME_DISTANCE_UNIT), NAME_DISTANCE_FAR);
	assert_int_not_equal(name_distance("a", "aaa", 2 * NAME_DISTANCE_UNIT), NAME_DISTANCE_FAR);
	assert_int_equal(name_distance("aaa", "a", 2 * NAME_DISTANCE_UNIT - 1), NAME_DISTANCE_FAR);
}

UNIT_TEST(suffixes)
{
	static const char *const names[][2] = {
		{ "a.gz", ".gz" }, { "a.tar.gz", ".gz" }, { "a", "" }, { ".bashrc", "" }, { "...a", "" }, { ".a.b", ".b" },
		{ "a.gz~", ".gz" }, { "a.gz.bak", ".gz" }, { "a.gz.old", ".gz" }, { "a.gz.orig", ".gz" }, { "a.gz.~7~", ".gz" },
		{ "a.bak", "" }, { "a.so.1", ".so" }, { "a.so.1.2", ".so" }, { "a.1", ".1" }, { "a.1.2", ".1" },
		{ "a.txt.orig.1", ".orig" }, { "a.orig.orig", ".orig" }, { "a.~x~", ".~x" }, { "a.", "." }, { "", "" },
		{ "~", "" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t length;
		const char *suffix = name_suffix(names[i][0], &length);

		if (length != strlen(names[i][1]) || memcmp(suffix, names[i][1], length) != 0)
			fail_msg("%s has %.*s, not %s", names[i][0], (int)length, suffix, names[i][1]);
	}
}
