/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rules, prepared once and matched against names (doc/protocol/04-filters.md section 4.7), and the other parts of a list with
 * their lifetimes: segments, merges, levels.
 */
#include "filter/list.h"

#include <stdlib.h>
#include <string.h>

#include "filter/wildmatch.h"
#include "lib/exit.h"

/* --- the pattern --- */

void rule_prepare(struct rule *rule)
{
	size_t length = strlen(rule->pattern);

	if (length > 1 && rule->pattern[length - 1] == '/') {
		rule->pattern[--length] = '\0';
		rule->flags |= RULE_DIR_ONLY;
	}
	for (const char *at = rule->pattern; *at; at++)
		rule->slashes += *at == '/';
	bool wild = has_wildcards(rule->pattern);
	bool double_star = wild && strstr(rule->pattern, "**");
	bool anchored = rule->pattern[0] == '/';

	rule->match = rule->pattern + anchored;
	rule->match_length = (uint32_t)(length - anchored);
	rule->leading_slash = !strncmp(rule->pattern, "**", 2);
	rule->trailing_stars = length >= 3 && !strcmp(rule->pattern + length - 3, "***");
	if (!rule->slashes && !double_star) {
		/* Patterns that need only the last component. Most rules are of the first two kinds. */
		const char *match = rule->match;

		rule->kind = MATCH_NAME_WILD;
		if (!wild)
			rule->kind = MATCH_NAME;
		else if (match[0] == '*' && strcspn(match + 1, "*?[\\") == length - 1)
			rule->kind = MATCH_SUFFIX;
		else if (strcspn(match, "*?[\\") == length - 1 && match[length - 1] == '*')
			rule->kind = MATCH_PREFIX;
		if (rule->kind == MATCH_SUFFIX)
			rule->match++;
		if (rule->kind == MATCH_SUFFIX || rule->kind == MATCH_PREFIX)
			rule->match_length--;
	} else if (anchored || rule->leading_slash)
		rule->kind = wild ? MATCH_PATH_WILD : MATCH_PATH;
	else if (double_star)
		rule->kind = MATCH_FLOAT;
	else
		rule->kind = wild ? MATCH_TAIL_WILD : MATCH_TAIL;
}

/* --- the name --- */

bool subject_init(struct subject *subject, const char *name, size_t length, bool is_dir)
{
	*subject = (struct subject){ .is_dir = is_dir, .is_absolute = *name == '/' };
	subject->name = name + subject->is_absolute;
	subject->length = length - subject->is_absolute;
	const char *slash = memrchr(subject->name, '/', subject->length);

	subject->last = slash ? slash + 1 : subject->name;
	subject->last_length = subject->length - (size_t)(subject->last - subject->name);
	return subject->length > 0;
}

/* The name's full path and a slash behind it, made once for all rules that want more than the name itself. */
static void make_full(struct filter_list *list, struct subject *subject)
{
	struct strbuf *full = &list->scratch;

	if (subject->has_full)
		return;
	strbuf_reset(full);
	strbuf_add(full, strbuf_text(&list->base), list->base.length);
	strbuf_add_char(full, '/');
	strbuf_add(full, subject->name, subject->length);
	strbuf_add_char(full, '/');
	subject->has_full = true;
}

struct text {
	const char *at;
	size_t length;
};

/* The text that the pattern is compared with: 4.7.2 steps 4 and 5. */
static struct text select_text(struct filter_list *list, const struct rule *rule, struct subject *subject)
{
	bool with_base = (rule->flags & RULE_ABSOLUTE) && !subject->is_absolute && list->base.length;
	bool slash_before = rule->leading_slash && (!subject->is_absolute || subject->from_root) && !with_base;
	bool slash_behind = rule->trailing_stars && subject->is_dir;

	if (!with_base && !slash_before && !slash_behind)
		return (struct text){ subject->name, subject->length };
	make_full(list, subject);
	const char *start = list->scratch.data;
	const char *end = start + list->scratch.length - !slash_behind;
	if (!with_base)
		start += list->base.length + !slash_before;
	return (struct text){ start, (size_t)(end - start) };
}

/* A pattern anchored at the directory of its file: what the full path has below that directory. The directory is compared
 * byte by byte and never as a pattern (4.18 no. 1). */
