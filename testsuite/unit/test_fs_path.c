/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Clean-up of peer paths, and which symlink targets --safe-links calls unsafe. */
#include "fs/root.h"

#include "fs_tree.h"

static const struct {
	const char *path, *clean;
} paths[] = {
	{ "", "." },
	{ ".", "." },
	{ "/", "./" },
	{ "//", "./" },
	{ "./", "./" },
	{ "/.", "." },
	{ "a", "a" },
	{ "/a", "a" },
	{ "//etc", "etc" },
	{ "/./../etc", "etc" },
	{ "..//..//etc", "etc" },
	{ "../../../etc/passwd", "etc/passwd" },
	{ "a//b///c", "a/b/c" },
	{ "./a/./b", "a/b" },
	{ "a/", "a/" },
	{ "a//", "a/" },
	{ "a/.", "a/" },
	{ "a/./", "a/" },
	{ "a/b/..", "a/" },
	{ "a/b/../", "a/" },
	{ "a/b/../c", "a/c" },
	{ "a/..", "./" },
	{ "..", "./" },
	{ "../", "./" },
	{ "a/../../b", "b" },
	{ "a/../../../b/../c", "c" },
	{ "..a/b..", "..a/b.." },
	{ ".../x", ".../x" },
	{ ".hidden", ".hidden" },
	{ "./a/../b//c/.", "b/c/" },
};

/* S-079 */
UNIT_TEST(clean_path)
{
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		size_t size = strlen(paths[i].path) + 2;
		char *out = malloc(size);
		fs_clean_path(out, paths[i].path);
		if (strcmp(out, paths[i].clean))
			fail_msg("\"%s\" became \"%s\", expected \"%s\"", paths[i].path, out, paths[i].clean);
		free(out);
	}
}

/* A cleaned path needs no more cleaning, has no "..", and its text fits. */
UNIT_TEST(clean_path_of_every_short_text)
{
	static const char letters[] = "/.a";
	char path[9], once[16], twice[16];

	for (int length = 0, count = 1; length <= 8; length++, count *= 3) {
		for (int n = 0; n < count; n++) {
			for (int i = 0, rest = n; i < length; i++, rest /= 3)
				path[i] = letters[rest % 3];
			path[length] = '\0';
			memset(once, 'z', sizeof once);
			fs_clean_path(once, path);
			assert_true(strlen(once) <= (size_t)length + 1);
			assert_true(once[0] != '/' && !strstr(once, "//") && !strstr(once, "/../") && strncmp(once, "../", 3));
			assert_string_not_equal(once, "..");
			fs_clean_path(twice, once);
			assert_string_equal(once, twice);
		}
	}
}

/* Unsafe with the link at depth 0, 1 and 2; stock's answers. */
static const struct {
	const char *target;
	bool unsafe[3];
} targets[] = {
	{ "", { true, true, true } },
	{ "/etc/passwd", { true, true, true } },
	{ "a/b", { false, false, false } },
	{ ".", { false, false, false } },
	{ "./x", { false, false, false } },
	{ "./.", { false, false, false } },
	{ ".//x", { false, false, false } },
	{ "..a", { false, false, false } },
	{ "a/..b", { false, false, false } },
	{ "a/.", { false, false, false } },
	{ "..", { true, false, false } },
	{ "../", { true, false, false } },
	{ "../.", { true, false, false } },
	{ "../x", { true, false, false } },
	{ "..//x", { true, false, false } },
	{ "../../x", { true, true, false } },
	{ "..//../x", { true, true, false } },
	{ "../../", { true, true, false } },
	{ ".././x", { true, false, false } },
	{ "../..", { true, true, true } },
	{ "../../../x", { true, true, true } },
	{ "../../..", { true, true, true } },
	{ "a/../../b", { true, true, true } },
	{ "a/../b", { true, true, true } },
	{ "a//../b", { true, true, true } },
	{ "x/..", { true, true, true } },
	{ "x/../", { true, true, true } },
	{ "..x/../y", { true, true, true } },
	{ "../a/..", { true, true, true } },
	{ "./..", { true, true, true } },
	{ "./../x", { true, true, true } },
	{ "./../../x", { true, true, true } },
	{ ".././../x", { true, true, true } },
	{ "...//..", { true, true, true } },
};

/* S-087 */
UNIT_TEST(unsafe_symlinks)
{
	static const char *const links[] = { "l", "d/l", "d/e/l" };

	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
		for (int depth = 0; depth < 3; depth++)
			if (fs_symlink_is_unsafe(targets[i].target, links[depth]) != targets[i].unsafe[depth])
				fail_msg("%s -> \"%s\"", links[depth], targets[i].target);
}

UNIT_TEST(depth_counts_real_directories_only)
{
	assert_true(fs_symlink_is_unsafe("../x", "./l"));
	assert_true(fs_symlink_is_unsafe("../x", "//l"));
	assert_false(fs_symlink_is_unsafe("../x", ".//d//l"));
	assert_true(fs_symlink_is_unsafe("../x", "d/../l"));
}
