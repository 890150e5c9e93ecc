/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list itself: made, filled from texts, emptied. */
#include <stdlib.h>
#include <string.h>

#include "filter/list.h"
#include "lib/exit.h"
#include "lib/log.h"

/* Of a rule, beside itself and its text: a vector that doubles, and an allocation. */
#define RULE_OVERHEAD (sizeof(struct rule) + 32)

struct filter_list *filter_new(const struct filter_setup *setup)
{
	struct filter_list *list = xcalloc(1, sizeof *list);

	list->setup = *setup;
	list->from_peer = setup->of_peer;
	return list;
}

void filter_set_up(struct filter_list *list, const struct filter_setup *setup)
{
	list->setup = *setup;
}

void filter_free(struct filter_list *list)
{
	if (!list)
		return;
	leave_all(list);
	segment_clear(list, &list->rules);
	vec_free(&list->rules.rules);
	vec_free(&list->merges);
	vec_free(&list->levels);
	hashmap_free(&list->roots);
	strbuf_free(&list->base);
	strbuf_free(&list->dir);
	strbuf_free(&list->scratch);
	strbuf_free(&list->tested);
	strbuf_free(&list->scan_base);
	free(list);
}

bool filter_is_empty(const struct filter_list *list)
{
	return !list->rules.rules.count && !list->has_xattr_rules;
}

bool filter_has_merges(const struct filter_list *list)
{
	return list->has_had_merges;
}

/* --- segments --- */

