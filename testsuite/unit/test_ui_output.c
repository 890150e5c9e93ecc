/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What users read: numbers, itemized strings, log formats, listings. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "testsuite/unit/unit.h"

#include "lib/log.h"
#include "lib/strbuf.h"
#include "ui/itemize.h"
#include "ui/number.h"
#include "wire/request.h"

/* doc/protocol/06-command-line.md section 8.5; NULL: not in the table. */
UNIT_TEST(number_styles)
{
	static const struct { int64_t value; const char *text[4]; } vectors[] = {
		{ 999, { "999", "999", "999", "999" } },
		{ 1000, { "1000", "1,000", "1.00K", "1,000" } },
		{ 1024, { "1024", "1,024", "1.02K", "1.00K" } },
		{ 9999, { "9999", "9,999", "10.00K", "9.76K" } },
		{ 999994, { "999994", "999,994", "999.99K", "976.56K" } },
		{ 999999, { "999999", "999,999", "1000.00K", "976.56K" } },
		{ 1048575, { NULL, NULL, "1.05M", "1024.00K" } },
		{ 1048576, { NULL, "1,048,576", "1.05M", "1.00M" } },
		{ 1234567890, { NULL, "1,234,567,890", "1.23G", "1.15G" } },
		{ INT64_C(1) << 40, { NULL, NULL, "1.10T", "1.00T" } },
		{ -1234, { "-1234", "-1,234", "-1.23K", "-1.21K" } },
		{ 0, { "0", "0", "0", "0" } },
	};
	char buf[64];

	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
		for (int level = 0; level < 4; level++)
			if (vectors[i].text[level])
				assert_string_equal(number_format(buf, sizeof buf, vectors[i].value, level),
						vectors[i].text[level]);
}

static void keep_line(void *context, enum log_kind kind, const char *text, size_t length)
{
	if (kind == L_INFO)
		strbuf_add(context, text, length);
}

/* The two lines that end a run which took no time. */
static void assert_trailer(uint64_t sent, uint64_t total_size, int number_level, const char *expected)
{
	struct run_stats stats = { .sent = sent, .total_size = total_size };
	struct strbuf lines = STRBUF_INIT;
	struct log_sink before = log_set_sink((struct log_sink){ keep_line, &lines });

	stats_print(&stats, number_level, false, true, "");
	log_set_sink(before);
	assert_string_equal(strbuf_text(&lines), expected);
	strbuf_free(&lines);
}

UNIT_TEST(fractions)
{
	assert_trailer(5520, 5023, 0,
		       "sent 5520 bytes  received 0 bytes  11040.00 bytes/sec\n"
		       "total size is 5023  speedup is 0.91\n");
	assert_trailer(5520, 60940800, 1,
		       "sent 5,520 bytes  received 0 bytes  11,040.00 bytes/sec\n"
		       "total size is 60,940,800  speedup is 11,040.00\n");
	assert_trailer(5520, 0, 2,
		       "sent 5.52K bytes  received 0 bytes  11.04K bytes/sec\n"
		       "total size is 0  speedup is 0.00\n");
	assert_trailer(1000, 999994, 1,
		       "sent 1,000 bytes  received 0 bytes  2,000.00 bytes/sec\n"
		       "total size is 999,994  speedup is 999.99\n");
}

static void assert_item(uint32_t flags, uint32_t mode, bool times_kept, bool sends, const char *expected)
{
	struct item_look look = { .flags = flags, .mode = mode, .times_kept = times_kept, .sends = sends };
	char item[12];

	itemize(&look, item);
	assert_string_equal(item, expected);
}

