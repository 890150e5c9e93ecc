/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Per-directory merge files (doc/protocol/04-filters.md section 4.10): which are active, and what is in force in which
 * directory.
 */
#include <stdlib.h>
#include <string.h>

#include "filter/list.h"
#include "lib/exit.h"
#include "lib/log.h"

/* --- activation --- */

const char *merge_base_name(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

static bool is_active(const struct filter_list *list, const char *base_name)
{
	for (size_t i = 0; i < list->merges.count; i++)
		if (!strcmp(list->merges.items[i]->base_name, base_name))
			return true;
	return false;
}

struct merge *merge_activate(const struct reader *reader, const struct parsed *parsed)
{
	struct filter_list *list = reader->list;
	char *name = xstrndup(parsed->pattern, parsed->length);
	const char *base_name = merge_base_name(name);
	struct merge *merge = NULL;

	if (!is_active(list, base_name)) {
		if (list->merges.count == ACTIVE_MERGES_MAX)
			die(EXIT_MALLOC, "too many per-directory merge files (limit %d)", ACTIVE_MERGES_MAX);
		merge = xcalloc(1, sizeof *merge);
		merge->base_name = xstrdup(base_name);
		merge->directory = base_name > name ? xstrndup(name, (size_t)(base_name - name)) : NULL;
		merge->label = reader->origin ? name_label(reader->origin, name) : NULL;
		merge->flags = parsed->flags;
		merge->owner = reader->out;
		vec_push(&list->merges, merge);
	}
	free(name);
	return merge;
}

static void merge_free(struct filter_list *list, struct merge *merge)
{
	for (size_t i = 0; i < merge->scanned.count; i++)
		segment_free(list, merge->scanned.items[i]);
	vec_free(&merge->scanned);
	free(merge->directory);
	free(merge->base_name);
	free(merge->label);
	free(merge);
}

/* Merges that a merge's files have activated stand behind it. */
static void drop_from(struct filter_list *list, size_t count)
{
	while (list->merges.count > count)
		merge_free(list, list->merges.items[--list->merges.count]);
}

void merge_drop_owned(struct filter_list *list, const struct segment *owner)
{
	for (size_t i = list->merges.count; i-- > 0;) {
		if (i >= list->merges.count || list->merges.items[i]->owner != owner)
			continue;
		struct merge *merge = list->merges.items[i];
		memmove(&list->merges.items[i], &list->merges.items[i + 1], (list->merges.count - i - 1) * sizeof merge);
		list->merges.count--;
		merge_free(list, merge);
	}
}

/* --- reading one file --- */

/* A directory in which merge files are looked for. */
struct place {
	const char *full;     /* full path, no slashes at the ends */
	const char *transfer; /* transfer name; NULL: only the full path counts (parent scans) */
};

static int open_merge(struct filter_list *list, const struct merge *merge, const struct place *place, struct strbuf *full)
{
	struct strbuf path = STRBUF_INIT;
	/* A module's rules know its root only. */
	bool below_base = place->transfer && place->transfer[0] != '/' && !list->setup.daemon_rules;

	strbuf_add_string(full, place->full);
	strbuf_add_path(full, merge->base_name);
	if (below_base)
		strbuf_add_string(&path, place->transfer);
	if (below_base)
		strbuf_add_path(&path, merge->base_name);
	else
		strbuf_addf(&path, "/%s", strbuf_text(full));
	int fd = open_rule_file(list, below_base ? FILTER_AT_BASE : FILTER_AT_ROOT, strbuf_text(&path), strbuf_text(full));

	strbuf_free(&path);
	return fd;
}

/* The rules of the merge's file in `place`, inheriting those in force; NULL if there is no file. Sets merge->current. */
static struct segment *read_merge(struct filter_list *list, struct merge *merge, const struct place *place)
{
	struct strbuf full = STRBUF_INIT;
	struct segment *inherited = merge->flags & RULE_NO_INHERIT ? NULL : merge->current;
	int fd = open_merge(list, merge, place, &full);

	merge->current = inherited;
	if (fd < 0) {
		strbuf_free(&full);
		return NULL;
	}
	struct segment *segment = xcalloc(1, sizeof *segment);
	segment->inherited = inherited;
	segment->dir = xstrdup(place->full);
	segment->dir_length = strlen(place->full);
	segment->base_name = merge->label ? merge->label : merge->base_name;
	char *shown = merge->label ? xstrdup(merge->label) : xasprintf("/%s", strbuf_text(&full));
	struct origin origin = { .label = shown, .is_secret = merge->label != NULL };
	struct reader reader = {
		.list = list, .out = segment, .style = FILTER_NEW_STYLE, .origin = &origin, .in_directory = true, .depth = 1,
		.defaults = merge->flags & RULE_PASSED_ON,
	};

	read_rule_file(&reader, fd, merge->flags);
	merge->current = segment;
	free(shown);
	strbuf_free(&full);
	return segment;
}

/* Read a file whose rules are kept as long as the merge is active, though they may be in force for less. */
static void read_to_keep(struct filter_list *list, struct merge *merge, const struct place *place)
{
	struct segment *segment = read_merge(list, merge, place);

	if (segment)
		vec_push(&merge->scanned, segment);
}

/* --- parent scan, 4.10.4 --- */

/* DIR as a full path: `directory` is absolute or relative to the full path `first`. */
static char *resolve_directory(const char *directory, const char *first)
{
	struct strbuf path = STRBUF_INIT;

	if (directory[0] != '/')
		add_clean_path(&path, first);
	add_clean_path(&path, directory);
	return path.data ? strbuf_detach(&path) : xstrdup("");
}

static bool is_ancestor(const char *dir, size_t length, const char *path)
{
	return !length || (!strncmp(dir, path, length) && (path[length] == '/' || !path[length]));
}

/* Every directory from DIR down to the parent of `first` is read as if the scan had entered it. Merges that these files
 * activate join in, from their directory on. All this is in force until `first` is left, and does not come back. */
static void scan_parents(struct filter_list *list, struct merge *merge, const char *first)
{
	char *dir = resolve_directory(merge->directory, first);
	char *parent = xstrdup(first);
	size_t length = strlen(dir), activated = list->merges.count;

	free(merge->directory);
	merge->directory = NULL;
	bool scans = is_ancestor(dir, length, first) && !(merge->flags & RULE_NO_INHERIT);
	while (scans && first[length]) {
		struct place place = { .full = parent };
		parent[length] = '\0';
		read_to_keep(list, merge, &place);
		for (size_t i = activated; i < list->merges.count; i++) {
			free(list->merges.items[i]->directory);
			list->merges.items[i]->directory = NULL;
			read_to_keep(list, list->merges.items[i], &place);
		}
		parent[length] = first[length];
		length += first[length] == '/';
		length += strcspn(first + length, "/");
	}
	free(parent);
	free(dir);
}

/* --- entering and leaving directories --- */

static char *full_path(const struct filter_list *list, const char *transfer)
{
	if (transfer[0] == '/')
		return xstrdup(transfer + 1);
	if (!list->base.length)
		return xstrdup(transfer);
	return xasprintf("%s%s%s", list->base.data, *transfer ? "/" : "", transfer);
}

static void enter(struct filter_list *list, const char *transfer)
{
	char *full = full_path(list, transfer);
	struct place place = { .full = full, .transfer = transfer };

	size_t merges = list->merges.count;
	struct level level = {
		.dir_length = strlen(transfer),
		.merges = merges,
		.saved = xcalloc(merges, sizeof *level.saved),
		.created = xcalloc(merges, sizeof *level.created),
	};
	vec_push(&list->levels, level);
	for (size_t i = 0; i < list->merges.count; i++) {
		struct merge *merge = list->merges.items[i];
		if (i < merges)
			level.saved[i] = merge->current;
		if (merge->directory)
			scan_parents(list, merge, full);
		if (i < merges)
			level.created[i] = read_merge(list, merge, &place);
		else
			read_to_keep(list, merge, &place);
	}
	free(full);
}

static void leave(struct filter_list *list)
{
	struct level level = list->levels.items[--list->levels.count];

	drop_from(list, level.merges);
	for (size_t i = 0; i < level.merges; i++) {
		list->merges.items[i]->current = level.saved[i];
		segment_free(list, level.created[i]);
	}
	free(level.saved);
	free(level.created);
}

void leave_all(struct filter_list *list)
{
	while (list->levels.count)
		leave(list);
	strbuf_reset(&list->dir);
}

/* --- where the scan is --- */

/* ".." is taken out of a module's only: elsewhere it may stand behind a symlink. */
static void add_base_path(struct strbuf *clean, const char *base, bool of_module)
{
	for (size_t length; *base && !of_module; base += length) {
		base += strspn(base, "/");
		length = strcspn(base, "/");
		if (!length || (length == 1 && *base == '.'))
			continue;
		if (clean->length)
			strbuf_add_char(clean, '/');
		strbuf_add(clean, base, length);
	}
	if (of_module)
		add_clean_path(clean, base);
}

void filter_set_base(struct filter_list *list, const char *base)
{
	struct strbuf clean = STRBUF_INIT;

	add_base_path(&clean, base, list->setup.daemon_rules);
	if (list->setup.daemon_rules) {
		strbuf_free(&list->scan_base);
		list->scan_base = clean;
		return;
	}
	if (strcmp(strbuf_text(&clean), strbuf_text(&list->base)) != 0) {
		leave_all(list);
		strbuf_reset(&list->base);
		strbuf_add(&list->base, strbuf_text(&clean), clean.length);
	}
	strbuf_free(&clean);
}

/* Is the directory of this level `dir` or above it? The base directory is above every relative name. */
static bool is_level_above(const struct filter_list *list, const struct level *level, const char *dir)
{
	if (!level->dir_length)
		return dir[0] != '/';
	return is_ancestor(strbuf_text(&list->dir), level->dir_length, dir);
}

static bool root_was_entered(struct filter_list *list)
{
	const char *base = strbuf_text(&list->base);

	return hashmap_get(&list->roots, hashmap_hash(&list->roots, base, list->base.length), 0) != NULL;
}

static void note_root(struct filter_list *list)
{
	bool inserted;

	hashmap_put(&list->roots, hashmap_hash(&list->roots, strbuf_text(&list->base), list->base.length), 0, 1, &inserted);
}

/* Enter what is missing between the deepest level and `dir`. */
static void enter_down_to(struct filter_list *list, const char *dir)
{
	size_t length = list->levels.count ? list->levels.items[list->levels.count - 1].dir_length : 0;
	char *path = xstrdup(dir);

	if (!list->levels.count && (!*dir || list->setup.daemon_rules || (dir[0] != '/' && root_was_entered(list))))
		enter(list, "");
	while (dir[length]) {
		length += dir[length] == '/';
		length += strcspn(dir + length, "/");
		path[length] = '\0';
		enter(list, path);
		path[length] = dir[length];
	}
	free(path);
}

void filter_set_dir(struct filter_list *list, const char *dir)
{
	struct strbuf full = STRBUF_INIT;

	if (!list->merges.count)
		return;
	if (list->setup.daemon_rules) {
		add_clean_path(&full, strbuf_text(&list->scan_base));
		if (*dir == '/')
			strbuf_truncate(&full, 0);
		add_clean_path(&full, dir);
		dir = strbuf_text(&full);
	}
	enter_directory(list, dir);
	strbuf_free(&full);
}

void enter_directory(struct filter_list *list, const char *dir)
{
	if (!list->merges.count)
		return;
	if (list->levels.count && !strcmp(dir, strbuf_text(&list->dir)))
		return;
	if (!*dir)
		note_root(list);
	while (list->levels.count && !is_level_above(list, &list->levels.items[list->levels.count - 1], dir))
		leave(list);
	size_t length = strlen(dir);

	strbuf_reset(&list->dir);
	strbuf_add(&list->dir, dir, length);
	enter_down_to(list, strbuf_text(&list->dir));
}

void filter_set_argument(struct filter_list *list, const char *name)
{
	const char *slash = strrchr(name, '/');

	if (!list->merges.count)
		return;
	if (!slash || slash == name) {
		leave_all(list);
		return;
	}
	char *parent = xstrndup(name, (size_t)(slash - name));
	filter_set_dir(list, parent);
	free(parent);
}
