/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The block of --stats and the two lines that end a verbose run. */
#include <inttypes.h>

#include "lib/log.h"
#include "lib/strbuf.h"
#include "ui/number.h"
#include "ui/stats.h"

/* Counts are never abbreviated: plain digits with --no-h, else grouped. */
static int count_level(int number_level)
{
	return number_level > 0 ? 1 : 0;
}

static void add_kinds(struct strbuf *line, const struct kind_counts *counts, int level)
{
	const struct { const char *name; uint64_t number; } kinds[] = {
		{ "reg", counts->total - counts->dirs - counts->links - counts->devices - counts->specials },
		{ "dir", counts->dirs },
		{ "link", counts->links },
		{ "dev", counts->devices },
		{ "special", counts->specials },
	};
	const char *before = " (";
	char number[64];

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (!kinds[i].number)
			continue;
		number_format(number, sizeof number, (int64_t)kinds[i].number, level);
		strbuf_addf(line, "%s%s: %s", before, kinds[i].name, number);
		before = ", ";
	}
	if (before[0] == ',')
		strbuf_add_char(line, ')');
}

static void print_kinds(const char *title, const struct kind_counts *counts, int number_level)
{
	struct strbuf line = STRBUF_INIT;
	int level = count_level(number_level);
	char number[64];

	strbuf_addf(&line, "%s: %s", title, number_format(number, sizeof number, (int64_t)counts->total, level));
	if (counts->total)
		add_kinds(&line, counts, level);
	log_info("%s", strbuf_text(&line));
	strbuf_free(&line);
}

static void print_bytes(const char *title, uint64_t value, const char *unit, int number_level)
{
	char number[64];

	log_info("%s: %s%s", title, number_format(number, sizeof number, (int64_t)value, number_level), unit);
}

static void print_block(const struct run_stats *stats, int number_level)
{
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

static void print_trailer(const struct run_stats *stats, int number_level, const char *kind_of_run)
{
	char sent[64], received[64], rate[64], total[64], speedup[64];
	double moved = (double)(stats->sent + stats->received);

	number_format(sent, sizeof sent, (int64_t)stats->sent, number_level);
	number_format(received, sizeof received, (int64_t)stats->received, number_level);
	number_format_fraction(rate, sizeof rate, moved / (0.5 + (double)stats->elapsed_seconds), number_level);
	number_format(total, sizeof total, (int64_t)stats->total_size, number_level);
	number_format_fraction(speedup, sizeof speedup, moved > 0 ? (double)stats->total_size / moved : 0.0, 1);
	log_msg(L_CLIENT, "\n");
	log_info("sent %s bytes  received %s bytes  %s bytes/sec", sent, received, rate);
	log_info("total size is %s  speedup is %s%s", total, speedup, kind_of_run);
}

void stats_print(const struct run_stats *stats, int number_level, bool full, bool trailer, const char *kind_of_run)
{
	if (full)
		print_block(stats, number_level);
	if (full || trailer)
		print_trailer(stats, number_level, kind_of_run);
}
