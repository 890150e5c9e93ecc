/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The grammars of option values: sizes, points in time, integers, host specifications (doc/protocol/06-command-line.md
 * sections 1 and 6).
 */
#include "options_support.h"

#include "options/parse.h"
#include "options/remote.h"

struct size_vector {
	const char *text;
	int64_t value;
};

static const struct size_vector sizes[] = {
	{ "0", 0 }, { "1b", 1 }, { "1B", 1 }, { "1k", 1024 }, { "1K", 1024 }, { "1KiB", 1024 }, { "1kib", 1024 },
	{ "1KIB", 1024 }, { "1KB", 1000 }, { "1kb", 1000 }, { "1kB", 1000 }, { "1M", 1048576 }, { "1MB", 1000000 },
	{ "1G", 1073741824 }, { "1GB", 1000000000 }, { "1T", 1099511627776 }, { "1P", 1125899906842624 },
	{ "1PB", 1000000000000000 }, { "9007199254740993", 9007199254740992 }, { "1.5K", 1536 }, { "1.5KB", 1500 },
	{ ".5K", 512 }, { "1.K", 1024 }, { "1.9999", 1 }, { "1.5", 1 }, { "1.5b", 1 }, { "2.7b", 2 }, { "010", 10 },
	{ "", 0 }, { ".", 0 }, { "K", 0 }, { "1.0000001K", 1024 }, { "1+1", 2 }, { "5-1", 4 }, { "1K-1", 1023 },
	{ "1KB-1", 999 }, { "1KiB+1", 1025 }, { "1.5MB-1", 1499999 }, { "1bb", 1 }, { "1bB", 1 }, { "1Bib", 1 },
	{ "8191P", 9222246136947933184 }, { "K+1", 1 }, { ".+1", 1 },
};

static const char *const invalid_sizes[] = {
	"1Ki", "1E", "1Z", "+1", "+5", "-0", "1K+2", "1K+", "1K-1x", "1Kx", "1_K", "_1K", "1K_", "1,5K", "1e3", "0x10", "1iB",
};

static const char *const large_sizes[] = {
	"8192P", "9223372036854775806", "9223372036854775807", "99999999999999999999", "-1", "0-1",
};

/* --max-size=TEXT fails with the message that ends in `why`. */
static void assert_size_is_refused(const char *text, const char *why)
{
	char *line = xasprintf("--max-size=%s a b", text), *error = xasprintf("--max-size=%s is %s", text, why);

	for (char *p = error; *p; p++)
		if (*p == '_')
			*p = ' ';
	assert_fails(line, 1, error);
	free(line);
	free(error);
}

UNIT_TEST(sizes)
{
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char *line = xasprintf("--max-size=%s a b", sizes[i].text);
		struct parsed parsed;

		assert_parses(&parsed, line);
		if (parsed.options.max_size != sizes[i].value)
			fail_msg("\"%s\": %lld", sizes[i].text, (long long)parsed.options.max_size);
		parsed_free(&parsed);
		free(line);
	}
	for (size_t i = 0; i < sizeof invalid_sizes / sizeof *invalid_sizes; i++)
		assert_size_is_refused(invalid_sizes[i], "invalid");
	for (size_t i = 0; i < sizeof large_sizes / sizeof *large_sizes; i++)
		assert_size_is_refused(large_sizes[i], "too large");
}

UNIT_TEST(bwlimit_is_rounded_to_kib)
{
	static const struct { const char *text; uint32_t kib; } vectors[] = {
		{ "512b", 1 }, { "600b", 1 }, { "1023b", 1 }, { "1535b", 1 }, { "1536b", 2 }, { "1.5", 2 }, { "0.5", 1 },
		{ "1MB", 977 }, { "1m", 1024 }, { "10KB+1", 10 }, { "0", 0 },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("--server --sender --bwlimit=%s . x", vectors[i].text);
		struct parsed parsed;

		assert_parses(&parsed, line);
		assert_int_equal(parsed.options.bwlimit, vectors[i].kib);
		parsed_free(&parsed);
		free(line);
	}
	assert_fails("--server --sender --bwlimit=511b . x", 1, "--bwlimit=511b is too small (min: 512 or 0 for unlimited)");
	assert_fails("--server --sender --bwlimit=0.4 . x", 1, "--bwlimit=0.4 is too small (min: 512 or 0 for unlimited)");
}

