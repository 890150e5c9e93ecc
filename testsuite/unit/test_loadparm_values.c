/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sections, defaults, included files, values, overrides and %VAR% references (doc/protocol/07-daemon.md
 * sections 2.6 to 2.12).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "testsuite/unit/unit.h"

#include "lib/alloc.h"
#include "loadparm.h"

struct fixture {
	char directory[64];
	char *file;
	struct config *config;
	struct config_problems problems;
};

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void add_file(struct fixture *fixture, const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", fixture->directory, name);

	write_file(path, text);
	free(path);
}

static void forget(struct fixture *fixture)
{
	config_free(fixture->config);
	config_problems_free(&fixture->problems);
	fixture->config = NULL;
}

static struct config *load_as(struct fixture *fixture, enum config_mode mode, char *const *dparams, size_t count,
			      const char *text)
{
	forget(fixture);
	write_file(fixture->file, text);
	fixture->config = config_load(fixture->file, dparams, count, mode, &fixture->problems);
	return fixture->config;
}

static struct config *load(struct fixture *fixture, const char *text)
{
	return load_as(fixture, CONFIG_CHECK, NULL, 0, text);
}

static int set_up(void **state)
{
	struct fixture *fixture = xcalloc(1, sizeof *fixture);

	strcpy(fixture->directory, "/tmp/test_loadparm.XXXXXX");
	if (!mkdtemp(fixture->directory))
		return -1;
	fixture->file = xasprintf("%s/rsyncd.conf", fixture->directory);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char *command = xasprintf("rm -rf '%s'", fixture->directory);
	int failed = system(command);

	forget(fixture);
	free(command);
	free(fixture->file);
	free(fixture);
	return failed;
}

static const struct module *module_of(const struct fixture *fixture, const char *name)
{
	const struct module *module = config_find_module(fixture->config, name);

	assert_non_null(module);
	return module;
}

static const char *only_problem(const struct fixture *fixture, enum config_severity severity, int line)
{
	assert_int_equal(fixture->problems.list.count, 1);
	assert_int_equal(fixture->problems.list.items[0].severity, severity);
	assert_int_equal(fixture->problems.list.items[0].line, line);
	assert_string_equal(fixture->problems.list.items[0].file, fixture->file);
	return fixture->problems.list.items[0].text;
}

UNIT_TEST_WITH(set_up, tear_down, an_empty_module_has_the_safe_defaults)
{
	const struct module *module;

	assert_non_null(load(*state, "[m]\npath = /x\n"));
	module = module_of(*state, "m");
	assert_true(module->read_only && module->list && module->reverse_lookup && module->forward_lookup);
	assert_false(module->write_only || module->ignore_errors || module->ignore_nonreadable || module->transfer_logging);
	assert_int_equal(module->use_chroot, UNSET);
	assert_int_equal(module->munge_symlinks, UNSET);
	assert_int_equal(module->numeric_ids, UNSET);
	assert_int_equal(module->max_verbosity, 1);
	assert_int_equal(module->max_connections, 0);
	assert_int_equal(module->timeout, 600);
	assert_int_equal(module->syslog_facility, LOG_DAEMON);
	assert_string_equal(module->uid, "");
	assert_string_equal(module->lock_file, "/var/run/rsyncd.lock");
	assert_string_equal(module->log_format, "%o %h [%a] %m (%u) %f %l");
	assert_string_equal(module->real_file_prefix, "");
	assert_false(module->disabled);
}

UNIT_TEST_WITH(set_up, tear_down, defaults_count_from_where_they_stand)
{
	assert_non_null(load(*state, "comment = one\n[a]\n[b]\ncomment = b\n[global]\ncomment = two\n[c]\n[A]\nlist = no\n"));
	assert_string_equal(module_of(*state, "a")->comment, "one");
	assert_string_equal(module_of(*state, "b")->comment, "b");
	assert_string_equal(module_of(*state, "c")->comment, "two");
	assert_false(module_of(*state, "a")->list);
	assert_int_equal(((struct fixture *)*state)->config->modules.count, 3);
	assert_null(config_find_module(((struct fixture *)*state)->config, "A"));
}

UNIT_TEST_WITH(set_up, tear_down, paths_lose_their_trailing_slashes)
{
	assert_non_null(load(*state, "[a]\npath = /x/y//\n[b]\npath = /\n[c]\npath = /z \\\n/\n"));
	assert_string_equal(module_of(*state, "a")->path, "/x/y");
	assert_string_equal(module_of(*state, "b")->path, "/");
	assert_string_equal(module_of(*state, "c")->path, "/z ");
}

