/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reading rule files (doc/protocol/04-filters.md section 4.11): lines or words, comments, limits, and where single merges
 * lie.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "filter/list.h"
#include "lib/exit.h"
#include "lib/log.h"

enum { FILE_BYTES_PER_STEP = 8, OPEN_STEPS = 50 };

/* A rule file that is being cut into lines or words. */
struct cutter {
	struct reader *reader;
	struct origin *origin;
	bool words, from0;
	bool after_cr;     /* an LF now belongs to the line end before */
	bool is_long;      /* the line has more than fits */
	size_t length;
	size_t total;
	char text[RULE_TEXT_MAX];
};

static void report_long(const struct origin *origin)
{
	char *label = rule_label(origin, "", 0);

	log_error("discarding over-long filter: %s", label);
	free(label);
}

static void finish_rule(struct cutter *cutter)
{
	const char *nul = memchr(cutter->text, '\0', cutter->length);
	size_t length = nul ? (size_t)(nul - cutter->text) : cutter->length;
	bool comment = !cutter->words && length && (cutter->text[0] == '#' || cutter->text[0] == ';');

	if (cutter->is_long && !comment)
		report_long(cutter->origin);
	else if (length && !comment)
		reader_add(cutter->reader, cutter->text, length);
	cutter->length = 0;
	cutter->is_long = false;
}

static bool ends_rule(const struct cutter *cutter, char c)
{
	if (cutter->words)
		return c && strchr(" \t\n\v\f\r", c);
	if (cutter->from0)
		return !c;
	return c == '\n' || c == '\r';
}

static void cut(struct cutter *cutter, const char *bytes, size_t count)
{
	for (const char *end = bytes + count; bytes < end; bytes++) {
		bool second_half = cutter->after_cr && *bytes == '\n';
		cutter->after_cr = *bytes == '\r';
		if (ends_rule(cutter, *bytes)) {
			if (second_half && !cutter->from0)
				continue;
			finish_rule(cutter);
			if (!cutter->words)
				cutter->origin->line++;
		} else if (cutter->length < sizeof cutter->text) {
			cutter->text[cutter->length++] = *bytes;
		} else {
			cutter->is_long = true;
		}
	}
	/* A peer that names a huge file must not keep us reading. */
	cutter->total += count;
	budget_work(cutter->reader->list->setup.budget, count / FILE_BYTES_PER_STEP + 1);
	if (cutter->reader->list->from_peer && cutter->total > PEER_BYTES_MAX)
		die(EXIT_MALLOC, "filter file is larger than %u bytes", PEER_BYTES_MAX);
}

void read_rule_file(struct reader *reader, int fd, uint16_t flags)
{
	struct origin origin = *reader->origin;
	struct cutter *cutter = xcalloc(1, sizeof *cutter);
	char buffer[8192];
	ssize_t got;

	origin.line = flags & RULE_WORDS ? 0 : 1;
	cutter->reader = reader;
	cutter->origin = &origin;
	cutter->words = flags & RULE_WORDS;
	cutter->from0 = reader->list->setup.from0 && !cutter->words;
	reader->origin = &origin;
	while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR))
		if (got > 0)
			cut(cutter, buffer, (size_t)got);
	if (got == 0)
		finish_rule(cutter);
	else if (reader->in_directory && errno == EISDIR)
		; /* a directory of that name is no file of that name */
	else
		die(EXIT_FILEIO, "failed to read filter file %s: %s (%d)", origin.label, strerror(errno), errno);
	free(cutter);
	close(fd);
}

/* --- single merges --- */

int open_rule_file(struct filter_list *list, enum filter_place place, const char *path, const char *full)
{
	if (place == FILTER_AT_OPERATOR && list->setup.dash_is_stdin && !strcmp(path, "-"))
		return dup(STDIN_FILENO);
	if (full && list->setup.hidden && filter_hides_path(list->setup.hidden, full, false)) {
		errno = ENOENT;
		return FILTER_HIDDEN;
	}
	budget_work(list->setup.budget, OPEN_STEPS);
	if (!list->setup.open_file) {
		errno = ENOENT;
		return -1;
	}
	return list->setup.open_file(list->setup.context, place, path);
}

