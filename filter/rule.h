/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One rule: preparing its pattern once, and matching names against it (doc/protocol/04-filters.md section 4.7). */
#ifndef FILTER_RULE_H
#define FILTER_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rule_action { ACTION_EXCLUDE, ACTION_INCLUDE, ACTION_DIR_MERGE, ACTION_MERGE, ACTION_CLEAR };

enum rule_flag {
	RULE_ABSOLUTE = 0x0001,
	RULE_NEGATE = 0x0002,
	RULE_CVS = 0x0004,
	RULE_NO_INHERIT = 0x0008,
	RULE_WORDS = 0x0010,
	RULE_FIXED_EXCLUDE = 0x0020,
	RULE_FIXED_INCLUDE = 0x0040,
	RULE_XATTR = 0x0080,
	RULE_SENDER = 0x0100,
	RULE_RECEIVER = 0x0200,
	RULE_PERISHABLE = 0x0400,
	RULE_EXCLUDE_SELF = 0x0800,
	RULE_DIR_ONLY = 0x1000,
	RULE_FROM_FILE = 0x2000, /* its text must not be shown */
	RULE_IDLE = 0x4000,      /* counts only on the other side */
};
#define RULE_SIDES (RULE_SENDER | RULE_RECEIVER)
#define RULE_FIXED (RULE_FIXED_EXCLUDE | RULE_FIXED_INCLUDE)
/* What a merge rule hands to the rules read from its file (4.2.3). */
#define RULE_PASSED_ON (RULE_ABSOLUTE | RULE_PERISHABLE | RULE_SIDES | RULE_FIXED | RULE_CVS)

/* How a pattern is compared, decided once (4.7.1, 4.7.3). The first four look at the last component only. */
enum match_kind {
	MATCH_NAME,      /* equal */
	MATCH_SUFFIX,    /* "*.o" */
	MATCH_PREFIX,    /* "foo*" */
	MATCH_NAME_WILD,
	MATCH_PATH,      /* the whole text, equal */
	MATCH_PATH_WILD,
	MATCH_TAIL,      /* the last slashes + 1 components, equal */
	MATCH_TAIL_WILD,
	MATCH_FLOAT,     /* wild, the text from the start of any component on */
};

struct filter_list;
struct merge;
struct segment;

struct rule {
	const char *match;       /* what is compared; inside `pattern` */
	uint32_t match_length;
	uint16_t flags;          /* RULE_* */
	uint8_t action;          /* ACTION_EXCLUDE, ACTION_INCLUDE or ACTION_DIR_MERGE */
	uint8_t kind;            /* enum match_kind */
	uint32_t slashes;
	bool leading_slash;      /* begins with two stars: the text gets a slash in front */
	bool trailing_stars;     /* ends with three: the text of a directory gets a slash behind */
	bool anchored_here;      /* begins with a slash, from a per-directory file: counts below `home` only */
	char *pattern;           /* as written, without the slash of RULE_DIR_ONLY */
	const struct segment *home; /* segment that the rule is part of */
	union {
		struct merge *merge;     /* ACTION_DIR_MERGE */
		struct segment *cvs;     /* RULE_CVS on an exclude or include rule: the names it stands for */
	};
};

struct subject {
	const char *name; /* without leading slash */
	size_t length;
	const char *last; /* last component */
	size_t last_length;
	bool is_dir, is_xattr;
	bool is_absolute; /* the name had a leading slash */
	bool from_root;   /* a module's rules: the name counts from its root, as if the slash were there */
	uint64_t steps;   /* of work since it was counted last */
	bool has_full;    /* list->scratch holds base + "/" + name + "/" */
};

/* False if the name is empty or just a slash: no rule matches it. */
bool subject_init(struct subject *subject, const char *name, size_t length, bool is_dir);
/* Prepare action, flags and pattern of a rule for matching. */
void rule_prepare(struct rule *rule);
/* Inverted by RULE_NEGATE. Not for merges and CVS rules. */
bool rule_matches(struct filter_list *list, const struct rule *rule, struct subject *subject);

#endif
