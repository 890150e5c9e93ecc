/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The options that a module refuses. */
#include "options/refuse.h"

#include <stdlib.h>
#include <string.h>

#include "filter/wildmatch.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "options/table.h"

struct refused_options {
	size_t count;
	bool is_refused[]; /* by index in the option table */
};

static const char archive_letters[] = "ardlptgoD";

/* A wildcard does not reach what the protocol itself needs, nor what is refused or allowed by name only. */
static bool is_exact_only(const struct option_spec *spec)
{
	static const char *const names[] = {
		"rsh", "from0", "secluded-args", "dry-run", "iconv", "no-iconv", "checksum-seed", "copy-devices",
		"write-devices", "log-format", "sender", "server",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (spec->name && strcmp(spec->name, names[i]) == 0)
			return true;
	return false;
}

static bool matches_exactly(const struct option_spec *spec, const char *token)
{
	return (spec->letter && token[0] == spec->letter && !token[1]) || (spec->name && strcmp(spec->name, token) == 0);
}

static bool matches_pattern(const struct option_spec *spec, const char *pattern)
{
	char letter[2] = { spec->letter, 0 };

	if (is_exact_only(spec))
		return false;
	return (spec->name && wildmatch(pattern, spec->name)) || (spec->letter && wildmatch(pattern, letter));
}

/* Two options with one effect: refusing one of them refuses both. */
static bool removes_sources(const struct option_spec *spec)
{
	return spec->name && (strcmp(spec->name, "remove-source-files") == 0 || strcmp(spec->name, "remove-sent-files") == 0);
}

/* What `token` names, by a wildcard or as it is, and what does the same; a wildcard spares the exact-only ones. */
static bool set_matching(struct refused_options *refused, const char *token, bool value)
{
	const struct option_spec *table = option_table(MODE_SERVER);
	bool found = false, by_pattern = strpbrk(token, "*?[");

	for (size_t i = 0; i < refused->count; i++) {
		const struct option_spec *spec = &table[i];
		bool removes = removes_sources(spec);

		if (by_pattern ? !matches_pattern(spec, token) : !matches_exactly(spec, token))
			continue;
		found = true;
		for (size_t j = 0; j < refused->count; j++)
			if ((option_is_same(&table[j], spec) || (removes && removes_sources(&table[j])))
			    && !(by_pattern && is_exact_only(&table[j])))
				refused->is_refused[j] = value;
	}
	return found;
}

/* `token` without its "!"; "a" and "archive" stand for the letters they are made of. */
static bool set_token(struct refused_options *refused, const char *token, bool value)
{
	bool found = false;

	if (strcmp(token, "a") != 0 && strcmp(token, "archive") != 0)
		return set_matching(refused, token, value);
	for (const char *letter = archive_letters; *letter; letter++)
		found |= set_matching(refused, (char[]){ *letter, 0 }, value);
	return found;
}

struct refused_options *refused_options_new(const char *refuse_parameter, bool has_charset)
{
	static const char *const always[] = {
		"log-file", "log-file-format", "insecure-links", "copy-as", "version", "help",
	};
	size_t count = option_table_count(option_table(MODE_SERVER));
	struct refused_options *refused = xcalloc(1, sizeof *refused + count * sizeof *refused->is_refused);

	refused->count = count;
	set_matching(refused, "copy-devices", true);
	set_matching(refused, "write-devices", true);
	char *copy = xstrdup(refuse_parameter);
	char *save = NULL;

	/* Blanks only, as in stock: two names with a tab or comma between them are one that matches nothing. */
	for (char *token = strtok_r(copy, " ", &save); token; token = strtok_r(NULL, " ", &save)) {
		bool negated = token[0] == '!' && token[1];

		if (!set_token(refused, token + negated, !negated))
			log_msg(L_LOG, "No match for refuse-options string \"%s\"", token);
	}
	free(copy);
	if (!has_charset)
		set_matching(refused, "iconv", true);
	for (size_t i = 0; i < sizeof always / sizeof *always; i++)
		set_matching(refused, always[i], true);
	return refused;
}

void refused_options_free(struct refused_options *refused)
{
	free(refused);
}

static bool fail_refused(struct option_parse *parse, const struct option_spec *spec)
{
	char label[OPTION_LABEL_SIZE];

	option_label(spec, label);
	if (spec->name && spec->letter)
		return parse_fail(parse, EXIT_UNSUPPORTED, "The server is configured to refuse %s (-%c)", label, spec->letter);
	return parse_fail(parse, EXIT_UNSUPPORTED, "The server is configured to refuse %s", label);
}

/* The spec of this name or letter if it is refused, else NULL. */
static const struct option_spec *refused_spec(const struct option_parse *parse, const char *name)
{
	const struct option_spec *table = option_table(MODE_SERVER);

	for (size_t i = 0; i < parse->refused->count; i++)
		if (matches_exactly(&table[i], name))
			return parse->refused->is_refused[i] ? &table[i] : NULL;
	return NULL;
}

bool refuse_option(struct option_parse *parse, const struct option_spec *spec)
{
	size_t index = (size_t)(spec - option_table(MODE_SERVER));

	if (parse->refused->is_refused[index])
		return fail_refused(parse, spec);
	/* -a is as good as its parts. */
	for (const char *letter = spec->letter == 'a' ? archive_letters + 1 : ""; *letter; letter++) {
		const struct option_spec *part = refused_spec(parse, (char[]){ *letter, 0 });

		if (part)
			return fail_refused(parse, part);
	}
	return true;
}

bool refuse_implied(struct option_parse *parse, const struct options *options)
{
	bool deletes = parse->delete_words || options->delete_excluded || options->delete_missing_args ||
		       (options->sender && options->remove_source_files);
	bool in_place = options->inplace || options->append || options->write_devices;
	bool partial = options->partial && !options->has_partial_dir;
	const struct {
		bool used;
		const char *name;
	} implied[] = {
		{ deletes, "delete" },
		{ options->compress, "compress" },
		{ in_place || partial, "partial" },
		{ in_place, "inplace" },
		{ options->progress, "progress" },
		{ !parse->iconv_seen, "no-iconv" },
	};

	for (size_t i = 0; i < sizeof implied / sizeof *implied; i++) {
		const struct option_spec *spec = implied[i].used ? refused_spec(parse, implied[i].name) : NULL;

		if (spec)
			return fail_refused(parse, spec);
	}
	/* A plain --delete is whichever of the two is allowed. */
	const struct option_spec *before = refused_spec(parse, "delete-before");

	if (parse->delete_words != SAID_DELETE)
		return true;
	if (before && refused_spec(parse, "delete-during"))
		return fail_refused(parse, before);
	if (before)
		parse->delete_words = SAID_DURING;
	else if (refused_spec(parse, "delete-during"))
		parse->delete_words = SAID_BEFORE;
	return true;
}
