/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The destination of a run: all that the objects in it have in common. Any thread, once the run has begun. */
#ifndef DEST_DEST_H
#define DEST_DEST_H

#include <pthread.h>
#include <stdatomic.h>

#include "dest/contents.h"
#include "dest/decide.h"
#include "flist.h"
#include "flist/attributes.h"
#include "fs/root.h"
#include "options.h"

struct alternates;
struct backups;
struct dest_module;
struct places;
struct seen;

enum { STOP_NONE, STOP_SIGNAL, STOP_SIGNAL1, STOP_WRITE, STOP_REFUSED };

struct dest {
	/* --- the run that it belongs to --- */
	const struct options *options;
	const struct session *session;
	const struct dest_module *module; /* of a daemon; NULL: what the client names is named by the operator */
	struct contents *contents;   /* where they come from */
	struct flist *list;
	uid_t uid;
	bool dry_run, attrs_only;
	bool has_sources;            /* all operands but the last are sources; not with --files-from or a snapshot */
	const char *snapshot_root;   /* the directory that the snapshot is of, absolute; NULL: none */
	bool shows_receiver;         /* users see a receiving side, not a local run */
	bool notifies_items;         /* the peer hears of items without content: a client, or it repeats them for a batch */
	bool wants_items;            /* somebody wants to hear of single items */
	bool names_directories;      /* "created directory D" and the like are said when names are */
	bool logs_steps;             /* --debug does (dest/events.c) */
	bool passes_settled;         /* of a file that is as listed (decide_is_settled) there is nothing to do, say or note */
	bool asks_in_turn;           /* contents are asked for in the order of the list, in which batches have them */
	_Atomic(struct task *) crowded; /* ... whose next entry needs room: all wait until the main thread has made it */
	atomic_int stop;             /* STOP_*: no new work */

	/* --- its place --- */
	struct fs_root top;          /* fd -1: would be made (dry run) */
	char *top_path;              /* absolute, of a module below it: for messages and rules */
	bool top_is_new;
	char *single_name;           /* the one entry is written under this name; NULL: its own */
	pthread_mutex_t hidden_lock; /* the module's rules are for one thread at a time */
	atomic_bool no_unnamed;      /* the file system has no O_TMPFILE */
	atomic_int keepable;         /* copies under way, of which a part is kept when the run is interrupted */
	pthread_rwlock_t gate;       /* held for reading while an object may exist under a temp name */

	/* --- its objects --- */
	struct decide_rules rules;
	struct xattr_policy sends_xattrs, keeps_xattrs;
	pthread_mutex_t xattr_lock;  /* of their rules */
	bool is_fake;                /* it keeps what would need root in attributes */
	struct alternates *alternates; /* NULL: none (dest/alternate.h) */
	struct backups *backups;     /* NULL: none are made */
	struct places *places;       /* dest/partial.h */
	int temp_fd;                 /* --temp-dir, where temp files are made; -1: beside their files */
	struct seen *seen;           /* for the snapshot of it; NULL: nobody wants to know */
};

#endif
