/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The --info and --debug words, their levels, and what each -v adds to them. */
#include "ui/levels.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "lib/alloc.h"
#include "lib/strbuf.h"

#define LEVEL_MAX 4   /* of one word */
#define VERBOSE_MAX 5 /* more -v add nothing */
#define COMMON_MIN 5  /* as many words with one level are worth an ALL */
#define NOT_GIVEN 0xff

/* from[v]: the level that v times -v gives the word; cumulative (doc/protocol/06-command-line.md section 7.2). */
struct word {
	const char *name;
	uint8_t from[VERBOSE_MAX + 1];
	const char *help;
};

static const struct word info_words[INFO_COUNT] = {
	[INFO_BACKUP] = { "BACKUP", { 0, 0, 1, 1, 1, 1 }, "files that were backed up" },
	[INFO_COPY] = { "COPY", { 0, 1, 1, 1, 1, 1 }, "trouble while copying a file locally" },
	[INFO_DEL] = { "DEL", { 0, 1, 1, 1, 1, 1 }, "deletions" },
	[INFO_FLIST] = { "FLIST", { 0, 1, 1, 1, 1, 1 }, "the file list: 1 that it is made, 2 a running count" },
	[INFO_MISC] = { "MISC", { 0, 1, 2, 2, 2, 2 }, "this and that (levels 1-2)" },
	[INFO_MOUNT] = { "MOUNT", { 0, 0, 1, 1, 1, 1 }, "mount points that were skipped or kept" },
	[INFO_NAME] = { "NAME", { 0, 1, 2, 2, 2, 2 }, "names: 1 of what changed, 2 also of what did not" },
	[INFO_NONREG] = { "NONREG", { 1, 1, 1, 1, 1, 1 }, "non-regular files that were skipped (on unless set to 0)" },
	[INFO_PROGRESS] = { "PROGRESS", { 0, 0, 0, 0, 0, 0 }, "progress: 1 of each file, 2 of the whole run" },
	[INFO_REMOVE] = { "REMOVE", { 0, 0, 1, 1, 1, 1 }, "sources that were removed" },
	[INFO_SKIP] = { "SKIP", { 0, 0, 1, 1, 1, 1 }, "files an option held back: 1 which, 2 and why" },
	[INFO_STATS] = { "STATS", { 0, 1, 1, 1, 1, 1 }, "closing statistics: 1 two lines, 2 a block, 3 everything" },
	[INFO_SYMSAFE] = { "SYMSAFE", { 0, 1, 1, 1, 1, 1 }, "unsafe symlinks" },
};

static const struct word debug_words[DEBUG_COUNT] = {
	[DEBUG_ACL] = { "ACL", { 0, 0, 0, 1, 1, 1 }, "access control lists" },
	[DEBUG_BACKUP] = { "BACKUP", { 0, 0, 0, 1, 1, 1 }, "backups (levels 1-2)" },
	[DEBUG_BIND] = { "BIND", { 0, 0, 1, 1, 1, 1 }, "binding of sockets" },
	[DEBUG_CHDIR] = { "CHDIR", { 0, 0, 0, 0, 0, 1 }, "changes of directory" },
	[DEBUG_CONNECT] = { "CONNECT", { 0, 0, 1, 2, 2, 2 }, "connections (levels 1-2)" },
	[DEBUG_CMD] = { "CMD", { 0, 0, 1, 1, 2, 2 }, "commands that are run (levels 1-2)" },
	[DEBUG_DEL] = { "DEL", { 0, 0, 1, 2, 3, 3 }, "deletions (levels 1-3)" },
	[DEBUG_DELTASUM] = { "DELTASUM", { 0, 0, 1, 2, 3, 4 }, "checksums and matches (levels 1-4)" },
	[DEBUG_DUP] = { "DUP", { 0, 0, 1, 1, 1, 1 }, "names that occur twice" },
	[DEBUG_EXIT] = { "EXIT", { 0, 0, 0, 1, 2, 2 }, "the way out (levels 1-3)" },
	[DEBUG_FILTER] = { "FILTER", { 0, 0, 1, 2, 2, 2 }, "filter rules (levels 1-3)" },
	[DEBUG_FLIST] = { "FLIST", { 0, 0, 1, 2, 3, 4 }, "the file list (levels 1-4)" },
	[DEBUG_FUZZY] = { "FUZZY", { 0, 0, 0, 1, 1, 2 }, "the search for similar names (levels 1-2)" },
	[DEBUG_GENR] = { "GENR", { 0, 0, 0, 1, 1, 1 }, "the generator" },
	[DEBUG_HASH] = { "HASH", { 0, 0, 0, 0, 0, 1 }, "hash tables" },
	[DEBUG_HLINK] = { "HLINK", { 0, 0, 0, 0, 0, 1 }, "hard links (levels 1-3)" },
	[DEBUG_ICONV] = { "ICONV", { 0, 0, 1, 1, 2, 2 }, "conversion of names (levels 1-2)" },
	[DEBUG_IO] = { "IO", { 0, 0, 0, 0, 0, 0 }, "reading and writing (levels 1-4)" },
	[DEBUG_NSTR] = { "NSTR", { 0, 0, 0, 0, 0, 0 }, "negotiated algorithms" },
	[DEBUG_OWN] = { "OWN", { 0, 0, 0, 1, 2, 2 }, "owners and groups (levels 1-2)" },
	[DEBUG_PROTO] = { "PROTO", { 0, 0, 0, 0, 1, 1 }, "the protocol" },
	[DEBUG_RECV] = { "RECV", { 0, 0, 0, 1, 1, 1 }, "the receiver" },
	[DEBUG_SEND] = { "SEND", { 0, 0, 0, 1, 1, 1 }, "the sender" },
	[DEBUG_TIME] = { "TIME", { 0, 0, 0, 1, 2, 2 }, "setting of times (levels 1-2)" },
};

