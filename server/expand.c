/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the patterns that a client has asked for to names. */
#include "server/expand.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "filter/wildmatch.h"
#include "fs/operator.h"
#include "lib/alloc.h"
#include "lib/exit.h"

enum { NAMES_MAX = 4000000, NAME_STEPS = 50, DIRECTORY_STEPS = 500 };

struct expansion {
	struct attr_source *source;
	struct filter_list *hidden;
	struct expansion_cost *cost;
	struct args *out;
};

static void expand_from(struct expansion *expansion, const char *done, const char *rest);

static void count_name(struct expansion_cost *cost)
{
	if (++cost->names > NAMES_MAX)
		die(EXIT_PROTOCOL, "the wildcards of the arguments lead to more than %d names", NAMES_MAX);
	budget_work(cost->budget, NAME_STEPS);
}

static char *join(const char *directory, const char *name)
{
	size_t length = strlen(directory);

	return xasprintf("%s%s%s", directory, length && directory[length - 1] != '/' ? "/" : "", name);
}

/* Does the pattern's match count, and is it a directory? A link that leads nowhere (in the module) does not: stock does the
 * same. */
static bool is_there(struct attr_source *source, const char *path, unsigned char type, bool *is_dir)
{
	bool must_look = type == DT_LNK || type == DT_UNKNOWN;
	struct fs_stat st;
	int result = must_look ? attr_source_stat(source, path, true, &st) : 0;

	*is_dir = must_look ? result == 0 && S_ISDIR(st.mode) : type == DT_DIR;
	return result == 0 || type == DT_UNKNOWN;
}

/* The names in `directory` that the pattern selects: as if the hidden ones were not there. */
static void collect_matches(const struct expansion *expansion, const char *directory, const char *pattern,
			    bool only_directories, struct args *names)
{
	struct attr_names entries;
	struct fs_dirent entry;

	budget_work(expansion->cost->budget, DIRECTORY_STEPS);
	if (attr_source_names(expansion->source, directory, &entries) < 0)
		return;
	while (attr_names_next(&entries, &entry) > 0) {
		bool is_dir;
		char *path;

		count_name(expansion->cost);
		if (!wildmatch_for(expansion->cost->budget, pattern, entry.name))
			continue;
		path = join(directory, entry.name);
		if (is_there(expansion->source, path, entry.type, &is_dir) && (is_dir || !only_directories)
		    && !(expansion->hidden && filter_hides_path(expansion->hidden, path, is_dir)))
			args_append_counted(names, path, expansion->cost->budget);
		free(path);
	}
	attr_names_finish(&entries);
}

static void expand_component(struct expansion *expansion, const char *done, const char *pattern, const char *rest)
{
	struct args names = { NULL, 0 };

	collect_matches(expansion, done, pattern, *rest != 0, &names);
	for (size_t i = 0; i < names.count; i++)
		expand_from(expansion, names.items[i], rest);
	args_free_counted(&names, expansion->cost->budget);
}

/* `done` is what stands fast; `rest` starts with the slash that follows it, or with a component if `done` is "". */
static void expand_from(struct expansion *expansion, const char *done, const char *rest)
{
	size_t slashes = strspn(rest, "/"), length = strcspn(rest + slashes, "/");
	char *component;

	if (!length) {
		char *whole = xasprintf("%s%s", done, rest);

		args_append_limited(expansion->out, whole, expansion->cost->budget);
		free(whole);
		return;
	}
	component = xstrndup(rest + slashes, length);
	if (strpbrk(component, "*?[")) {
		expand_component(expansion, done, component, rest + slashes + length);
	} else {
		char *longer = join(done, component);

		expand_from(expansion, longer, rest + slashes + length);
		free(longer);
	}
	free(component);
}

void operand_expand(struct attr_source *source, struct filter_list *hidden, const char *pattern, struct expansion_cost *cost,
		    struct args *out)
{
	struct expansion expansion = { source, hidden, cost, out };
	size_t before = out->count;

	if (strpbrk(pattern, "*?["))
		expand_from(&expansion, "", pattern);
	if (out->count == before)
		args_append_limited(out, pattern, cost->budget);
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* An absolute pattern is one below the root, without the slash. */
static void expand_own(const char *pattern, size_t most, struct expansion_cost *cost, struct args *out)
{
	const bool is_absolute = *pattern == '/';
	struct attr_source source = { .kind = ATTRS_LIVE, .attr_root.fd = -1, .content_root.fd = -1 };
	struct args found = { NULL, 0 };
	int fd = strpbrk(pattern, "*?[") ? fs_operator_open(is_absolute ? "/" : ".", O_PATH | O_DIRECTORY, 0) : -1;

	if (fd < 0) {
		args_append(out, pattern);
		return;
	}
	fs_root_adopt(&source.attr_root, fd);
	source.attr_root.trusting = true;
	operand_expand(&source, NULL, pattern + (is_absolute ? strspn(pattern, "/") : 0), cost, &found);
	qsort(found.items, found.count, sizeof *found.items, compare_words);
	for (size_t i = 0; i < found.count && i < most; i++) {
		char *whole = xasprintf("%s%s", is_absolute ? "/" : "", found.items[i]);

		args_append(out, whole);
		free(whole);
	}
	args_free(&found);
	fs_root_close(&source.attr_root);
}

void operands_expand_own(struct args *operands, size_t most, struct budget *budget)
{
	struct args patterns = *operands;
	struct expansion_cost cost = { .budget = budget };

	*operands = (struct args){ NULL, 0 };
	for (size_t i = 0; i < patterns.count; i++)
		expand_own(patterns.items[i], most, &cost, operands);
	args_free(&patterns);
}
