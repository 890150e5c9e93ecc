/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a parse, rows of the table of options, the kind of a run. */
#include "options/parse.h"

#include <stdlib.h>
#include <string.h>

#include "fs/root.h"
#include "lib/alloc.h"
#include "options/remote.h"

bool parse_fail_with(struct option_parse *parse, int code, bool bare, const char *fmt, ...)
{
	struct strbuf text = STRBUF_INIT;
	va_list args;

	if (parse->error)
		return false;
	va_start(args, fmt);
	strbuf_vaddf(&text, fmt, args);
	va_end(args);
	parse->error = strbuf_detach(&text);
	parse->error_is_bare = bare;
	parse->code = code;
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

bool parse_add_filter(struct option_parse *parse, int kind, int style, const char *text, int times)
{
	struct options *options = parse->options;
	struct filter_option filter = { .style = (enum filter_style)style, .times = times, .from0 = options->from0 };

	filter.kind = kind;
	filter.text = parse_keep(parse, text);
	vec_push(&options->filters, filter);
	return true;
}

/* Without empty and "." components, and without those that ".." takes back. */
const char *parse_clean_partial_dir(struct option_parse *parse, const char *text)
{
	size_t length = strlen(text), end;
	char *clean = xmalloc(length + 4);
	bool absolute = *text == '/', has_dot = length > 2 && strcmp(text + length - 2, "/.") == 0;

	fs_clean_path(clean + absolute, text);
	if (absolute)
		*clean = '/';
	end = strlen(clean);
	while (end > 1 && clean[end - 1] == '/')
		clean[--end] = '\0';
	/* That much is left as it stands. */
	if (has_dot && end > 1)
		memcpy(clean + end, "/.", sizeof "/.");
	vec_push(&parse->strings, clean);
	return clean;
}

/* --- rows of the table --- */

bool option_is_end(const struct option_spec *spec)
{
	return !spec->name && !spec->letter;
}

size_t option_table_count(const struct option_spec *table)
{
	size_t count = 0;

	while (!option_is_end(&table[count]))
		count++;
	return count;
}

bool option_is_same(const struct option_spec *a, const struct option_spec *b)
{
	return a == b || (a->set == b->set && a->field == b->field && a->value == b->value && a->also == b->also);
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
	return (spec->runs & HIDDEN) != HIDDEN;
}

enum run_kind options_kind_of_run(const struct options *options)
{
	const struct args *operands = &options->operands;

	if (options->read_batch)
		return PULL;
	if (operands->count > 1 && argument_is_remote(operands->items[operands->count - 1]))
		return PUSH;
	return operands->count && argument_is_remote(operands->items[0]) ? PULL : LOCAL;
}
