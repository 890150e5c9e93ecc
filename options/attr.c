/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The options of the attr snapshot: their values, and which of them make sense together. */
#include "options/attr.h"

#include <string.h>

#include "lib/exit.h"

/* --- attr snapshots --- */

bool set_attr_file(struct option_parse *parse)
{
	if (!*parse->text)
		return parse_fail(parse, EXIT_SYNTAX, "--%s needs the name of a file", parse->spec->name);
	*(const char **)((char *)parse->options + parse->spec->field) = parse_keep(parse, parse->text);
	return true;
}

static unsigned digest_named(const char *name, size_t length)
{
	static const struct { const char *name; enum attr_digest digest; } names[] = {
		{ "xxh128", ATTR_DIGEST_XXH128 }, { "md5", ATTR_DIGEST_MD5 },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (length == strlen(names[i].name) && strncmp(name, names[i].name, length) == 0)
			return names[i].digest;
	return 0;
}

bool set_attr_digests(struct option_parse *parse)
{
	unsigned digests = 0;

	for (const char *p = parse->text;; p++) {
		size_t length = strcspn(p, ",");
		unsigned digest = digest_named(p, length);

		if (!digest)
			return parse_fail(parse, EXIT_SYNTAX, "--attr-digests: \"%.*s\" is not one of xxh128 and md5",
					  (int)length, p);
		digests |= digest;
		p += length;
		if (!*p)
			break;
	}
	parse->options->attr_digests = digests;
	return true;
}

bool set_attr_mode(struct option_parse *parse)
{
	enum attr_mode *mode = &parse->options->attr_mode, wanted = (enum attr_mode)parse->spec->value;

	if (*mode != ATTR_MODE_NONE && *mode != wanted)
		return parse_fail(parse, EXIT_SYNTAX, "--%s and --%s cannot be used together", parse->attr_mode_name,
				  parse->spec->name);
	*mode = wanted;
	parse->attr_mode_name = parse->spec->name;
	return true;
}

/* --- the whole line --- */

bool attr_options_list_nothing(const struct options *options)
{
	return options->attr_mode != ATTR_MODE_NONE || options->attr_snapshot != NULL;
}

static bool fail_pair(struct option_parse *parse, const char *name, const char *with)
{
	return parse_fail(parse, EXIT_SYNTAX, "--%s cannot be used with --%s", name, with);
}

static bool check_mode(struct option_parse *parse, const struct options *options)
{
	static const struct { size_t least, most; bool wants_snapshot; const char *words; } shapes[] = {
		[ATTR_MODE_LIST] = { 1, 2, false, "FILE [PATH]" },
		[ATTR_MODE_VERIFY] = { 1, 2, false, "FILE [SRC/]" },
		[ATTR_MODE_DIFF] = { 2, 2, false, "OLD NEW" },
		[ATTR_MODE_FROM_TREE] = { 1, 2, true, "TREE [REAL/]" },
		[ATTR_MODE_TO_TREE] = { 1, 1, true, "TREE" },
	};
	const char *name = parse->attr_mode_name;
	size_t count = options->operands.count;

	if (options->attr_refresh || options->attr_digests)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-%s cannot be used with --%s",
				  options->attr_refresh ? "refresh" : "digests", name);
	if (shapes[options->attr_mode].wants_snapshot && !options->attr_snapshot)
		return parse_fail(parse, EXIT_SYNTAX, "--%s needs --attr-snapshot=FILE", name);
	if (!shapes[options->attr_mode].wants_snapshot && options->attr_snapshot)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-snapshot cannot be used with --%s", name);
	if (count < shapes[options->attr_mode].least || count > shapes[options->attr_mode].most)
		return parse_fail(parse, EXIT_SYNTAX, "usage: rsync-huai --%s%s %s", name,
				  options->attr_snapshot ? " --attr-snapshot=FILE" : "", shapes[options->attr_mode].words);
	if (options->files_from || options->list_only)
		return parse_fail(parse, EXIT_SYNTAX, "--%s cannot be used with --%s",
				  options->files_from ? "files-from" : "list-only", name);
	return true;
}

/* An option that has a meaning for a destination only, or would make the snapshot one of less than a directory; else NULL. */
static const char *useless_for_making(const struct options *options)
{
	const struct { bool used; const char *name; } useless[] = {
		{ options->delete_when != DELETE_NEVER, "delete" },
		{ options->checksum, "checksum" },
		{ options->max_size >= 0, "max-size" },
		{ options->min_size >= 0, "min-size" },
		{ options->out_format != NULL, "out-format (or -i)" },
		{ options->dirs, "dirs" },
	};

	for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
		if (useless[i].used)
			return useless[i].name;
	return NULL;
}

static bool stdin_is_wanted_twice(const struct options *options)
{
	bool wanted = false;

	for (size_t i = 0; i < options->filters.count; i++)
		wanted |= options->filters.items[i].kind == FOPT_FILE && strcmp(options->filters.items[i].text, "-") == 0;
	return wanted && options->attr_refresh && strcmp(options->attr_refresh, "-") == 0;
}

static bool check_making(struct option_parse *parse, struct options *options)
{
	const char *useless = useless_for_making(options);

	if (useless)
		return fail_pair(parse, useless, "attr-snapshot without a destination");
	if (stdin_is_wanted_twice(options))
		return parse_fail(parse, EXIT_SYNTAX, "--attr-refresh=- and rules cannot both be read from standard input");
	if (options->attr_digests && options_kind_of_run(options) == PULL)
		return fail_pair(parse, "attr-digests", "attr-snapshot of a list that is received: it needs the contents");
	/* A snapshot that is refreshed was made of a whole tree. */
	if (options->attr_refresh && !options->recursive)
		options->recursive = 1;
	if (!options->recursive)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-snapshot is of a whole tree: it needs --recursive (-r or -a)");
	return true;
}

static bool check_snapshot(struct option_parse *parse, struct options *options)
{
	size_t count = options->operands.count;

	if (options->files_from || options->relative || options->list_only)
		return fail_pair(parse, "attr-snapshot", options->files_from ? "files-from" : options->list_only ? "list-only"
				 : "relative");
	if (!count || count > 2)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-snapshot is of one directory: SRC/, or DEST of one SRC");
	if (count == 1)
		return check_making(parse, options);
	if (options->attr_refresh)
		return parse_fail(parse, EXIT_SYNTAX, "--attr-refresh is for runs without a destination");
	return true;
}

bool attr_options_check(struct option_parse *parse, struct options *options)
{
	if (options->attr_mode != ATTR_MODE_NONE)
		return check_mode(parse, options);
	if (options->attr_snapshot)
		return check_snapshot(parse, options);
	return parse_fail(parse, EXIT_SYNTAX, "--attr-%s needs --attr-snapshot=FILE",
			  options->attr_refresh ? "refresh" : "digests");
}
