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
 * The same list serves the sender (flist/send.c writes it to the wire) and the local engine (which walks it).
 */
#ifndef FLIST_H
#define FLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "attrs/entry.h"
#include "attrs/source.h"
#include "filter/filter.h"
#include "flist/tree.h"
#include "lib/strbuf.h"
#include "wire/session.h"

struct charset;
struct chmod_rules;
struct fs_ids;
struct options;

struct flist;

/* One directory whose entries are part of the list. Children of a node are consecutive nodes, in wire order. */
struct flist_dir {
	struct entries *entries; /* NULL before loading and after dropping */
	struct flist_parts *parts; /* private to flist.c: where the entries come from */
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
	uint16_t base;           /* private to flist.c */
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
void flist_free(struct flist *list);

/* Further scan options that only a daemon has; before the first argument. */
struct scan_options *flist_scan_options(struct flist *list);
/* Names given with from_file lie below this directory, the single source argument. Borrowed. */
void flist_set_files_from(struct flist *list, const char *base);

/*
 * Add one source argument (doc/protocol/02-file-list.md section 7), or one name of a --files-from list (from_file). Errors are
 * logged and noted for the exit code as stock does. Arguments of a daemon are module-relative. Only before
 * flist_finish_arguments.
 */
void flist_add_argument(struct flist *list, const char *argument, bool from_file);
/* Sorts and numbers node 0. */
void flist_finish_arguments(struct flist *list);

/* Load the next directory of the walk (never node 0). Returns its node index, or -1 at the end. */
int32_t flist_load_next(struct flist *list);
bool flist_is_complete(const struct flist *list); /* everything has been loaded */
void flist_drop_entries(struct flist *list, int32_t node); /* free the memory of its entries */

/* Transfer path of a node ("" for node 0) or of an entry, appended to `out` after a reset. */
void flist_dir_path(const struct flist *list, int32_t node, struct strbuf *out);
void flist_entry_path(const struct flist *list, int32_t node, const struct entry *entry, struct strbuf *out);
/* The same as messages show it: CWD-absolute outside daemons, "NAME" module-relative inside ("\"/x\" (in mod)" is made by
 * flist_quote). */
void flist_quote(const struct flist *list, int32_t node, const struct entry *entry, struct strbuf *out);
/* doc/protocol/06-command-line.md section 8.8 %f */
void flist_shown_name(const struct flist *list, int32_t node, const struct entry *entry, struct strbuf *out);

/* The transfer name of what an index points to, and where its content or attributes are. */
void flist_pos_path(const struct flist *list, const struct flist_pos *pos, struct strbuf *out);
/* The same as flist_shown_name says it. */
void flist_pos_shown_name(const struct flist *list, const struct flist_pos *pos, struct strbuf *out);
/* The same with the leading slash of an operand that has one. */
void flist_pos_operand_name(const struct flist *list, const struct flist_pos *pos, struct strbuf *out);
struct attr_source *flist_pos_source(struct flist *list, const struct flist_pos *pos, struct strbuf *path);
/* Local: an argument leads to this directory below a base of the list, through whatever symlinks; follow: also a last one.
 * Everything below it is found from there from now on. */
void flist_note_directory(struct flist *list, uint16_t base, const char *transfer, bool follow);
/* Are the ACLs of an entry those of what a symlink leads to? So are those of what options have followed, and of the
 * directories that arguments lead through. */
bool flist_acl_follows(const struct flist *list, const struct entry *entry);
/* Source and path below it to open an entry's content with. */
struct attr_source *flist_entry_source(struct flist *list, int32_t node, const struct entry *entry, struct strbuf *path);

/* Total of sizes and numbers so far, for statistics. */
struct flist_totals {
	uint64_t size;      /* regular files and symlinks, as stock sums */
	uint32_t files, dirs, symlinks, devices, specials; /* entries by kind */
};
const struct flist_totals *flist_totals(const struct flist *list);

/* A filter_setup.open_file for rules that a peer names or that stand in the tree: context is the address of a struct flist *,
 * which may be set after the rules have been made (doc/protocol/04-filters.md section 4.11.4). */
int flist_open_rule_file(void *flist_address, enum filter_place place, const char *path);

/* --iconv: entries whose name or target cannot be sent are left out (doc/protocol/02-file-list.md section 9). Before the first
 * argument. */
void flist_set_charset(struct flist *list, struct charset *charset);

/* Where an index points to (see above); false if it names nothing. A hole is found: the caller looks at the flags. */
bool flist_locate(struct flist *list, int32_t ndx, struct flist_pos *pos);
/* The node whose range holds ndx, loaded or dropped. */
int32_t flist_node_of(const struct flist *list, int32_t ndx);

/* --- sending (flist/send.c) --- */

/* What the sending of a list needs beyond the options. */
struct flist_send_setup {
	struct fs_ids *ids;
	/* A daemon's "numeric ids": lists and flags as usual, but no names (doc/protocol/02-file-list.md section 4.1) */
	bool no_names;
	struct chmod_rules *chmod; /* a daemon's "outgoing chmod", or NULL */
	struct charset *charset;   /* --iconv in force, or NULL */
};

/* Send node 0 of a finished list, and without incremental recursion everything, with id lists and the I/O error word. */
struct flist_sender;
struct flist_sender *flist_send_start(struct flist *list, struct session *session, const struct options *options,
				      const struct flist_send_setup *setup);
void flist_sender_free(struct flist_sender *sender);
/* Incremental: keep at least 1000 entries ahead of the list that holds `current_ndx` (doc/protocol/02-file-list.md
 * section 6.4). */
void flist_send_ahead(struct flist_sender *sender, int32_t current_ndx);
/* The oldest list is done (an NDX_DONE in phase 0): drop it. */
void flist_send_drop_oldest(struct flist_sender *sender);
/* The node of the oldest list held. */
int32_t flist_send_oldest(const struct flist_sender *sender);
/* The place of an index among all entries, from 0: indexes of directories as such do not count. */
uint64_t flist_send_position(const struct flist_sender *sender, int32_t ndx);
/* Number of lists still held. */
int flist_send_held(const struct flist_sender *sender);
bool flist_send_is_empty(const struct flist_sender *sender); /* nothing was listed */
/* -X: read a request for long values behind the item flags, and write the answer behind the echoed ones
 * (doc/protocol/05-xattrs-acls.md section 5.3). Between the two calls the caller echoes the item. */
void flist_send_read_xattr_request(struct flist_sender *sender, const struct flist_pos *pos);
void flist_send_write_xattr_answer(struct flist_sender *sender, const struct flist_pos *pos);
int64_t flist_send_build_ms(const struct flist_sender *sender);
/* Resolve an index from the peer: dies as doc/protocol/08-security.md section 2.3 and S-026, S-027, S-029 say. */
void flist_find(struct flist_sender *sender, int32_t ndx, struct flist_pos *pos);

#endif