UNIT_TEST_WITH(set_up, tear_down, booleans_and_numbers_take_their_forms)
{
	assert_non_null(load(*state, "[a]\nread only = F A L S E\nlist=0\nuse chroot = Unset\nnumeric ids = TRUE\n"
			     "munge symlinks = no\ntimeout = -5\nsyslog facility = LOCAL3\n[b]\nsyslog facility = 24\n"));
	assert_false(module_of(*state, "a")->read_only || module_of(*state, "a")->list);
	assert_int_equal(module_of(*state, "a")->use_chroot, UNSET);
	assert_int_equal(module_of(*state, "a")->numeric_ids, YES);
	assert_int_equal(module_of(*state, "a")->munge_symlinks, NO);
	assert_int_equal(module_of(*state, "a")->timeout, -5);
	assert_int_equal(module_of(*state, "a")->syslog_facility, LOG_LOCAL3);
	assert_int_equal(module_of(*state, "b")->syslog_facility, 24);
}

/* S-114 */
UNIT_TEST_WITH(set_up, tear_down, malformed_values_disable_their_module_alone)
{
	static const char *const bad[] = {
		"read only = maybe", "read only = on", "max connections = many", "max verbosity = 7x", "use chroot = perhaps",
		"hosts deny = 10.0.0.0/33", "outgoing chmod = zz", "real file prefix = relative/path", "timeout = 99999999999",
		"attr snapshot = relative/file", "attr snapshot fallback = maybe", "attr snapshot max age = -1",
	};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char *text = xasprintf("[good]\n[bad]\n%s\n", bad[i]);

		assert_non_null(load_as(*state, CONFIG_SESSION, NULL, 0, text));
		only_problem(*state, CONFIG_ERROR, 3);
		assert_true(module_of(*state, "bad")->disabled);
		assert_false(module_of(*state, "good")->disabled);
		assert_true(module_of(*state, "bad")->read_only);
		free(text);
	}
}

UNIT_TEST_WITH(set_up, tear_down, snapshot_parameters)
{
	const struct module *module;

	assert_non_null(load(*state, "attr snapshot max age = 3600\n[a]\nattr snapshot = /s/%RSYNC_MODULE_NAME%/\n"
			     "attr snapshot fallback = Refuse\n[b]\nAttrSnapshotFallback = walk\n"));
	module = module_of(*state, "a");
	assert_string_equal(module->attr_snapshot, "/s/%RSYNC_MODULE_NAME%");
	assert_int_equal(module->attr_snapshot_fallback, SNAPSHOT_FALLBACK_REFUSE);
	assert_int_equal(module->attr_snapshot_max_age, 3600);
	module = module_of(*state, "b");
	assert_string_equal(module->attr_snapshot, "");
	assert_int_equal(module->attr_snapshot_fallback, SNAPSHOT_FALLBACK_WALK);
}

UNIT_TEST_WITH(set_up, tear_down, a_module_has_a_snapshot_or_a_prefix)
{
	static const char text[] = "attr snapshot = /s\n[a]\nreal file prefix = /\n"
				   "[b]\nattr snapshot =\nreal file prefix = /\n[c]\n";
	static const enum config_mode modes[] = { CONFIG_CHECK, CONFIG_SESSION };

	for (size_t i = 0; i < 2; i++) {
		assert_non_null(load_as(*state, modes[i], NULL, 0, text));
		assert_non_null(strstr(only_problem(*state, CONFIG_ERROR, 2), "\"a\" has both"));
		assert_true(module_of(*state, "a")->disabled);
		assert_false(module_of(*state, "b")->disabled);
		assert_false(module_of(*state, "c")->disabled);
	}
}

UNIT_TEST_WITH(set_up, tear_down, a_writable_module_with_a_snapshot_is_noted_once)
{
	const struct fixture *fixture = *state;

	assert_non_null(load(*state, "[a]\nattr snapshot = /s\nread only = no\n"));
	assert_non_null(strstr(only_problem(*state, CONFIG_NOTE, 1), "read only = no"));
	assert_non_null(load_as(*state, CONFIG_SESSION, NULL, 0, "[a]\nattr snapshot = /s\nread only = no\n"));
	assert_int_equal(fixture->problems.list.count, 0);
}

