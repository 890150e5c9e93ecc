/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files that put the list on the wire share: flist/send.c, flist/encode.c, flist/names.c, flist/xattr.c. */
#ifndef FLIST_SEND_PRIVATE_H
#define FLIST_SEND_PRIVATE_H

#include "flist/tree.h"
#include "flist/send.h"
#include "flist/wire_private.h"
#include "lib/hashmap.h"

/* --- ids and their names (doc/protocol/02-file-list.md section 4; flist/names.c) --- */

struct id_names {
	struct session *session;
	struct fs_ids *ids;
	bool inline_names;    /* incremental recursion: names travel with the first mention */
	bool trailing_names;  /* lists at the end */
	bool no_names;        /* a daemon's "numeric ids" */
	struct hashmap users, groups;            /* ids mentioned */
	VEC(uint32_t) user_order, group_order;   /* the same, in order */
};

void id_names_init(struct id_names *names, struct session *session, const struct options *options,
		   const struct flist_send_setup *setup);
void id_names_free(struct id_names *names);
/* The name to send with this mention of an id, or NULL; notes the id for the trailing lists. */
const char *id_names_mention_user(struct id_names *names, uint32_t uid);
const char *id_names_mention_group(struct id_names *names, uint32_t gid);
void id_names_write_lists(struct id_names *names, bool users, bool groups);
/* A name with its length byte, cut at 255. */
void id_names_write_name(struct session *session, const char *name);

/* --- ACLs and xattrs (doc/protocol/05-xattrs-acls.md; flist/xattr.c) --- */

struct xattr_sender;
struct xattr_sender *xattr_sender_new(struct flist *list, struct id_names *names);
void xattr_sender_free(struct xattr_sender *sender);
void xattr_send_acls(struct xattr_sender *sender, int32_t node, const struct entry *entry, uint32_t mode);
void xattr_send_xattrs(struct xattr_sender *sender, int32_t node, struct entry *entry);
/* list: what the entry's side record says (0: none). */
void xattr_read_request(struct xattr_sender *sender, uint32_t list, const char *name);
void xattr_write_answer(struct xattr_sender *sender, uint32_t list, const struct fs_root *root, const char *path,
			const char *shown);

/* --- the list (flist/send.c, flist/encode.c) --- */

/* The first member of a hard-link group, as transmitted: later members in the same list take its values. */
struct first_link {
	int32_t ndx;
	int64_t mtime, atime;
	uint32_t mode, uid, gid, rdev_major;
};

/* Both sides' persistent state of doc/protocol/02-file-list.md section 2.4. */
struct entry_state {
	struct strbuf name; /* previous wire name */
	int32_t node;       /* whose directory it lies in, -1 if the name was converted */
	size_t leaf;        /* where its last component begins */
	bool any;           /* something has been sent */
	int64_t mtime, atime, link_dev, rdev_major;
	uint32_t mode, uid, gid, rdev;
};

#define RDEV_MAJOR_UNKNOWN (-1) /* the next device number is sent in full */

struct flist_sender {
	struct flist *list;
	struct session *session;
	const struct options *options;
	struct flist_send_setup setup;
	struct entry_state state;
	struct id_names names;
	struct xattr_sender *xattrs;     /* -A or -X */
	struct hashmap links;            /* (dev, ino) -> index into firsts */
	VEC(struct first_link) firsts;
	uint64_t unlinked_files;         /* protocol 27: keys for files without other links */
	struct file_digest *digest;      /* -c */
	struct strbuf path;              /* buffer for the next name of another directory */
	size_t oldest;                   /* index into load_order of the oldest list held */
	bool eof_sent;
	int reported_io_error;
	int64_t started_ns, build_ms;
};

/* One entry with index ndx, of a list that begins with list_first_ndx (flist/encode.c). */
void flist_send_entry(struct flist_sender *sender, int32_t node, struct entry *entry, int32_t ndx, int32_t list_first_ndx);

#endif
