/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests of a pull: in their order, by their index, and what becomes of them. Any thread. */
#ifndef CONTENTS_REQUESTS_H
#define CONTENTS_REQUESTS_H

#include "contents/pull.h"

/* Nothing of it is filled in. Freed by pull_forget. */
struct transfer *transfer_new(struct pull *pull);
/* Under the lock: the first request for an index, NULL if there is none; put one at the end; take it out. */
struct transfer *requests_find(const struct requests *requests, int32_t ndx);
void requests_add(struct requests *requests, struct transfer *transfer);
void requests_remove(struct requests *requests, struct transfer *transfer);
/* Take out the oldest one; NULL: there is none. */
struct transfer *requests_take_oldest(struct pull *pull);
/* Nothing of a reply has come yet: does the sender owe one? (reading thread) */
void pull_note_owed(struct pull *pull);
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
/* Is a reply still open, in the first phase or at all? */
bool requests_has_open(struct pull *pull, bool first_phase);
/* The calls in_place and arrived of struct contents: the sender is to remove what it has. */
void pull_note_success(struct contents *contents, int32_t node, const struct entry *entry, bool is_new);
void pull_note_arrival(struct contents *contents, int32_t ndx);

#endif
