/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The script that replays a batch: the command line once more, as far as it says how the destination is written. */
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "options/remote.h"
#include "options/table.h"

/* One word of the line after the other. */
struct scan {
	const struct args *words;
	size_t at;
	bool only_operands; /* behind a "--" */
	struct strbuf *script;
};

static void add_quoted(struct strbuf *script, const char *text)
{
	strbuf_add_char(script, '\'');
	for (; *text; text++)
		if (*text == '\'')
			strbuf_add_string(script, "'\\''");
		else
			strbuf_add_char(script, *text);
	strbuf_add_char(script, '\'');
}

/* "--name='VALUE'", or all of it in quotes. */
static void add_word(struct strbuf *script, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t name = strspn(word, plain);

	strbuf_add_char(script, ' ');
	if (strncmp(word, "--", 2) == 0 && word[name] == '=') {
		strbuf_add(script, word, name + 1);
		word += name + 1;
	}
	add_quoted(script, word);
}

static const struct option_spec *find(const char *name, size_t length, char letter)
{
	const struct option_spec *spec = option_table(MODE_CLIENT);

	for (; !option_is_end(spec); spec++)
		if (letter ? spec->letter == letter : spec->name && strlen(spec->name) == length
		    && strncmp(spec->name, name, length) == 0)
			return spec;
	return NULL;
}

static bool is_one_of(const struct option_spec *spec, const char *const *names)
{
	for (; *names; names++)
		if (spec->name && strcmp(spec->name, *names) == 0)
			return true;
	return false;
}

/* What the script has in other form: rules, and names of sources. */
static bool is_left_out(const struct option_spec *spec)
{
	static const char *const names[] = {
		"filter", "exclude", "include", "exclude-from", "include-from", "files-from", NULL,
	};

	return is_one_of(spec, names);
}

static bool writes_batch(const struct option_spec *spec)
{
	static const char *const names[] = { "write-batch", "only-write-batch", NULL };

	return is_one_of(spec, names);
}

/* The next word, if the option takes one. */
static const char *take_value(struct scan *scan)
{
	return scan->at + 1 < scan->words->count ? scan->words->items[++scan->at] : "";
}

static void add_long(struct scan *scan, const char *word)
{
	size_t length = strcspn(word + 2, "=");
	const struct option_spec *spec = find(word + 2, length, '\0');
	bool has_value = word[2 + length] == '=', is_batch = spec && writes_batch(spec);
	const char *value = spec && spec->arg != NO_ARG && !has_value ? take_value(scan) : NULL;

	if (spec && is_left_out(spec))
		return;
	if (is_batch && has_value) {
		strbuf_add_string(scan->script, " --read-batch=");
		add_quoted(scan->script, word + 2 + length + 1);
	} else if (is_batch) {
		strbuf_add_string(scan->script, " --read-batch");
	} else {
		add_word(scan->script, word);
	}
	if (value)
		add_word(scan->script, value);
}

/* Letters up to one that takes a value, which is the rest of the word or the next one. */
static void add_letters(struct scan *scan, const char *word)
{
	const struct option_spec *spec = NULL;
	size_t at = 1;

	while (word[at] && (!(spec = find(NULL, 0, word[at])) || spec->arg == NO_ARG))
		at++;
	const char *value = word[at] && !word[at + 1] ? take_value(scan) : NULL;

	if (word[at] && is_left_out(spec)) {
		char *rest = xstrndup(word, at);

		if (at > 1)
			add_word(scan->script, rest);
		free(rest);
		return;
	}
	add_word(scan->script, word);
	if (value)
		add_word(scan->script, value);
}

static void add_words(struct scan *scan)
{
	for (scan->at = 1; scan->at < scan->words->count; scan->at++) {
		const char *word = scan->words->items[scan->at];

		if (scan->only_operands || word[0] != '-' || !word[1])
			continue;
		if (strcmp(word, "--") == 0)
			scan->only_operands = true;
		else if (word[1] == '-')
			add_long(scan, word);
		else
			add_letters(scan, word);
	}
	if (scan->only_operands)
		add_word(scan->script, "--");
}

/* A batch is replayed on the machine that has the destination. */
static void add_destination(struct strbuf *script, const char *operand)
{
	struct remote remote;

	if (!remote_parse(&remote, operand)) {
		add_quoted(script, operand);
		return;
	}
	add_quoted(script, remote.path);
	remote_free(&remote);
}

void options_add_replay_script(const struct options *options, const char *rules, struct strbuf *script)
{
	const struct args *words = &options->parse->words, *operands = &options->operands;
	struct scan scan = { .words = words, .script = script };

	add_quoted(script, words->items[0]);
	if (*rules)
		strbuf_add_string(script, options->from0 ? " --filter='._-' --no-from0" : " --filter='._-'");
	add_words(&scan);
	strbuf_add_string(script, " ${1:-");
	add_destination(script, operands->count ? operands->items[operands->count - 1] : ".");
	strbuf_add_char(script, '}');
	if (*rules)
		strbuf_addf(script, " <<'#E#'\n%s#E#", rules);
	strbuf_add_char(script, '\n');
}