/* doc/protocol/03-transfer.md section 9.2, as a push prints them. */
UNIT_TEST(itemized_strings)
{
	assert_item(0xa000, S_IFREG, true, true, "<f+++++++++");
	assert_item(0xa000, S_IFREG, true, false, ">f+++++++++");
	assert_item(0x8008, S_IFREG, true, true, "<f..t......");
	assert_item(0x8008, S_IFREG, false, true, "<f..T......");
	assert_item(0x800c, S_IFREG, true, true, "<f.st......");
	assert_item(0x800e, S_IFREG, true, true, "<fcst......");
	assert_item(0x8018, S_IFREG, false, true, "<f..Tp.....");
	assert_item(0x8009, S_IFREG, true, true, "<f..t...u..");
	assert_item(0x8408, S_IFREG, true, true, "<f..t...n..");
	assert_item(0x8409, S_IFREG, true, true, "<f..t...b..");
	assert_item(0x8000, S_IFREG, true, true, "<f.........");
	assert_item(0x0008, S_IFREG, true, true, ".f..t......");
	assert_item(0x0060, S_IFREG, true, true, ".f....og...");
	assert_item(0x0010, S_IFREG, true, true, ".f...p.....");
	assert_item(0x0180, S_IFREG, true, true, ".f.......ax");
	assert_item(0x0000, S_IFREG, true, true, ".f         ");
	assert_item(0x0008, S_IFDIR, true, true, ".d..t......");
	assert_item(0x6000, S_IFDIR, true, true, "cd+++++++++");
	assert_item(0x6002, S_IFLNK, true, true, "cL+++++++++");
	assert_item(0x4002, S_IFLNK, true, true, "cLc........");
	assert_item(0x400e, S_IFLNK, true, true, "cLc.T......");
	assert_item(0x6002, S_IFCHR, true, true, "cD+++++++++");
	assert_item(0x6002, S_IFSOCK, true, true, "cS+++++++++");
	assert_item(0x7000, S_IFREG, true, true, "hf+++++++++");
	assert_item(0x5008, S_IFREG, true, true, "hf..t......");
	assert_item(0x5000, S_IFREG, true, true, "hf         ");
	assert_item(0x4010, S_IFREG, true, true, "cf...p.....");
	assert_item(0x4000, S_IFREG, true, true, "cf         ");
	assert_item(ITEM_DELETED, S_IFREG, true, true, "*deleting  ");
}

UNIT_TEST(unknown_flags_are_question_marks)
{
	struct item_look look = { .flags = ITEM_TRANSFER, .mode = S_IFREG, .sends = true, .unknown = true };
	char item[12];

	itemize(&look, item);
	assert_string_equal(item, "<f?????????");
}

static struct format_values sample(void)
{
	return (struct format_values){
		.look = { .flags = 0x8008, .mode = S_IFREG | 04755, .times_kept = true },
		.name = "dir/name", .shown = "src/dir/name", .length = 4096, .transferred = 4100, .mtime = 1704067200,
		.uid = 5, .gid = 6, .pid = 77, .operation = "send",
	};
}

static void assert_format(const struct format_values *values, const char *format, const char *expected)
{
	struct strbuf out = STRBUF_INIT;

	format_expand(format, values, &out);
	assert_string_equal(strbuf_text(&out), expected);
	strbuf_free(&out);
}

UNIT_TEST(format_escapes)
{
	struct format_values values = sample();

	assert_format(&values, "%i %n%L", ">f..t...... dir/name");
	assert_format(&values, "%o %f %l %b %c %p %U %G", "send src/dir/name 4096 4100 0 77 5 6");
	assert_format(&values, "%B %M", "rwsr-xr-x 2024/01/01-00:00:00");
	assert_format(&values, "%m|%%|100%", "|%|100%");
	assert_format(&values, "%C.", "                                .");
	values.group_not_kept = true;
	assert_format(&values, "%G", "DEFAULT");
}

UNIT_TEST(escapes_without_a_value_stay)
{
	struct format_values values = sample();

	assert_format(&values, "%a %h %P %u %z %-5y %", "%a %h %P %u %z %-5y %");
	values.address = "::1";
	values.host = "localhost";
	values.user = "";
	values.module = "mod";
	values.module_path = "/srv";
	assert_format(&values, "%a %h %P %u|%m", "::1 localhost /srv |mod");
}

UNIT_TEST(format_widths)
{
	struct format_values values = sample();

	assert_format(&values, "%10l|", "      4096|");
	assert_format(&values, "%-10l|", "4096      |");
	assert_format(&values, "%010l|", "      4096|");
	assert_format(&values, "%'l %''l %'''l", "4,096 4.10K 4.00K");
	assert_format(&values, "%'10l|%10'l|", "     4,096|     4,096|");
	assert_format(&values, "%3o|", "send|");
	assert_format(&values, "%20L|", "                        |");
	values.link = "a.txt";
	assert_format(&values, "%20L|", " ->                a.txt|");
	values.link_is_hard = true;
	assert_format(&values, "%n%L", "dir/name => a.txt");
}