/* What a snapshot or an attr tree says of a file and what an attribute of it says could not both be true. */
UNIT_TEST_WITH(set_up, tear_down, fake_super_has_attributes_of_its_own)
{
	assert_non_null(load(*state, "[a]\nfake super = yes\nattr snapshot = /s\n"));
	assert_non_null(strstr(only_problem(*state, CONFIG_ERROR, 1), "fake super"));
	assert_true(module_of(*state, "a")->disabled);
	assert_non_null(load(*state, "[a]\npath = /x\nfake super = yes\n"));
	assert_true(module_of(*state, "a")->fake_super && !module_of(*state, "a")->disabled);
}

UNIT_TEST_WITH(set_up, tear_down, a_module_cannot_be_renamed)
{
	assert_non_null(load(*state, "[m]\nname = x\n"));
	assert_non_null(strstr(only_problem(*state, CONFIG_ERROR, 2), "cannot be renamed"));
	assert_true(module_of(*state, "m")->disabled);
}

UNIT_TEST_WITH(set_up, tear_down, unknown_and_misplaced_lines_are_noted)
{
	assert_non_null(load(*state, "[m]\n-foo = x\n"));
	only_problem(*state, CONFIG_NOTE, 2);
	assert_non_null(load(*state, "[m]\nmotd file = /x\n"));
	only_problem(*state, CONFIG_NOTE, 2);
	assert_non_null(load(*state, "[global]\nport = 8730\n"));
	only_problem(*state, CONFIG_NOTE, 2);
	assert_int_equal(((struct fixture *)*state)->config->globals.port, 873);
	assert_false(config_find_module(((struct fixture *)*state)->config, "m"));
}

/* S-115 */
UNIT_TEST_WITH(set_up, tear_down, a_broken_file_serves_nothing)
{
	assert_null(load(*state, "[m]\npath = /x\n[b/c]\n"));
	only_problem(*state, CONFIG_FATAL, 3);
	assert_null(load(*state, "port = 99999\n"));
	only_problem(*state, CONFIG_FATAL, 1);
	assert_null(load(*state, "&include /nonexistent/huai\n"));
	only_problem(*state, CONFIG_FATAL, 1);
	assert_null(load(*state, "[m]\n&frobnicate x\n"));
	only_problem(*state, CONFIG_FATAL, 2);
}

UNIT_TEST_WITH(set_up, tear_down, a_file_that_includes_itself_ends)
{
	struct fixture *fixture = *state;
	char *text = xasprintf("&merge %s\n", fixture->file);

	assert_null(load(*state, text));
	only_problem(*state, CONFIG_FATAL, 1);
	free(text);
}

UNIT_TEST_WITH(set_up, tear_down, prefixes_must_be_directories_when_checked)
{
	struct fixture *fixture = *state;
	char *text = xasprintf("[m]\nreal file prefix = %s\n[n]\nreal file prefix = %s\n"
			       "[o]\nreal file prefix = /nonexistent/huai\n", fixture->directory, fixture->file);

	assert_non_null(load(*state, text));
	assert_int_equal(fixture->problems.list.count, 2);
	assert_int_equal(fixture->problems.list.items[0].line, 4);
	assert_int_equal(fixture->problems.list.items[1].line, 6);
	assert_int_equal(config_problems_worst(&fixture->problems), CONFIG_ERROR);
	/* A session does not touch the disks of other modules. */
	assert_non_null(load_as(*state, CONFIG_SESSION, NULL, 0, text));
	assert_int_equal(fixture->problems.list.count, 0);
	free(text);
}

UNIT_TEST_WITH(set_up, tear_down, include_keeps_its_defaults_to_itself)
{
	struct fixture *fixture = *state;
	char *text = xasprintf("comment = outer\n[c]\ncomment = x\n&include %s/d\ncomment = after include\n[d]\n",
			       fixture->directory);
	char *path = xasprintf("%s/d", fixture->directory);

	mkdir(path, 0700);
	add_file(fixture, "d/b.conf", "comment = inner\n[b]\n");
	add_file(fixture, "d/a.conf", "[a]\n");
	add_file(fixture, "d/.old.conf", "[hidden]\n");
	add_file(fixture, "d/c.inc", "[wrong]\n");
	assert_non_null(load(*state, text));
	assert_int_equal(fixture->problems.list.count, 0);
	assert_int_equal(fixture->config->modules.count, 4);
	assert_string_equal(fixture->config->modules.items[1].name, "a");
	assert_string_equal(module_of(fixture, "a")->comment, "outer");
	assert_string_equal(module_of(fixture, "b")->comment, "inner");
	assert_string_equal(module_of(fixture, "c")->comment, "x");
	assert_string_equal(module_of(fixture, "d")->comment, "after include");
	free(text);
	free(path);
}

