/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Suffixes of files that are not worth compressing (doc/protocol/03-transfer.md section 6.7). */
#include "delta/skip_list.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/vec.h"

#define SUFFIX_MAX 32

struct skip_list {
	VEC(char *) suffixes; /* lower case, may hold [classes] */
	bool everything;
};

struct skip_list *skip_list_new(void)
{
	return xcalloc(1, sizeof(struct skip_list));
}

void skip_list_free(struct skip_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->suffixes.count; i++)
		free(list->suffixes.items[i]);
	vec_free(&list->suffixes);
	free(list);
}

static void add_suffix(struct skip_list *list, const char *suffix, size_t length)
{
	if (!length)
		return;
	char *copy = xstrndup(suffix, length < SUFFIX_MAX ? length : SUFFIX_MAX);

	for (char *c = copy; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	vec_push(&list->suffixes, copy);
}

void skip_list_add_option(struct skip_list *list, const char *suffixes)
{
	while (*suffixes) {
		size_t length = strcspn(suffixes, "/");
		add_suffix(list, suffixes, length);
		suffixes += length + (suffixes[length] == '/');
	}
}

void skip_list_add_daemon(struct skip_list *list, const char *patterns)
{
	while (*patterns) {
		size_t length = strcspn(patterns, " \t");
		if (length == 1 && *patterns == '*')
			list->everything = true;
		else if (length > 2 && patterns[0] == '*' && patterns[1] == '.')
			add_suffix(list, patterns + 2, length - 2);
		patterns += length;
		patterns += strspn(patterns, " \t");
	}
}

/* One character against one place of the pattern, which is a character or a [class]; *pattern moves behind the place. */
static bool match_one(const char **pattern, char c)
{
	const char *p = *pattern, *end = *p == '[' ? strchr(p, ']') : NULL;

	*pattern = end ? end + 1 : p + 1;
	if (!end)
		return *p == c;
	for (p++; p < end; p++) {
		if (p[1] == '-' && p + 2 < end) {
			if (c >= p[0] && c <= p[2])
				return true;
			p += 2;
		} else if (*p == c) {
			return true;
		}
	}
	return false;
}

static bool matches_suffix(const char *pattern, const char *text)
{
	while (*pattern && *text)
		if (!match_one(&pattern, (char)tolower((unsigned char)*text++)))
			return false;
	return !*pattern && !*text;
}

int skip_list_matches(const struct skip_list *list, const char *name)
{
	const char *suffix = strrchr(name, '.');

	if (list->everything)
		return 1;
	if (!suffix || suffix == name)
		return 0;
	for (size_t i = 0; i < list->suffixes.count; i++)
		if (matches_suffix(list->suffixes.items[i], suffix + 1))
			return 1;
	return 0;
}
