/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ACLs and extended attributes of received entries (doc/protocol/05-xattrs-acls.md sections 5.2, 5.3, 5.6, 5.8). Each different
 * one comes once and is numbered; entries that have the same name its number. What has come stays for the whole connection:
 * entries have indexes.
 */
#ifndef FLIST_RECEIVE_ATTRIBUTES_H
#define FLIST_RECEIVE_ATTRIBUTES_H

#include "flist.h"
#include "flist/attributes.h"
#include "lib/alloc.h"
#include "lib/hashmap.h"

struct flist_receiver;

/* What many entries share, numbered as it comes; items do not move. */
struct received_table {
	struct reserved area;
	size_t size;               /* of an item */
	uint32_t count;
};

struct received_xattrs {
	struct xattr_list list;
	uint32_t *places;          /* by number - 1: place in the list + 1, 0 where it was dropped */
	int32_t sent_count;        /* of them */
};

/* Written by the reading thread, before the entries that have it are handed out. */
struct received_attributes {
	struct received_table acls[2];          /* struct fs_acl, as they travel: access, default */
	struct received_table pairs;            /* one of each: what entries have */
	struct hashmap pair_numbers;
	struct received_table xattrs;           /* struct received_xattrs */
	uint32_t local[2];                      /* how many of the ACLs have ids of this machine */
};

struct received_attributes *received_attributes_new(const struct options *options);
void received_attributes_free(struct received_attributes *attributes);
/* Those of an entry with this mode; the number of what it has, 0 if that is nothing. */
uint32_t received_acls_read(struct flist_receiver *receiver, uint32_t mode);
uint32_t received_xattrs_read(struct flist_receiver *receiver);
/* Give the ACLs that have come since the last call ids of this machine. */
void received_acls_localize(struct flist_receiver *receiver);

/* -A, not for symlinks: an entry's ACLs, reduced as they travel (flist/attributes.h); defaults: of a directory. They stay with
 * the list. */
void flist_received_acls(const struct flist *list, int32_t node, const struct entry *entry, const struct fs_acl **access,
			 const struct fs_acl **defaults);
/* -X: the attributes that an entry is to have; likewise. */
const struct xattr_list *flist_received_xattrs(const struct flist *list, int32_t node, const struct entry *entry);
/* Reading thread: the values that a peer sends for items of that list which have none yet; entry NULL: it must not send any. */
void flist_receive_xattr_answer(struct flist_receiver *receiver, int32_t node, const struct entry *entry);

#endif
