/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the files that receive a list share: flist/receive.c (lists), flist/receive_entry.c (the fields of
 * an entry), flist/receive_attributes.c (ACLs and extended attributes), flist/receive_split.c (one list of paths into
 * directories), flist/receive_names.c (ids), flist/receive_check.c (names).
 */
#ifndef FLIST_DECODE_H
#define FLIST_DECODE_H

#include <limits.h>
#include <pthread.h>

#include "delta/digest.h"
#include "flist/acl.h"
#include "flist/receive.h"
#include "flist/received.h"
#include "flist/tree.h"
#include "flist/wire_private.h"
#include "flist/xattr_list.h"
#include "lib/hashmap.h"
#include "lib/reserved.h"
#include "options/owners.h"

struct incoming;

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
	struct received_table access, defaults; /* struct fs_acl, as they travel */
	struct received_table pairs;            /* one of each: what entries have */
	struct hashmap pair_numbers;
	struct received_table xattrs;           /* struct received_xattrs */
	uint32_t local_access, local_defaults;  /* how many have ids of this machine */
};

/* --- names (flist/receive_check.c) --- */

/* What the source arguments allow, as sets of paths without leading slashes. */
struct asked_names;
struct asked_names *asked_names_new(const struct options *options, const struct args *asked);
void asked_names_free(struct asked_names *asked);
/* ASKED_PARENT: as a directory on the way to what was asked for. */
enum asked { ASKED_NO, ASKED_PARENT, ASKED_YES };
enum asked asked_names_look_up(const struct asked_names *asked, const char *name, bool is_dir);

/* The target of a symlink without a slash at its beginning and without ".." that climb above the transfer, in which the link
 * has the name `name` (doc/protocol/07-daemon.md section 5.16). */
void flist_clean_target(const char *target, const char *name, struct strbuf *clean);
/* The form in which a name is kept (doc/protocol/02-file-list.md section 11.1), in->name, and in->is_child; ends the process if
 * it must not come. */
void flist_clean_name(const struct flist_receiver *receiver, const char *name, size_t length, struct incoming *in);

/* --- ids (flist/receive_names.c) --- */

struct id_map {
	bool (*find)(struct fs_ids *ids, const char *name, uint32_t *id);
	struct id_rules *rules; /* --usermap, --groupmap; NULL: none. They come first */
	struct fs_ids *ids;     /* NULL: names themselves say nothing */
	const char *root_name;  /* of id 0, which the peer does not name */
	uint32_t own;           /* for the id that no file can have */
	uint32_t last, last_local; /* most entries have the id of the one before */
	bool has_last;
	bool heard;             /* the peer sends ids: without that the entries' 0 is nobody's */
	const char *told_as;    /* --debug=own2: "uid" or "gid"; NULL: nobody wants to know */
	size_t mentions;
	struct hashmap local;   /* (id, with its name or without): what differs, and what rules have said */
};

void id_map_init_users(struct id_map *map, const struct options *options, struct fs_ids *ids);
void id_map_init_groups(struct id_map *map, const struct options *options, struct fs_ids *ids);
void id_map_free(struct id_map *map);
/* Before the first id: take up the rules of the options. */
void id_maps_set_rules(struct flist_receiver *receiver);
/* Read the name that follows the mention of an id. */
void id_map_read_name(struct id_map *map, struct wire *wire, uint32_t id);
/* A list of names at the end (doc/protocol/02-file-list.md section 4.3). */
void id_map_read_list(struct id_map *map, const struct session *session);
uint32_t id_map_local(struct id_map *map, uint32_t id);

/* --- one entry (flist/receive_entry.c) --- */

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

/* --- ACLs and extended attributes (flist/receive_attributes.c) --- */

struct received_attributes *received_attributes_new(const struct options *options);
void received_attributes_free(struct received_attributes *attributes);
/* Those of an entry with this mode; the number of what it has, 0 if that is nothing. */
uint32_t received_acls_read(struct flist_receiver *receiver, uint32_t mode);
uint32_t received_xattrs_read(struct flist_receiver *receiver);
/* Give the ACLs that have come since the last call ids of this machine. */
void received_acls_localize(struct flist_receiver *receiver);

#endif