UNIT_TEST(integers_are_of_base_zero)
{
	static const struct { const char *word; int value; } vectors[] = {
		{ "--timeout=16", 16 }, { "--timeout=0x10", 16 }, { "--timeout=020", 16 }, { "--timeout=+16", 16 },
		{ "--timeout=_16", 16 }, { "--timeout=010", 8 }, { "--timeout=", 0 }, { "--timeout -3", 0 },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("--server --sender %s . x", vectors[i].word);
		struct parsed parsed;

		assert_parses(&parsed, line);
		if (parsed.options.timeout != vectors[i].value)
			fail_msg("%s: %d", line, parsed.options.timeout);
		parsed_free(&parsed);
		free(line);
	}
	assert_fails("--server --timeout=5_ . x", 1, "on remote machine: --timeout=5 : invalid numeric value");
	assert_fails("--max-delete=5x a b", 1, "--max-delete=5x: invalid numeric value");
	assert_fails("--max-delete SRC b", 1, "SRC: invalid numeric value");
}

static time_t at(int year, int month, int day, int hour, int minute, int second)
{
	struct tm tm = {
		.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour, .tm_min = minute,
		.tm_sec = second,
		.tm_isdst = -1,
	};

	return mktime(&tm);
}

struct time_vector {
	const char *text;
	int year, month, day, hour, minute;
};

/* now = 2026-11-21 10:30:15 */
static const struct time_vector times[] = {
	{ "2027-01-02T03:04", 2027, 1, 2, 3, 4 }, { "2027/01/02t3:4", 2027, 1, 2, 3, 4 }, { "2027-01-02", 2027, 1, 2, 0, 0 },
	{ "27-01-02", 2027, 1, 2, 0, 0 }, { "2027-01-02T", 2027, 1, 2, 0, 0 }, { "25-01-01", 2125, 1, 1, 0, 0 },
	{ "12-25", 2026, 12, 25, 0, 0 }, { "11-21", 2027, 11, 21, 0, 0 }, { "11-20", 2027, 11, 20, 0, 0 },
	{ "21", 2026, 12, 21, 0, 0 }, { "22", 2026, 11, 22, 0, 0 }, { "31", 2026, 12, 31, 0, 0 }, { "1", 2026, 12, 1, 0, 0 },
	{ "2-29", 2028, 2, 29, 0, 0 }, { "2027-02-29", 2027, 3, 1, 0, 0 }, { "21T10:31", 2026, 11, 21, 10, 31 },
	{ "21T10:30", 2026, 12, 21, 10, 30 }, { "10:31", 2026, 11, 21, 10, 31 }, { "T10:31", 2026, 11, 21, 10, 31 },
	{ "10:30", 2026, 11, 22, 10, 30 }, { "10:29", 2026, 11, 22, 10, 29 }, { "2:5", 2026, 11, 22, 2, 5 },
	{ ":45", 2026, 11, 21, 10, 45 }, { ":31", 2026, 11, 21, 10, 31 }, { ":30", 2026, 11, 21, 11, 30 },
	{ ":29", 2026, 11, 21, 11, 29 }, { ":0", 2026, 11, 21, 11, 0 },
};

static const char *const invalid_times[] = {
	"", "0", "32", "24:00", "23:60", ":60", "T", "T5", "T45", "T:45", "25T:15", "5:", "2027-1", "2027-13-01", "4-31",
	"2-30",
	"2027-1-2-3", "2027--1", "-1", "2027-01-02T5", "10:31:20", "2027-01-02T03:04:05", "2026-11-21 12:00", "12:30pm", "now",
	"99999999999999999999",
};

static const char *const past_times[] = { "2026-11-21T10:30", "1999-01-01", "100-01-01" };