static bool cut_home(struct filter_list *list, const struct rule *rule, struct subject *subject, struct text *text)
{
	size_t length = rule->home->dir_length;

	*text = (struct text){ subject->name, subject->length };
	if ((!subject->is_absolute && list->base.length) || (rule->trailing_stars && subject->is_dir)) {
		make_full(list, subject);
		size_t skip = subject->is_absolute || !list->base.length ? list->base.length + 1 : 0;
		text->at = list->scratch.data + skip;
		text->length = list->scratch.length - skip - !(rule->trailing_stars && subject->is_dir);
	}
	if (!length)
		return true;
	if (text->length <= length || text->at[length] != '/' || memcmp(text->at, rule->home->dir, length))
		return false;
	text->at += length + 1;
	text->length -= length + 1;
	return true;
}

/* The last slashes + 1 components of the text; false if it has fewer. */
static bool cut_tail(struct text *text, uint32_t slashes)
{
	const char *end = text->at + text->length, *at = end;

	for (;;) {
		const char *slash = memrchr(text->at, '/', (size_t)(at - text->at));
		if (!slash) {
			text->length = (size_t)(end - text->at);
			return slashes == 0;
		}
		if (!slashes--) {
			text->at = slash + 1;
			text->length = (size_t)(end - text->at);
			return true;
		}
		at = slash;
	}
}

static bool is_equal(const struct rule *rule, const char *text, size_t length)
{
	return length == rule->match_length && !memcmp(text, rule->match, length);
}

static bool matches_name(const struct rule *rule, struct subject *subject)
{
	size_t length = rule->match_length;

	switch (rule->kind) {
	case MATCH_NAME:
		return is_equal(rule, subject->last, subject->last_length);
	case MATCH_SUFFIX:
		return subject->last_length >= length
		       && !memcmp(subject->last + subject->last_length - length, rule->match, length);
	case MATCH_PREFIX:
		return subject->last_length >= length && !memcmp(subject->last, rule->match, length);
	default:
		return wild_match(rule->match, length, subject->last, subject->last_length, false, &subject->steps);
	}
}

static bool matches_path(struct filter_list *list, const struct rule *rule, struct subject *subject)
{
	struct text text;

	if (!rule->anchored_here)
		text = select_text(list, rule, subject);
	else if (!cut_home(list, rule, subject, &text))
		return false;

	if ((rule->kind == MATCH_TAIL || rule->kind == MATCH_TAIL_WILD) && !cut_tail(&text, rule->slashes))
		return false;
	if (rule->kind == MATCH_PATH || rule->kind == MATCH_TAIL)
		return is_equal(rule, text.at, text.length);
	return wild_match(rule->match, rule->match_length, text.at, text.length, rule->kind == MATCH_FLOAT,
			  &subject->steps);
}

bool rule_matches(struct filter_list *list, const struct rule *rule, struct subject *subject)
{
	bool matches;

	if ((rule->flags & RULE_DIR_ONLY) && !subject->is_dir)
		matches = false;
	else if (rule->kind <= MATCH_NAME_WILD)
		matches = matches_name(rule, subject);
	else
		matches = matches_path(list, rule, subject);
	return matches != !!(rule->flags & RULE_NEGATE);
}

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

void segment_clear(struct filter_list *list, struct segment *segment)
{
	for (size_t i = list->merges.count; i-- > 0;) {
		if (i >= list->merges.count || list->merges.items[i]->owner != segment)
			continue;
		struct merge *merge = list->merges.items[i];
		memmove(&list->merges.items[i], &list->merges.items[i + 1], (list->merges.count - i - 1) * sizeof merge);
		list->merges.count--;
		merge_free(list, merge);
	}
	for (size_t i = 0; i < segment->rules.count; i++) {
		struct rule *rule = &segment->rules.items[i];
		if (rule->action != ACTION_DIR_MERGE && rule->cvs)
			segment_free(list, rule->cvs);
		free(rule->pattern);
	}
	list->live_rules -= segment->rules.count;
	list->live_bytes -= segment->bytes;
	budget_give_back(segment->budget, segment->bytes + segment->rules.count * RULE_OVERHEAD);
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

struct merge *list_add_merge(struct filter_list *list, const struct segment *owner, const char *name, char *label,
			     uint16_t flags)
{
	const char *base_name = merge_base_name(name);

	list->has_had_merges = true;
	for (size_t i = 0; i < list->merges.count; i++)
		if (!strcmp(list->merges.items[i]->base_name, base_name))
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

void list_leave(struct filter_list *list)
{
	struct level level = list->levels.items[--list->levels.count];

	/* Merges that a merge's files have activated stand behind it. */
	while (list->merges.count > level.merges)
		merge_free(list, list->merges.items[--list->merges.count]);
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
