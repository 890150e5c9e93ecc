/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests of a pull: in their order, by their index, and what becomes of them, any thread. A batch in the place of a peer. */
#ifndef CONTENTS_REPLAY_H
#define CONTENTS_REPLAY_H

#include "contents/pull.h"

/* Nothing of it is filled in. Freed by pull_forget. */
struct transfer *transfer_new(struct pull *pull);
/* Under the lock: put one at the end. */
void requests_add(struct requests *requests, struct transfer *transfer);
/* Take out the oldest one, or the oldest of the first phase; NULL: there is none. */
struct transfer *requests_take_oldest(struct pull *pull, bool first_phase);
/* Let those know that wait for it. */
void pull_announce(struct pull *pull, bool *fact);
/* Has it been asked for? */
bool pull_expects(struct pull *pull, int32_t ndx);
/* Do values of extended attributes follow an item with these flags (doc/protocol/05-xattrs-acls.md section 5.3.1)? */
bool pull_has_xattr_part(const struct pull *pull, uint32_t flags);
/* As the peer understands --append: 0, 1, or 2 for --append-verify. */
int pull_append_mode(const struct pull *pull);
/* The file's fate is known. Frees the transfer. */
void pull_settle(struct pull *pull, struct transfer *transfer, bool good);
/* The same when everything has been said of it. */
void pull_forget(struct pull *pull, struct transfer *transfer);
/* The sender has said that there will be no reply. EXIT_PROTOCOL if nobody waits for one. */
void pull_refused(struct pull *pull, int32_t ndx);
/* The calls in_place and arrived of struct contents: the sender is to remove what it has. */
void pull_note_success(struct contents *contents, int32_t node, const struct entry *entry, bool is_new);
void pull_note_arrival(struct contents *contents, int32_t ndx);

/* --- a batch --- */

/* The request for ndx, when the batch has come to that: wait until it is known whether it is wanted. NULL: it is not. */
struct transfer *replay_take(struct pull *pull, int32_t ndx);
/* The batch has not what is wanted. */
void replay_missing(struct pull *pull, struct transfer *transfer);
/* Read over a reply that nobody wants. */
void replay_skip(struct pull *pull, int32_t ndx);
/* A request, from the main thread or a worker; or one that has failed its verification. */
void replay_request(struct pull *pull, struct transfer *transfer);
void replay_decided(struct contents *contents, int32_t ndx);
void replay_node_done(struct pull *pull, int32_t node);

#endif
