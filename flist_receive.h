/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file list that arrives from a peer (protocol/02): the same tree of directory nodes as one that is scanned (flist.h), with the
 * same numbers. The reading thread adds nodes; the thread that works through the list waits for them in flist_load_next.
 */
#ifndef FLIST_RECEIVE_H
#define FLIST_RECEIVE_H

#include "flist.h"
#include "fs/ids.h"

struct flist_receiver;

/* What the reading of a list needs beyond the options. */
struct flist_receive_setup {
	struct fs_ids *ids;         /* names of the peer become ids of this machine (protocol/02 4.4), unless numeric ids */
	struct charset *charset;    /* --iconv in force, or NULL */
	struct filter_list *rules;  /* names that they exclude may not come (08 receiver part); NULL or with merges: unchecked */
	const struct args *asked;   /* client: the source arguments as they were given, to refuse names nobody asked for; NULL: server */
	bool trust_sender;
};

/* An empty list that will be filled from the wire. */
struct flist *flist_new_received(const struct options *options, struct session *session);

struct flist_receiver *flist_receiver_new(struct flist *list, struct session *session, const struct options *options,
					  const struct flist_receive_setup *setup);
void flist_receiver_free(struct flist_receiver *receiver);

/* Reading thread: the first list (without incremental recursion: everything, with id lists and I/O error word). Ends the process with
 * EXIT_PROTOCOL, EXIT_STREAMIO or EXIT_UNSUPPORTED on what must not come (protocol/02 section 11). */
void flist_receive_first(struct flist_receiver *receiver);
/* Reading thread: the sub-list announced by ndx NDX_FLIST_OFFSET - N, or the end of lists (NDX_FLIST_EOF). */
void flist_receive_next(struct flist_receiver *receiver, int32_t ndx);

/* The index that stands for an entry, or for a directory node itself (entry NULL), in requests. Any thread. */
int32_t flist_ndx_of(struct flist *list, int32_t node, const struct entry *entry);
/* The digest that came with a regular file (-c), or NULL. */
const uint8_t *flist_received_digest(const struct flist *list, int32_t node, const struct entry *entry);

#endif
