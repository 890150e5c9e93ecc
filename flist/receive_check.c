/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which names may come from a peer (doc/protocol/02-file-list.md sections 11.1 and 11.3). */
#include "flist/receive_check.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "filter/wildmatch.h"
#include "flist/decode.h"
#include "lib/exit.h"

/* --- the form of a name --- */

static _Noreturn void die_unsafe(const char *name)
{
	die(EXIT_UNSUPPORTED, "ABORTING due to unsafe pathname from sender: %s", name);
}

static bool is_component(const char *text, size_t length, const char *component)
{
	return strlen(component) == length && !memcmp(text, component, length);
}

/* Most names are one more component of the directory that the list is of, and that has been cleaned. */
static bool is_clean_child(const struct flist_receiver *receiver, const char *name, size_t length)
{
	const struct strbuf *parent = &receiver->node_path;
	size_t prefix = parent->length ? parent->length + 1 : 0;

	if (!prefix || length <= prefix || name[prefix - 1] != '/' || memcmp(name, parent->data, prefix - 1) != 0)
		return false;
	name += prefix;
	length -= prefix;
	return *name != '.' && !memchr(name, '/', length) && !memchr(name, '\0', length);
}

static void clean_name(const struct flist_receiver *receiver, const char *name, size_t length, struct strbuf *clean)
{
	const char *at = name, *end = name + length;

	if (memchr(name, '\0', length))
		die(EXIT_PROTOCOL, "NUL byte inside a file-list name received: %s", name);
	if (!length)
		die(EXIT_PROTOCOL, "ERROR: rejecting empty file-list name");
	if (*name == '/') {
		if (!receiver->options->relative)
			die_unsafe(name);
		strbuf_add_char(clean, '/');
	}
	while (at < end) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		size_t part = slash ? (size_t)(slash - at) : (size_t)(end - at);

		if (is_component(at, part, ".."))
			die_unsafe(name);
		if (part && !is_component(at, part, ".")) {
			if (clean->length && clean->data[clean->length - 1] != '/')
				strbuf_add_char(clean, '/');
			strbuf_add(clean, at, part);
		} else if (part && !slash && clean->length && strcmp(clean->data, "/") != 0) {
			/* Only releases without a name for it send "a/." (doc/protocol/02-file-list.md section 13). */
			if (receiver->session->caps.clean_names)
				die_unsafe(name);
			strbuf_add_string(clean, "/.");
		}
		at += part + (slash != NULL);
	}
	if (!clean->length || !strcmp(clean->data, "/")) {
		strbuf_reset(clean);
		strbuf_add_char(clean, '.');
	}
}

void flist_clean_name(const struct flist_receiver *receiver, const char *name, size_t length, struct incoming *in)
{
	strbuf_reset(&in->name);
	in->is_child = is_clean_child(receiver, name, length);
	if (in->is_child)
		strbuf_add(&in->name, name, length);
	else
		clean_name(receiver, name, length, &in->name);
}

static size_t depth_of(const char *name)
{
	size_t depth = 0;

	for (name += strspn(name, "/"); *name; name++)
		depth += *name == '/';
	return depth;
}

static void add_component(struct strbuf *path, const char *component, size_t length)
{
	if (path->length && path->data[path->length - 1] != '/')
		strbuf_add_char(path, '/');
	strbuf_add(path, component, length);
}

void flist_clean_target(const char *target, const char *name, struct strbuf *clean)
{
	size_t depth = depth_of(name), start = clean->length, below = 0;
	struct strbuf path = STRBUF_INIT;
	bool slash = false;

	while (*target) {
		size_t length = strcspn(target, "/");
		bool climbs = is_component(target, length, "..");

		if (climbs && below) {
			const char *last = strrchr(strbuf_text(&path), '/');

			strbuf_truncate(&path, last ? (size_t)(last - path.data) : 0);
			below--;
		} else if (length && !is_component(target, length, ".") && (!climbs || depth)) {
			add_component(&path, target, length);
			below += !climbs;
			depth -= climbs;
		}
		slash = target[length] == '/';
		target += length + slash;
	}
	strbuf_add_string(clean, path.length ? strbuf_text(&path) : ".");
	if (slash && path.length && clean->length > start)
		strbuf_add_char(clean, '/');
	strbuf_free(&path);
}

/* --- what was asked for --- */

