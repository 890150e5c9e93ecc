/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sending a list: sub-lists, end markers, look-ahead (doc/protocol/02-file-list.md section 6). */
#ifndef FLIST_SEND_H
#define FLIST_SEND_H

#include "flist.h"

struct charset;
struct chmod_rules;
struct fs_ids;

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
/* The node of the oldest list held, -1 if none is. */
int32_t flist_send_oldest(const struct flist_sender *sender);
/* The place of an index among all entries, from 0: indexes of directories as such do not count. */
uint64_t flist_send_position(const struct flist_sender *sender, int32_t ndx);
int64_t flist_send_build_ms(const struct flist_sender *sender);
/* Resolve an index from the peer: dies as doc/protocol/08-security.md section 2.3 and S-026, S-027, S-029 say. */
void flist_find(struct flist_sender *sender, int32_t ndx, struct flist_pos *pos);

#endif
