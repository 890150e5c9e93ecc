/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ACLs and extended attributes of list entries as they are sent, and later requests for long values
 * (doc/protocol/05-xattrs-acls.md sections 5.2, 5.3, 5.6).
 */
#ifndef FLIST_XATTR_H
#define FLIST_XATTR_H

#include "flist.h"

struct fs_root;
struct id_names;
struct xattr_sender;

struct xattr_sender *xattr_sender_new(struct flist *list, struct id_names *names);
void xattr_sender_free(struct xattr_sender *sender);
void xattr_send_acls(struct xattr_sender *sender, int32_t node, const struct entry *entry, uint32_t mode);
void xattr_send_xattrs(struct xattr_sender *sender, int32_t node, struct entry *entry);
/* list: what the entry's side record says (0: none). */
void xattr_read_request(struct xattr_sender *sender, uint32_t list, const char *name);
void xattr_write_answer(struct xattr_sender *sender, uint32_t list, const struct fs_root *root, const char *path,
			const char *shown);

#endif
