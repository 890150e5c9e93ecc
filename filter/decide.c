/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Deciding about names: the first rule that matches (protocol/04 sections 4.10.1 and 4.12). */
#include <string.h>

#include "filter/private.h"

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

static enum verdict decide(struct filter_list *list, const struct segment *segment, struct subject *subject, uint16_t ignored)
{
	for (; segment; segment = segment->inherited) {
		for (size_t i = 0; i < segment->rules.count; i++) {
			const struct rule *rule = &segment->rules.items[i];
			enum verdict inner = UNDECIDED;
			if (rule->flags & ignored)
				continue;
			if (rule->action == ACTION_DIR_MERGE)
				inner = decide(list, rule->merge->current, subject, ignored);
			else if (rule->cvs)
				inner = decide(list, rule->cvs, subject, ignored);
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

bool filter_excludes(struct filter_list *list, const char *name, bool is_dir)
{
	struct subject subject;

	if (!list->rules.rules.count || !subject_init(&subject, name, strlen(name), is_dir))
		return false;
	return decide(list, &list->rules, &subject, RULE_IDLE) == EXCLUDED;
}

bool filter_excludes_doomed(struct filter_list *list, const char *name, bool is_dir)
{
	struct subject subject;

	if (!list->rules.rules.count || !subject_init(&subject, name, strlen(name), is_dir))
		return false;
	return decide(list, &list->rules, &subject, RULE_IDLE | RULE_PERISHABLE) == EXCLUDED;
}

bool filter_hides_path(struct filter_list *list, const char *path, bool is_dir)
{
	struct subject subject;

	if (!list->rules.rules.count)
		return false;
	while (*path == '/')
		path++;
	for (size_t length = strcspn(path, "/");; length += 1 + strcspn(path + length + 1, "/")) {
		bool is_whole = !path[length];
		bool tested = subject_init(&subject, path, length, is_whole ? is_dir : true);
		/* The path counts from the module root, not from a base directory. */
		subject.is_absolute = true;
		if (tested && decide(list, &list->rules, &subject, RULE_IDLE) == EXCLUDED)
			return true;
		if (is_whole)
			return false;
	}
}

int filter_excludes_xattr(struct filter_list *list, const char *name)
{
	struct subject subject;

	if (!list->has_xattr_rules)
		return -1;
	if (!subject_init(&subject, name, strlen(name), false))
		return 0;
	subject.is_xattr = true;
	return decide(list, &list->rules, &subject, RULE_IDLE) == EXCLUDED;
}
