/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a list that a peer sends (doc/protocol/02-file-list.md) into the nodes of flist.h. */
#ifndef FLIST_RECEIVE_H
#define FLIST_RECEIVE_H

#include "flist.h"

struct args;
struct flist_receiver;
struct fs_ids;
struct xattr_policy;

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

#endif
