/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file list that arrives from a peer (doc/protocol/02-file-list.md): the same tree of directory nodes as one that is scanned
 * (flist.h), with the same numbers. The reading thread adds nodes; the thread that works through the list waits for them in
 * flist_load_next.
 *
 * Two threads, after flist_receive_first has returned: the reading one calls flist_receive_next, flist_locate and
 * flist_node_of, the working one everything else of flist.h. Nodes never move and what stands in one that flist_load_next has
 * handed out does not change, so it is read without a lock. Nodes come in the order of arrival, which is a depth-first one.
 *
 * An entry of a hard-link group has ENTRY_HARD_LINKED and the key (dev 0, ino N) in its side record, with an N of its own for
 * each group. Directories that the list does not have but whose contents it has (--relative below protocol 30) are
 * ENTRY_HIDDEN.
 */
#ifndef FLIST_RECEIVED_H
#define FLIST_RECEIVED_H

#include <pthread.h>

#include "flist.h"
#include "lib/alloc.h"
#include "lib/vec.h"

struct received_attributes;

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

/* Working thread: would flist_load_next return at once? Waits until it does, but at most so many milliseconds. If it does not,
 * what waits to be sent has to be sent first. */
bool flist_await_next(struct flist *list, int ms);
/* The index that stands for an entry, or for a directory node itself (entry NULL), in requests. For nodes that have been handed
 * out. Incremental: a directory is requested by its node only. */
int32_t flist_ndx_of(struct flist *list, int32_t node, const struct entry *entry);
/* The digest that came with a regular file (-c), or NULL. */
const uint8_t *flist_received_digest(const struct flist *list, int32_t node, const struct entry *entry);

/* --- what flist.c says of such a list --- */

/* Make an empty list one that is received. */
void flist_received_new(struct flist *list);
int32_t flist_received_next(struct flist *list);
bool flist_received_is_complete(const struct flist *list);
bool flist_received_locate(struct flist *list, int32_t ndx, struct flist_pos *pos);
/* The entries of a node that is given up, to be freed; NULL if there are none. */
struct entries *flist_received_take(struct flist *list, int32_t node);
void flist_received_free(struct flist *list); /* nothing if the list was scanned */
/* Number a complete list, scanned or received, otherwise than the walk goes: by path at protocol 27 and 28
 * (doc/protocol/02-file-list.md section 5.2), by arrival with --iconv, else as is_mixed in flist/receive.c wants it. */
void flist_number(struct flist *list);

/* --- the reading thread --- */

/* Indexes will not follow the walk. Before anything is published. */
void flist_received_permute(struct flist_received *received);
/* Take the sorted entries over, number them (the first one to arrive was `first`), show the node to the working thread. */
void flist_received_publish(struct flist *list, int32_t node, struct entries *entries, int32_t first, int io_error);
/* No list will follow. */
void flist_received_end(struct flist *list);

#endif