struct word_table {
	const struct word *words;
	int count;
	const char *option;
};

static const struct word_table info_table = { info_words, INFO_COUNT, "--info" };
static const struct word_table debug_table = { debug_words, DEBUG_COUNT, "--debug" };

void ui_levels_from_verbose(struct ui_levels *levels, int verbose)
{
	int v = verbose < 0 ? 0 : verbose > VERBOSE_MAX ? VERBOSE_MAX : verbose;

	for (int i = 0; i < INFO_COUNT; i++)
		levels->info[i] = info_words[i].from[v];
	for (int i = 0; i < DEBUG_COUNT; i++)
		levels->debug[i] = debug_words[i].from[v];
}

/* "3" is 3, "" is 1, and more digits than a level can have are the highest level. -1: not a number. */
static int parse_level(const char *text, size_t length)
{
	int level = 0;

	if (length == 0)
		return 1;
	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)text[i]))
			return -1;
		if (level <= LEVEL_MAX)
			level = level * 10 + (text[i] - '0');
	}
	return level > LEVEL_MAX ? LEVEL_MAX : level;
}

static bool set_item(const struct word_table *table, uint8_t *levels, const char *item, size_t length)
{
	size_t name_length = 0;
	int level;

	while (name_length < length && isalpha((unsigned char)item[name_length]))
		name_length++;
	level = parse_level(item + name_length, length - name_length);
	if (name_length == 0 || level < 0)
		return false;
	if (name_length == 4 && strncasecmp(item, "NONE", 4) == 0) {
		memset(levels, 0, (size_t)table->count);
		return true;
	}
	if (name_length == 3 && strncasecmp(item, "ALL", 3) == 0) {
		memset(levels, level, (size_t)table->count);
		return true;
	}
	for (int i = 0; i < table->count; i++) {
		const char *name = table->words[i].name;

		if (strlen(name) == name_length && strncasecmp(item, name, name_length) == 0) {
			levels[i] = (uint8_t)level;
			return true;
		}
	}
	return false;
}

/* All items are applied even behind an unknown one: a server obeys what it knows. */
static bool parse_words(const struct word_table *table, uint8_t *levels, const char *words, char **bad)
{
	bool good = true;

	while (*words) {
		size_t length = strcspn(words, ",");

		if (length > 0 && !set_item(table, levels, words, length) && good) {
			*bad = xstrndup(words, length);
			good = false;
		}
		words += length;
		words += *words == ',';
	}
	return good;
}

bool ui_levels_parse_info(struct ui_levels *levels, const char *words, char **bad)
{
	return parse_words(&info_table, levels->info, words, bad);
}