UNIT_TEST(absurd_width_is_bounded)
{
	struct format_values values = sample();
	struct strbuf out = STRBUF_INIT;

	format_expand("%9999999999999999999999l", &values, &out);
	assert_in_range(out.length, 4, 10000);
	strbuf_free(&out);
}

UNIT_TEST(directories_end_in_a_slash)
{
	struct format_values values = sample();

	values.look.mode = S_IFDIR | 0755;
	assert_format(&values, "%n|%f|%5n", "dir/name/|src/dir/name|dir/name/");
}

UNIT_TEST(deletions)
{
	struct format_values values = sample();

	values.is_deletion = true;
	assert_format(&values, "%o %i%n %l %b %B %M", "del. *deleting  dir/name 0 0 --------- 1970/01/01-00:00:00");
}

UNIT_TEST(digest)
{
	static const uint8_t digest[] = { 0x00, 0xff, 0x10, 0xab };
	struct format_values values = sample();

	values.digest = digest;
	values.digest_length = 4;
	assert_format(&values, "%C|%-10C|", "00ff10ab|00ff10ab  |");
}

UNIT_TEST(format_uses)
{
	assert_true(format_uses("%o %'-10i", 'i'));
	assert_false(format_uses("%%i %n", 'i'));
	assert_false(format_uses("", 'n'));
	assert_true(format_uses("%", '\0'));
}

static void assert_listing(struct entries *list, const char *path, int level, bool atime, bool target, const char *expected)
{
	struct strbuf out = STRBUF_INIT;

	listing_line(&out, list, &list->items[0], list->items[0].mode, path, level, atime, target);
	assert_string_equal(strbuf_text(&out), expected);
	strbuf_free(&out);
}

UNIT_TEST(listing_lines)
{
	struct entries list;
	struct entry *entry;

	entries_init(&list);
	entry = entries_add(&list, "big", 3);
	entry->mode = S_IFREG | 0644;
	entry->size = 1234567;
	entry->mtime = 1709618828;
	assert_listing(&list, "big", 1, false, false, "-rw-r--r--      1,234,567 2024/03/05 06:07:08 big");
	assert_listing(&list, "big", 0, false, false, "-rw-r--r--     1234567 2024/03/05 06:07:08 big");
	assert_listing(&list, "big", 3, false, false, "-rw-r--r--          1.18M 2024/03/05 06:07:08 big");
	entry->size = 123456789012;
	assert_listing(&list, "huge", 1, false, false, "-rw-r--r-- 123,456,789,012 2024/03/05 06:07:08 huge");
	entry->size = 5;
	entry->mode = S_IFREG | 04755;
	entries_side(&list, entry)->atime = 1612325106;
	assert_listing(&list, "f1", 1, true, false, "-rwsr-xr-x              5 2024/03/05 06:07:08 2021/02/03 04:05:06 f1");
	entry->mode = S_IFDIR | 01777;
	assert_listing(&list, "d", 1, true, false, "drwxrwxrwt              5 2024/03/05 06:07:08                     d");
	entry->mode = S_IFLNK | 0777;
	entries_set_target(&list, entry, "f1", 2);
	assert_listing(&list, "l", 1, false, true, "lrwxrwxrwx              5 2024/03/05 06:07:08 l -> f1");
	assert_listing(&list, "l", 1, false, false, "lrwxrwxrwx              5 2024/03/05 06:07:08 l");
	entry->mode = 0;
	assert_listing(&list, "nope", 1, false, false, "*missing                                      nope");
	entry->mode = S_IFREG | 02640;
	entry->mtime = INT64_MAX;
	assert_listing(&list, "x", 1, false, false, "-rw-r-S---              5 (time out of range) x");
	entries_free(&list);
}

static int set_environment(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

UNIT_GROUP(set_environment, NULL)
