/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A list as its users see it: made, moved through a tree, asked about names (doc/protocol/04-filters.md sections 4.10 and
 * 4.12). */
#include <stdlib.h>
#include <string.h>

#include "filter/add.h"
#include "filter/list.h"
#include "filter/parse.h"

struct filter_list *filter_new(const struct filter_setup *setup)
{
	struct filter_list *list = xcalloc(1, sizeof *list);

	list->setup = *setup;
	list->hides_path = filter_hides_path;
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
	list_leave_all(list);
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

/* --- per-directory merge files, 4.10: reading one --- */

/* The rules of the merge's file in the directory `dir` (full path, no slashes at the ends), inheriting those in force; NULL if
 * there is no file. Sets merge->current. transfer: its transfer name; NULL: only the full path counts (parent scans). */
static struct segment *read_merge(struct filter_list *list, struct merge *merge, const char *dir, const char *transfer)
{
	struct segment *inherited = merge->flags & RULE_NO_INHERIT ? NULL : merge->current, *segment = NULL;
	struct strbuf full = STRBUF_INIT, path = STRBUF_INIT;
	/* A module's rules know its root only. */
	bool below_base = transfer && transfer[0] != '/' && !list->setup.daemon_rules;

	strbuf_add_string(&full, dir);
	strbuf_add_path(&full, merge->base_name);
	strbuf_add_string(&path, below_base ? transfer : "/");
	strbuf_add_path(&path, below_base ? merge->base_name : strbuf_text(&full));
	int fd = open_rule_file(list, below_base ? FILTER_AT_BASE : FILTER_AT_ROOT, strbuf_text(&path), strbuf_text(&full));

	merge->current = inherited;
	if (fd >= 0) {
		segment = xcalloc(1, sizeof *segment);
		segment->inherited = inherited;
		segment->dir = xstrdup(dir);
		segment->dir_length = strlen(dir);
		segment->base_name = merge->label ? merge->label : merge->base_name;
		char *shown = merge->label ? xstrdup(merge->label) : xasprintf("/%s", strbuf_text(&full));
		struct origin origin = { .label = shown, .is_secret = merge->label != NULL };

		filter_add_directory_file(list, segment, fd, &origin, merge->flags);
		merge->current = segment;
		free(shown);
	}
	strbuf_free(&path);
	strbuf_free(&full);
	return segment;
}

/* Read a file whose rules are kept as long as the merge is active, though they may be in force for less. */
static void read_to_keep(struct filter_list *list, struct merge *merge, const char *dir, const char *transfer)
{
	struct segment *segment = read_merge(list, merge, dir, transfer);

	if (segment)
		vec_push(&merge->scanned, segment);
}

/* --- parent scan, 4.10.4 --- */

static bool is_ancestor(const char *dir, size_t length, const char *path)
{
	return !length || (!strncmp(dir, path, length) && (path[length] == '/' || !path[length]));
}

/* Every directory from DIR down to the parent of `first` is read as if the scan had entered it. Merges that these files
 * activate join in, from their directory on. All this is in force until `first` is left, and does not come back. */
static void scan_parents(struct filter_list *list, struct merge *merge, const char *first)
{
	struct strbuf dir = STRBUF_INIT;

	if (merge->directory[0] != '/')
		strbuf_add_clean(&dir, first);
	strbuf_add_clean(&dir, merge->directory);
	char *parent = xstrdup(first);
	size_t length = dir.length, activated = list->merges.count;
	bool scans = is_ancestor(strbuf_text(&dir), length, first) && !(merge->flags & RULE_NO_INHERIT);

	free(merge->directory);
	merge->directory = NULL;
	while (scans && first[length]) {
		parent[length] = '\0';
		read_to_keep(list, merge, parent, NULL);
		for (size_t i = activated; i < list->merges.count; i++) {
			free(list->merges.items[i]->directory);
			list->merges.items[i]->directory = NULL;
			read_to_keep(list, list->merges.items[i], parent, NULL);
		}
		parent[length] = first[length];
		length += first[length] == '/';
		length += strcspn(first + length, "/");
	}
	free(parent);
	strbuf_free(&dir);
}

/* --- entering and leaving directories --- */

static void enter(struct filter_list *list, const char *transfer)
{
	char *full = transfer[0] == '/' ? xstrdup(transfer + 1)
					: xasprintf("%s%s%s", strbuf_text(&list->base),
						    list->base.length && *transfer ? "/" : "", transfer);
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
			level.created[i] = read_merge(list, merge, full, transfer);
		else
			read_to_keep(list, merge, full, transfer);
	}
	free(full);
}

/* --- where the scan is --- */

