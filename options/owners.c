/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The owners of received files and the user that writes them: --usermap, --groupmap, --chown, --copy-as. */
#include "options/owners.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "filter/wildmatch.h"
#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/vec.h"
#include "options/parse.h"

enum rule_kind { RULE_RANGE, RULE_NAME, RULE_PATTERN };

struct id_rule {
	enum rule_kind kind;
	uint32_t low, high; /* RULE_RANGE: both included */
	char *name;         /* the others' */
	uint32_t mapped;
};

struct id_rules {
	bool groups;
	const char *option;
	struct fs_ids *ids;
	VEC(struct id_rule) rules; /* the last one of the option first */
};

static uint32_t parse_number(const char *text, size_t length)
{
	uint64_t value = 0;

	for (size_t i = 0; i < length; i++) {
		value = value * 10 + (uint64_t)(text[i] - '0');
		if (value > UINT32_MAX)
			die(EXIT_SYNTAX, "Invalid ID number: %s", text);
	}
	return (uint32_t)value;
}

/* One pair, which is taken apart. */
static void add_rule(struct id_rules *rules, char *pair)
{
	char *colon = strchr(pair, ':'), *to = colon ? colon + 1 : NULL;
	struct id_rule rule = { .kind = RULE_NAME };
	bool known = true;

	if (!colon)
		die(EXIT_SYNTAX, "No colon found in %s: %s", rules->option, pair);
	if (!*to)
		die(EXIT_SYNTAX, "No name found after colon %s: %s", rules->option, pair);
	*colon = '\0';
	if (*pair >= '0' && *pair <= '9') {
		/* Text that begins with a digit is a number or a range of numbers. */
		size_t low = strspn(pair, "0123456789"), high = pair[low] ? strspn(pair + low + 1, "0123456789") : 0;

		if (pair[low] && (pair[low] != '-' || !high || pair[low + 1 + high]))
			die(EXIT_SYNTAX, "Invalid number in %s: %s", rules->option, pair);
		rule.kind = RULE_RANGE;
		rule.high = rule.low = parse_number(pair, low);
		if (pair[low])
			rule.high = parse_number(pair + low + 1, high);
	} else if (has_wildcards(pair))
		rule.kind = RULE_PATTERN;
	if (to[strspn(to, "0123456789")] == '\0')
		rule.mapped = parse_number(to, strlen(to));
	else
		known = fs_id_find(rules->ids, rules->groups, to, &rule.mapped);
	if (!known) {
		log_error("Unknown %s name on receiver: %s", rules->option, to);
		return;
	}
	if (rule.kind != RULE_RANGE)
		rule.name = xstrdup(pair);
	vec_push(&rules->rules, rule);
}

struct id_rules *id_rules_new(bool groups, const char *text, struct fs_ids *ids)
{
	struct id_rules *rules;
	char *list, *comma;

	if (!text)
		return NULL;
	rules = xcalloc(1, sizeof *rules);
	rules->groups = groups;
	rules->option = groups ? "--groupmap" : "--usermap";
	rules->ids = ids;
	list = xstrdup(text);
	/* From the end: errors are reported in the order of stock. */
	while ((comma = strrchr(list, ','))) {
		*comma = '\0';
		add_rule(rules, comma + 1);
	}
	add_rule(rules, list);
	free(list);
	return rules;
}

void id_rules_free(struct id_rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->rules.count; i++)
		free(rules->rules.items[i].name);
	vec_free(&rules->rules);
	free(rules);
}

static bool matches(const struct id_rule *rule, uint32_t id, const char *name)
{
	switch (rule->kind) {
	case RULE_RANGE:
		return id >= rule->low && id <= rule->high;
	case RULE_PATTERN:
		return wildmatch(rule->name, name);
	case RULE_NAME:
		break;
	}
	return !strcmp(rule->name, name);
}

bool id_rules_apply(const struct id_rules *rules, uint32_t id, const char *name, uint32_t *mapped)
{
	for (size_t i = rules ? rules->rules.count : 0; i > 0; i--) {
		if (matches(&rules->rules.items[i - 1], id, name)) {
			*mapped = rules->rules.items[i - 1].mapped;
			return true;
		}
	}
	return false;
}

/* --- the options --- */

/* One half of a mapping, given by its own option or by --chown: once, and not by both. Mapping is the receiver's, but it
 * implies that the ids are sent, which not every client asks a server for by -o and -g. */
