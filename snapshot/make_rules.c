/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The filter rules of a run that makes an attr snapshot: one list for each thread, from one reading of each file. */
#include "snapshot/make_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attrs/image_scan.h"
#include "delta/digest.h"
#include "fs/chmod.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "lib/log.h"
#include "lib/strbuf.h"
#include "lib/vec.h"
#include "options.h"

#define RULE_FILE_LIMIT (64u << 20)
#define SHOWN_RULES_LIMIT 4000 /* bytes of the options' text: the rest is in the sum */

struct rule_file {
	char *path;
	struct strbuf text;
};

struct make_rules {
	const struct fs_root *root;
	bool reading_line;            /* the command line's files; later it is merge files, which are not kept */
	VEC(struct rule_file) files;
	int threads;
	struct filter_list *lists[IMAGE_THREADS_MAX];
};

/* --- rule files --- */

/* A pipe gives its content only once, and every thread wants it. */
static const struct rule_file *read_once(struct make_rules *rules, const char *path)
{
	struct rule_file file = { .text = STRBUF_INIT };
	int fd, result;

	for (size_t i = 0; i < rules->files.count; i++)
		if (!strcmp(rules->files.items[i].path, path))
			return &rules->files.items[i];
	if (!strcmp(path, "-")) {
		result = fs_read_all(STDIN_FILENO, RULE_FILE_LIMIT, &file.text);
	} else {
		fd = fs_operator_open(path, O_RDONLY, 0);
		if (fd < 0)
			return NULL;
		result = fs_read_all(fd, RULE_FILE_LIMIT, &file.text);
		close(fd);
	}
	if (result < 0) {
		strbuf_free(&file.text);
		return NULL;
	}
	file.path = xstrdup(path);
	vec_push(&rules->files, file);
	return &rules->files.items[rules->files.count - 1];
}

