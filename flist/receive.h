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
#ifndef FLIST_RECEIVE_H
#define FLIST_RECEIVE_H

#include "flist.h"
#include "flist/acl.h"
#include "flist/xattr_list.h"
#include "fs/ids.h"

struct args;
struct flist_receiver;

/* What the reading of a list needs beyond the options. All borrowed until flist_receiver_free; for the reading thread alone. */
struct flist_receive_setup {
	/* Names of the peer become ids of this machine (doc/protocol/02-file-list.md section 4.4), unless numeric ids; NULL:
	 * they are thrown away. */
	struct fs_ids *ids;
	struct charset *charset;    /* --iconv in force, or NULL */
	/* What these exclude may not come (doc/protocol/02-file-list.md section 11.3); NULL or with merges: unchecked */
	struct filter_list *rules;
	/* Client: the paths of the source arguments, of a daemon behind the module's name; with a --files-from list of our own
	 * its names. Names that nobody asked for are refused. NULL: server, or a peer whose ways of expansion are its own. */
	const struct args *asked;
	const struct xattr_policy *xattr_policy; /* -X: the receiver's; NULL: no rules */
	bool trust_sender;
	bool repeats_values;        /* of attributes: a batch may have them for several entries that share them */
	bool munge_symlinks;        /* store targets in a form that leads nowhere */
	bool clean_symlinks;        /* ... or in one that does not lead out of the transfer */
};

/* An empty list that will be filled from the wire. Its names have no source: paths are below the destination. */
struct flist *flist_new_received(const struct options *options, struct session *session);

/* EXIT_PROTOCOL or EXIT_UNSUPPORTED on options that cannot be received. */
struct flist_receiver *flist_receiver_new(struct flist *list, struct session *session, const struct options *options,
					  const struct flist_receive_setup *setup);
void flist_receiver_free(struct flist_receiver *receiver);

/*
 * The first list (without incremental recursion: everything, with id lists and I/O error word), before there is a second
 * thread. Ends the process with EXIT_PROTOCOL, EXIT_STREAMIO, EXIT_UNSUPPORTED or EXIT_MALLOC on what must not come
 * (doc/protocol/02-file-list.md section 11). I/O errors of the peer are noted in the session: here, and by flist_load_next for
 * later lists.
 */
void flist_receive_first(struct flist_receiver *receiver);
/* Reading thread: the sub-list announced by ndx NDX_FLIST_OFFSET - N, or the end of lists (NDX_FLIST_EOF); any other ndx is
 * EXIT_PROTOCOL. */
void flist_receive_next(struct flist_receiver *receiver, int32_t ndx);

/* Working thread: would flist_load_next return at once? If not, what waits to be sent has to be sent first. */
bool flist_next_is_known(struct flist *list);
/* The same once it is, or after so many milliseconds. */
bool flist_await_next(struct flist *list, int ms);

/* The index that stands for an entry, or for a directory node itself (entry NULL), in requests. For nodes that have been handed
 * out. Incremental: a directory is requested by its node only. */
int32_t flist_ndx_of(struct flist *list, int32_t node, const struct entry *entry);
/* Did the node's entries come as a list of their own, whose end the sender is to be told? Incremental recursion only. */
bool flist_has_own_list(struct flist *list, int32_t node);
/* The digest that came with a regular file (-c), or NULL. */
const uint8_t *flist_received_digest(const struct flist *list, int32_t node, const struct entry *entry);

/* -A, not for symlinks: an entry's ACLs, reduced as they travel (flist/acl.h); defaults: of a directory. They stay with the
 * list. */
void flist_received_acls(const struct flist *list, int32_t node, const struct entry *entry, const struct fs_acl **access,
			 const struct fs_acl **defaults);
/* -X: the attributes that an entry is to have; likewise. */
const struct xattr_list *flist_received_xattrs(const struct flist *list, int32_t node, const struct entry *entry);
/* Reading thread: the values that a peer sends for items of that list which have none yet; entry NULL: it must not send any. */
void flist_receive_xattr_answer(struct flist_receiver *receiver, int32_t node, const struct entry *entry);

#endif
