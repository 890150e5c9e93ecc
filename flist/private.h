/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the file list share: flist.c (nodes, the walk), flist/args.c (arguments), flist/paths.c,
 * flist/locate.c (numbers), flist/send.c (the wire). */
#ifndef FLIST_PRIVATE_H
#define FLIST_PRIVATE_H

#include "flist.h"
#include "lib/vec.h"
#include "options.h"

/*
 * A base directory: what stands before the transfer path of an entry. In a daemon it is a path below the module's source; for
 * the local operator it is opened as a source of its own when first needed.
 */
struct flist_base {
	char *path;                /* "" for the module root or the working directory */
	struct attr_source source; /* local only */
	bool open;
	bool is_known;             /* it has been open: what it is */
	uint64_t dev, ino;
	struct fs_anchors *anchors; /* of attr_root, owned; NULL: none */
	int open_error;            /* why attr_root.fd is -1 */
	char *shown;               /* source.shown_prefix */
};

/* One reason why a directory has entries: its contents below a base, or one named path below it (an argument). */
struct flist_part {
	uint16_t base;
	bool content;  /* path ended in a slash: a directory's contents are meant, a symlink's target */
	char *path;    /* NULL: scan the directory; else components below it, owned */
};

struct flist_parts {
	VEC(struct flist_part) parts;
};

struct flist {
	const struct options *options;
	struct session *session;
	struct attr_source *module_source;
	struct filter_list *user, *hidden;
	struct charset *charset;
	struct scan_options scan;

	VEC(struct flist_base) bases;
	int open_bases, next_eviction;
	uint16_t scan_base;          /* base of the directory being scanned, for the filter callback */
	char *cwd;                   /* local: for messages */
	const char *from_base;       /* --files-from: the single source argument */

	VEC(struct flist_dir) dirs;  /* nodes */
	VEC(int32_t) load_order;     /* nodes in the order of the walk: own_ndx ascends */
	struct strbuf names;         /* pool of directory names */
	int32_t walk;                /* last loaded node */
	bool complete;
	int32_t next_number;         /* next directory number */
	int32_t next_ndx;            /* next index (not incremental), next list's gap index (incremental) */
	struct flist_totals totals;
	VEC(struct flist_pos) permutation; /* protocol 27 and 28: index -> position, once complete */
	bool implied_dot_sent;
	bool can_view;               /* a snapshot's directories need not be copied */
	struct flist_received *received; /* flist/receive.c; NULL: scanned here */
};

/* Index into bases of `path` (taken over). */
uint16_t flist_add_base(struct flist *list, char *path);
/* The source to read `base` with, and the path below it of transfer path `transfer`. */
struct attr_source *flist_base_source(struct flist *list, uint16_t base, const char *transfer, struct strbuf *path);
/* Add what `path` (components below node, may be one) names to the node's entries; what lies deeper becomes a part of the
 * child, in `deeper`. */
void flist_add_named(struct flist *list, int32_t node, const struct flist_part *part, struct flist_parts *deeper);
/* Sort the entries of a freshly filled node, number them, make its child nodes with the parts in `deeper`. */
void flist_finish_node(struct flist *list, int32_t node, struct flist_parts *deeper, bool may_repeat);
void flist_scan_part(struct flist *list, int32_t node, uint16_t base);
/* Tell the user's rules which base directory the names that follow belong to. The base has been opened. */
void flist_set_rule_base(struct flist *list, uint16_t base);
/* Position in load_order of the node whose range holds ndx. */
size_t flist_order_of(const struct flist *list, int32_t ndx);
void flist_set_pos(struct flist *list, struct flist_pos *pos, int32_t node, uint32_t index);
/* flist_locate, as far as nodes and `permutation` say it. */
bool flist_locate_numbered(struct flist *list, int32_t ndx, struct flist_pos *pos);
/* Order a complete list as protocols 27 and 28 number it (doc/protocol/02-file-list.md section 5.2). */
void flist_permute(struct flist *list);

/* --- lists that arrive (flist/receive.c): what flist.h says of them --- */

int32_t flist_received_next(struct flist *list);
bool flist_received_is_complete(const struct flist *list);
const struct flist_totals *flist_received_totals(const struct flist *list);
bool flist_received_locate(struct flist *list, int32_t ndx, struct flist_pos *pos);
/* The entries of a node that is given up, to be freed; NULL if there are none. */
struct entries *flist_received_take(struct flist *list, int32_t node);
void flist_received_free(struct flist *list); /* nothing if the list was scanned */

#endif
