/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing an entry of the list to the wire (doc/protocol/02-file-list.md section 2), and the state of who sends the list. */
#ifndef FLIST_ENCODE_H
#define FLIST_ENCODE_H

#include "flist/ids.h"
#include "flist/send.h"
#include "flist/tree.h"
#include "flist/xattr.h"
#include "lib/hashmap.h"

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
	struct sent_attributes attributes;
	struct hashmap links;            /* (dev, ino) -> index into firsts */
	VEC(struct first_link) firsts;
	uint64_t unlinked_files;         /* protocol 27: keys for files without other links */
	struct file_digest *digest;      /* -c, -X */
	struct strbuf path;              /* buffer for the next name of another directory */
	size_t oldest;                   /* index into load_order of the oldest list held */
	bool eof_sent;
	int reported_io_error;
	int64_t build_ms;
};

/* One entry with index ndx, of a list that begins with list_first_ndx. */
void flist_send_entry(struct flist_sender *sender, int32_t node, struct entry *entry, int32_t ndx, int32_t list_first_ndx);

#endif
