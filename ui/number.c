/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers as the four levels of --human-readable write them; the lines of a listing; the statistics that end a run. */
#include "ui/number.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/log.h"
#include "lib/strbuf.h"

void kind_count(struct kind_counts *counts, mode_t mode)
{
	counts->total++;
	counts->dirs += S_ISDIR(mode);
	counts->links += S_ISLNK(mode);
	counts->devices += S_ISCHR(mode) || S_ISBLK(mode);
	counts->specials += S_ISFIFO(mode) || S_ISSOCK(mode);
}

/* --- numbers --- */

/* Copies `digits`: an optional sign, digits, any tail from the first other character; grouped: with separators between
 * thousands. Returns buf. */
static const char *copy_digits(char *buf, size_t size, const char *digits, bool grouped)
{
	const char *point = localeconv()->decimal_point;
	char separator = point && point[0] != '.' ? '.' : ',';
	size_t sign = digits[0] == '-' ? 1 : 0, whole = strspn(digits + sign, "0123456789"), used = 0;

	for (size_t i = 0; digits[i] && used + 2 < size; i++) {
		if (grouped && i > sign && i < sign + whole && (sign + whole - i) % 3 == 0)
			buf[used++] = separator;
		buf[used++] = digits[i];
	}
	buf[used] = '\0';
	return buf;
}

/* Write `value` with a unit letter if it is at least one unit; false if it is not. */
static bool format_with_unit(char *buf, size_t size, double value, int level)
{
	static const char units[] = "KMGTP";
	double base = level == 2 ? 1000.0 : 1024.0;
	double magnitude = value < 0 ? -value : value;
	int unit = -1;

	while (magnitude >= base && unit + 1 < (int)sizeof units - 1) {
		magnitude /= base;
		unit++;
	}
	if (unit < 0)
		return false;
	snprintf(buf, size, "%s%.2f%c", value < 0 ? "-" : "", magnitude, units[unit]);
	return true;
}

const char *number_format(char *buf, size_t size, int64_t value, int level)
{
	char digits[32];

	if (level >= 2 && format_with_unit(buf, size, (double)value, level))
		return buf;
	snprintf(digits, sizeof digits, "%" PRId64, value);
	return copy_digits(buf, size, digits, level > 0);
}

static const char *format_fraction(char *buf, size_t size, double value, int level)
{
	char digits[512];

	if (level >= 2 && format_with_unit(buf, size, value, level))
		return buf;
	snprintf(digits, sizeof digits, "%.2f", value);
	return copy_digits(buf, size, digits, level > 0);
}

/* --- lines of --list-only (doc/protocol/06-command-line.md section 8.9) --- */

/* The bits without a column of their own take the place of the x before them: lower case if the x is set as well. */
static char execute_letter(uint32_t mode, uint32_t x_bit, uint32_t special_bit, char special)
{
	if (!(mode & special_bit))
		return mode & x_bit ? 'x' : '-';
	return mode & x_bit ? special : (char)(special - 'a' + 'A');
}

void permission_letters(uint32_t mode, char out[10])
{
	static const char letters[] = "rwxrwxrwx";

	for (int i = 0; i < 9; i++)
		out[i] = mode & (0400u >> i) ? letters[i] : '-';
	out[2] = execute_letter(mode, S_IXUSR, S_ISUID, 's');
	out[5] = execute_letter(mode, S_IXGRP, S_ISGID, 's');
	out[8] = execute_letter(mode, S_IXOTH, S_ISVTX, 't');
	out[9] = '\0';
}

