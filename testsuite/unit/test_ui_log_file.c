/* SPDX-License-Identifier: GPL-3.0-or-later */
/* S-117: what a peer says cannot forge a log line; and where the lines go (doc/protocol/07-daemon.md section 4.8). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "testsuite/unit/unit.h"

#include "lib/alloc.h"
#include "ui/log_file.h"

static void check(const char *text, const char *expected)
{
	struct strbuf out = STRBUF_INIT;

	log_file_escape(&out, text, strlen(text));
	assert_string_equal(strbuf_text(&out), expected);
	strbuf_free(&out);
}

UNIT_TEST(control_bytes_are_written_in_octal)
{
	check("plain\ttext\n", "plain\ttext");
	check("x\ny\033[31m\n", "x\\#012y\\#033[31m");
	check("\x7f\x80\x9f\xa0\xc3\xa9", "\\#177\\#200\\#237\xa0\xc3\xa9");
	check("\\#012 \\#01 \\#01x", "\\#134#012 \\#01 \\#01x");
	check("\r\n\n", "\\#015\\#012");
}

UNIT_TEST(long_messages_are_cut)
{
	struct strbuf out = STRBUF_INIT;
	char text[4000];

	memset(text, 'x', sizeof text);
	log_file_escape(&out, text, sizeof text);
	assert_int_equal(out.length, 2047);
	strbuf_free(&out);
}

static char *read_file(const char *path)
{
	char *text = xcalloc(1, 4096);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_true(fread(text, 1, 4095, file) > 0);
	fclose(file);
	return text;
}

UNIT_TEST(lines_carry_time_and_process_and_survive_a_rotation)
{
	char directory[] = "/tmp/test_log_file.XXXXXX", expected[64], *text;
	struct log_file log;
	struct stat st;

	assert_non_null(mkdtemp(directory));
	char *path = xasprintf("%s/log", directory), *old = xasprintf("%s/log.1", directory);

	log_file_init(&log, path, "rsyncd", LOG_DAEMON);
	struct log_sink before = log_set_sink(log_file_sink(&log));

	log_msg(L_LOG, "first");
	log_msg(L_CLIENT, "not for the log");
	log_file_close(&log);
	assert_int_equal(rename(path, old), 0);
	log_msg(L_ERROR, "second");
	log_set_sink(before);
	log_file_close(&log);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777 & ~0644, 0);

	snprintf(expected, sizeof expected, " [%d] first\n", (int)getpid());
	text = read_file(old);
	assert_int_equal(strspn(text, "0123456789/: "), 20);
	assert_string_equal(text + 19, expected);
	free(text);
	text = read_file(path);
	assert_non_null(strstr(text, "] second\n"));
	free(text);
	unlink(path);
	unlink(old);
	rmdir(directory);
	free(path);
	free(old);
	strbuf_free(&log.file);
	strbuf_free(&log.tag);
}
