/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the files of this room share.
 *
 *   wildmatch.c  the wildcard matcher
 *   rule.c       one rule: preparing its pattern, matching a name (4.7)
 *   parse.c      the text grammar (4.2)
 *   reader.c     reading rule files (4.11)
 *   merge.c      per-directory merge files: entering and leaving directories (4.10)
 *   add.c        the list itself: adding rules
 *   filter.c     deciding about names
 *   cvs.c        the rules of -C (4.4)
 *   exchange.c   the list on the wire (4.6)
 */
#ifndef FILTER_LIST_H
#define FILTER_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "filter/filter.h"
#include "lib/hashmap.h"
#include "lib/strbuf.h"
#include "lib/vec.h"

#define RULE_TEXT_MAX 5119      /* a line, and a rule on the wire */
#define PATTERN_MAX 4095
#define MERGE_DEPTH_MAX 32
#define ACTIVE_MERGES_MAX 1024
#define PEER_RULES_MAX 65536    /* from a peer, and in force from merge files that a peer named */
#define PEER_BYTES_MAX (16u << 20)

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

struct segment;
struct merge;

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

/* Where the text of a rule stands; NULL where it may be shown: command line, wire, configuration. */
struct origin {
	const char *label; /* how the file may be called */
	bool is_secret;    /* label is "<rule from ...>" already: the file's own name came from a file */
	int line;          /* 0: word-split, there are no line numbers */
};

/* A per-directory merge that is in force. */
struct merge {
	char *directory;          /* directory part of its name with the final slash, until the parent scan; else NULL */
	char *base_name;
	char *label;              /* if the rule came from a file: what to call files of that name */
	uint16_t flags;
	struct segment *owner;    /* the segment with its rule */
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

static inline uint16_t our_sides(const struct filter_list *list)
{
	unsigned side = list->setup.side;

	return (uint16_t)((side & FILTER_SENDER ? RULE_SENDER : 0) | (side & FILTER_RECEIVER ? RULE_RECEIVER : 0));
}

/* Does a rule with these flags count on the other side only? */
static inline bool is_other_side(const struct filter_list *list, uint16_t flags)
{
	uint16_t sides = flags & RULE_SIDES;

	return sides && !(sides & our_sides(list));
}

/* --- wildmatch.c --- */

/* floating: the pattern may also match from the start of any later component on. The bytes of the pattern that have been
 * looked at are added to *steps. */
bool wild_match(const char *pattern, size_t pattern_length, const char *text, size_t text_length, bool floating,
		uint64_t *steps);

/* --- rule.c --- */

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

/* --- parse.c --- */

/* Everything that decides how a rule text is read and where the rule goes. */
struct reader {
	struct filter_list *list;
	struct segment *out;
	enum filter_style style;
	bool words;               /* words of one string: a pattern ends at white space */
	bool from_wire;
	uint16_t defaults;        /* of a merge or CVS rule: what all rules read get, and FIXED and CVS */
	const struct origin *origin;
	bool in_directory;        /* a per-directory file, or a file merged by one */
	int depth;                /* of merge files */
};

/* One parsed rule: its pattern is a part of the text. */
struct parsed {
	enum rule_action action;
	uint16_t flags;
	const char *pattern;
	size_t length;
};

/* Parse the rule at the start of `text`; returns the bytes used, 0 if there is no rule (only white space). */
size_t parse_rule(const struct reader *reader, const char *text, size_t length, struct parsed *parsed);
/* Parse and add one rule, or every word. */
void reader_add(const struct reader *reader, const char *text, size_t length);
void reader_add_words(const struct reader *reader, const char *text, size_t length);
/* How a message names the rule: its text if that may be shown. Free the result. */
char *rule_label(const struct origin *origin, const char *text, size_t length);
/* How messages call a file that is named `name` by a rule from `origin`. Free the result. */
char *name_label(const struct origin *origin, const char *name);

/* --- reader.c --- */

/* Read all rules of a file and close it. `flags` of the merge rule (0: none) decide how it is split. */
void read_rule_file(struct reader *reader, int fd, uint16_t flags);
/* The single merge rule of `parsed`, an --exclude-from and the like. */
void merge_file(const struct reader *reader, const struct parsed *parsed);
/* Open by the list's callback: what that returns. full: path that the module's rules are asked about, NULL for the operator's
 * own files. */
int open_rule_file(struct filter_list *list, enum filter_place place, const char *path, const char *full);

/* Append the components of `path` to a full path, resolving "." and "..", which does not climb above the root. */
void add_clean_path(struct strbuf *full, const char *path);

/* --- merge.c --- */

/* The merge of a parsed ":" rule that goes to reader->out; NULL if one of that base name is active already. */
struct merge *merge_activate(const struct reader *reader, const struct parsed *parsed);
/* Deactivate the merges whose rules are in this segment. */
void merge_drop_owned(struct filter_list *list, const struct segment *owner);
void leave_all(struct filter_list *list);
/* filter_set_dir for a path from list->base on. */
void enter_directory(struct filter_list *list, const char *dir);
/* The part of a merge file's name behind the last slash. */
const char *merge_base_name(const char *name);

/* --- cvs.c --- */

/* The names that "-C" stands for (4.4), with the flags of the rule. */
struct segment *cvs_segment(const struct reader *reader, uint16_t flags);

/* --- add.c --- */

/* Empty a segment; what it inherits is left alone. */
void segment_clear(struct filter_list *list, struct segment *segment);
void segment_free(struct filter_list *list, struct segment *segment);
/* Add the parsed rule to the reader's segment, or do what it says. */
void list_add_parsed(const struct reader *reader, const struct parsed *parsed);

#endif
