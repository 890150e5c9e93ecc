/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Directories, whole files, slots, the pid file, names of ids. */
#include "fs/file.h"
#include "fs/ids.h"
#include "fs/lock.h"
#include "fs/operator.h"

#include <pwd.h>

#include "fs_tree.h"

static struct fs_root root;

static int make_tree(void **state)
{
	return tree_setup(state) || fs_root_open(&root, ".");
}

static int end_tree(void **state)
{
	fs_root_close(&root);
	return tree_teardown(state);
}

UNIT_TEST(directory_gives_every_name_once)
{
	enum { COUNT = 5000 };
	static bool seen[COUNT];
	struct fs_dir dir;
	struct fs_dirent entry;
	char name[256];
	int total = 0, more;

	tree_dir("many");
	int fd = fs_opendir(&root, "many");
	for (int i = 0; i < COUNT; i++) {
		int length = snprintf(name, sizeof name, "%d-", i);
		memset(name + length, 'n', (size_t)(i % 240));
		name[length + i % 240] = '\0';
		assert_int_equal(i % 7 ? fs_symlink_at("x", fd, name) : fs_mkdir_at(fd, name, 0700), 0);
	}
	fs_dir_start(&dir, fd);
	while ((more = fs_dir_next(&dir, &entry)) > 0) {
		int i = atoi(entry.name);
		assert_false(seen[i]);
		seen[i] = true;
		total++;
		assert_int_equal(entry.name_length, strlen(entry.name));
		assert_true(entry.type == (i % 7 ? 10 : 4) || entry.type == 0);
	}
	assert_int_equal(more, 0);
	assert_int_equal(total, COUNT);
	assert_int_equal(fs_dir_next(&dir, &entry), 0);
	fs_dir_finish(&dir);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

UNIT_TEST(directory_keeps_odd_names_and_reports_errors)
{
	struct fs_dir dir;
	struct fs_dirent entry;

	tree_dir("odd");
	tree_dir("odd/...");
	fs_dir_start(&dir, fs_opendir(&root, "odd"));
	assert_int_equal(fs_dir_next(&dir, &entry), 1);
	assert_string_equal(entry.name, "...");
	assert_int_equal(fs_dir_next(&dir, &entry), 0);
	fs_dir_finish(&dir);
	tree_file("notdir", "");
	fs_dir_start(&dir, fs_open(&root, "notdir", O_RDONLY, 0));
	assert_int_equal(fs_dir_next(&dir, &entry), -1);
	assert_int_equal(errno, ENOTDIR);
	fs_dir_finish(&dir);
}

UNIT_TEST(empty_directory)
{
	tree_dir("empty");
	int fd = open("empty", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(fs_dir_is_empty(fd), 1);
	tree_file("empty/.hidden", "");
	assert_int_equal(fs_dir_is_empty(fd), 0);
	close(fd);
	assert_int_equal(fs_dir_is_empty(fd), -1);
}

UNIT_TEST(files_are_read_up_to_a_limit)
{
	struct strbuf text = STRBUF_INIT;

	tree_file("rules", "- *.o\n");
	tree_link("rules", "rules-link");
	tree_link("/etc/hostname", "rules-out");
	tree_dir("rules-dir");
	assert_int_equal(tree_read_below(&root, "rules-link", 6, &text), 0);
	assert_string_equal(strbuf_text(&text), "- *.o\n");
	static const struct {
		const char *path;
		int error;
	} cases[] = { { "rules-out", ELOOP }, { "rules-dir", EISDIR }, { "rules-none", ENOENT } };

	for (int i = 0; i < 3; i++) {
		assert_int_equal(tree_read_below(&root, cases[i].path, 100, &text), -1);
		assert_int_equal(errno, cases[i].error);
	}
	assert_int_equal(tree_read_below(&root, "rules", 5, &text), -1);
	assert_int_equal(errno, EFBIG);
	strbuf_free(&text);
}

UNIT_TEST(make_path)
{
	struct fs_stat found;
	struct stat st;

	tree_dir("mk");
	tree_dir("mk/real");
	tree_link("real", "mk/link");
	tree_link("../..", "mk/out");
	assert_int_equal(fs_make_path(&root, "mk/a/b/c", 0755), 3);
	assert_int_equal(fs_make_path(&root, "mk/a/b/c/", 0755), 0);
	assert_int_equal(fs_make_path(&root, "mk//link/./x/y", 0755), 2);
	assert_int_equal(stat("mk/real/x/y", &st), 0);
	assert_int_equal(fs_make_path(&root, "mk/out/fs-test-escape", 0755), -1);
	assert_int_equal(fs_make_path(&root, "", 0755), 0);
	tree_file("mk/file", "");
	assert_int_equal(fs_make_path(&root, "mk/file/x", 0755), -1);
	assert_int_equal(errno, ENOTDIR);
	assert_int_equal(fs_make_path(&root, "mk/file", 0755), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(fs_stat_follow(&root, "mk/link", &found), 0);
	assert_true(S_ISDIR(found.mode));
	assert_int_equal(fs_stat_follow(&root, "mk/file", &found), 0);
	assert_false(S_ISDIR(found.mode));
	assert_int_equal(fs_stat_follow(&root, "mk/none", &found), -1);
}

UNIT_TEST(preallocation_keeps_the_size)
{
	struct stat st;
	int fd = fs_open(&root, "pre", O_RDWR | O_CREAT, 0600);

	assert_int_equal(fs_preallocate(fd, 1 << 20), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(fs_preallocate(fd, UINT64_MAX), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(fs_preallocate(fd, 0), 0);
	close(fd);
}

static int read_as_stranger(void)
{
	return fs_is_readable(&root, "readable/f") + 2 * fs_is_readable(&root, "readable/secret")
	       + 4 * fs_is_readable_at(root.fd, "private-link");
}

UNIT_TEST(readability_is_that_of_the_effective_user)
{
	if (geteuid() != 0)
		skip();
	tree_dir("readable");
	tree_file("readable/f", "");
	tree_file("readable/secret", "");
	chmod("readable/secret", 0600);
	chmod(".", 0755);
	assert_int_equal(tree_as_user(65534, read_as_stranger), 1);
}

/* Exit status of a child that tries to take a slot and keeps it until `hold` is closed. */
static pid_t start_holder(uint64_t holder, int slots, int ready, int hold)
{
	pid_t child = fork();

	if (child == 0) {
		int fd = fs_operator_open("lock", O_RDWR | O_CREAT | O_NONBLOCK, 0600);
		char byte = fs_slots_take(fd, holder ? &holder : NULL, slots) == 0 ? 'y' :
			    errno == EBUSY ? 'b' : 'e';
		if (write(ready, &byte, 1) != 1)
			_exit(1);
		_exit(read(hold, &byte, 1) < 0);
	}
	return child;
}

static char try_slot_of(uint64_t holder, int slots, int ready[2], int hold[2], pid_t *child)
{
	char byte = 0;

	*child = start_holder(holder, slots, ready[1], hold[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	return byte;
}

/* holder 0: of all. */
static char try_slot(int slots, int ready[2], int hold[2], pid_t *child)
{
	return try_slot_of(0, slots, ready, hold, child);
}

UNIT_TEST(slots_of_holders_are_apart)
{
	const uint64_t one = 7, other = one | UINT64_C(1) << 41;
	int ready[2], hold[2];
	pid_t children[6];

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	assert_int_equal(try_slot_of(one, 2, ready, hold, &children[0]), 'y');
	assert_int_equal(try_slot_of(one, 2, ready, hold, &children[1]), 'y');
	assert_int_equal(try_slot_of(one, 2, ready, hold, &children[2]), 'b');
	assert_int_equal(try_slot_of(other, 2, ready, hold, &children[3]), 'y');
	assert_int_equal(try_slot(1, ready, hold, &children[4]), 'y');
	assert_int_equal(kill(children[0], 9), 0);
	assert_int_equal(waitpid(children[0], NULL, 0), children[0]);
	assert_int_equal(try_slot_of(one, 2, ready, hold, &children[5]), 'y');
	for (int i = 1; i < 6; i++) {
		kill(children[i], 9);
		waitpid(children[i], NULL, 0);
	}
}

UNIT_TEST(slots_are_shared_through_the_file)
{
	int ready[2], hold[2];
	pid_t children[6];
	struct stat st;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	assert_int_equal(try_slot(2, ready, hold, &children[0]), 'y');
	assert_int_equal(try_slot(2, ready, hold, &children[1]), 'y');
	assert_int_equal(try_slot(2, ready, hold, &children[2]), 'b');
	assert_int_equal(try_slot(3, ready, hold, &children[3]), 'y');
	assert_int_equal(try_slot(-1, ready, hold, &children[4]), 'b');
	/* S-055: a killed process gives its slot back */
	assert_int_equal(kill(children[0], 9), 0);
	assert_int_equal(waitpid(children[0], NULL, 0), children[0]);
	assert_int_equal(try_slot(2, ready, hold, &children[5]), 'y');
	for (int i = 1; i < 6; i++) {
		kill(children[i], 9);
		waitpid(children[i], NULL, 0);
	}
	assert_int_equal(stat("lock", &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(fs_operator_open("none/lock", O_RDWR | O_CREAT | O_NONBLOCK, 0600), -1);
	assert_int_equal(errno, ENOENT);
}

static void expect_pid_file_refused(const char *path, const char *expected)
{
	struct fs_own_name file;
	const char *what = NULL;

	assert_int_equal(fs_pid_file_write(&file, path, &what), -1);
	assert_string_equal(what, expected);
	assert_int_equal(file.fd, -1);
}

UNIT_TEST(pid_file)
{
	struct fs_own_name file;
	const char *what;
	char expected[32];
	struct stat st;
	int status;

	snprintf(expected, sizeof expected, "%d\n", (int)getpid());
	tree_file("target", "precious");
	tree_link("target", "pid"); /* a link in its place is removed, not followed */
	assert_int_equal(fs_pid_file_write(&file, "pid", &what), 0);
	assert_string_equal(tree_content("target"), "precious");
	assert_int_equal(lstat("pid", &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	pid_t child = fork();

	if (child == 0) {
		struct fs_own_name other;
		bool refused = fs_pid_file_write(&other, "pid", &what) < 0 && !strcmp(what, "lock");
		fs_own_name_remove(&file); /* not the writer: the file stays */
		_exit(refused ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(tree_has("pid"));
	fs_own_name_remove(&file);
	assert_false(tree_has("pid"));

	tree_file("pid", "12345\n"); /* of a daemon that was killed */
	assert_int_equal(fs_pid_file_write(&file, "pid", &what), 0);
	fs_own_name_close(&file);
	assert_string_equal(tree_content("pid"), expected);
	tree_file("big", "this file is longer than any process id ever was");
	expect_pid_file_refused("big", "find small");
	assert_string_equal(tree_content("big"), "this file is longer than any process id ever was");
	expect_pid_file_refused("none/pid", "create");
	tree_dir("pid-dir");
	expect_pid_file_refused("pid-dir", "unlink");
}

static const char *second_name(const void *context, bool group, uint32_t id)
{
	if (id == 3999999999u)
		return group ? "keepers" : context;
	return id == 0 ? "not-asked" : "bad\nname";
}

UNIT_TEST(names_of_ids_that_the_system_does_not_know)
{
	struct fs_ids *ids = fs_ids_new(NULL, NULL);

	fs_ids_set_fallback(ids, second_name, "keeper");
	assert_string_equal(fs_id_name(ids, false, 0), "root");
	assert_string_equal(fs_id_name(ids, false, 3999999999u), "keeper");
	assert_string_equal(fs_id_name(ids, false, 3999999999u), "keeper");
	assert_string_equal(fs_id_name(ids, true, 3999999999u), "keepers");
	assert_null(fs_id_name(ids, false, 3999999998u));
	fs_ids_free(ids);
}

UNIT_TEST(names_of_ids)
{
	struct fs_ids *ids = fs_ids_new(NULL, NULL);
	uint32_t id = 99;

	assert_string_equal(fs_id_name(ids, false, 0), "root");
	assert_string_equal(fs_id_name(ids, true, 0), "root");
	assert_ptr_equal(fs_id_name(ids, false, 0), fs_id_name(ids, false, 0));
	assert_null(fs_id_name(ids, false, 3999999999u));
	assert_null(fs_id_name(ids, false, 3999999999u));
	assert_true(fs_id_find(ids, false, "root", &id));
	assert_int_equal(id, 0);
	assert_true(fs_id_find(ids, true, "root", &id));
	id = 99;
	for (int i = 0; i < 2; i++) {
		assert_false(fs_id_find(ids, false, "no-such-user-here", &id));
		assert_false(fs_id_find(ids, true, "", &id));
		assert_false(fs_id_find(ids, false, "ro\not", &id));
	}
	assert_int_equal(id, 99);
	fs_ids_free(ids);
}

static const struct {
	const char *kind, *text, *answer;
} conversions[] = {
	{ "uid", "5", "five" }, { "uid", "6", "" }, { "uid", "7", "se\nven" }, { "gid", "5", "group-five" },
	{ "usr", "five", "5" }, { "usr", "empty", "" }, { "usr", "hex", "0x0" }, { "usr", "text", "0 root" },
	{ "usr", "huge", "4294967296" }, { "usr", "last", "4294967295" }, { "usr", "most", "4294967294" },
	{ "usr", "minus", "-1" }, { "grp", "five", "55" },
};

static char *convert(void *context, const char *kind, const char *text)
{
	++*(int *)context;
	for (size_t i = 0; i < sizeof conversions / sizeof *conversions; i++)
		if (!strcmp(conversions[i].kind, kind) && !strcmp(conversions[i].text, text))
			return strdup(conversions[i].answer);
	return NULL;
}

/* S-112 */
UNIT_TEST(a_converter_replaces_the_tables_and_never_makes_0)
{
	int calls = 0;
	struct fs_ids *ids = fs_ids_new(convert, &calls);
	static const char *const unknown[] = { "root", "empty", "hex", "text", "huge", "last", "minus" };
	uint32_t id = 99;

	assert_string_equal(fs_id_name(ids, false, 5), "five");
	assert_string_equal(fs_id_name(ids, true, 5), "group-five");
	assert_null(fs_id_name(ids, false, 6));
	assert_null(fs_id_name(ids, false, 7));
	assert_null(fs_id_name(ids, false, 0));
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		assert_false(fs_id_find(ids, false, unknown[i], &id));
	assert_int_equal(id, 99);
	assert_true(fs_id_find(ids, false, "most", &id));
	assert_int_equal(id, 4294967294u);
	assert_true(fs_id_find(ids, false, "five", &id));
	assert_int_equal(id, 5);
	assert_true(fs_id_find(ids, true, "five", &id));
	assert_int_equal(id, 55);
	int before = calls;

	assert_true(fs_id_find(ids, false, "five", &id));
	assert_null(fs_id_name(ids, false, 6));
	assert_false(fs_id_find(ids, false, "hex", &id));
	assert_int_equal(calls, before);
	fs_ids_free(ids);
}

UNIT_GROUP(make_tree, end_tree)
