/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A pattern and a name, separated by a NUL byte, through the matcher and through a rule: no pattern takes long or reads
 * outside of either, and a rule without slashes and double stars agrees with the bare matcher. */
#include <string.h>

#include "catch_die.h"
#include "filter/add.h"
#include "filter/filter.h"
#include "filter/wildmatch.h"
#include "lib/alloc.h"

struct input {
	char *pattern, *name;
};

static void match(void *context)
{
	struct input *input = context;
	struct filter_setup setup = { .side = FILTER_SENDER };
	struct filter_list *list = filter_new(&setup);
	bool matches = wildmatch(input->pattern, input->name);
	bool is_plain = !strchr(input->pattern, '/') && !strstr(input->pattern, "**") && has_wildcards(input->pattern);

	if (*input->pattern)
		filter_add(list, input->pattern, FILTER_OLD_EXCLUDE);
	bool is_pattern = !filter_is_empty(list) && strcmp(input->pattern, "!");
	if (strlen(input->pattern) >= 2 && input->pattern[1] == ' ')
		is_pattern = false;
	if (is_plain && is_pattern && *input->name && !strchr(input->name, '/')
	    && filter_excludes(list, input->name, false) != matches)
		abort();
	filter_excludes(list, input->name, true);
	filter_free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = memchr(data, 0, size);
	size_t length = nul ? (size_t)(nul - data) : size;
	size_t rest = nul ? size - length - 1 : 0;
	/* Exact copies, so that the sanitizer sees one byte too many. */
	struct input input = { xstrndup((const char *)data, length), xstrndup((const char *)data + size - rest, rest) };

	catch_die(match, &input);
	free(input.pattern);
	free(input.name);
	return 0;
}