UNIT_TEST_WITH(set_up, tear_down, merge_is_part_of_the_text)
{
	struct fixture *fixture = *state;
	char *text = xasprintf("[a]\n&merge %s/m.inc\nlist = no\n", fixture->directory);

	add_file(fixture, "m.inc", "comment = merged\n[b]\ncomment = of b\n");
	assert_non_null(load(*state, text));
	assert_string_equal(module_of(fixture, "a")->comment, "merged");
	assert_true(module_of(fixture, "a")->list);
	assert_false(module_of(fixture, "b")->list);
	free(text);
}

UNIT_TEST_WITH(set_up, tear_down, the_listener_reads_up_to_the_first_section)
{
	struct config *config = load_as(*state, CONFIG_LISTENER, NULL, 0,
					"port = 8730\npid file = /p\n[m]\n[global]\nport = 1\n[b/c]\n");

	assert_non_null(config);
	assert_int_equal(config->globals.port, 8730);
	assert_string_equal(config->globals.pid_file, "/p");
	assert_int_equal(config->modules.count, 0);
}

UNIT_TEST_WITH(set_up, tear_down, overrides_apply_to_the_leading_global_part)
{
	char *good[] = { "comment=  over", "Max Verbosity=3" }, *unknown[] = { "nonsense=1" }, *bare[] = { "comment" };
	const char *text = "comment = file\n[a]\n[global]\ncomment = later\n[b]\n";

	assert_non_null(load_as(*state, CONFIG_SESSION, good, 2, text));
	assert_string_equal(module_of(*state, "a")->comment, "over");
	assert_int_equal(module_of(*state, "a")->max_verbosity, 3);
	assert_string_equal(module_of(*state, "b")->comment, "later");
	assert_null(load_as(*state, CONFIG_LISTENER, unknown, 1, text));
	assert_null(load_as(*state, CONFIG_LISTENER, bare, 1, text));
}

static void check_expansion(const char *value, const char *expected)
{
	struct strbuf out = STRBUF_INIT;

	assert_true(config_expand(value, &out));
	assert_string_equal(strbuf_text(&out), expected);
	strbuf_free(&out);
}

UNIT_TEST_WITH(set_up, tear_down, references_come_from_the_environment)
{
	struct strbuf out = STRBUF_INIT;
	char *huge = xcalloc(1, 4001);

	setenv("HUAI_HOME", "/root", 1);
	unsetenv("HUAI_NOSUCH");
	check_expansion("%HUAI_HOME% %%% %HUAI_NOSUCH% %lower% 100% %HUAI_HOME",
			"/root %%% %HUAI_NOSUCH% %lower% 100% %HUAI_HOME");
	memset(huge, 'x', 4000);
	setenv("HUAI_HUGE", huge, 1);
	assert_false(config_expand("%HUAI_HUGE%", &out));
	strbuf_free(&out);
	free(huge);
}

/* S-116 */
UNIT_TEST_WITH(set_up, tear_down, shell_commands_quote_what_comes_from_outside)
{
	struct strbuf out = STRBUF_INIT;
	char *bad = NULL;

	setenv("RSYNC_USER_NAME", "joe", 1);
	setenv("HUAI_HOME", "/root", 1);
	assert_true(config_expand_command("x %RSYNC_USER_NAME% '%RSYNC_USER_NAME%' \"%RSYNC_USER_NAME%\" %HUAI_HOME% %NOPE%",
					  &out, &bad));
	assert_string_equal(strbuf_text(&out), "x 'joe' 'joe' \"'joe'\" /root %NOPE%");
	for (int c = 1; c < 256; c++) {
		const char value[] = { 'a', (char)c, 'b', 0 };
		bool active = c <= ' ' || c == 0x7f || strchr("'\"`$\\;&|<>()*?[]#!~{}", c);

		setenv("RSYNC_USER_NAME", value, 1);
		strbuf_reset(&out);
		bad = NULL;
		assert_int_equal(config_expand_command("x %RSYNC_USER_NAME%", &out, &bad), !active);
		if (bad)
			assert_string_equal(bad, "%RSYNC_USER_NAME%");
		free(bad);
	}
	strbuf_free(&out);
}