/* filter_set_dir for a path from list->base on. */
static void enter_directory(struct filter_list *list, const char *dir)
{
	bool inserted;

	if (!list->merges.count || (list->levels.count && !strcmp(dir, strbuf_text(&list->dir))))
		return;
	uint64_t root = hashmap_hash(&list->roots, strbuf_text(&list->base), list->base.length);
	size_t length = 0;

	if (!*dir)
		hashmap_put(&list->roots, root, 0, 1, &inserted);
	for (; list->levels.count; list_leave(list)) {
		length = list->levels.items[list->levels.count - 1].dir_length;
		/* The base directory is above every relative name. */
		if (length ? is_ancestor(strbuf_text(&list->dir), length, dir) : dir[0] != '/')
			break;
		length = 0;
	}
	strbuf_reset(&list->dir);
	strbuf_add_string(&list->dir, dir);
	if (!list->levels.count && (!*dir || list->setup.daemon_rules || (dir[0] != '/' && hashmap_get(&list->roots, root, 0))))
		enter(list, "");
	char *path = xstrdup(dir);

	while (dir[length]) {
		length += dir[length] == '/';
		length += strcspn(dir + length, "/");
		path[length] = '\0';
		enter(list, path);
		path[length] = dir[length];
	}
	free(path);
}

/* --- where the scan is, as callers say it --- */

void filter_set_base(struct filter_list *list, const char *base)
{
	struct strbuf clean = STRBUF_INIT;

	/* ".." is taken out of a module's only: elsewhere it may stand behind a symlink. */
	if (list->setup.daemon_rules) {
		strbuf_reset(&list->scan_base);
		strbuf_add_clean(&list->scan_base, base);
		return;
	}
	strbuf_add_components(&clean, base);
	if (strcmp(strbuf_text(&clean), strbuf_text(&list->base)) != 0) {
		list_leave_all(list);
		strbuf_reset(&list->base);
		strbuf_add(&list->base, strbuf_text(&clean), clean.length);
	}
	strbuf_free(&clean);
}

void filter_set_dir(struct filter_list *list, const char *dir)
{
	struct strbuf full = STRBUF_INIT;

	if (!list->merges.count)
		return;
	if (list->setup.daemon_rules) {
		if (*dir != '/')
			strbuf_add_clean(&full, strbuf_text(&list->scan_base));
		strbuf_add_clean(&full, dir);
		dir = strbuf_text(&full);
	}
	enter_directory(list, dir);
	strbuf_free(&full);
}

void filter_set_argument(struct filter_list *list, const char *name)
{
	const char *slash = strrchr(name, '/');

	if (!list->merges.count)
		return;
	if (!slash || slash == name) {
		list_leave_all(list);
		return;
	}
	char *parent = xstrndup(name, (size_t)(slash - name));
	filter_set_dir(list, parent);
	free(parent);
}

/* --- deciding: the first rule that matches --- */

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

static bool excludes(struct filter_list *list, struct subject *subject, uint16_t ignored)
{
	enum verdict verdict = go_through(list, &list->rules, subject, ignored);

	count_work(list, subject);
	return verdict == EXCLUDED;
}

bool filter_excludes(struct filter_list *list, const char *name, bool is_dir)
{
	struct subject subject;

	return list->rules.rules.count && subject_init(&subject, name, strlen(name), is_dir)
	       && excludes(list, &subject, RULE_IDLE);
}

bool filter_excludes_doomed(struct filter_list *list, const char *name, bool is_dir)
{
	struct subject subject;

	return list->rules.rules.count && subject_init(&subject, name, strlen(name), is_dir)
	       && excludes(list, &subject, RULE_IDLE | RULE_PERISHABLE);
}

/* --- what a module hides: names counted from its root --- */

static bool hides(struct filter_list *list, const char *path, size_t length, bool is_dir)
{
	struct subject subject;

	if (!subject_init(&subject, path, length, is_dir))
		return false;
	subject.is_absolute = subject.from_root = true;
	return excludes(list, &subject, RULE_IDLE);
}

bool filter_hides_path(struct filter_list *list, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	struct strbuf *clean = &list->tested;

	if (!list->rules.rules.count)
		return false;
	strbuf_reset(clean);
	strbuf_add_clean(clean, path);
	/* The scan may be elsewhere, and goes on from there. */
	char *dir = list->levels.count ? xstrdup(strbuf_text(&list->dir)) : NULL;
	bool hidden = false;
	size_t parent = 0;

	/* What is spelled like this can only be a directory. */
	is_dir = is_dir || !*last || !strcmp(last, ".") || !strcmp(last, "..");
	/* Every directory on the way, and the path. With per-directory files those of each directory hold for the names in
	 * it. */
	for (size_t i = 1; i <= clean->length && !hidden; i++) {
		if (i < clean->length && clean->data[i] != '/')
			continue;
		if (list->merges.count) {
			char *above = xstrndup(clean->data, parent);

			enter_directory(list, above);
			free(above);
		}
		hidden = hides(list, clean->data, i, i < clean->length || is_dir);
		parent = i;
	}
	if (dir)
		enter_directory(list, dir);
	free(dir);
	return hidden;
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
	return excludes(list, &subject, RULE_IDLE);
}
