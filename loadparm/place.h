/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a module lies (doc/protocol/07-daemon.md section 5.12), and where its `real file prefix` is: every part of the daemon
 * asks here.
 *
 * One rule for the prefix: if a "/./" in `path` names the directory that a session changes its root to, the prefix is a path
 * inside of that directory; else it is a path of the root that the session has anyway, which is `daemon chroot` where there is
 * one. Links on the way are followed as a process in that root would follow them.
 */
#ifndef LOADPARM_PLACE_H
#define LOADPARM_PLACE_H

#include <stdbool.h>

#include "fs/root.h"
#include "loadparm.h"

struct module_place {
	bool chroot;
	bool divided;         /* by a "/./" that counts: paths are seen from `outer` */
	char *mark;           /* what stands before a "/./", whether it counts or not; NULL: there is none */
	char *outer;          /* chroot target, or the module root itself without chroot */
	char *inner;          /* below outer, "" if the module root is outer */
	char *path;           /* both, for logs */
};

/* Does a "/./" in `path`, the module's with its references replaced, name a new root? */
bool place_divides(const struct module *module, const char *path);
/* Lexical; strings are malloc'ed. */
void place_split(struct module_place *place, const char *path, bool chroot);
void place_free(struct module_place *place);

/*
 * Open the directory `prefix` of a module in this place, references replaced. `daemon_root` is the `daemon chroot` that this
 * process has not entered, "" for none. -1 with errno.
 */
int place_open_prefix(const struct module_place *place, const char *daemon_root, const char *prefix, struct fs_root *root);
/* The prefix as a path of this process's root, malloc'ed: where it is there, with no link on the way. */
char *place_find_prefix(const struct module_place *place, const char *daemon_root, const char *prefix);
/* That path without a look at the disk, for messages; malloc'ed. */
char *place_prefix_path(const struct module_place *place, const char *daemon_root, const char *prefix);
/* A path of a session's root (a module's path, a file that it names) as one of this process's root; malloc'ed. */
char *place_below(const char *daemon_root, const char *path);

/*
 * Why the prefix cannot be opened (`error`), with the path that it stands for if that is another one, and what lies at the
 * other reading of it: an operator who took it for that one sees what to write.
 */
void place_explain_prefix(const struct module_place *place, const char *daemon_root, const char *prefix, int error,
			  struct strbuf *why);

/* Explain a missing attr snapshot, which is a file of the daemon: never seen from a root that a session changes to. */
void place_mention_snapshot(const struct module_place *place, const char *daemon_root, const char *snapshot,
			    struct strbuf *why);

#endif
