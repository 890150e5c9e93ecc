/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of a list and their lifetimes: segments, merges, levels. */
#include "filter/list.h"

#include <stdlib.h>
#include <string.h>

#include "lib/exit.h"

enum { ACTIVE_MERGES_MAX = 1024 };

/* Of a rule, beside itself and its text: a vector that doubles, and an allocation. */
#define RULE_OVERHEAD (sizeof(struct rule) + 32)

/* --- segments and merges, which own each other --- */

static void segment_free(struct filter_list *list, struct segment *segment);

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

static void drop_merges_of(struct filter_list *list, const struct segment *owner)
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

void segment_clear(struct filter_list *list, struct segment *segment)
{
	const size_t rule_count = segment->rules.count;

	drop_merges_of(list, segment);
	for (size_t i = 0; i < segment->rules.count; i++) {
		struct rule *rule = &segment->rules.items[i];
		if (rule->action != ACTION_DIR_MERGE && rule->cvs)
			segment_free(list, rule->cvs);
		free(rule->pattern);
	}
	list->live_rules -= segment->rules.count;
	list->live_bytes -= segment->bytes;
	budget_give_back(segment->budget, segment->bytes + rule_count * RULE_OVERHEAD);
	segment->rules.count = 0;
	segment->bytes = 0;
}

static void segment_free(struct filter_list *list, struct segment *segment)
{
	if (!segment)
		return;
	segment_clear(list, segment);
	vec_free(&segment->rules);
	free(segment->dir);
	free(segment);
}

void segment_count_rule(struct filter_list *list, struct segment *segment, size_t length)
{
	size_t bytes = sizeof(struct rule) + length + 1;

	segment->bytes += bytes;
	list->live_bytes += bytes;
	list->live_rules++;
	/* The list may go on with another setup. */
	if (list->setup.budget)
		segment->budget = list->setup.budget;
	budget_take(segment->budget, bytes + RULE_OVERHEAD, "filter rules");
	if (list->from_peer && (list->live_rules > PEER_RULES_MAX || list->live_bytes > PEER_BYTES_MAX))
		die(EXIT_MALLOC, "too many filter rules (limits: %d rules, %u bytes)", PEER_RULES_MAX, PEER_BYTES_MAX);
}

/* --- merges in force --- */

static bool is_active(const struct filter_list *list, const char *base_name)
{
	for (size_t i = 0; i < list->merges.count; i++)
		if (!strcmp(list->merges.items[i]->base_name, base_name))
			return true;
	return false;
}

struct merge *list_add_merge(struct filter_list *list, const struct segment *owner, const char *name, char *label,
			     uint16_t flags)
{
	const char *base_name = merge_base_name(name);

	list->has_had_merges = true;
	if (is_active(list, base_name))
		return NULL;
	if (list->merges.count == ACTIVE_MERGES_MAX)
		die(EXIT_MALLOC, "too many per-directory merge files (limit %d)", ACTIVE_MERGES_MAX);
	struct merge *merge = xcalloc(1, sizeof *merge);

	merge->base_name = xstrdup(base_name);
	merge->directory = base_name > name ? xstrndup(name, (size_t)(base_name - name)) : NULL;
	merge->label = label;
	merge->flags = flags;
	merge->owner = owner;
	vec_push(&list->merges, merge);
	return merge;
}

/* --- levels --- */

/* Merges that a merge's files have activated stand behind it. */
static void drop_from(struct filter_list *list, size_t count)
{
	while (list->merges.count > count)
		merge_free(list, list->merges.items[--list->merges.count]);
}

void list_leave(struct filter_list *list)
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

void list_leave_all(struct filter_list *list)
{
	while (list->levels.count)
		list_leave(list);
	strbuf_reset(&list->dir);
}

/* --- full paths --- */

void add_clean_path(struct strbuf *full, const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");
		bool is_up = length == 2 && path[0] == '.' && path[1] == '.';
		if (is_up && full->length) {
			const char *slash = memrchr(full->data, '/', full->length);
			strbuf_truncate(full, slash ? (size_t)(slash - full->data) : 0);
		} else if (length && !is_up && !(length == 1 && path[0] == '.')) {
			if (full->length)
				strbuf_add_char(full, '/');
			strbuf_add(full, path, length);
		}
		path += length;
		path += *path == '/';
	}
}