void listing_time(struct strbuf *out, int64_t seconds)
{
	time_t when = (time_t)seconds;
	struct tm parts;
	char text[64];

	if (localtime_r(&when, &parts) && strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", &parts))
		strbuf_add_string(out, text);
	else
		strbuf_add_string(out, "(time out of range)");
}

void listing_line(struct strbuf *out, const struct entries *list, const struct entry *entry, uint32_t mode, const char *path,
		  int number_level, bool with_atime, bool with_target)
{
	static const char types[] = "-pc-d-b---l-s---"; /* by the four bits of the type */
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(list, entry, &expanded);
	char letters[10], number[64];

	if (!mode) {
		strbuf_addf(out, "%-45s %s", "*missing", path);
		return;
	}
	permission_letters(mode, letters);
	number_format(number, sizeof number, (int64_t)entry->size, number_level);
	strbuf_addf(out, "%c%s %*s ", types[(mode & S_IFMT) >> 12], letters, number_level > 0 ? 14 : 11, number);
	listing_time(out, entry->mtime);
	if (with_atime) {
		strbuf_add_char(out, ' ');
		if (entry_is_dir(entry) || !side)
			strbuf_addf(out, "%19s", "");
		else
			listing_time(out, side->atime);
	}
	strbuf_addf(out, " %s", path);
	if (with_target && entry_is_symlink(entry))
		strbuf_addf(out, " -> %s", entry_target(list, entry));
}

/* --- the block of --stats and the two lines that end a verbose run --- */

/* Counts are never abbreviated: plain digits with --no-h, else grouped. */
static int count_level(int number_level)
{
	return number_level > 0 ? 1 : 0;
}

static void print_kinds(const char *title, const struct kind_counts *counts, int number_level)
{
	const struct { const char *name; uint64_t number; } kinds[] = {
		{ "reg", counts->total - counts->dirs - counts->links - counts->devices - counts->specials },
		{ "dir", counts->dirs },
		{ "link", counts->links },
		{ "dev", counts->devices },
		{ "special", counts->specials },
	};
	struct strbuf line = STRBUF_INIT;
	int level = count_level(number_level);
	const char *before = " (";
	char number[64];

	strbuf_addf(&line, "%s: %s", title, number_format(number, sizeof number, (int64_t)counts->total, level));
	for (size_t i = 0; counts->total && i < sizeof kinds / sizeof kinds[0]; i++) {
		if (!kinds[i].number)
			continue;
		number_format(number, sizeof number, (int64_t)kinds[i].number, level);
		strbuf_addf(&line, "%s%s: %s", before, kinds[i].name, number);
		before = ", ";
	}
	if (before[0] == ',')
		strbuf_add_char(&line, ')');
	log_info("%s", strbuf_text(&line));
	strbuf_free(&line);
}

static void print_bytes(const char *title, uint64_t value, const char *unit, int number_level)
{
	char number[64];

	log_info("%s: %s%s", title, number_format(number, sizeof number, (int64_t)value, number_level), unit);
}

void stats_print(const struct run_stats *stats, int number_level, bool full, bool trailer, const char *kind_of_run)
{
	if (full) {
		log_msg(L_CLIENT, "\n");
		print_kinds("Number of files", &stats->files, number_level);
		if (stats->caps.created_counts)
			print_kinds("Number of created files", &stats->created, number_level);
		if (stats->caps.delete_stats)
			print_kinds("Number of deleted files", &stats->deleted, number_level);
		print_bytes("Number of regular files transferred", stats->transferred_files, "", count_level(number_level));
		print_bytes("Total file size", stats->total_size, " bytes", number_level);
		print_bytes("Total transferred file size", stats->transferred_size, " bytes", number_level);
		print_bytes("Literal data", stats->literal, " bytes", number_level);
		if (stats->caps.block_stats)
			print_bytes("Number of 4 KiB logical blocks touched", stats->blocks, "", count_level(number_level));
		print_bytes("Matched data", stats->matched, " bytes", number_level);
		print_bytes("File list size", stats->list_size, "", number_level);
		if (stats->list_build_ms) {
			log_info("File list generation time: %" PRId64 ".%03d seconds", stats->list_build_ms / 1000,
				 (int)(stats->list_build_ms % 1000));
			log_info("File list transfer time: %" PRId64 ".%03d seconds", stats->list_transfer_ms / 1000,
				 (int)(stats->list_transfer_ms % 1000));
		}
		print_bytes("Total bytes sent", stats->sent, "", number_level);
		print_bytes("Total bytes received", stats->received, "", number_level);
	}
	if (full || trailer) {
		char sent[64], received[64], rate[64], total[64], speedup[64];
		double moved = (double)(stats->sent + stats->received);

		number_format(sent, sizeof sent, (int64_t)stats->sent, number_level);
		number_format(received, sizeof received, (int64_t)stats->received, number_level);
		format_fraction(rate, sizeof rate, moved / (0.5 + (double)stats->elapsed_seconds), number_level);
		number_format(total, sizeof total, (int64_t)stats->total_size, number_level);
		format_fraction(speedup, sizeof speedup, moved > 0 ? (double)stats->total_size / moved : 0.0, 1);
		log_msg(L_CLIENT, "\n");
		log_info("sent %s bytes  received %s bytes  %s bytes/sec", sent, received, rate);
		log_info("total size is %s  speedup is %s%s", total, speedup, kind_of_run);
	}
}
