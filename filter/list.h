/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A list and what it is made of: rules, each matched against names (doc/protocol/04-filters.md section 4.7), in segments,
 * per-directory merges, directories that have been entered. All are owned by the list, which gives their memory back to the
 * limits that it was counted against.
 */
#ifndef FILTER_LIST_H
#define FILTER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "filter/filter.h"
#include "lib/hashmap.h"
#include "lib/strbuf.h"
#include "lib/vec.h"

struct merge;
struct segment;

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

#define PEER_RULES_MAX 65536 /* from a peer, and in force from merge files that a peer named */
#define PEER_BYTES_MAX (16u << 20)

/* Rules that were read from one place, followed by those inherited. */
struct segment {
	VEC(struct rule) rules;
	struct segment *inherited; /* not owned */
	char *dir;                 /* per-directory files: full path without slashes at the ends; NULL for others */
	size_t dir_length;
	const char *base_name;     /* per-directory files: what they are called, in words that may be shown */
	bool is_cvs;               /* the names of a "-C" rule */
	size_t bytes;              /* memory counted against the cap */
	struct budget *budget;     /* and in this one; NULL: in none */
};

/* A per-directory merge that is in force. */
struct merge {
	char *directory;          /* directory part of its name with the final slash, until the parent scan; else NULL */
	char *base_name;
	char *label;              /* if the rule came from a file: what to call files of that name */
	uint16_t flags;
	const struct segment *owner; /* the segment with its rule */
	struct segment *current;  /* rules in force, NULL if none */
	VEC(struct segment *) scanned; /* owned: what was read outside of `created` below */
};

/* One directory entered. */
struct level {
	size_t dir_length;        /* of list->dir */
	size_t merges;            /* active merges when it was entered; later ones go when it is left */
	struct segment **saved;   /* their rules before */
	struct segment **created; /* owned: what was read here, NULL where there was no file; as many */
};

struct filter_list {
	struct filter_setup setup;
	/* filter_hides_path, for the lists whose setup names this one. */
	bool (*hides_path)(struct filter_list *list, const char *path, bool is_dir);
	struct segment rules;
	VEC(struct merge *) merges;
	VEC(struct level) levels;
	struct strbuf base;       /* without slashes at the ends */
	struct strbuf dir;        /* deepest directory entered */
	struct hashmap roots;     /* base directories that have themselves been entered */
	bool has_xattr_rules, has_had_merges;
	bool from_peer;           /* rules came over the wire, or as of_peer: caps apply to what they make us read */
	size_t live_rules, live_bytes;
	struct strbuf scratch;    /* full path of the name being tested */
	struct strbuf tested;     /* the same below a module's root */
	struct strbuf scan_base;  /* a module's list: where the scan is; `base` stays "", and directories are full paths */
};

/* --- rules --- */

/* False if the name is empty or just a slash: no rule matches it. */
bool subject_init(struct subject *subject, const char *name, size_t length, bool is_dir);
/* Prepare action, flags and pattern of a rule for matching. */
void rule_prepare(struct rule *rule);
/* Inverted by RULE_NEGATE. Not for merges and CVS rules. */
bool rule_matches(struct filter_list *list, const struct rule *rule, struct subject *subject);

/* --- parts and levels --- */

/* Count a rule with a pattern of `length` bytes against all limits; over one of them is EXIT_MALLOC. */
void segment_count_rule(struct filter_list *list, struct segment *segment, size_t length);
/* Empty a segment; what it inherits is left alone. */
void segment_clear(struct filter_list *list, struct segment *segment);
/* A merge of files called `name` that is in force from now on; NULL if one of that base name is already. label: as in the
 * merge, which owns it. */
struct merge *list_add_merge(struct filter_list *list, const struct segment *owner, const char *name, char *label,
			     uint16_t flags);
/* The part of a merge file's name behind the last slash. */
static inline const char *merge_base_name(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}
/* Leave the deepest directory, or all. */
void list_leave(struct filter_list *list);
void list_leave_all(struct filter_list *list);

#endif
