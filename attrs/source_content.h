/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A source of a file list as its contents are read from it: the roots, files opened below them, and paths found in a snapshot.
 * What it lists is in attrs/source.h.
 */
#ifndef ATTRS_SOURCE_CONTENT_H
#define ATTRS_SOURCE_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "attrs/entry.h"
#include "attrs/snapshot.h"
#include "fs/ids.h"
#include "fs/root.h"
#include "lib/vec.h"

enum attr_source_kind {
	ATTRS_LIVE,      /* attributes and contents from `attr_root` */
	ATTRS_ATTR_TREE, /* attributes from attr_root, sizes from its 8-byte files, contents from content_root */
	ATTRS_SNAPSHOT,  /* attributes from `snapshot`, contents, xattrs and ACLs from attr_root */
};

/* A name of a hard link. */
struct linked_name {
	uint64_t dev, ino;
	uint32_t dir, entry;
};

struct attr_source {
	enum attr_source_kind kind;
	struct fs_root attr_root;    /* what is listed */
	struct fs_root content_root; /* ATTR_TREE: what is read; else unused */
	const struct attr_snapshot *snapshot; /* SNAPSHOT; not owned */
	/* SNAPSHOT: whose permissions count. Read when first needed, as the process then is; a local tool that shows the whole
	 * file sets `known` and `superuser`. */
	struct fs_credentials who;
	const char *module;          /* for messages: "(in MODULE)"; NULL outside daemons */
	bool below_root;             /* daemon: the module is not the root of the file system as the process sees it */
	bool quotes_bare;            /* ... then names of the module's own top directory are shown without a leading slash */
	const char *shown_prefix;    /* for messages outside daemons: the directory that attr_root is, "" if cwd-relative */
	/* --only-send-attrs: a regular file is listed with 8 bytes; its own size is side->real_size */
	bool only_attrs;
	bool copies_devices;         /* a device may be opened as a file of its contents */
	bool fake_super;             /* LIVE: attributes are those that --fake-super has kept (fs/fake.h) */
	bool open_noatime;           /* open contents with O_NOATIME where allowed */
	uint64_t stale;              /* ATTR_TREE and SNAPSHOT: contents sent whose size or mtime was not the listed one */
	uint64_t missing;            /* contents asked for that were not there */
	/* SNAPSHOT: names of hard links by dev and ino, then in the order of the list; read once a content was not the listed
	 * one, and kept until the process ends. */
	VEC(struct linked_name) links;
	bool links_are_read;
};

/* The root that per-directory merge files, --files-from and digests are read from: the real side. */
const struct fs_root *attr_source_real_root(const struct attr_source *source);

/* SNAPSHOT: whose permissions count, read now if nobody has asked before. */
const struct fs_credentials *attr_source_who(struct attr_source *source);

/* Open the file at `path` for reading, whatever it is; without marking the access where asked for and allowed. */
int attr_source_open_any(const struct attr_source *source, const char *path, bool follow);

/* Content of a regular file, opened for reading; *size as of now. follow: also through a symlink, as a snapshot whose scan
 * has followed links always does. -1 with errno. Never for only_attrs. */
int attr_source_open(struct attr_source *source, const char *path, const struct entry *entry, bool follow, uint64_t *size);

/*
 * The same of a name of a group of hard links, all of which will get what is read; side: its record, NULL if the group does not
 * matter. If a snapshot's name leads to nothing or to another file by now, it is opened by one that still leads to it.
 */
int attr_source_open_linked(struct attr_source *source, const char *path, const struct entry *entry,
			    const struct entry_side *side, bool follow, uint64_t *size);

/* The digest, 16 bytes, of what attr_source_open would read if a snapshot holds it and the process may read it, or NULL. */
const uint8_t *attr_source_digest(struct attr_source *source, const char *path, bool follow, enum attr_digest which);
/* The same of a regular file in a view. */
const uint8_t *attr_source_view_digest(struct attr_source *source, const struct entries *view, const struct entry *entry,
				       enum attr_digest which);

/*
 * --- paths inside a snapshot ---
 *
 * With the decisions that resolver R1 takes in the live tree (fs/root.h, doc/protocol/08-security.md section 4.2) and the
 * errors that the kernel gives: symlinks to directories are followed by their stored targets as long as they stay inside, and a
 * directory that the process could not search is in the way here, too. The real tree is not looked at.
 */

/* One object of a snapshot. */
struct snapshot_place {
	struct entries view;       /* the list that the entry is in: that of `parent`, or the root's own list of one */
	const struct entry *entry; /* of a directory: entry->dir is its number */
	uint32_t parent;           /* the directory that it lies in; 0 for the root */
};

/*
 * Resolve `path`; "" and "." mean the root. follow: a final symlink stands for its target. With attr_root.trusting, of a root
 * that the process is confined to, absolute targets begin at the root and ".." stays there. 0, or -1 with errno.
 */
int attr_source_lookup(struct attr_source *source, const char *path, bool follow, struct snapshot_place *place);

/* Do the mode bits of directory number `dir` grant this (enum fs_permission)? */
bool attr_source_dir_permits(struct attr_source *source, uint32_t dir, unsigned wanted);

#endif