void add_clean_path(struct strbuf *full, const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");
		bool is_up = length == 2 && path[0] == '.' && path[1] == '.';
		if (is_up && full->length) {
			const char *slash = memrchr(full->data, '/', full->length);
			strbuf_truncate(full, slash ? (size_t)(slash - full->data) : 0);
		} else if (length && !is_up && !(length == 1 && path[0] == '.')) {
			if (full->length)
				strbuf_add_char(full, '/');
			strbuf_add(full, path, length);
		}
		path += length;
		path += *path == '/';
	}
}

/* 4.11.3 for a merge rule inside a per-directory file. */
static int open_inner_merge(const struct reader *reader, const char *name)
{
	struct filter_list *list = reader->list;
	const char *base = strbuf_text(&list->base);
	size_t base_length = list->base.length;
	struct strbuf full = STRBUF_INIT, path = STRBUF_INIT;
	bool below_base;

	if (name[0] != '/')
		add_clean_path(&full, strchr(name, '/') ? reader->out->dir : base);
	add_clean_path(&full, name);
	const char *text = strbuf_text(&full);

	below_base = !base_length || (!strncmp(text, base, base_length) && text[base_length] == '/');
	below_base = below_base && !list->setup.daemon_rules;
	if (below_base)
		strbuf_add_string(&path, text + base_length + (base_length > 0));
	else
		strbuf_addf(&path, "/%s", text);
	int fd = open_rule_file(list, below_base ? FILTER_AT_BASE : FILTER_AT_ROOT, strbuf_text(&path), text);
	int error = errno;

	strbuf_free(&full);
	strbuf_free(&path);
	errno = error;
	return fd;
}

/* A file whose name came from a file shows neither its name nor why it cannot be opened. */
static _Noreturn void refuse_unopened(const struct reader *reader, const struct parsed *parsed, const char *name, int error)
{
	bool includes = parsed->flags & RULE_FIXED_INCLUDE || reader->style == FILTER_OLD_INCLUDE;
	const char *kind = includes ? "include" : "exclude";
	char shown[PATTERN_MAX + 1];

	if (reader->origin) {
		char *label = rule_label(reader->origin, "", 0);
		snprintf(shown, sizeof shown, "%s", label);
		free(label);
		die(EXIT_FILEIO, "failed to open %s file %s", kind, shown);
	}
	log_errno(L_ERROR, error, "failed to open %s file %s", kind, name);
	exit_with(EXIT_FILEIO);
}

static _Noreturn void refuse_depth(const struct reader *reader, const char *name)
{
	char shown[PATTERN_MAX + 1];
	char *label = rule_label(reader->origin, name, strlen(name));

	snprintf(shown, sizeof shown, "%s", label);
	free(label);
	die(EXIT_FILEIO, "merge-file include depth limit (%d) exceeded at %s", MERGE_DEPTH_MAX, shown);
}

char *name_label(const struct origin *origin, const char *name)
{
	if (!origin)
		return xstrdup(name);
	if (origin->is_secret)
		return xstrdup(origin->label);
	if (origin->line)
		return xasprintf("<rule from a file named at %s line %d>", origin->label, origin->line);
	return xasprintf("<rule from a file named at %s>", origin->label);
}

void merge_file(const struct reader *reader, const struct parsed *parsed)
{
	char *name = xstrndup(parsed->pattern, parsed->length);
	char *label = name_label(reader->origin, name);
	struct origin origin = { .label = label, .is_secret = reader->origin != NULL };
	struct reader inner = *reader;

	if (reader->depth >= MERGE_DEPTH_MAX)
		refuse_depth(reader, name);
	int fd = reader->in_directory ? open_inner_merge(reader, name)
				      : open_rule_file(reader->list, FILTER_AT_OPERATOR, name, NULL);
	if (fd < 0 && fd != FILTER_HIDDEN)
		refuse_unopened(reader, parsed, name, errno);
	inner.origin = &origin;
	inner.defaults = parsed->flags & RULE_PASSED_ON;
	inner.words = false;
	inner.depth++;
	if (fd >= 0)
		read_rule_file(&inner, fd, parsed->flags);
	free(label);
	free(name);
}
