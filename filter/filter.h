/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Filter rules (protocol/04): an ordered list; the first rule that matches a name decides; no match means included.
 *
 *   struct filter_list *rules = filter_new(&setup);
 *   filter_add(rules, "- *.o", FILTER_NEW_STYLE) ...         command line, wire or daemon parameters
 *   filter_set_dir(rules, "a/b");                             while scanning: per-directory merge files of "", "a", "a/b"
 *   if (filter_excludes(rules, "a/b/c.o", is_dir)) ...
 */
#ifndef FILTER_FILTER_H
#define FILTER_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/session.h"

enum filter_side { FILTER_SENDER = 1, FILTER_RECEIVER = 2, FILTER_BOTH = 3 }; /* BOTH: a local run keeps two lists */

struct filter_setup {
	enum filter_side side;    /* which rules count when names are tested */
	bool delete_excluded;     /* protocol/04 4.5 */
	bool daemon_rules;        /* a module's own list: differences of 4.14.1 */
	bool from0;               /* rule files are NUL-separated */
	bool cvs_exclude;         /* -C: the implied CVS rules (4.4) are added by filter_add_cvs */
	int protocol;             /* 0 while unknown */
	/*
	 * Open a rule file (already resolved lexically as 4.11.3 says). `beneath`: relative to the transfer's directory; the
	 * holder confines it. -1 with errno: a single merge then ends with EXIT_FILEIO, a per-directory file is absent.
	 */
	int (*open_file)(void *context, const char *path);
	void *context;
	/* Debug line of -vv ("hiding file NAME because of pattern PAT"), or NULL. */
	void (*explain)(void *context, const char *text);
};

enum filter_style {
	FILTER_NEW_STYLE,   /* --filter, merge files, wire from protocol 29 */
	FILTER_OLD_EXCLUDE, /* --exclude: a bare pattern excludes; "- ", "+ ", "!" prefixes */
	FILTER_OLD_INCLUDE,
};

struct filter_list;
struct filter_list *filter_new(const struct filter_setup *setup);
void filter_free(struct filter_list *list);
bool filter_is_empty(const struct filter_list *list);

/* Add one rule; a syntax error ends with stock's message: EXIT_SYNTAX, or EXIT_FILEIO for a merge file. */
void filter_add(struct filter_list *list, const char *rule, enum filter_style style);
void filter_add_words(struct filter_list *list, const char *rules, enum filter_style style); /* daemon parameters, 4.2.5 */
void filter_add_file(struct filter_list *list, const char *path, enum filter_style style);   /* --exclude-from ..., "-" */
void filter_add_cvs(struct filter_list *list); /* -C */
void filter_add_shortcut_F(struct filter_list *list, int times); /* -F, -FF */

/* protocol/04 4.6. Receive: the server's side; number and bytes of rules are capped (08 3.2), length 5120 or negative is
 * EXIT_MALLOC ("buffer overflow: recv_rules"). */
void filter_receive(struct filter_list *list, struct session *session);
void filter_send(const struct filter_list *list, struct session *session);

/* Make the per-directory rules those in force inside `dir` ("" = transfer root; relative transfer path, no slashes at the
 * ends). Leaves directories that are not ancestors, reads the merge files of those newly entered. Cheap if unchanged. */
void filter_set_dir(struct filter_list *list, const char *dir);
/* The transfer root's own place (base directory of the current source argument), for parent scans of merge files whose name
 * has a directory part (4.10.4). */
void filter_set_base(struct filter_list *list, const char *base);

/* Is `path` (transfer-relative, no trailing slash) excluded for the list's side? */
bool filter_excludes(struct filter_list *list, const char *path, bool is_dir);
/* The same with perishable rules ignored (inside a directory that is being removed, 4.12.3). */
bool filter_excludes_doomed(struct filter_list *list, const char *path, bool is_dir);
/* Daemon lists: is any directory prefix of `path`, or `path` itself, excluded? */
bool filter_hides_path(struct filter_list *list, const char *path, bool is_dir);
/* Xattr rules (4.15): -1 no xattr rules known, else 0 included, 1 excluded. */
int filter_excludes_xattr(struct filter_list *list, const char *name);

/* The wildcard matcher, exact definition of 4.8; bounded time (S-061). */
bool wildmatch(const char *pattern, const char *text);
/* One component of a daemon path argument: names may match with * ? [ ] and backslash; used for server-side expansion. */
bool has_wildcards(const char *pattern);

#endif
