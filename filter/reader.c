/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading rule files (doc/protocol/04-filters.md section 4.11): lines or words, comments, limits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "filter/list.h"
#include "filter/reader.h"
#include "lib/exit.h"

enum { FILE_BYTES_PER_STEP = 8, OPEN_STEPS = 50 };

struct reader {
	struct filter_list *list;
	struct rule_syntax syntax;
	struct origin origin; /* of the rule read last */
	int fd, line;
	bool words, from0, in_directory;
	bool after_cr;        /* an LF now belongs to the line end before */
	bool at_end;
	bool is_long;         /* the line has more than fits */
	size_t length;        /* of text */
	size_t total;         /* bytes of the file read */
	size_t at, count;     /* of buffer */
	char text[RULE_TEXT_MAX];
	char buffer[8192];
};

int open_rule_file(struct filter_list *list, enum filter_place place, const char *path, const char *full)
{
	struct filter_list *hidden = list->setup.hidden;

	if (place == FILTER_AT_OPERATOR && list->setup.dash_is_stdin && !strcmp(path, "-"))
		return dup(STDIN_FILENO);
	if (full && hidden && hidden->hides_path(hidden, full, false)) {
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

int open_inner_merge(struct filter_list *list, const struct segment *outer, const char *name)
{
	const char *base = strbuf_text(&list->base);
	size_t base_length = list->base.length;
	struct strbuf full = STRBUF_INIT, path = STRBUF_INIT;
	bool below_base;

	if (name[0] != '/')
		add_clean_path(&full, strchr(name, '/') ? outer->dir : base);
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

struct reader *reader_new(struct filter_list *list, int fd, struct rule_syntax *syntax, uint16_t flags, bool in_directory)
{
	struct reader *reader = xcalloc(1, sizeof *reader);

	reader->list = list;
	reader->origin = *syntax->origin;
	syntax->origin = &reader->origin;
	reader->syntax = *syntax;
	reader->fd = fd;
	reader->words = flags & RULE_WORDS;
	reader->line = reader->words ? 0 : 1;
	reader->from0 = list->setup.from0 && !reader->words;
	reader->in_directory = in_directory;
	return reader;
}

void reader_free(struct reader *reader)
{
	close(reader->fd);
	free(reader);
}

/* False at the end of the file. */
static bool fill(struct reader *reader)
{
	ssize_t got;

	do
		got = read(reader->fd, reader->buffer, sizeof reader->buffer);
	while (got < 0 && errno == EINTR);
	/* A directory of that name is no file of that name. */
	if (got < 0 && !(reader->in_directory && errno == EISDIR))
		die(EXIT_FILEIO, "failed to read filter file %s: %s (%d)", reader->origin.label, strerror(errno), errno);
	if (got <= 0)
		return false;
	reader->at = 0;
	reader->count = (size_t)got;
	/* A peer that names a huge file must not keep us reading. */
	reader->total += reader->count;
	budget_work(reader->list->setup.budget, reader->count / FILE_BYTES_PER_STEP + 1);
	if (reader->list->from_peer && reader->total > PEER_BYTES_MAX)
		die(EXIT_MALLOC, "filter file is larger than %u bytes", PEER_BYTES_MAX);
	return true;
}

static bool ends_text(const struct reader *reader, char c)
{
	if (reader->words)
		return c && strchr(" \t\n\v\f\r", c);
	if (reader->from0)
		return !c;
	return c == '\n' || c == '\r';
}

/* The next line or word, which may be empty; false at the end. */
static bool next_text(struct reader *reader)
{
	reader->length = 0;
	reader->is_long = false;
	reader->origin.line = reader->line;
	while (!reader->at_end) {
		if (reader->at == reader->count && !fill(reader)) {
			reader->at_end = true;
			return true;
		}
		char c = reader->buffer[reader->at++];
		bool second_half = reader->after_cr && c == '\n';

		reader->after_cr = c == '\r';
		if (!ends_text(reader, c)) {
			if (reader->length < sizeof reader->text)
				reader->text[reader->length++] = c;
			else
				reader->is_long = true;
		} else if (!second_half) {
			reader->line += !reader->words;
			return true;
		}
	}
	return false;
}

bool reader_next(struct reader *reader, struct parsed *parsed)
{
	while (next_text(reader)) {
		size_t length = strnlen(reader->text, reader->length);
		bool comment = !reader->words && length && (reader->text[0] == '#' || reader->text[0] == ';');

		if (comment)
			continue;
		if (reader->is_long)
			report_long_rule(&reader->origin, "", 0);
		else if (parse_rule(&reader->syntax, reader->text, length, parsed))
			return true;
	}
	return false;
}
