/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A run of a receiving side: what its threads share. */
#ifndef DEST_DEST_H
#define DEST_DEST_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "dest/contents.h"
#include "dest/decide.h"
#include "flist.h"
#include "flist/xattr_list.h"
#include "fs/root.h"
#include "lib/hashmap.h"
#include "lib/vec.h"
#include "options.h"
#include "ui/stats.h"

struct alternates;
struct backups;
struct dest_dir;
struct filter_list;
struct owner_maps;
struct places;
struct pool;
struct receiver_service;
struct report;
struct seen;
struct task;

struct link_member {
	int32_t node;
	uint32_t index;
	bool left_out, skipped;
	bool waits; /* in a replay: for the batch to say who leads, and to be linked at the end */
};
struct link_group {
	VEC(struct link_member) members;  /* in list order; only when the whole list is loaded first, or the batch leads */
	int64_t leader;                   /* index into members, -1: not decided; pipelined: 0 */
	bool done, failed;                /* leader's outcome */
	bool was_current;                 /* leader was up to date */
	char *path;                       /* leader's transfer path, once done */
	size_t visited;                   /* members prepared so far */
	uint32_t last_here;               /* the last member of the task that is being prepared */
};

struct delayed_delete { char *path; bool is_dir; };

enum { STOP_NONE, STOP_SIGNAL, STOP_SIGNAL1, STOP_WRITE, STOP_REFUSED };

struct receiver {
	const struct options *options;
	struct contents *contents; /* where they come from */
	bool shows_receiver;     /* people see a receiving side, not a local run */
	pthread_mutex_t hidden_lock; /* the module's rules are for one thread at a time */
	const struct receiver_service *service; /* the peer is our client (contents/serve.c); NULL: it is not */
	bool tells_items;        /* the peer hears of items without content: it is a client, or says them again for a batch */
	bool asks_in_turn;       /* contents are asked for in the order of the list, in which batches have them */
	_Atomic(struct task *) crowded; /* ... whose next entry needs room: nobody works on until the main thread has made it */
	struct session session;
	struct decide_rules rules;
	struct owner_maps *owner_maps; /* NULL: none */
	struct filter_list *sender_rules, *receiver_rules;
	struct xattr_policy sends_xattrs, keeps_xattrs;
	pthread_mutex_t xattr_lock; /* of their rules */
	bool is_fake;               /* the destination keeps what would need root in attributes */
	struct flist *list;
	struct fs_root top;          /* destination directory; fd -1: would be made (dry run) */
	char *top_path;              /* absolute, of a module below it: for messages and rules */
	char *single_name;           /* the one entry is written under this name; NULL: its own */
	bool top_is_new;
	uid_t uid;
	gid_t gid;
	bool attrs_only, dry_run;
	bool has_sources;            /* all operands but the last are sources; not with --files-from or a snapshot */
	const char *snapshot_root;   /* the directory that the snapshot is of, absolute; NULL: none */
	bool wants_items;            /* somebody wants to hear of single items */
	bool names_directories;      /* "created directory D" and the like are said when names are */
	bool tells_steps;            /* --debug does (dest/debug.c) */
	bool passes_settled;         /* of a file that is as listed (decide_is_settled) there is nothing to do, say or note */
	bool loads_all;              /* the whole list before the first file */
	bool all_prepared;           /* every directory has been handed to the workers */
	bool keeps_entries;          /* entries are needed again at the end */
	bool late_dirs;              /* directories get their attributes at the very end */
	bool deletes;
	bool deletes_stopped;        /* because of an I/O error: said so */
	uint64_t delete_skipped, delete_count;

	struct alternates *alternates; /* NULL: none (dest/alternate.h) */
	struct backups *backups;     /* NULL: none are made */
	struct places *places;       /* dest/partial.h */

	struct pool *pool;
	struct report *report;
	struct run_stats stats;
	uint64_t loaded_entries, prepared_entries;
	int32_t preloaded;           /* node that was loaded to count the entries, -1: none */

	VEC(int32_t) order;                 /* nodes as loaded, when loads_all */
	VEC(struct dest_dir *) open_stack;  /* preparing: ancestors of the last prepared node */
	VEC(struct dest_dir *) done_stack;  /* finishing: ancestors of the last finished node */
	VEC(struct dest_dir *) late;        /* to be finished at the end */
	VEC(struct delayed_delete) delayed;
	struct hashmap link_map;            /* dev, ino -> group + 1 */
	VEC(struct link_group *) groups;
	VEC(struct link_group *) late_groups;
	VEC(struct task *) leading;         /* members that lead because the batch has their content now */

	const char *snapshot_file;          /* --attr-snapshot of the destination; NULL: none */
	struct seen *seen;                  /* for that; NULL: nobody wants to know */
	struct timespec began;              /* this run, by the calendar */

	atomic_int stop;                    /* STOP_*: no new work */
	pthread_rwlock_t gate;              /* held for reading while an object may exist under a temp name */
	atomic_bool no_unnamed;             /* the file system has no O_TMPFILE */
};

#endif
