/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The --chmod language against the vectors of doc/protocol/06-command-line.md section 11.4, and changing modes without
 * following links.
 */
#include "fs/chmod.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "fs/file.h"
#include "fs/root.h"
#include "fs_tree.h"

#define FILES { 0644, 0755, 0640, 04755, 0400 }
#define DIRS { 0755, 02750, 01777, 0700 }

static const mode_t files[5] = FILES, dirs[4] = DIRS;

struct vector {
	const char *text;
	mode_t files[5], dirs[4];
};

/* umask 022 */
static const struct vector vectors[] = {
	{ "u+x", { 0744, 0755, 0740, 04755, 0500 }, DIRS },
	{ "+x", { 0755, 0755, 0751, 04755, 0511 }, { 0755, 02751, 01777, 0711 } },
	{ "+w", { 0644, 0755, 0640, 04755, 0600 }, DIRS },
	{ "-w", { 0444, 0555, 0440, 04555, 0400 }, { 0555, 02550, 01577, 0500 } },
	{ "a-w", { 0444, 0555, 0440, 04555, 0400 }, { 0555, 02550, 01555, 0500 } },
	{ "go=", { 0600, 0700, 0600, 04700, 0400 }, { 0700, 02700, 01700, 0700 } },
	{ "u=rwx,g=rx,o=", { 0750, 0750, 0750, 04750, 0750 }, { 0750, 02750, 01750, 0750 } },
	{ "=r", { 0444, 0444, 0444, 04444, 0444 }, { 0444, 02444, 01444, 0444 } },
	{ "=", { 0, 0, 0, 04000, 0 }, { 0, 02000, 01000, 0 } },
	{ "D755,F644", { 0644, 0644, 0644, 0644, 0644 }, { 0755, 0755, 0755, 0755 } },
	{ "D2775,F664", { 0664, 0664, 0664, 0664, 0664 }, { 02775, 02775, 02775, 02775 } },
	{ "a+s", { 06644, 06755, 06640, 06755, 06400 }, { 06755, 06750, 07777, 06700 } },
	{ "ug+s", { 06644, 06755, 06640, 06755, 06400 }, { 06755, 06750, 07777, 06700 } },
	{ "+s", { 04644, 04755, 04640, 04755, 04400 }, { 04755, 06750, 05777, 04700 } },
	{ "o+s", { 04644, 04755, 04640, 04755, 04400 }, { 04755, 06750, 05777, 04700 } },
	{ "g-s", FILES, { 0755, 0750, 01777, 0700 } },
	{ "g=u", { 0664, 0775, 0660, 04775, 0440 }, { 0775, 0770, 01777, 0770 } },
	{ "o=g", { 0644, 0755, 0644, 04755, 0400 }, { 0755, 02755, 0777, 0700 } },
	{ "go=u", { 0666, 0777, 0666, 04777, 0444 }, { 0777, 0777, 0777, 0777 } },
	{ "u=g", { 0444, 0555, 0440, 0555, 0 }, { 0555, 02550, 01777, 0 } },
	{ "g+u", { 0664, 0775, 0660, 04775, 0440 }, { 0775, 02770, 01777, 0770 } },
	{ "+u", { 0644, 0755, 0644, 04755, 0444 }, { 0755, 02755, 01777, 0755 } },
	{ "=u", { 0644, 0755, 0644, 0755, 0444 }, { 0755, 0755, 0755, 0755 } },
	{ "-u", { 0, 0, 0, 04000, 0 }, { 0, 02000, 01022, 0 } },
	{ "+X", { 0644, 0755, 0640, 04755, 0400 }, { 0755, 02751, 01777, 0711 } },
	{ "go+X", { 0644, 0755, 0640, 04755, 0400 }, { 0755, 02751, 01777, 0711 } },
	{ "u=rwX,go=rX", { 0644, 0755, 0644, 04755, 0644 }, { 0755, 02755, 01755, 0755 } },
	{ "Dgo+x,Fgo-x", { 0644, 0744, 0640, 04744, 0400 }, { 0755, 02751, 01777, 0711 } },
	{ "+t", { 01644, 01755, 01640, 05755, 01400 }, { 01755, 03750, 01777, 01700 } },
	{ "g=s", { 02604, 02705, 02600, 06705, 02400 }, { 02705, 02700, 03707, 02700 } },
	{ "u=rwxs", { 04744, 04755, 04740, 04755, 04700 }, { 04755, 06750, 05777, 04700 } },
	{ "a+rwxXst", { 07666, 07777, 07666, 07777, 07666 }, { 07777, 07777, 07777, 07777 } },
	{ "644,D+x", { 0644, 0644, 0644, 0644, 0644 }, { 0755, 0755, 0755, 0755 } },
	{ "u+", FILES, DIRS },
	{ "u-", FILES, DIRS },
	{ "+", FILES, DIRS },
	{ "-", FILES, DIRS },
	/* further answers of stock: what stands beside s, t and X */
	{ "+tsx", { 04755, 04755, 04751, 04755, 04511 }, { 04755, 06751, 05777, 04711 } },
	{ "+st", { 05644, 05755, 05640, 05755, 05400 }, { 05755, 07750, 05777, 05700 } },
	{ "u=tw", { 01244, 01255, 01240, 01255, 01200 }, { 01255, 03250, 01277, 01200 } },
	{ "a=Xt", { 01000, 01111, 01000, 01111, 01000 }, { 01111, 01111, 01111, 01111 } },
	{ "u-X", { 0644, 0655, 0640, 04655, 0400 }, { 0655, 02650, 01677, 0600 } },
	{ "u=xX", { 0044, 0155, 0040, 04155, 0 }, { 0155, 02150, 01177, 0100 } },
};

