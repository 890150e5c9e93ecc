/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ACLs and extended attributes of list entries as they are sent, and later requests for long values
 * (doc/protocol/05-xattrs-acls.md sections 5.2, 5.3, 5.6).
 */
#ifndef FLIST_XATTR_H
#define FLIST_XATTR_H

#include "flist.h"
#include "flist/attributes.h"
#include "lib/hashmap.h"
#include "lib/vec.h"

struct flist_sender;

/* Literals already sent, numbered from 0; equal ones are sent as their number + 1. */
struct sent_literals {
	struct hashmap by_hash; /* hash of the bytes -> number */
	VEC(struct strbuf) items;
};

/* One attribute of a sent list: what a request may name. */
struct sent_xattr {
	char *name;
	bool requestable; /* long, and not asked for yet */
	bool requested;   /* in the request being answered */
};

struct sent_list {
	struct sent_xattr *items;
	size_t count;
};

/* What a list has sent already. */
struct sent_attributes {
	struct sent_literals acls[2], xattrs; /* access ACLs, default ACLs */
	VEC(struct sent_list) lists;          /* of xattrs.items, the same numbers */
	struct xattr_policy policy;
};

void sent_attributes_free(struct sent_attributes *sent);
void xattr_send_acls(struct flist_sender *sender, int32_t node, const struct entry *entry, uint32_t mode);
void xattr_send_xattrs(struct flist_sender *sender, int32_t node, struct entry *entry);
/* -X: read a request for long values behind the item flags, and write the answer behind the echoed ones
 * (doc/protocol/05-xattrs-acls.md section 5.3). Between the two calls the caller echoes the item. */
void xattr_read_request(struct flist_sender *sender, const struct flist_pos *pos);
void xattr_write_answer(struct flist_sender *sender, const struct flist_pos *pos);

#endif
