/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Filter rules (doc/protocol/04-filters.md): an ordered list; the first rule that matches a name decides; no match means
 * included.
 *
 *   struct filter_list *rules = filter_new(&setup);
 *   filter_add(rules, "- *.o", FILTER_NEW_STYLE) ...         filter/add.h, filter/exchange.h: whatever rules come from
 *   filter_set_base(rules, "/home/me");                       base directory of the source argument (below)
 *   filter_set_dir(rules, "a/b");                             while scanning: the merge files of "a" and "a/b" are in force
 *   if (filter_excludes(rules, "a/b/c.o", is_dir)) ...
 *
 * Three kinds of paths (the same names everywhere in this header):
 *
 * - A transfer name is what the file list says: relative to the base directory, no slash at either end. Under --relative
 *   with absolute arguments it starts with one "/" and the base directory plays no part.
 * - The base directory is where the transfer names of the current source argument start (receiver: the destination
 *   directory). Outside daemons an absolute path; in a module the path below the module root ("" for the root itself).
 *   It is needed by absolute rules, by merge files and by nothing else. "" until it is set.
 * - A full path is base directory + "/" + transfer name.
 *
 * A list belongs to one thread.
 */
#ifndef FILTER_FILTER_H
#define FILTER_FILTER_H

#include <stdbool.h>

#include "lib/budget.h"

enum filter_side { FILTER_SENDER = 1, FILTER_RECEIVER = 2, FILTER_BOTH = 3 }; /* a local run keeps one list per side */

/* Where the path of a rule file starts, and so by which resolver it has to be opened (doc/protocol/08-security.md
 * section 4.1). */
enum filter_place {
	/* As the operator named it on the command line or in the configuration (or in a file named there): relative to the
	 * process's current directory, or absolute. Resolver R2. */
	FILTER_AT_OPERATOR,
	/* Below the current base directory: relative, without ".." and without slashes at the ends. */
	FILTER_AT_BASE,
	/* Starts with "/", which is the module root in a daemon. Comes from a parent scan (4.10.4), from an absolute or
	 * climbing name in a merge rule, and from absolute transfer names. */
	FILTER_AT_ROOT,
};

#define FILTER_HIDDEN (-2)

struct filter_list;

struct filter_setup {
	enum filter_side side;    /* which rules count when names are tested */
	bool delete_excluded;     /* doc/protocol/04-filters.md section 4.5 */
	bool daemon_rules;        /* a module's own list: differences of 4.14.1; every rule counts on both sides */
	/* A server's command line: its rules count on its side, whatever sides they name and whatever --delete-excluded says;
	 * those of per-directory files are rules like others. */
	bool server_words;
	struct budget *budget;    /* of the session whose peer has sent or named rules: memory and work count; or NULL */
	bool of_peer;             /* chosen by a stranger: what they make us read is capped, as if they were sent */
	bool from0;               /* rule files are NUL-separated */
	bool cvs_exclude;         /* -C: filter_send and filter_receive add the rules of 4.4; local runs call filter_add_cvs */
	bool dash_is_stdin;       /* a rule file called "-" is standard input (clients) */
	bool lasting_cvs_names;   /* those of -C are not perishable; filter_receive and filter_send go by the session */
	/*
	 * Open a rule file for reading; the list closes the descriptor. -1 with errno: a per-directory file is then absent, any
	 * other file ends the process with EXIT_FILEIO. FILTER_HIDDEN: a module hides it, and there are no rules in it.
	 */
	int (*open_file)(void *context, enum filter_place place, const char *path);
	void *context;
	/* A module's own rules: rule files they hide (by full path, FILTER_AT_BASE and FILTER_AT_ROOT) look absent. Or NULL. */
	struct filter_list *hidden;
	const char *cvs_home; /* the user's .cvsignore lies here ("/" in a chrooted module); NULL: $HOME */
	/* Told of every decision, without role or newline ("hiding file NAME because of pattern PAT": -vv), or NULL. */
	void (*explain)(void *context, const char *text);
};

enum filter_style {
	FILTER_NEW_STYLE,   /* --filter, merge files, wire from protocol 29 */
	FILTER_OLD_EXCLUDE, /* --exclude: a bare pattern excludes; "- ", "+ ", "!" prefixes */
	FILTER_OLD_INCLUDE,
};

struct filter_list *filter_new(const struct filter_setup *setup);
void filter_free(struct filter_list *list);
/* Go on with another setup: for the rules that are added now, and for names. The rules that are there stay as they are. */
void filter_set_up(struct filter_list *list, const struct filter_setup *setup);
/* No rule at all, of whichever side: filter_excludes will always say no and filter_set_dir do nothing. */
bool filter_is_empty(const struct filter_list *list);
/* Has a per-directory merge rule ever been added? The file list of the peer cannot be checked then (4.13.1). */
bool filter_has_merges(const struct filter_list *list);

/* Change the base directory. Leaves all directories if it is another one; cheap if it is the same. Outside daemons and
 * without merge files or absolute rules it need not be called. */
void filter_set_base(struct filter_list *list, const char *base);
/*
 * Make the per-directory rules those in force inside `dir`, a transfer name or "" for the base directory itself. To be called
 * before the names in `dir` are tested, in any order; cheapest depth first: directories that are not ancestors of `dir` are
 * left, the merge files of ancestors already entered are not read again, those of the others are read now, from the top.
 *
 * The merge files of the base directory itself count only once "" has been entered for that base, that is if it is
 * scanned ("src/" as argument, not "src"). A name with a directory part gets its parent scan (4.10.4) the first time any
 * directory is entered; as in stock rsync, what the scan found is forgotten when that directory is left.
 */
void filter_set_dir(struct filter_list *list, const char *dir);
/* The same before a source argument itself is tested, whose transfer name is `name`: the merge files of the parents that the
 * name has (--relative) are in force; for a name without parents, and for "", none are. Stock tests an argument with parents
 * twice: like this when the parents are listed already, and before, with none in force; if that excludes it, the parents are
 * not listed either. */
void filter_set_argument(struct filter_list *list, const char *name);

/* Is `name` (a transfer name) excluded for the list's side? The names of one directory after filter_set_dir. */
bool filter_excludes(struct filter_list *list, const char *name, bool is_dir);
/* The same with perishable rules ignored (inside a directory that is being removed, 4.12.3). */
bool filter_excludes_doomed(struct filter_list *list, const char *name, bool is_dir);
/*
 * Daemon lists: is this name hidden from the client? Every place that takes a name from a client, or finds one for it,
 * asks here.
 *
 * path: counts from the module's root, whatever the base directory, with or without a slash in front, and spelled as it
 * likes: ".", ".." (which does not climb above the root) and repeated slashes are taken out before any rule looks at it.
 * is_dir: what the object is, or will be used as; a path that ends in "/", "/." or "/.." is a directory's anyway. True if a
 * rule excludes it or any directory above it, per-directory rule files included. The root itself is never hidden.
 */
bool filter_hides_path(struct filter_list *list, const char *path, bool is_dir);
/* The same for a transfer name below the base directory, while its directory is scanned: that the directory itself is not
 * hidden has been asked before, so rules look at the name alone. */
bool filter_hides_entry(struct filter_list *list, const char *name, bool is_dir);
/* Xattr rules (4.15): -1 no xattr rules known, else 0 included, 1 excluded. */
int filter_excludes_xattr(struct filter_list *list, const char *name);

#endif