static int open_rules(void *rules_void, enum filter_place place, const char *path)
{
	struct make_rules *rules = rules_void;

	if (place == FILTER_AT_BASE)
		return fs_open_follow(rules->root, path, O_RDONLY, 0);
	if (!rules->reading_line)
		return fs_operator_open(path, O_RDONLY | O_NONBLOCK, 0);
	const struct rule_file *file = read_once(rules, path);
	int fd = file ? memfd_create("rules", MFD_CLOEXEC) : -1;

	if (fd < 0)
		return -1;
	if (fs_write_all(fd, strbuf_text(&file->text), file->text.length) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void explain(void *rules_void, const char *text)
{
	(void)rules_void;
	log_info("[sender] %s", text);
}

/* --- lists --- */

struct make_rules *make_rules_new(const struct options *options, const struct fs_root *root, const char *base, int threads)
{
	struct make_rules *rules = xcalloc(1, sizeof *rules);
	struct filter_setup setup = {
		.side = FILTER_SENDER, .delete_excluded = options->delete_excluded, .from0 = options->from0,
		.cvs_exclude = options->cvs_exclude, .open_file = open_rules, .context = rules,
		.explain = options->levels.debug[DEBUG_FILTER] ? explain : NULL,
	};

	rules->root = root;
	rules->threads = threads;
	rules->reading_line = true;
	for (int i = 0; i < threads; i++) {
		rules->lists[i] = filter_new(&setup);
		options_add_filters(options, rules->lists[i], true);
		filter_set_base(rules->lists[i], base);
		filter_set_dir(rules->lists[i], "");
	}
	rules->reading_line = false;
	return rules;
}

void make_rules_free(struct make_rules *rules)
{
	if (!rules)
		return;
	for (int i = 0; i < rules->threads; i++)
		filter_free(rules->lists[i]);
	for (size_t i = 0; i < rules->files.count; i++) {
		free(rules->files.items[i].path);
		strbuf_free(&rules->files.items[i].text);
	}
	vec_free(&rules->files);
	free(rules);
}

struct filter_list *make_rules_list(struct make_rules *rules, int thread)
{
	return !rules || filter_is_empty(rules->lists[thread]) ? NULL : rules->lists[thread];
}

/* --- the options' text --- */

static void add_word(struct strbuf *out, const char *word)
{
	if (out->length)
		strbuf_add_char(out, ' ');
	strbuf_add_string(out, word);
}

/* Rules as the command line could say them; of a file only that there is one: its name may be that of a pipe. */
static void add_rules(struct strbuf *out, const struct options *options)
{
	static const char *const names[] = {
		[FILTER_NEW_STYLE] = "filter", [FILTER_OLD_EXCLUDE] = "exclude", [FILTER_OLD_INCLUDE] = "include",
	};

	for (size_t i = 0; i < options->filters.count; i++) {
		const struct filter_option *filter = &options->filters.items[i];

		switch (filter->kind) {
		case FOPT_RULE:
		case FOPT_WORDS:
			add_word(out, "--");
			strbuf_addf(out, "%s=%s", names[filter->style], filter->text);
			break;
		case FOPT_FILE:
			add_word(out, "--");
			strbuf_addf(out, "%s-from", names[filter->style]);
			break;
		case FOPT_SHORTCUT_F:
			add_word(out, "-F");
			break;
		case FOPT_CVS:
			add_word(out, "-C");
			break;
		}
	}
}

static void sum_text(struct file_digest *digest, const char *text, size_t length)
{
	uint64_t size = length;

	file_digest_update(digest, &size, sizeof size);
	file_digest_update(digest, text, length);
}

/* Everything that cannot be shown: contents of rule files, what --chmod does to each mode, long rules. */
static uint64_t sum_rules(const struct options *options, const struct make_rules *rules, const struct strbuf *shown)
{
	struct file_digest *digest = file_digest_new();
	uint8_t bytes[DIGEST_MAX_LENGTH];
	const char *cvs = getenv("CVSIGNORE");
	uint64_t sum;

	file_digest_start_plain(digest, SUM_XXH3);
	sum_text(digest, strbuf_text(shown), shown->length);
	for (size_t i = 0; i < rules->files.count; i++)
		sum_text(digest, strbuf_text(&rules->files.items[i].text), rules->files.items[i].text.length);
	if (options->cvs_exclude && cvs)
		sum_text(digest, cvs, strlen(cvs));
	for (unsigned mode = 0; options->chmod && mode < 2 * 010000; mode++) {
		mode_t type = mode & 010000 ? S_IFDIR : S_IFREG;
		uint32_t changed = chmod_apply(options->chmod, type | (mode & 07777));

		file_digest_update(digest, &changed, sizeof changed);
	}
	file_digest_finish(digest, bytes);
	file_digest_free(digest);
	memcpy(&sum, bytes, sizeof sum);
	return sum;
}

static void add_scan_words(struct strbuf *text, const struct options *options, bool from_files)
{
	const struct { bool used; const char *word; } words[] = {
		{ options->one_file_system == 1, "-x" },
		{ options->one_file_system > 1, "-xx" },
		{ options->copy_links, "-L" },
		{ options->copy_dirlinks, "-k" },
		{ options->copy_unsafe_links, "--copy-unsafe-links" },
		{ options->chmod != NULL, "--chmod" },
		{ options->from0 && from_files, "-0" },
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (words[i].used)
			add_word(text, words[i].word);
}

char *make_rules_options(const struct options *options, const struct make_rules *rules)
{
	struct strbuf text = STRBUF_INIT;
	uint64_t sum;

	if (options->atimes)
		add_word(&text, "-U");
	if (rules) {
		add_scan_words(&text, options, rules->files.count > 0);
		add_rules(&text, options);
	}
	if (!rules || (!options->chmod && !options->filters.count))
		return text.data ? strbuf_detach(&text) : xstrdup("");
	sum = sum_rules(options, rules, &text);
	if (text.length > SHOWN_RULES_LIMIT) {
		strbuf_truncate(&text, SHOWN_RULES_LIMIT);
		strbuf_add_string(&text, "...");
	}
	strbuf_addf(&text, " sum=%016" PRIx64, sum);
	return strbuf_detach(&text);
}

char *make_list_options(const struct options *options)
{
	struct strbuf text = STRBUF_INIT;

	if (options->atimes)
		add_word(&text, "-U");
	add_scan_words(&text, options, false);
	add_rules(&text, options);
	return text.data ? strbuf_detach(&text) : xstrdup("");
}
