/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The directories of a file list as nodes: the list itself, as the files of this room see it, the numbers of its entries, and
 * the way from a number to an entry. What the list is made from lies above: flist/scan.c reads directories, flist/receive.c
 * what a peer sends.
 */
#ifndef FLIST_TREE_H
#define FLIST_TREE_H

#include <pthread.h>

#include "flist.h"
#include "lib/alloc.h"
#include "lib/vec.h"
#include "options.h"

struct received_attributes;

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

/* Where an index points to, in a list that is numbered otherwise than the walk goes. */
struct flist_place {
	int32_t node;
	uint32_t index;
};

/* Of a node whose entries are not numbered in their order: the index of each entry. */
struct received_order {
	int32_t *ndx;       /* by place in the entries */
	uint32_t *place;    /* incremental: by index - first_ndx */
};

struct flist_received {
	pthread_mutex_t lock;      /* of what the threads share: everything below, load_order, a node's `entries` */
	pthread_cond_t arrived;
	bool over;                 /* no list will follow */
	size_t handed;             /* place in load_order of the node that was handed out last */
	int io_error;              /* of the peer, not noted in the session yet */
	struct flist_totals shown; /* the working thread's copy of the totals */
	struct received_attributes *attributes; /* NULL without -A and -X */
	struct reserved dirs, names;
	struct reserved orders;    /* struct received_order, by node; only if is_permuted */
	bool is_permuted;          /* indexes do not follow the walk: --iconv, a protocol below 29, see also is_mixed */
	/* For the reading thread alone, incremental: */
	VEC(uint32_t) arrived_dirs; /* --iconv: places of the directories of a list, in order of arrival */
	VEC(int32_t) node_by_number; /* directory number -> node, -1 for "." and holes */
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
	VEC(struct flist_place) places; /* by index, once complete; none if indexes follow the walk */
	bool implied_dot_sent;
	bool can_view;               /* a snapshot's directories need not be copied */
	struct flist_received *received; /* NULL: scanned here */
};

/* Does the walk go into directories below the arguments' own? */
bool flist_recursive(const struct flist *list);
/* *parts: NULL while there are none. */
void flist_parts_add(struct flist *list, struct flist_parts **parts, const struct flist_part *part);
void flist_parts_free(struct flist *list, struct flist_parts **parts);
/* Number the sorted entries of a filled node and make its child nodes, with the parts in `deeper`. */
void flist_enter_node(struct flist *list, int32_t node, struct flist_parts *deeper);
/* The node behind list->walk in the order of the walk, -1 at the end. */
int32_t flist_next_node(const struct flist *list);

/* Position in load_order of the node whose range holds ndx, loaded or dropped. */
size_t flist_order_of(const struct flist *list, int32_t ndx);
void flist_set_pos(struct flist *list, struct flist_pos *pos, int32_t node, uint32_t index);
/* flist_locate, as far as nodes and `places` say it. */
bool flist_locate_numbered(struct flist *list, int32_t ndx, struct flist_pos *pos);

#endif