void segment_clear(struct filter_list *list, struct segment *segment)
{
	const size_t rule_count = segment->rules.count;

	merge_drop_owned(list, segment);
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

void segment_free(struct filter_list *list, struct segment *segment)
{
	if (!segment)
		return;
	segment_clear(list, segment);
	vec_free(&segment->rules);
	free(segment->dir);
	free(segment);
}

static void count_rule(struct filter_list *list, struct segment *segment, size_t length)
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

/* --- adding a parsed rule --- */

/* The pattern as it is kept. A module's "dir/" hides what is below the directory too. */
static char *copy_pattern(const struct filter_list *list, const struct parsed *parsed)
{
	bool is_dir = parsed->length > 1 && parsed->pattern[parsed->length - 1] == '/';

	if (list->setup.daemon_rules && is_dir && parsed->action == ACTION_EXCLUDE && !(parsed->flags & RULE_NEGATE))
		return xasprintf("%.*s***", (int)parsed->length, parsed->pattern);
	return xstrndup(parsed->pattern, parsed->length);
}

static bool has_inner_slash(const char *pattern)
{
	const char *slash = strchr(pattern, '/');

	return slash && slash[1];
}

static void append_rule(const struct reader *reader, const struct parsed *parsed, struct merge *merge)
{
	struct filter_list *list = reader->list;
	struct rule rule = { .action = (uint8_t)parsed->action, .flags = parsed->flags, .home = reader->out };

	count_rule(list, reader->out, parsed->length);
	rule.pattern = copy_pattern(list, parsed);
	if (reader->origin)
		rule.flags |= RULE_FROM_FILE;
	if (is_other_side(list, rule.flags))
		rule.flags |= RULE_IDLE;
	if (rule.flags & RULE_XATTR)
		list->has_xattr_rules = true;
	if (reader->in_directory && rule.pattern[0] == '/' && !(rule.flags & RULE_ABSOLUTE))
		rule.anchored_here = true;
	else if (list->setup.daemon_rules && has_inner_slash(rule.pattern))
		rule.flags |= RULE_ABSOLUTE;
	if (merge)
		rule.merge = merge;
	else if (rule.flags & RULE_CVS)
		rule.cvs = cvs_segment(reader, rule.flags);
	else
		rule_prepare(&rule);
	vec_push(&reader->out->rules, rule);
}

static void report_long(const struct reader *reader, const struct parsed *parsed)
{
	char *label = rule_label(reader->origin, parsed->pattern, parsed->length);

	log_error("discarding over-long filter: %s", label);
	free(label);
}

/* 4.5, and 4.18 no. 2 for a module's rules. */
static void settle_sides(const struct filter_list *list, struct parsed *parsed)
{
	bool decides = parsed->action == ACTION_EXCLUDE || parsed->action == ACTION_INCLUDE
		       || (parsed->action == ACTION_DIR_MERGE && (parsed->flags & RULE_FIXED));

	if (list->setup.daemon_rules || (list->setup.server_words && parsed->action != ACTION_DIR_MERGE))
		parsed->flags &= (uint16_t)~RULE_SIDES;
	else if (list->setup.delete_excluded && decides && !(parsed->flags & RULE_SIDES))
		parsed->flags |= RULE_SENDER;
}

/* Modifier "e": the merge file itself is excluded, whatever the sides of the merge. */
static void exclude_self(const struct reader *reader, const struct parsed *merge)
{
	char *name = xstrndup(merge->pattern, merge->length);
	const char *base_name = merge_base_name(name);
	struct parsed parsed = { .action = ACTION_EXCLUDE, .pattern = base_name, .length = strlen(base_name) };

	if (!parsed.length) {
		free(name);
		die(EXIT_SYNTAX, "unexpected end of filter rule: - ");
	}
	settle_sides(reader->list, &parsed);
	append_rule(reader, &parsed, NULL);
	free(name);
}

static void clear_rules(const struct reader *reader)
{
	struct filter_list *list = reader->list;

	if (reader->out == &list->rules)
		leave_all(list);
	segment_clear(list, reader->out);
	reader->out->inherited = NULL;
}

static void add_dir_merge(const struct reader *reader, const struct parsed *parsed)
{
	struct merge *merge = merge_activate(reader, parsed);

	reader->list->has_had_merges = true;
	if (merge)
		append_rule(reader, parsed, merge);
}

void list_add_parsed(const struct reader *reader, const struct parsed *given)
{
	struct parsed parsed = *given;

	if (parsed.action == ACTION_CLEAR) {
		clear_rules(reader);
		return;
	}
	if (parsed.length > PATTERN_MAX) {
		report_long(reader, &parsed);
		return;
	}
	settle_sides(reader->list, &parsed);
	if (reader->in_directory && is_other_side(reader->list, parsed.flags))
		return;
	if (parsed.action == ACTION_MERGE && reader->from_wire)
		die(EXIT_SYNTAX, "a merge rule cannot be sent to a server: %.*s", (int)parsed.length, parsed.pattern);
	if (parsed.flags & RULE_EXCLUDE_SELF)
		exclude_self(reader, &parsed);
	parsed.flags &= (uint16_t)~RULE_EXCLUDE_SELF;
	if (parsed.action == ACTION_MERGE)
		merge_file(reader, &parsed);
	else if (parsed.action == ACTION_DIR_MERGE)
		add_dir_merge(reader, &parsed);
	else
		append_rule(reader, &parsed, NULL);
}

/* --- adding texts --- */

void filter_add(struct filter_list *list, const char *rule, enum filter_style style)
{
	struct reader reader = { .list = list, .out = &list->rules, .style = style };

	reader_add(&reader, rule, strlen(rule));
}

void filter_add_words(struct filter_list *list, const char *rules, enum filter_style style)
{
	struct reader reader = { .list = list, .out = &list->rules, .style = style, .words = true };

	reader_add_words(&reader, rules, strlen(rules));
}

void filter_set_from0(struct filter_list *list, bool from0)
{
	list->setup.from0 = from0;
}

void filter_add_file(struct filter_list *list, const char *path, enum filter_style style)
{
	struct reader reader = { .list = list, .out = &list->rules, .style = style };
	struct parsed file = { .action = ACTION_MERGE, .pattern = path, .length = strlen(path) };

	merge_file(&reader, &file);
}

void filter_add_cvs(struct filter_list *list)
{
	filter_add(list, ":C", FILTER_NEW_STYLE);
	filter_add(list, "-C", FILTER_NEW_STYLE);
}

void filter_add_shortcut_F(struct filter_list *list, int times)
{
	if (times == 1)
		filter_add(list, ": /.rsync-filter", FILTER_NEW_STYLE);
	else if (times == 2)
		filter_add(list, "- .rsync-filter", FILTER_NEW_STYLE);
}