UNIT_TEST(stop_at)
{
	time_t now = at(2026, 11, 21, 10, 30, 15), when;

	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		const struct time_vector *v = &times[i];
		time_t expected = at(v->year, v->month, v->day, v->hour, v->minute, 0);

		when = 0;
		if (stop_at_parse(v->text, now, &when) != STOP_OK || when != expected)
			fail_msg("\"%s\" is %s", v->text, ctime(&when));
	}
	for (size_t i = 0; i < sizeof invalid_times / sizeof *invalid_times; i++)
		if (stop_at_parse(invalid_times[i], now, &when) != STOP_INVALID)
			fail_msg("\"%s\" is taken for a time", invalid_times[i]);
	for (size_t i = 0; i < sizeof past_times / sizeof *past_times; i++)
		if (stop_at_parse(past_times[i], now, &when) != STOP_PAST)
			fail_msg("\"%s\" is not past", past_times[i]);
	assert_int_equal(stop_at_parse("31", at(2026, 1, 31, 12, 0, 0), &when), STOP_OK);
	assert_int_equal(when, at(2026, 3, 31, 0, 0, 0));
	assert_int_equal(stop_at_parse("0:01", at(2026, 12, 31, 23, 59, 30), &when), STOP_OK);
	assert_int_equal(when, at(2027, 1, 1, 0, 1, 0));
}

UNIT_TEST(stop_after)
{
	static const char *const wrong[] = { "", "0", "-1", "x", "99999999999999999999" };
	time_t when;

	assert_true(stop_after_parse("5", 1000, &when));
	assert_int_equal(when, 1300);
	assert_true(stop_after_parse(" +2x", 1000, &when));
	assert_int_equal(when, 1120);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (stop_after_parse(wrong[i], 1000, &when))
			fail_msg("\"%s\" is taken for minutes", wrong[i]);
	assert_fails("--server --sender --stop-after=0 . x", 1, "invalid --stop-after value: 0");
	assert_fails("--server --sender --stop-at=24:00 . x", 1, "invalid --stop-at format: 24:00");
	assert_fails("--server --sender --stop-at=1999-01-01 . x", 1, "--stop-at time is not in the future: 1999-01-01");
}

UNIT_TEST(remote_arguments)
{
	static const char *const remote[] = {
		"h:x", "u@h:x", "u@v@h:x", "@h:x", "h:", "[::1]:x", "u@[::1]:x", "[fe80::1%eth0]:x", "h::m/p", "h::", "::m",
		"rsync://h", "rsync://h/", "RSYNC://h:/m", "rsync://h:99/m", "rsync://h:99", "rsync://[::1]:88/m",
		"rsync://h:abc/m",
		"rsync://h:99x/m", "rsync://u:p@h/m", "rsync:/h/m", "C:\\x", "a b:x", ":x",
	};
	static const char *const local[] = {
		"./h:x", "/h:x", "a/b:c", "[::1]x:y", "[::1]", "[]:x", "[1:x", "x[1]:y", "", ".", "a", "a@b", "a@b/c:d",
	};

	for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
		if (!argument_is_remote(remote[i]))
			fail_msg("\"%s\" is taken for local", remote[i]);
	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		if (argument_is_remote(local[i]))
			fail_msg("\"%s\" is taken for remote", local[i]);
}

UNIT_TEST(stderr_words)
{
	static const struct { const char *word; enum stderr_mode mode; } vectors[] = {
		{ "--stderr=errors", STDERR_ERRORS }, { "--stderr=e", STDERR_ERRORS }, { "--stderr=al", STDERR_ALL },
		{ "--stderr=client", STDERR_CLIENT }, { "--msgs2stderr", STDERR_ALL }, { "--no-msgs2stderr", STDERR_CLIENT },
	};

	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char *line = xasprintf("%s a b", vectors[i].word);
		struct parsed parsed;

		assert_parses(&parsed, line);
		assert_int_equal(parsed.options.stderr_mode, vectors[i].mode);
		assert_true(parsed.options.stderr_mode_given);
		parsed_free(&parsed);
		free(line);
	}
	assert_fails("--stderr=x a b", 1, "--stderr mode \"x\" is not one of errors, all, or client");
	assert_fails("--stderr= a b", 1, "--stderr mode \"\" is not one of errors, all, or client");
	assert_fails("--stderr=errorsx a b", 1, "--stderr mode \"errorsx\" is not one of errors, all, or client");
}

static int set_environment(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	return 0;
}

UNIT_GROUP(set_environment, NULL)
