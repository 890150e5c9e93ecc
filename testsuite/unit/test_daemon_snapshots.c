/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The listener's snapshots: what is opened when, what stays in use, and what is logged once. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testsuite/unit/unit.h"

#include "attrs/image.h"
#include "attrs/snapshot_write.h"
#include "daemon/session.h"
#include "daemon/snapshots.h"
#include "lib/alloc.h"

#define MADE INT64_C(1700000000)

struct fixture {
	char directory[64];
	struct options options;
	struct snapshots *snapshots;
};

static char *in(const struct fixture *fixture, const char *name)
{
	return xasprintf("%s/%s", fixture->directory, name);
}

static void write_text(const struct fixture *fixture, const char *name, const char *text)
{
	char *path = in(fixture, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	free(path);
}

/* A configuration where "@" stands for the directory of the test. */
static void configure(const struct fixture *fixture, const char *text)
{
	char *path = in(fixture, "conf");
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (; *text; text++)
		if (*text == '@')
			fputs(fixture->directory, file);
		else
			fputc(*text, file);
	fclose(file);
	free(path);
}

static void write_snapshot_of(const struct fixture *fixture, const char *name, uint64_t generation, uint64_t root_ino)
{
	struct image *image = image_new();
	struct fs_stat root = { .mode = S_IFDIR | 0755, .dev = root_ino ? 1 : 0, .ino = root_ino };
	struct strbuf why = STRBUF_INIT;
	char *path = in(fixture, name);
	uint64_t size;

	image_set_root(image, &root);
	image->made.tv_sec = MADE;
	image->root_dev = root.dev;
	image->root_ino = root.ino;
	assert_int_equal(attr_snapshot_write(image, path, generation, NULL, &size, &why), 0);
	image_free(image);
	strbuf_free(&why);
	free(path);
}

static void write_snapshot(const struct fixture *fixture, const char *name, uint64_t generation)
{
	write_snapshot_of(fixture, name, generation, 0);
}

static int set_up(void **state)
{
	struct fixture *fixture = xcalloc(1, sizeof *fixture);

	strcpy(fixture->directory, "/tmp/test_snapshots.XXXXXX");
	if (!mkdtemp(fixture->directory))
		return -1;
	umask(022);
	fixture->options.config_file = in(fixture, "conf");
	fixture->snapshots = snapshots_new(&fixture->options);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char *command = xasprintf("rm -rf '%s'", fixture->directory);
	int failed = system(command);

	free(command);
	free(fixture);
	return failed;
}

static bool find(const struct fixture *fixture, const char *module, const char *name, struct snapshot_finding *finding)
{
	char *path = in(fixture, name);
	bool found = snapshots_find(fixture->snapshots, module, path, finding);

	free(path);
	return found;
}

/* After a refresh: the finding for module "m" and the file "s". */
static struct snapshot_finding refreshed(const struct fixture *fixture)
{
	struct snapshot_finding finding;

	snapshots_refresh(fixture->snapshots);
	assert_true(find(fixture, "m", "s", &finding));
	return finding;
}

static void assert_generation(const struct snapshot_finding *finding, uint64_t generation)
{
	assert_non_null(finding->snapshot);
	assert_int_equal(attr_snapshot_facts(finding->snapshot)->generation, generation);
}

static const char one_module[] = "[m]\npath = /srv\nattr snapshot = @/s\n";

UNIT_TEST_WITH(set_up, tear_down, each_generation_is_opened_once)
{
	const struct fixture *fixture = *state;
	struct snapshot_finding first, again, second;

	configure(fixture, one_module);
	write_snapshot(fixture, "s", 7);
	first = refreshed(fixture);
	assert_generation(&first, 7);
	assert_string_equal(first.why, "");
	again = refreshed(fixture);
	assert_ptr_equal(again.snapshot, first.snapshot);
	assert_int_equal(again.serial, first.serial);
	write_snapshot(fixture, "s", 8);
	second = refreshed(fixture);
	assert_generation(&second, 8);
	assert_true(second.serial > first.serial);
}

UNIT_TEST_WITH(set_up, tear_down, a_touched_file_is_no_news)
{
	const struct fixture *fixture = *state;
	char *path = in(fixture, "s");
	struct snapshot_finding first, touched;

	configure(fixture, one_module);
	write_snapshot(fixture, "s", 7);
	first = refreshed(fixture);
	assert_int_equal(chmod(path, 0600), 0);
	touched = refreshed(fixture);
	assert_generation(&touched, 7);
	assert_int_equal(touched.serial, first.serial);
	free(path);
}

static void rename_over(const struct fixture *fixture, const char *from, const char *to)
{
	char *old = in(fixture, from), *new = in(fixture, to);

	assert_int_equal(rename(old, new), 0);
	free(old);
	free(new);
}

UNIT_TEST_WITH(set_up, tear_down, a_damaged_file_leaves_the_one_before_in_use)
{
	const struct fixture *fixture = *state;
	struct snapshot_finding good, damaged, again, repaired;

	configure(fixture, one_module);
	write_snapshot(fixture, "s", 7);
	good = refreshed(fixture);
	write_text(fixture, "new", "this is no snapshot, but it is as long as a header would be\n");
	rename_over(fixture, "new", "s");
	damaged = refreshed(fixture);
	assert_ptr_equal(damaged.snapshot, good.snapshot);
	assert_non_null(strstr(damaged.why, "header"));
	assert_false(damaged.missing);
	assert_true(damaged.serial > good.serial);
	again = refreshed(fixture);
	assert_int_equal(again.serial, damaged.serial);
	write_snapshot(fixture, "s", 9);
	repaired = refreshed(fixture);
	assert_generation(&repaired, 9);
	assert_string_equal(repaired.why, "");
}

UNIT_TEST_WITH(set_up, tear_down, a_file_that_others_may_write_is_let_go)
{
	const struct fixture *fixture = *state;
	char *path = in(fixture, "s");
	struct snapshot_finding finding;

	configure(fixture, one_module);
	write_snapshot(fixture, "s", 7);
	refreshed(fixture);
	/* It is the mapped file itself: what was checked may be something else in a moment. */
	assert_int_equal(chmod(path, 0666), 0);
	finding = refreshed(fixture);
	assert_null(finding.snapshot);
	assert_non_null(strstr(finding.why, "666"));
	assert_int_equal(chmod(path, 0644), 0);
	finding = refreshed(fixture);
	assert_generation(&finding, 7);
	free(path);
}

UNIT_TEST_WITH(set_up, tear_down, a_file_that_is_gone_ends_its_use)
{
	const struct fixture *fixture = *state;
	char *path = in(fixture, "s");
	struct snapshot_finding gone, still;

	configure(fixture, one_module);
	gone = refreshed(fixture);
	assert_true(gone.missing);
	write_snapshot(fixture, "s", 7);
	refreshed(fixture);
	assert_int_equal(unlink(path), 0);
	gone = refreshed(fixture);
	assert_null(gone.snapshot);
	assert_true(gone.missing);
	assert_non_null(strstr(gone.why, "No such file"));
	still = refreshed(fixture);
	assert_int_equal(still.serial, gone.serial);
	free(path);
}

UNIT_TEST_WITH(set_up, tear_down, nothing_makes_the_listener_wait)
{
	const struct fixture *fixture = *state;
	char *path = in(fixture, "s"), *conf = in(fixture, "conf");
	struct snapshot_finding finding;

	configure(fixture, one_module);
	assert_int_equal(mkfifo(path, 0644), 0);
	alarm(20);
	finding = refreshed(fixture);
	assert_null(finding.snapshot);
	assert_non_null(strstr(finding.why, "not a regular file"));
	assert_int_equal(unlink(conf), 0);
	assert_int_equal(mkfifo(conf, 0644), 0);
	finding = refreshed(fixture);
	assert_null(finding.snapshot);
	alarm(0);
	free(path);
	free(conf);
}

UNIT_TEST_WITH(set_up, tear_down, the_configuration_is_followed)
{
	const struct fixture *fixture = *state;
	struct snapshot_finding finding;

	configure(fixture, "[n]\npath = /srv\n");
	write_snapshot(fixture, "s", 7);
	write_snapshot(fixture, "t", 8);
	snapshots_refresh(fixture->snapshots);
	assert_false(find(fixture, "m", "s", &finding));
	configure(fixture, one_module);
	finding = refreshed(fixture);
	assert_generation(&finding, 7);
	configure(fixture, "[broken\n");
	finding = refreshed(fixture);
	assert_generation(&finding, 7);
	configure(fixture, "[m]\npath = /srv\nattr snapshot = @/t\n");
	snapshots_refresh(fixture->snapshots);
	assert_false(find(fixture, "m", "s", &finding));
	assert_true(find(fixture, "m", "t", &finding));
	assert_generation(&finding, 8);
	configure(fixture, one_module);
	finding = refreshed(fixture);
	assert_generation(&finding, 7);
}

UNIT_TEST_WITH(set_up, tear_down, changes_within_one_tick_of_the_clock_are_followed)
{
	const struct fixture *fixture = *state;
	struct snapshot_finding finding;

	write_snapshot(fixture, "0", 7);
	write_snapshot(fixture, "1", 8);
	for (int i = 0; i < 100; i++) {
		configure(fixture, i % 2 ? "[m]\npath = /srv\nattr snapshot = @/1\n"
					 : "[m]\npath = /srv\nattr snapshot = @/0\n");
		snapshots_refresh(fixture->snapshots);
		assert_int_equal(find(fixture, "m", "0", &finding), i % 2 == 0);
		assert_int_equal(find(fixture, "m", "1", &finding), i % 2 == 1);
	}
}

UNIT_TEST_WITH(set_up, tear_down, included_files_are_followed)
{
	const struct fixture *fixture = *state;
	struct snapshot_finding finding;
	char *text = xasprintf("[m]\npath = /srv\nattr snapshot = %s/s\n", fixture->directory), *directory = in(fixture, "d");

	assert_int_equal(mkdir(directory, 0755), 0);
	configure(fixture, "&include @/d\n");
	write_snapshot(fixture, "s", 7);
	snapshots_refresh(fixture->snapshots);
	assert_false(find(fixture, "m", "s", &finding));
	write_text(fixture, "d/one.conf", text);
	finding = refreshed(fixture);
	assert_generation(&finding, 7);
	write_text(fixture, "d/one.conf", "[m]\npath = /srv\n");
	snapshots_refresh(fixture->snapshots);
	assert_false(find(fixture, "m", "s", &finding));
	free(directory);
	free(text);
}

UNIT_TEST_WITH(set_up, tear_down, names_of_modules_are_filled_in_and_others_are_not)
{
	const struct fixture *fixture = *state;
	struct snapshot_finding finding;

	setenv("RSYNC_MODULE_NAME", "outside", 1);
	configure(fixture, "attr snapshot = @/%RSYNC_MODULE_NAME%\n[one]\npath = /srv\n[two]\npath = /srv\n"
			   "[three]\nattr snapshot = @/%RSYNC_MODULE_NAME%%RSYNC_HOST_ADDR%\n");
	write_snapshot(fixture, "one", 1);
	write_snapshot(fixture, "two", 2);
	snapshots_refresh(fixture->snapshots);
	assert_true(find(fixture, "one", "one", &finding));
	assert_generation(&finding, 1);
	assert_true(find(fixture, "two", "two", &finding));
	assert_generation(&finding, 2);
	assert_false(find(fixture, "three", "three%RSYNC_HOST_ADDR%", &finding));
	assert_string_equal(getenv("RSYNC_MODULE_NAME"), "outside");
	unsetenv("RSYNC_MODULE_NAME");
}

/* Whether a server process that was forked with this finding would be the first to say it. */
static bool is_news_in_a_child(const struct snapshot_finding *finding, enum snapshot_news news)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(snapshot_is_news(finding, news));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

UNIT_TEST_WITH(set_up, tear_down, news_is_told_once)
{
	const struct fixture *fixture = *state;
	struct snapshot_finding first, other, second;

	configure(fixture, "attr snapshot = @/s\n[m]\npath = /srv\n[n]\npath = /srv\n");
	write_snapshot(fixture, "s", 7);
	first = refreshed(fixture);
	assert_true(find(fixture, "n", "s", &other));
	assert_true(is_news_in_a_child(&first, SNAPSHOT_IN_USE));
	assert_false(is_news_in_a_child(&first, SNAPSHOT_IN_USE));
	assert_true(is_news_in_a_child(&first, SNAPSHOT_TOO_OLD));
	assert_false(is_news_in_a_child(&first, SNAPSHOT_TOO_OLD));
	assert_true(is_news_in_a_child(&other, SNAPSHOT_IN_USE));
	write_snapshot(fixture, "s", 8);
	second = refreshed(fixture);
	assert_true(is_news_in_a_child(&second, SNAPSHOT_IN_USE));
	assert_false(is_news_in_a_child(&second, SNAPSHOT_IN_USE));
	/* As a process that began before: the listener's own view of what has been logged may have moved. */
	first.logged = second.logged;
	assert_false(is_news_in_a_child(&first, SNAPSHOT_FOREIGN));
	assert_true(is_news_in_a_child(&second, SNAPSHOT_FOREIGN));
	/* Another list of modules does not make old things new. */
	configure(fixture, "attr snapshot = @/s\n[more]\npath = /srv\n[m]\npath = /srv\n");
	second = refreshed(fixture);
	assert_false(is_news_in_a_child(&second, SNAPSHOT_IN_USE));
	assert_true(is_news_in_a_child(&second, SNAPSHOT_TOO_OLD));
}

UNIT_TEST_WITH(set_up, tear_down, other_modules_snapshots_are_dropped)
{
	const struct fixture *fixture = *state;
	struct module module = { .name = "m", .attr_snapshot = in(fixture, "s") };
	struct daemon_session session = {
		.snapshots = fixture->snapshots, .module = &module, .source.attr_root.fd = -1,
	};
	struct snapshot_finding mine, other;

	configure(fixture, "[m]\npath = /srv\nattr snapshot = @/s\n[n]\npath = /srv\nattr snapshot = @/t\n");
	write_snapshot(fixture, "s", 7);
	write_snapshot(fixture, "t", 8);
	mine = refreshed(fixture);
	snapshot_choose(&session);
	assert_ptr_equal(session.source.snapshot, mine.snapshot);
	assert_true(find(fixture, "m", "s", &mine));
	assert_generation(&mine, 7);
	assert_true(find(fixture, "n", "t", &other));
	assert_null(other.snapshot);
	free(module.attr_snapshot);
}

static enum snapshot_news judge(const struct fixture *fixture, int max_age, int root_fd, int64_t now, const char *text)
{
	struct snapshot_finding finding = refreshed(fixture);
	struct strbuf why = STRBUF_INIT;
	enum snapshot_news news = snapshot_judge(finding.snapshot, max_age, root_fd, now, &why);

	assert_non_null(strstr(strbuf_text(&why), text));
	assert_int_equal(news == SNAPSHOT_IN_USE, why.length == 0);
	strbuf_free(&why);
	return news;
}

UNIT_TEST_WITH(set_up, tear_down, age_is_counted_from_the_beginning_of_the_scan)
{
	const struct fixture *fixture = *state;

	configure(fixture, one_module);
	write_snapshot(fixture, "s", 7);
	assert_int_equal(judge(fixture, 60, -1, MADE + 60, ""), SNAPSHOT_IN_USE);
	assert_int_equal(judge(fixture, 60, -1, MADE + 61, "made 61 s ago, more than the max age of 60 s"), SNAPSHOT_TOO_OLD);
	assert_int_equal(judge(fixture, 1, -1, MADE + 7300, "made 2 h ago"), SNAPSHOT_TOO_OLD);
	assert_int_equal(judge(fixture, 60, -1, MADE - 1000, ""), SNAPSHOT_IN_USE);
	assert_int_equal(judge(fixture, 0, -1, MADE + 1000000000, ""), SNAPSHOT_IN_USE);
}

UNIT_TEST_WITH(set_up, tear_down, a_snapshot_belongs_to_its_root)
{
	const struct fixture *fixture = *state;
	int root_fd = open(fixture->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

	configure(fixture, one_module);
	write_snapshot(fixture, "s", 7);
	assert_int_equal(judge(fixture, 0, root_fd, MADE, ""), SNAPSHOT_IN_USE);
	write_snapshot_of(fixture, "s", 8, 1);
	assert_int_equal(judge(fixture, 0, root_fd, MADE, "another directory"), SNAPSHOT_FOREIGN);
	assert_int_equal(judge(fixture, 0, -1, MADE, ""), SNAPSHOT_IN_USE);
	close(root_fd);
}
