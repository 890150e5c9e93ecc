/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ground that the files behind options.h stand on: failing, keeping texts, labels of options, the kind of a run. */
#include "options/parse.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "ui/number.h"

static bool fail_with(struct option_parse *parse, int code, bool bare, const char *fmt, va_list args)
{
	struct strbuf text = STRBUF_INIT;

	strbuf_vaddf(&text, fmt, args);
	if (parse->error) {
		strbuf_free(&text); /* the first error is the one to tell */
		return false;
	}
	parse->error = strbuf_detach(&text);
	parse->error_is_bare = bare;
	parse->code = code;
	return false;
}

bool parse_fail(struct option_parse *parse, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fail_with(parse, code, false, fmt, args);
	va_end(args);
	return false;
}

bool parse_fail_bare(struct option_parse *parse, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fail_with(parse, code, true, fmt, args);
	va_end(args);
	return false;
}

char *parse_keep(struct option_parse *parse, const char *text)
{
	char *copy = xstrdup(text);

	vec_push(&parse->strings, copy);
	return copy;
}

void parse_print(struct option_parse *parse, enum print print, FILE *stream, int code)
{
	parse->done = true;
	parse->print = print;
	parse->stream = stream;
	parse->code = code;
}

size_t option_table_count(const struct option_spec *table)
{
	size_t count = 0;

	while (table[count].set)
		count++;
	return count;
}

bool option_is_same(const struct option_spec *a, const struct option_spec *b)
{
	return a == b || (a->set == b->set && a->field == b->field && a->value == b->value);
}

const char *option_label(const struct option_spec *spec, char label[OPTION_LABEL_SIZE])
{
	if (spec->name)
		snprintf(label, OPTION_LABEL_SIZE, "--%s", spec->name);
	else
		snprintf(label, OPTION_LABEL_SIZE, "-%c", spec->letter);
	return label;
}

bool option_is_shown(const struct option_spec *spec)
{
	return spec->client != HIDDEN;
}

enum client_use options_kind_of_run(const struct options *options)
{
	const struct args *operands = &options->operands;

	if (options->read_batch)
		return PULL;
	if (operands->count > 1 && argument_is_remote(operands->items[operands->count - 1]))
		return PUSH;
	return operands->count && argument_is_remote(operands->items[0]) ? PULL : LOCAL;
}

bool parse_size(struct option_parse *parse, const struct option_spec *spec, const char *text, const struct size_limits *limits,
		int64_t *value)
{
	const char *name = spec->name;
	char limit[64];

	switch (size_parse(text, limits->default_unit, value)) {
	case SIZE_INVALID:
		return parse_fail(parse, EXIT_SYNTAX, "--%s=%s is invalid", name, text);
	case SIZE_TOO_LARGE:
		*value = INT64_MAX;
		break;
	case SIZE_OK:
		break;
	}
	if (limits->max && *value > limits->max)
		return parse_fail(parse, EXIT_SYNTAX, "--%s=%s is too large (max: %s)", name, text,
				  number_format(limit, sizeof limit, limits->max, 3));
	if (*value == INT64_MAX)
		return parse_fail(parse, EXIT_SYNTAX, "--%s=%s is too large", name, text);
	if (*value && *value < limits->min)
		return parse_fail(parse, EXIT_SYNTAX, "--%s=%s is too small (min: %s or 0 for unlimited)", name, text,
				  limits->min < 1024 ? "512" : number_format(limit, sizeof limit, limits->min, 3));
	return true;
}
