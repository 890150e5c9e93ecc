/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Per-directory merge files (doc/protocol/04-filters.md section 4.10): what is in force in which directory. */
#include <stdlib.h>
#include <string.h>

#include "filter/add.h"
#include "filter/list.h"
#include "filter/merge.h"
#include "filter/parse.h"
#include "filter/reader.h"

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

	filter_add_directory_file(list, segment, fd, &origin, merge->flags);
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

/* --- where the scan is --- */

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

void enter_directory(struct filter_list *list, const char *dir)
{
	if (!list->merges.count)
		return;
	if (list->levels.count && !strcmp(dir, strbuf_text(&list->dir)))
		return;
	if (!*dir)
		note_root(list);
	while (list->levels.count && !is_level_above(list, &list->levels.items[list->levels.count - 1], dir))
		list_leave(list);
	size_t length = strlen(dir);

	strbuf_reset(&list->dir);
	strbuf_add(&list->dir, dir, length);
	enter_down_to(list, strbuf_text(&list->dir));
}