static bool map_owner(struct option_parse *parse, bool groups, enum owner_word word, const char *value)
{
	struct options *options = parse->options;
	enum owner_word *said = groups ? &parse->groupmap_said : &parse->usermap_said;
	const char **map = groups ? &options->groupmap : &options->usermap;
	const char *own_name = groups ? "--groupmap" : "--usermap";

	*(groups ? &options->group : &options->owner) = true;
	if (*said == SAID_MAP && word == SAID_CHOWN)
		return parse_fail(parse, EXIT_SYNTAX, "--chown conflicts with prior %s.", own_name);
	if (*said == SAID_CHOWN && word == SAID_MAP)
		return parse_fail(parse, EXIT_SYNTAX, "%s conflicts with prior --chown.", own_name);
	if (*said == SAID_MAP)
		return parse_fail(parse, EXIT_SYNTAX, "You can only specify %s once.", own_name);
	if (*said == SAID_CHOWN)
		return parse_fail(parse, EXIT_SYNTAX, "You can only specify a %s-affecting --chown once.",
				  groups ? "group" : "user");
	*said = word;
	*map = parse_keep(parse, value);
	return true;
}

bool set_owner_map(struct option_parse *parse)
{
	return map_owner(parse, parse->spec->value, SAID_MAP, parse->text);
}

/* "USER:GROUP", either of which may be left out: everybody becomes that. */
bool set_chown(struct option_parse *parse)
{
	const char *text = parse->text;
	size_t length = strcspn(text, ":");
	char *user = xasprintf("*:%.*s", (int)length, text), *group = xasprintf("*:%s", text[length] ? text + length + 1 : "");
	bool good = (!user[2] || map_owner(parse, false, SAID_CHOWN, user))
		    && (!group[2] || map_owner(parse, true, SAID_CHOWN, group));

	free(user);
	free(group);
	return good;
}

/* --- --copy-as --- */

enum { GROUPS_MAX = 65536 };

static bool find(struct fs_ids *ids, bool is_group, const char *text, uint32_t *id)
{
	char *end;
	unsigned long number;

	if (text[strspn(text, "0123456789")] || !*text)
		return fs_id_find(ids, is_group, text, id);
	errno = 0;
	number = strtoul(text, &end, 10);
	*id = (uint32_t)number;
	return !errno && number < UINT32_MAX;
}

void copy_as_assume(const struct options *options)
{
	gid_t *groups = NULL;
	uint32_t uid, gid;
	int count = 64;

	if (!options->copy_as)
		return;
	const char *colon = strchr(options->copy_as, ':');
	char *user = xstrndup(options->copy_as, strcspn(options->copy_as, ":"));
	struct fs_ids *ids = fs_ids_new(NULL, NULL);

	if (!find(ids, false, user, &uid))
		die(EXIT_SYNTAX, "Invalid copy-as user: %s", user);
	if (!colon) {
		/* Without a group of the operator's choice: those that the system gives to the user. */
		errno = 0;
		const struct passwd *known = getpwuid(uid);

		if (!known)
			die_errno(EXIT_SYNTAX, errno, "getpwuid failed");
		gid = known->pw_gid;
		do {
			count *= 2;
			groups = xrealloc_array(groups, (size_t)count, sizeof *groups);
		} while (getgrouplist(known->pw_name, gid, groups, &count) < 0 && count < GROUPS_MAX);
	} else {
		if (!find(ids, true, colon + 1, &gid))
			die(EXIT_SYNTAX, "Invalid copy-as group: %s", colon + 1);
		groups = xcalloc(1, sizeof *groups);
		*groups = gid;
		count = 1;
	}
	fs_ids_free(ids);
	free(user);
	if (setresgid(gid, gid, gid) < 0)
		die_errno(EXIT_SYNTAX, errno, "setgid failed");
	if (setgroups((size_t)count, groups) < 0)
		die_errno(EXIT_SYNTAX, errno, "setgroups failed");
	if (setresuid(uid, uid, uid) < 0)
		die_errno(EXIT_SYNTAX, errno, "setuid failed");
	/* A uid that can come back was never given up. */
	if (uid != 0 && setuid(0) == 0)
		die_errno(EXIT_SYNTAX, 0, "giving up root failed");
	free(groups);
}