struct asked_names {
	bool recursive, dirs;
	bool everything, top;   /* the root of the transfer was asked for, with what lies below it; with what lies in it */
	VEC(char *) exact;      /* sorted */
	VEC(char *) parents;    /* sorted: as directories only */
	VEC(char *) patterns, parent_patterns;
};

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "//", "./" and what stands at the end are left out; no leading slash. */
static void clean_argument(const char *text, struct strbuf *clean)
{
	strbuf_reset(clean);
	while (*text) {
		size_t length = strcspn(text, "/");

		if (length && !is_component(text, length, ".")) {
			if (clean->length)
				strbuf_add_char(clean, '/');
			strbuf_add(clean, text, length);
		}
		text += length + (text[length] == '/');
	}
}

static void add_parents(struct asked_names *asked, const char *path, bool is_pattern)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *parent = xstrndup(path, (size_t)(slash - path));

		if (is_pattern && has_wildcards(parent))
			vec_push(&asked->parent_patterns, parent);
		else
			vec_push(&asked->parents, parent);
	}
}

static void add_asked(struct asked_names *asked, const char *argument, bool relative)
{
	struct strbuf clean = STRBUF_INIT;
	const char *cut = relative ? strstr(argument, "/./") : strrchr(argument, '/');

	clean_argument(cut ? cut + (relative ? 3 : 1) : argument, &clean);
	const char *path = strbuf_text(&clean);
	bool is_pattern = has_wildcards(path);

	if (!*path) {
		asked->top = true;
		asked->everything |= asked->recursive;
	} else {
		if (is_pattern)
			vec_push(&asked->patterns, xstrdup(path));
		if (!is_pattern || strchr(path, '['))
			vec_push(&asked->exact, xstrdup(path));
		if (relative)
			add_parents(asked, path, is_pattern);
	}
	strbuf_free(&clean);
}

struct asked_names *asked_names_new(const struct options *options, const struct args *args)
{
	struct asked_names *asked = xcalloc(1, sizeof *asked);

	asked->recursive = options->recursive > 0;
	asked->dirs = options->dirs;
	for (size_t i = 0; i < args->count; i++)
		add_asked(asked, args->items[i], options->relative);
	if (asked->exact.count)
		qsort(asked->exact.items, asked->exact.count, sizeof(char *), compare_texts);
	if (asked->parents.count)
		qsort(asked->parents.items, asked->parents.count, sizeof(char *), compare_texts);
	return asked;
}

#define free_texts(texts) \
	do { \
		for (size_t i_ = 0; i_ < (texts)->count; i_++) \
			free((texts)->items[i_]); \
		vec_free(texts); \
	} while (0)

void asked_names_free(struct asked_names *asked)
{
	if (!asked)
		return;
	free_texts(&asked->exact);
	free_texts(&asked->parents);
	free_texts(&asked->patterns);
	free_texts(&asked->parent_patterns);
	free(asked);
}

static bool is_among(const char *name, char *const *texts, size_t count, char *const *patterns, size_t pattern_count)
{
	if (count && bsearch(&name, texts, count, sizeof *texts, compare_texts))
		return true;
	for (size_t i = 0; i < pattern_count; i++)
		if (wildmatch(patterns[i], name))
			return true;
	return false;
}

static bool is_asked(const struct asked_names *asked, const char *name)
{
	return is_among(name, asked->exact.items, asked->exact.count, asked->patterns.items, asked->patterns.count);
}

/* Does the name lie below something that was asked for, as deep as the options go? `path` is scratch. */
static bool is_below_asked(const struct asked_names *asked, char *path)
{
	char *slash = strrchr(path, '/');

	if (!asked->recursive && !asked->dirs)
		return false;
	if (asked->top && !slash)
		return true;
	for (; slash; slash = strrchr(path, '/')) {
		*slash = '\0';
		if (is_asked(asked, path))
			return true;
		if (!asked->recursive)
			return false;
	}
	return false;
}

enum asked asked_names_look_up(const struct asked_names *asked, const char *name, bool is_dir)
{
	char path[PATH_MAX];

	if (asked->everything)
		return ASKED_YES;
	name += *name == '/';
	if (!strcmp(name, "."))
		return asked->top ? ASKED_YES : ASKED_PARENT;
	if (is_asked(asked, name))
		return ASKED_YES;
	if (strlen(name) >= sizeof path)
		return ASKED_NO;
	strcpy(path, name);
	if (is_below_asked(asked, path))
		return ASKED_YES;
	bool is_parent = is_dir && is_among(name, asked->parents.items, asked->parents.count, asked->parent_patterns.items,
					    asked->parent_patterns.count);

	return is_parent ? ASKED_PARENT : ASKED_NO;
}