bool ui_levels_parse_debug(struct ui_levels *levels, const char *words, char **bad)
{
	return parse_words(&debug_table, levels->debug, words, bad);
}

void ui_levels_clamp(struct ui_levels *levels, int max_verbosity)
{
	struct ui_levels most;

	if (max_verbosity > VERBOSE_MAX)
		return;
	ui_levels_from_verbose(&most, max_verbosity);
	for (int i = 0; i < INFO_COUNT; i++)
		if (levels->info[i] > most.info[i])
			levels->info[i] = most.info[i];
	for (int i = 0; i < DEBUG_COUNT; i++)
		if (levels->debug[i] > most.debug[i])
			levels->debug[i] = most.debug[i];
}

/* The level that enough of the words share to be said of all; NOT_GIVEN: none, or some words have not been given one. */
static uint8_t common_level(const uint8_t given[INFO_COUNT], const enum info_word *words, size_t count)
{
	size_t shares[LEVEL_MAX + 1] = { 0 };
	uint8_t common = NOT_GIVEN;

	for (size_t i = 0; i < count; i++) {
		if (given[words[i]] == NOT_GIVEN)
			return NOT_GIVEN;
		shares[given[words[i]]]++;
	}
	for (uint8_t level = 0; level <= LEVEL_MAX; level++)
		if (shares[level] >= COMMON_MIN && (common == NOT_GIVEN || shares[level] >= shares[common]))
			common = level;
	return common;
}

static void add_level_word(struct strbuf *out, const char *name, uint8_t level)
{
	if (out->length)
		strbuf_add_char(out, ',');
	strbuf_add_string(out, name);
	if (level != 1)
		strbuf_addf(out, "%d", level);
}

void ui_levels_add_given(struct strbuf *out, const uint8_t given[INFO_COUNT], const enum info_word *words, size_t count)
{
	uint8_t common = common_level(given, words, count);

	if (common == 0)
		strbuf_add_string(out, "NONE");
	else if (common != NOT_GIVEN)
		add_level_word(out, "ALL", common);
	for (size_t i = 0; i < count; i++)
		if (given[words[i]] != NOT_GIVEN && given[words[i]] != common)
			add_level_word(out, info_words[words[i]].name, given[words[i]]);
}

bool ui_levels_asks_for_help(const char *words)
{
	while (*words) {
		size_t length = strcspn(words, ",");

		if (length >= 4 && strncasecmp(words, "HELP", 4) == 0 && parse_level(words + 4, length - 4) >= 0)
			return true;
		words += length;
		words += *words == ',';
	}
	return false;
}

static void add_help(struct strbuf *out, const struct word_table *table)
{
	strbuf_add_string(out, "Use OPT or OPT1 for level 1 output, OPT2 for level 2, etc.; OPT0 silences.\n\n");
	for (int i = 0; i < table->count; i++)
		strbuf_addf(out, "%-10s %s\n", table->words[i].name, table->words[i].help);
	strbuf_addf(out, "\n%-10s every %s word at that level (all4)\n", "ALL", table->option);
	strbuf_addf(out, "%-10s no %s word at all (all0)\n", "NONE", table->option);
	strbuf_addf(out, "%-10s this text\n\n", "HELP");
	strbuf_add_string(out, "Options added at each level of verbosity:\n");
	for (int v = 0; v <= VERBOSE_MAX; v++) {
		/* "1) COPY,DEL,..." for what -v number v adds to v - 1; nothing if it adds nothing. */
		bool first = true;

		for (int i = 0; i < table->count; i++) {
			int level = table->words[i].from[v];

			if (level == (v ? table->words[i].from[v - 1] : 0))
				continue;
			if (first)
				strbuf_addf(out, "%d) ", v);
			strbuf_addf(out, "%s%s", first ? "" : ",", table->words[i].name);
			if (level > 1)
				strbuf_addf(out, "%d", level);
			first = false;
		}
		if (!first)
			strbuf_add_char(out, '\n');
	}
}

void ui_levels_add_info_help(struct strbuf *out)
{
	add_help(out, &info_table);
}

void ui_levels_add_debug_help(struct strbuf *out)
{
	add_help(out, &debug_table);
}
