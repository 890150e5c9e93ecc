/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where entries wait until their list is complete. A sub-list's lie in one directory, which each of them is held against. A
 * list without incremental recursion is one of paths in any order: its entries are gathered by directory and become nodes in
 * the order of the walk when all of them are there.
 */
#ifndef FLIST_RECEIVE_SPLIT_H
#define FLIST_RECEIVE_SPLIT_H

#include <stddef.h>
#include <stdint.h>

struct entries;
struct flist_receiver;
struct incoming;

/* Where an entry goes: index into receiver->staged of its directory; *leaf is where its own name begins. */
uint32_t flist_stage(struct flist_receiver *receiver, const struct incoming *incoming, size_t *leaf);
void flist_staged_clear(struct flist_receiver *receiver); /* ready for the next list */
void flist_unstage(struct flist_receiver *receiver); /* what has been staged is taken over: give its memory back */
void flist_staged_free(struct flist_receiver *receiver);
/* Without incremental recursion: make nodes of everything that has arrived. */
void flist_split(struct flist_receiver *receiver);
/* Count memory for what waits in the list being read, or for the rest of the session; EXIT_MALLOC. */
void flist_count_staged(struct flist_receiver *receiver, size_t bytes);
void flist_count_kept(struct flist_receiver *receiver, size_t bytes);
/* Take the sorted entries over, number them, show the node to the working thread. */
void flist_publish(struct flist_receiver *receiver, int32_t node, struct entries *entries);

#endif
