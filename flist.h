/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file list of a transfer: which directories it has, in which order, under which numbers (doc/protocol/02-file-list.md).
 *
 * A list is a tree of directory nodes. Node 0 is the first list (what the arguments name); every directory entry that is
 * not "." and not a duplicate has a node of its own, whose `entries` are loaded when the walk (depth first, in wire order)
 * reaches it and may be dropped when the session is done with them. Both numberings of doc/protocol/02-file-list.md follow from
 * that:
 *
 * - incremental: a node's entries are first_ndx .. first_ndx + count - 1, the directory itself is first_ndx - 1;
 * - not incremental: a directory's own index, then its non-directories, then each sub-directory with its contents.
 *
 * so an index is found by a binary search over nodes. Protocol 27 and 28 sort the whole list by full path instead; the list
 * then keeps one permutation array.
 *
 * The same list serves the sender (flist/send.c writes it to the wire) and the receiver (which walks it). One that arrives
 * from a peer is the same tree with the same numbers: the reading thread adds nodes, and the thread that works through the list
 * waits for them in flist_load_next.
 *
 * Two threads, after flist_receive_first has returned: the reading one calls flist_receive_next and
 * flist_locate, the working one everything else of flist.h. Nodes never move and what stands in one that flist_load_next has
 * handed out does not change, so it is read without a lock. Nodes come in the order of arrival, which is a depth-first one.
 *
 * An entry of a hard-link group has ENTRY_HARD_LINKED and the key (dev 0, ino N) in its side record, with an N of its own for
 * each group. Directories that the list does not have but whose contents it has (--relative below protocol 30) are
 * ENTRY_HIDDEN.
 */
#ifndef FLIST_H
#define FLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "attrs/entry.h"
#include "attrs/source.h"
#include "filter/filter.h"
#include "lib/strbuf.h"
#include "wire/session.h"

struct charset;
struct options;

struct flist;
struct flist_received;

/* One directory whose entries are part of the list. Children of a node are consecutive nodes, in wire order. */
struct flist_dir {
	struct entries *entries; /* NULL before loading and after dropping */
	struct flist_parts *parts; /* private to the room: where the entries come from */
	int32_t parent;          /* node index, -1 for node 0 */
	uint32_t parent_entry;   /* which entry of the parent's entries it is */
	int32_t first_child;
	uint32_t child_count;
	int32_t number;          /* directory number of doc/protocol/02-file-list.md section 6.3, -1 for node 0 */
	int32_t own_ndx;         /* index under which the directory itself is reported (see above) */
	int32_t first_ndx;       /* index of entries->items[0] */
	uint32_t count;          /* number of entries, holes included; stays when the entries are dropped */
	uint32_t name;           /* offset in the list's pool of directory names, if snapshot_dir is unknown */
	uint32_t snapshot_dir;   /* number in the module's snapshot, SNAPSHOT_DIR_UNKNOWN if not known */
	uint16_t name_length;
	uint16_t flags;          /* ENTRY_* of the directory's entry */
	uint16_t base;           /* private to the room */
	uint32_t xattrs;         /* -X, sender: as in the side record of its entry */
	uint16_t group;          /* how many equal entries of the parent it stands for: 1, more with duplicates, 0 if hidden */
	bool loaded;
};

/* Where an index points to. */
struct flist_pos {
	int32_t dir;             /* node whose entries the entry belongs to */
	struct entries *entries; /* of that node; NULL if they have been dropped (only possible for gap indexes) */
	struct entry *entry;     /* NULL likewise */
	int32_t gap;             /* incremental: the directory node meant by a gap index, else -1 */
};

/*
 * New list. sources: the module's source (daemon) or NULL: arguments are then paths of the local operator and every base
 * directory is opened as a live source. user: the client's rules; hidden: the daemon's own, or NULL.
 */
struct flist *flist_new(const struct options *options, struct session *session, struct attr_source *module_source,
			struct filter_list *user, struct filter_list *hidden);
/* An empty list that will be filled from the wire. Its names have no source: paths are below the destination. */
struct flist *flist_new_received(const struct options *options, struct session *session);
void flist_free(struct flist *list);

/* Further scan options that only a daemon has; before the first argument. */
struct scan_options *flist_scan_options(struct flist *list);
/* Names given with from_file lie below this directory, the single source argument. Borrowed. */
void flist_set_files_from(struct flist *list, const char *base);

/* Load the next directory of the walk (never node 0). Returns its node index, or -1 at the end. */
int32_t flist_load_next(struct flist *list);
bool flist_is_complete(const struct flist *list); /* everything has been loaded */
void flist_drop_entries(struct flist *list, int32_t node); /* free the memory of its entries */

/* Are the ACLs of an entry those of what a symlink leads to? So are those of what options have followed, and of the
 * directories that arguments lead through. */
bool flist_acl_follows(const struct flist *list, const struct entry *entry);

/* Total of sizes and numbers so far, for statistics. */
struct flist_totals {
	uint64_t size;      /* regular files and symlinks, as stock sums */
	uint32_t files, dirs, symlinks, devices, specials; /* entries by kind */
};
const struct flist_totals *flist_totals(const struct flist *list);

/* --iconv: entries whose name or target cannot be sent are left out (doc/protocol/02-file-list.md section 9). Before the first
 * argument. */
void flist_set_charset(struct flist *list, struct charset *charset);

/* Where an index points to (see above); false if it names nothing. A hole is found: the caller looks at the flags. */
bool flist_locate(struct flist *list, int32_t ndx, struct flist_pos *pos);
/* Directory nodes so far, and one of them. */
uint32_t flist_dir_count(const struct flist *list);
struct flist_dir *flist_dir(struct flist *list, int32_t node);

/* --debug=flist, and filter of the half that reads directories: everything that this half, or the one that gets the list from
 * a peer, says of a node. In the order of the walk. Nothing without --debug. */
void flist_debug_node(struct flist *list, int32_t node);

/* --- a list that arrives --- */

/* Working thread: would flist_load_next return at once? Waits until it does, but at most so many milliseconds. If it does not,
 * what waits to be sent has to be sent first. */
bool flist_await_next(struct flist *list, int ms);
/* The index that stands for an entry, or for a directory node itself (entry NULL), in requests. For nodes that have been handed
 * out. Incremental: a directory is requested by its node only. */
int32_t flist_ndx_of(struct flist *list, int32_t node, const struct entry *entry);
/* The digest that came with a regular file (-c), or NULL. */
const uint8_t *flist_received_digest(const struct flist *list, int32_t node, const struct entry *entry);

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
