/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Some or all files of one directory, which a worker goes through, and the events that it leaves to the main thread. */
#ifndef DEST_TASK_H
#define DEST_TASK_H

#include <pthread.h>
#include <stdatomic.h>

#include "attrs/entry.h"
#include "delta/digest.h"
#include "dest/attributes.h"
#include "fs/root.h"
#include "lib/log.h"
#include "lib/vec.h"
#include "ui/number.h"

struct dest_dir;
struct fuzzy_dirs;

enum event_kind {
	EVENT_ITEM,            /* looked at or changed: flags, bytes */
	EVENT_DIR,             /* the directory itself */
	EVENT_TEXT,            /* message */
	EVENT_SOURCE_FAILED,   /* it could not be opened or read: error; bytes: what was done, enum source_step */
	EVENT_LINK,            /* hard link to another member of its group: main thread */
	EVENT_REDO,            /* a directory is in the way: main thread, unless dest->asks_in_turn */
	EVENT_DELETE_ARGUMENT, /* missing argument: main thread */
	EVENT_FAILED,          /* the peer has not sent it; whatever there is to say has been said */
	EVENT_AWAITED,         /* keeps the place of one of the two that the peer's reply will make */
	EVENT_NOTHING,         /* what was here has been dealt with */
};

enum source_step { SOURCE_OPEN, SOURCE_READ, SOURCE_ATTRIBUTES };

struct event {
	enum event_kind kind;
	enum log_kind log;
	uint32_t index;
	uint32_t flags;
	int error;
	bool touched;      /* EVENT_ITEM: attributes of an up-to-date file were set */
	bool is_bare;      /* EVENT_DIR: a new one, nothing of which has to be set */
	bool is_attempt;   /* EVENT_ITEM: it came to nothing, and may be asked for again */
	mode_t mode;       /* EVENT_ITEM: to be reported, 0 for the listed one */
	uint64_t bytes;    /* EVENT_ITEM: that travelled, or were copied where nothing does */
	uint64_t sums;     /* EVENT_ITEM: of block sums, in the other direction */
	uint64_t files, total; /* EVENT_ITEM: what the task has transferred so far, this one included */
	const char *role;  /* EVENT_TEXT: whose message, static */
	uint8_t digest[DIGEST_MAX_LENGTH]; /* EVENT_ITEM: of the content as it came from a peer */
	int digest_length;
	char *text;        /* owned; EVENT_ITEM: the temp name that it had, if anybody wants to know */
};

struct events {
	VEC(struct event) list;
};

/* Where the contents of entries with this root index come from. */
struct task_source {
	uint16_t base;
	struct fs_root root; /* the source directory, held */
	int error;           /* why it is not, if root.fd is -1 */
};

enum task_state { TASK_QUEUED, TASK_RUNNING, TASK_CROWDED, TASK_WAITS, TASK_DONE };

/* Some or all files of one directory. */
struct task {
	struct task *next;
	struct dest *dest;
	int32_t node;
	struct entries *entries;
	uint32_t first, last;         /* [first, last) */
	uint32_t at;                  /* the first one that nobody has processed */
	bool started;
	uint32_t debug_end;           /* up to here dest_debug_entry has shown entries */
	bool is_brief;                /* the main thread goes through it: what takes long is left to a worker */
	bool is_left;                 /* it has been */
	bool is_first, is_last;       /* slice of the directory */
	struct dest_dir *dir;
	VEC(struct task_source) sources;
	struct fuzzy_dirs *fuzzy;     /* --fuzzy: what there is to choose from; NULL: not read */
	int *alternates;              /* descriptors of the directory in the alternate destinations; NULL: not opened */
	uint8_t *marks;               /* MARK_* of each entry from `first` on; NULL: all plain */
	bool find_surplus;
	bool names_read;              /* the surplus has been looked for */
	struct entries surplus;       /* names that the sources do not have, sorted */
	bool knows_names;             /* the directory has been read, and has no surplus */
	struct entries seen;          /* for the snapshot: entry i for listed entry first + i, see dest/seen.c */
	pthread_mutex_t *lock;        /* the pool's */
	enum task_state state;        /* under the lock */
	struct events events;         /* under the lock while RUNNING, if progress is shown */
	uint64_t events_taken;        /* likewise: how many were in front of those */
	uint32_t dir_flags;           /* the directory's item, which a service's worker reports before those of the files */
	struct wanted dir_wanted;     /* attributes of the directory whose values a worker has to ask for: lacks_values */
	bool notifies_dir;
	uint64_t first_position;      /* of the directory's first entry in the whole list */
	_Atomic uint64_t live_done;   /* progress of the file being copied now */
	_Atomic uint64_t live_size;
	_Atomic uint32_t live_flags;  /* its item flags */
	_Atomic uint32_t live_index;  /* + 1; 0: none */
	VEC(uint32_t) links;          /* a peer may still owe the content of their leaders */
	unsigned pending;             /* files whose contents a peer still owes; under the lock */
	struct run_stats counts;
	struct run_stats received;    /* by the reading thread, while something is pending */
};

/* MARK_EARLY_LINK: a link as well, and the leader of its group had not been decided when it was marked. */
enum { MARK_PLAIN, MARK_LINK, MARK_EARLY_LINK };

#endif
