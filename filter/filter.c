/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Deciding about names: the first rule that matches (doc/protocol/04-filters.md sections 4.10.1 and 4.12). */
#include <stdlib.h>
#include <string.h>

#include "filter/list.h"

enum verdict { UNDECIDED, INCLUDED, EXCLUDED };

/* "hiding file a.o because of pattern *.o [per-dir .rules]" */
static void explain(const struct filter_list *list, const struct rule *rule, const struct subject *subject)
{
	bool excludes = rule->action == ACTION_EXCLUDE, sends = list->setup.side & FILTER_SENDER;
	const char *verb = excludes ? (sends ? "hiding" : "protecting") : (sends ? "showing" : "risking");
	const char *kind = subject->is_xattr ? "xattr" : subject->is_dir ? "directory" : "file";
	struct strbuf text = STRBUF_INIT;

	strbuf_addf(&text, "%s %s %s%.*s because of pattern ", verb, kind, subject->is_absolute ? "/" : "",
			(int)subject->length,
		    subject->name);
	if (rule->flags & RULE_FROM_FILE)
		strbuf_add_string(&text, "<rule from a file read earlier>");
	else
		strbuf_addf(&text, "%s%s", rule->pattern, rule->flags & RULE_DIR_ONLY ? "/" : "");
	if (rule->home->is_cvs)
		strbuf_add_string(&text, " [global CVS]");
	else if (rule->home->base_name)
		strbuf_addf(&text, " [per-dir %s]", rule->home->base_name);
	list->setup.explain(list->setup.context, strbuf_text(&text));
	strbuf_free(&text);
}

static void count_work(const struct filter_list *list, struct subject *subject)
{
	budget_work(list->setup.budget, subject->steps);
	subject->steps = 0;
}

static enum verdict go_through(struct filter_list *list, const struct segment *segment, struct subject *subject,
			       uint16_t ignored)
{
	for (; segment; segment = segment->inherited) {
		for (size_t i = 0; i < segment->rules.count; i++) {
			const struct rule *rule = &segment->rules.items[i];
			enum verdict inner = UNDECIDED;

			if (++subject->steps >= BUDGET_STEPS)
				count_work(list, subject);
			if (rule->flags & ignored)
				continue;
			if (rule->action == ACTION_DIR_MERGE)
				inner = go_through(list, rule->merge->current, subject, ignored);
			else if (rule->cvs)
				inner = go_through(list, rule->cvs, subject, ignored);
			else if (subject->is_xattr == !!(rule->flags & RULE_XATTR) && rule_matches(list, rule, subject))
				inner = rule->action == ACTION_EXCLUDE ? EXCLUDED : INCLUDED;
			else
				continue;
			if (inner == UNDECIDED)
				continue;
			if (list->setup.explain && rule->action != ACTION_DIR_MERGE && !rule->cvs)
				explain(list, rule, subject);
			return inner;
		}
	}
	return UNDECIDED;
}

static enum verdict decide(struct filter_list *list, struct subject *subject, uint16_t ignored)
{
	enum verdict verdict = go_through(list, &list->rules, subject, ignored);

	count_work(list, subject);
	return verdict;
}

bool filter_excludes(struct filter_list *list, const char *name, bool is_dir)
{
	struct subject subject;

	if (!list->rules.rules.count || !subject_init(&subject, name, strlen(name), is_dir))
		return false;
	return decide(list, &subject, RULE_IDLE) == EXCLUDED;
}

bool filter_excludes_doomed(struct filter_list *list, const char *name, bool is_dir)
{
	struct subject subject;

	if (!list->rules.rules.count || !subject_init(&subject, name, strlen(name), is_dir))
		return false;
	return decide(list, &subject, RULE_IDLE | RULE_PERISHABLE) == EXCLUDED;
}

/* --- what a module hides: names counted from its root --- */

static bool hides(struct filter_list *list, const char *path, size_t length, bool is_dir)
{
	struct subject subject;

	if (!subject_init(&subject, path, length, is_dir))
		return false;
	subject.is_absolute = subject.from_root = true;
	return decide(list, &subject, RULE_IDLE) == EXCLUDED;
}

/* What is spelled like this can only be a directory. */
static bool ends_as_directory(const char *path)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;

	return !*last || !strcmp(last, ".") || !strcmp(last, "..");
}

/* Every directory on the way, and the path. With per-directory files those of each directory hold for the names in it. */
static bool hides_way(struct filter_list *list, struct strbuf *path, bool is_dir)
{
	size_t parent = 0;

	for (size_t i = 1; i <= path->length; i++) {
		if (i < path->length && path->data[i] != '/')
			continue;
		if (list->merges.count) {
			char *dir = xstrndup(path->data, parent);

			enter_directory(list, dir);
			free(dir);
		}
		if (hides(list, path->data, i, i < path->length || is_dir))
			return true;
		parent = i;
	}
	return false;
}

/* The scan may be elsewhere, and goes on from there. */
static bool hides_elsewhere(struct filter_list *list, struct strbuf *path, bool is_dir)
{
	char *dir = list->levels.count ? xstrdup(strbuf_text(&list->dir)) : NULL;
	bool hidden = hides_way(list, path, is_dir);

	if (dir)
		enter_directory(list, dir);
	free(dir);
	return hidden;
}

bool filter_hides_path(struct filter_list *list, const char *path, bool is_dir)
{
	struct strbuf *clean = &list->tested;

	if (!list->rules.rules.count)
		return false;
	strbuf_reset(clean);
	add_clean_path(clean, path);
	is_dir |= ends_as_directory(path);
	return (list->merges.count ? hides_elsewhere : hides_way)(list, clean, is_dir);
}

bool filter_hides_entry(struct filter_list *list, const char *name, bool is_dir)
{
	struct strbuf *full = &list->tested;

	if (!list->rules.rules.count)
		return false;
	if (*name == '/' || !list->scan_base.length)
		return hides(list, name + strspn(name, "/"), strlen(name + strspn(name, "/")), is_dir);
	strbuf_reset(full);
	strbuf_add(full, list->scan_base.data, list->scan_base.length);
	strbuf_add_path(full, name);
	return hides(list, full->data, full->length, is_dir);
}

int filter_excludes_xattr(struct filter_list *list, const char *name)
{
	struct subject subject;

	if (!list->has_xattr_rules)
		return -1;
	if (!subject_init(&subject, name, strlen(name), false))
		return 0;
	subject.is_xattr = true;
	return decide(list, &subject, RULE_IDLE) == EXCLUDED;
}
