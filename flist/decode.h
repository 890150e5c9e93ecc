/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading an entry of the list from the wire (doc/protocol/02-file-list.md section 2), and the state of who reads the list. */
#ifndef FLIST_DECODE_H
#define FLIST_DECODE_H

#include "delta/digest.h"
#include "flist/attributes.h"
#include "flist/ids.h"
#include "flist/receive.h"
#include "flist/tree.h"
#include "lib/hashmap.h"

struct asked_names;

/* The fields of an entry, of the wire's ids and in the local charset. */
struct incoming {
	uint32_t flags;           /* XMIT_* */
	uint64_t size;
	int64_t mtime, atime;
	uint32_t nsec, mode, uid, gid;
	uint32_t rdev_major, rdev_minor;
	uint64_t group;           /* hard-link group, 0: none */
	uint32_t acls, xattrs;    /* numbers of what it has, 0: nothing */
	bool has_target, unconvertible;
	bool is_child;            /* the name has been seen to be one more component of the sub-list's directory */
	struct strbuf name;       /* clean, whole path */
	struct strbuf target;
	uint8_t digest[DIGEST_MAX_LENGTH];
};

static inline bool incoming_is_device(const struct incoming *in)
{
	return S_ISCHR(in->mode) || S_ISBLK(in->mode);
}

/* Both sides' persistent state of doc/protocol/02-file-list.md section 2.4. */
struct incoming_state {
	struct strbuf name;       /* previous wire name */
	int64_t mtime, atime, link_dev;
	uint32_t mode, uid, gid, rdev_major, rdev;
};

/* A hard-link group: where its first member lies among what has arrived of the current list. */
struct received_link {
	uint32_t directory, index; /* of receiver->staged */
	bool is_marked;            /* ENTRY_HARD_LINKED is set */
};

/* Entries of one directory, in order of arrival, until their list is complete. */
struct staged_dir {
	struct entries *entries;
	size_t path;               /* offset in staged_paths */
	size_t length;
	bool is_listed;            /* there is a directory entry of this path */
	bool is_needed;            /* has entries that cannot be without one */
};

struct flist_receiver {
	struct flist *list;
	struct session *session;
	const struct options *options;
	struct flist_receive_setup setup;
	struct asked_names *asked;       /* NULL: nothing is checked */
	struct filter_list *rules;       /* NULL: nothing is checked */
	struct id_map users, groups;
	struct xattr_policy xattr_policy;
	struct incoming_state state;
	struct incoming incoming;        /* buffers are kept */
	struct strbuf wire_target;

	struct hashmap link_keys;        /* (0, index) or (device, inode) -> group number */
	VEC(struct received_link) links; /* by group number - 1 */

	int32_t list_first;              /* index of the first entry of the list being read */
	int32_t arrived;                 /* entries of it so far */
	size_t staged_bytes;             /* of the list being read, in the session's budget */
	int io_error;                    /* what happened to the entries of it */
	bool is_over;                    /* NDX_FLIST_EOF has come */

	/* The list being read: one element for a sub-list; else a directory for each path, found by its hash. */
	VEC(struct staged_dir) staged;
	struct strbuf staged_paths;
	struct hashmap staged_by_hash;   /* (hash of the path, attempt) -> index into staged */
	uint32_t last_staged;
	struct strbuf node_path;         /* sub-list: the directory it belongs to */
	int32_t last_node;               /* whose list came last */

	struct strbuf hierarchy;         /* below protocol 30: the argument whose directories have content */
	bool in_hierarchy;
};

/* Read the next entry into receiver->incoming; false at the end of the list, with the I/O error mask there. */
bool flist_decode_entry(struct flist_receiver *receiver, int *mask);

#endif