static const struct vector vectors_077[] = {
	{ "+x", { 0744, 0755, 0740, 04755, 0500 }, DIRS },
	{ "=r", { 0400, 0400, 0400, 04400, 0400 }, { 0400, 02400, 01400, 0400 } },
	{ "=u", { 0600, 0700, 0600, 0700, 0400 }, { 0700, 0700, 0700, 0700 } },
	{ "-u", { 0044, 0055, 0040, 04055, 0 }, { 0055, 02050, 01077, 0 } },
};

static void expect(const struct chmod_rules *rules, const char *text, mode_t mode, mode_t expected)
{
	mode_t got = chmod_apply(rules, mode);

	if (got != ((mode & S_IFMT) | expected))
		fail_msg("%s on %o: %o, expected %o", text, mode, got, expected);
}

static void check_vectors(const struct vector *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct chmod_rules *rules = NULL;
		if (!chmod_parse(&rules, list[i].text))
			fail_msg("\"%s\" was refused", list[i].text);
		for (int k = 0; k < 5; k++)
			expect(rules, list[i].text, S_IFREG | files[k], list[i].files[k]);
		for (int k = 0; k < 4; k++)
			expect(rules, list[i].text, S_IFDIR | dirs[k], list[i].dirs[k]);
		chmod_free(rules);
	}
}

UNIT_TEST(vectors)
{
	check_vectors(vectors, sizeof vectors / sizeof *vectors);
}

UNIT_TEST(vectors_under_a_strict_umask)
{
	mode_t before = umask(077);

	assert_int_equal(fs_umask(), 077);
	check_vectors(vectors_077, sizeof vectors_077 / sizeof *vectors_077);
	umask(before);
}

UNIT_TEST(invalid_lists_are_refused)
{
	static const char *const invalid[] = { "", "X", "D", "F", "u", "ux", "DF+x", "u+x,", ",u+x", "u+x,,g+x", "u+z", "u+x+w",
		"u=x=w", "go=u-w", "u+xg", "u+rg", "u+gr", "g+ug", "8", "10000", "644x", "u644", "a644", "D644F755", "+4",
		"u+x\n", " u+x", "77777777777777777777", "FD+x" };

	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		struct chmod_rules *rules = NULL;
		if (chmod_parse(&rules, invalid[i]))
			fail_msg("\"%s\" was accepted", invalid[i]);
		assert_null(rules);
	}
}

UNIT_TEST(lists_concatenate_and_survive_an_error)
{
	struct chmod_rules *rules = NULL;

	assert_true(chmod_parse(&rules, "u=rwx"));
	assert_true(chmod_parse(&rules, "go=r"));
	assert_false(chmod_parse(&rules, "a=,z"));
	assert_int_equal(chmod_apply(rules, S_IFREG | 0600), S_IFREG | 0744);
	assert_int_equal(chmod_apply(rules, S_IFLNK | 0777), S_IFLNK | 0777);
	assert_int_equal(chmod_apply(rules, S_IFIFO | 0600), S_IFIFO | 0744);
	assert_int_equal(chmod_apply(NULL, S_IFREG | 0600), S_IFREG | 0600);
	chmod_free(rules);
}

static void remove_objects(void)
{
	unlink("victim");
	unlink("link");
	unlink("fifo");
	rmdir("dir");
}

/* S-084 */
UNIT_TEST(chmod_never_follows)
{
	struct stat st;

	remove_objects();
	tree_file("victim", "x");
	chmod("victim", 0644);
	tree_link("victim", "link");
	assert_int_equal(fs_chmod_at(AT_FDCWD, "link", 0777), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(stat("victim", &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(fs_chmod_at(AT_FDCWD, "fifo", 0640), 0);
	assert_int_equal(stat("fifo", &st), 0);
	assert_int_equal(st.st_mode, S_IFIFO | 0640);
	tree_dir("dir");
	assert_int_equal(fs_chmod_at(AT_FDCWD, "dir", 02711), 0);
	assert_int_equal(stat("dir", &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 02711);
	assert_int_equal(fs_chmod_at(AT_FDCWD, "none", 0600), -1);
	assert_int_equal(errno, ENOENT);
}

/* From here on fchmodat2 and openat2 are unknown to this process, as in older kernels (ENOSYS) and some sandboxes (EPERM). */
static void forget_new_system_calls(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 452, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(77);
}

static void run_without_new_system_calls(int error)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		const struct CMUnitTest tests[] = { cmocka_unit_test(test_chmod_never_follows) };
		struct fs_root root;
		forget_new_system_calls(error);
		if (fs_root_open(&root, ".") < 0 || !root.no_openat2)
			_exit(1);
		tree_dir("below");
		tree_file("below/f", "f");
		if (strcmp(tree_content_of(fs_open(&root, "below/f", O_RDONLY, 0)), "f"))
			_exit(2);
		unlink("below/f");
		rmdir("below");
		/* its own lines must not be counted among those of this program */
		if (!freopen("child.log", "w", stdout) || !freopen("child.log", "a", stderr))
			_exit(4);
		_exit(cmocka_run_group_tests(tests, NULL, NULL) ? 3 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

UNIT_TEST(kernels_without_the_new_system_calls)
{
	run_without_new_system_calls(ENOSYS);
	run_without_new_system_calls(EPERM);
}

UNIT_GROUP(tree_setup, tree_teardown)
