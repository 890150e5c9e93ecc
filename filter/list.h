/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A list and what it is made of: segments of rules, per-directory merges, directories that have been entered. All are owned by
 * the list, which gives their memory back to the limits that it was counted against.
 */
#ifndef FILTER_LIST_H
#define FILTER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "filter/filter.h"
#include "filter/rule.h"
#include "lib/hashmap.h"
#include "lib/strbuf.h"
#include "lib/vec.h"

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

/* Append the components of `path` to a full path, resolving "." and "..", which does not climb above the root. */
void add_clean_path(struct strbuf *full, const char *path);

#endif
