/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Adding rules to a list (doc/protocol/04-filters.md): from texts, from the files that merge rules name (4.11.3), and the names
 * that CVS would ignore (4.4).
 */
#include "filter/add.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/list.h"
#include "filter/parse.h"
#include "lib/exit.h"

enum { MERGE_DEPTH_MAX = 32 };

static const char cvs_names[] =
	"RCS SCCS CVS CVS.adm RCSLOG cvslog.* tags TAGS .make.state .nse_depinfo *~ #* .#* ,* _$* *$ *.old *.bak *.BAK *.orig "
	"*.rej .del-* *.a *.olb *.o *.obj *.so *.exe *.Z *.elc *.ln core .svn/ .git/ .hg/ .bzr/";

/* Where rules go, and how their text is read. */
struct target {
	struct filter_list *list;
	struct segment *out;
	struct rule_syntax syntax;
	bool from_wire;
	bool in_directory; /* a per-directory file, or a file merged by one */
	int depth;         /* of merge files */
};

static void add_parsed(const struct target *target, const struct parsed *given);

/* Add one rule, or every word. */
static void add_text(const struct target *target, const char *text, size_t length)
{
	struct parsed parsed;
	size_t used;

	do {
		used = parse_rule(&target->syntax, text, length, &parsed);
		if (used)
			add_parsed(target, &parsed);
		text += used;
		length -= used;
	} while (used && target->syntax.words);
}

/* Add all rules of a file and close it. `flags` of the merge rule (0: none) decide how it is split. */
static void add_open_file(const struct target *outer, int fd, uint16_t flags)
{
	struct target target = *outer;
	struct reader *reader = reader_new(target.list, fd, &target.syntax, flags, target.in_directory);
	struct parsed parsed;

	while (reader_next(reader, &parsed))
		add_parsed(&target, &parsed);
}

/* --- the rules of CVS, 4.4 --- */

/* The names that a "-C" rule with these flags stands for: built in, of the user's .cvsignore, of the environment. */
static struct segment *cvs_segment(struct filter_list *list, uint16_t flags)
{
	struct segment *names = xcalloc(1, sizeof *names);
	uint16_t shared = flags & (RULE_ABSOLUTE | RULE_NEGATE | RULE_XATTR | RULE_SIDES | RULE_PERISHABLE);
	const char *words = getenv("CVSIGNORE"), *home = list->setup.cvs_home ? list->setup.cvs_home : getenv("HOME");
	struct strbuf path = STRBUF_INIT;
	struct target target = {
		.list = list, .out = names,
		.syntax = { .style = FILTER_OLD_EXCLUDE, .words = true, .defaults = shared | RULE_FIXED_EXCLUDE | RULE_CVS },
	};
	struct target built_in = target, file = target;

	names->is_cvs = true;
	if (!list->setup.lasting_cvs_names)
		built_in.syntax.defaults |= RULE_PERISHABLE;
	add_text(&built_in, cvs_names, strlen(cvs_names));
	if (home && *home) {
		strbuf_add_string(&path, home);
		strbuf_add_path(&path, ".cvsignore");
		struct origin origin = { .label = strbuf_text(&path) };
		int fd = open_rule_file(list, FILTER_AT_OPERATOR, strbuf_text(&path), NULL);

		file.syntax.words = false;
		file.syntax.origin = &origin;
		if (fd >= 0)
			add_open_file(&file, fd, RULE_WORDS);
		strbuf_free(&path);
	}
	if (words)
		add_text(&target, words, strlen(words));
	return names;
}

/* --- one exclude or include rule, or the one that stands for a per-directory merge --- */

/* Does a rule with these flags count on the other side only? */
static bool is_other_side(const struct filter_list *list, uint16_t flags)
{
	unsigned side = list->setup.side;
	uint16_t ours = (uint16_t)((side & FILTER_SENDER ? RULE_SENDER : 0) | (side & FILTER_RECEIVER ? RULE_RECEIVER : 0));

	return (flags & RULE_SIDES) && !(flags & ours);
}

static void append_rule(const struct target *target, const struct parsed *parsed, struct merge *merge)
{
	struct filter_list *list = target->list;
	struct rule rule = { .action = (uint8_t)parsed->action, .flags = parsed->flags, .home = target->out };
	bool is_dir = parsed->length > 1 && parsed->pattern[parsed->length - 1] == '/';

	segment_count_rule(list, target->out, parsed->length);
	/* A module's "dir/" hides what is below the directory too. */
	if (list->setup.daemon_rules && is_dir && parsed->action == ACTION_EXCLUDE && !(parsed->flags & RULE_NEGATE))
		rule.pattern = xasprintf("%.*s***", (int)parsed->length, parsed->pattern);
	else
		rule.pattern = xstrndup(parsed->pattern, parsed->length);
	const char *slash = strchr(rule.pattern, '/');

	if (target->syntax.origin)
		rule.flags |= RULE_FROM_FILE;
	if (is_other_side(list, rule.flags))
		rule.flags |= RULE_IDLE;
	if (rule.flags & RULE_XATTR)
		list->has_xattr_rules = true;
	if (target->in_directory && slash == rule.pattern && !(rule.flags & RULE_ABSOLUTE))
		rule.anchored_here = true;
	else if (list->setup.daemon_rules && slash && slash[1])
		rule.flags |= RULE_ABSOLUTE;
	if (merge)
		rule.merge = merge;
	else if (rule.flags & RULE_CVS)
		rule.cvs = cvs_segment(list, rule.flags);
	else
		rule_prepare(&rule);
	vec_push(&target->out->rules, rule);
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

/* --- single merges, 4.11.3 --- */

/* The single merge rule of `parsed`, an --exclude-from and the like. */
static void merge_file(const struct target *target, const struct parsed *parsed)
{
	const struct origin *from = target->syntax.origin;
	char *name = xstrndup(parsed->pattern, parsed->length);
	char *label = name_label(from, name);
	struct origin origin = { .label = label, .is_secret = from != NULL };
	struct target inner = *target;

	if (target->depth >= MERGE_DEPTH_MAX)
		die(EXIT_FILEIO, "merge-file include depth limit (%d) exceeded at %s", MERGE_DEPTH_MAX,
		    show_rule(from, name, strlen(name)).text);
	int fd = target->in_directory ? open_inner_merge(target->list, target->out, name)
				      : open_rule_file(target->list, FILTER_AT_OPERATOR, name, NULL);
	if (fd < 0 && fd != FILTER_HIDDEN) {
		bool includes = parsed->flags & RULE_FIXED_INCLUDE || target->syntax.style == FILTER_OLD_INCLUDE;
		const char *kind = includes ? "include" : "exclude";

		/* A file whose name came from a file shows neither its name nor why it cannot be opened. */
		if (from)
			die(EXIT_FILEIO, "failed to open %s file %s", kind, show_rule(from, "", 0).text);
		die_errno(EXIT_FILEIO, errno, "failed to open %s file %s", kind, name);
	}
	inner.syntax = (struct rule_syntax){
		.style = target->syntax.style, .defaults = parsed->flags & RULE_PASSED_ON, .origin = &origin,
	};
	inner.depth++;
	if (fd >= 0)
		add_open_file(&inner, fd, parsed->flags);
	free(label);
	free(name);
}

/* --- any rule --- */

/* Modifier "e": the merge file itself is excluded, whatever the sides of the merge. */
static void exclude_self(const struct target *target, const struct parsed *merge)
{
	const char *slash = memrchr(merge->pattern, '/', merge->length);
	struct parsed parsed = { .action = ACTION_EXCLUDE, .pattern = slash ? slash + 1 : merge->pattern };

	parsed.length = merge->length - (size_t)(parsed.pattern - merge->pattern);
	if (!parsed.length)
		die(EXIT_SYNTAX, "unexpected end of filter rule: - ");
	settle_sides(target->list, &parsed);
	append_rule(target, &parsed, NULL);
}

/* Add the rule to the target's segment, or do what it says. */
static void add_parsed(const struct target *target, const struct parsed *given)
{
	const struct origin *origin = target->syntax.origin;
	struct filter_list *list = target->list;
	struct parsed parsed = *given;
	struct merge *merge = NULL;

	if (parsed.action == ACTION_CLEAR) {
		if (target->out == &list->rules)
			list_leave_all(list);
		segment_clear(list, target->out);
		target->out->inherited = NULL;
		return;
	}
	if (parsed.length > PATTERN_MAX) {
		report_long_rule(origin, parsed.pattern, parsed.length);
		return;
	}
	settle_sides(list, &parsed);
	if (target->in_directory && is_other_side(list, parsed.flags))
		return;
	if (parsed.action == ACTION_MERGE && target->from_wire)
		die(EXIT_SYNTAX, "a merge rule cannot be sent to a server: %.*s", (int)parsed.length, parsed.pattern);
	if (parsed.flags & RULE_EXCLUDE_SELF)
		exclude_self(target, &parsed);
	parsed.flags &= (uint16_t)~RULE_EXCLUDE_SELF;
	if (parsed.action == ACTION_MERGE) {
		merge_file(target, &parsed);
		return;
	}
	if (parsed.action == ACTION_DIR_MERGE) {
		char *name = xstrndup(parsed.pattern, parsed.length);
		char *label = origin ? name_label(origin, name) : NULL;

		merge = list_add_merge(list, target->out, name, label, parsed.flags);
		free(name);
		if (!merge) {
			free(label);
			return;
		}
	}
	append_rule(target, &parsed, merge);
}

/* --- what the list's users add --- */

void filter_add(struct filter_list *list, const char *rule, enum filter_style style)
{
	struct target target = { .list = list, .out = &list->rules, .syntax.style = style };

	add_text(&target, rule, strlen(rule));
}

void filter_add_received(struct filter_list *list, const char *text, size_t length, enum filter_style style)
{
	struct target target = { .list = list, .out = &list->rules, .syntax.style = style, .from_wire = true };

	add_text(&target, text, length);
}

void filter_add_words(struct filter_list *list, const char *rules, enum filter_style style)
{
	struct target target = { .list = list, .out = &list->rules, .syntax = { .style = style, .words = true } };

	add_text(&target, rules, strlen(rules));
}

void filter_add_file(struct filter_list *list, const char *path, enum filter_style style)
{
	struct target target = { .list = list, .out = &list->rules, .syntax.style = style };
	struct parsed file = { .action = ACTION_MERGE, .pattern = path, .length = strlen(path) };

	merge_file(&target, &file);
}

void filter_add_directory_file(struct filter_list *list, struct segment *out, int fd, const struct origin *origin,
			       uint16_t flags)
{
	struct target target = {
		.list = list, .out = out, .in_directory = true, .depth = 1,
		.syntax = { .style = FILTER_NEW_STYLE, .defaults = flags & RULE_PASSED_ON, .origin = origin },
	};

	add_open_file(&target, fd, flags);
}

void filter_set_from0(struct filter_list *list, bool from0)
{
	list->setup.from0 = from0;
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
