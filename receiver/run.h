/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state of a run: struct receiver for what walks the list and finishes its tasks, struct run for the frame from the
 * operands to the exit code (receiver.c) and the parts of it that have files of their own. All of this is for the main thread,
 * but for what struct dest gives to others.
 */
#ifndef RECEIVER_RUN_H
#define RECEIVER_RUN_H

#include <signal.h>

#include "dest/dest.h"
#include "dest/paths.h"
#include "lib/hashmap.h"
#include "lib/vec.h"
#include "receiver.h"
#include "ui/number.h"

struct dest_dir;
struct filter_list;
struct owner_maps;
struct pool;
struct report;

struct link_member {
	int32_t node;
	uint32_t index;
	bool left_out, skipped;
	bool waits; /* in a replay: for the batch to say who leads, and to be linked at the end */
};
struct link_group {
	VEC(struct link_member) members; /* in list order; only when the whole list is loaded first, or the batch leads */
	int64_t leader;                  /* index into members, -1: not decided; pipelined: 0 */
	bool done, failed;               /* leader's outcome */
	bool was_current;                /* leader was up to date */
	char *path;                      /* leader's transfer path, once done */
	size_t visited;                  /* members prepared so far */
	uint32_t last_here;              /* the last member of the task that is being prepared */
};

struct receiver {
	struct dest dest;                       /* what the objects of the destination have in common */
	const struct receiver_service *service; /* the peer is our client (contents/pull.c); NULL: it is not */
	struct session session;
	struct owner_maps *owner_maps; /* NULL: none */
	struct filter_list *sender_rules, *receiver_rules;
	bool loads_all;     /* the whole list before the first file */
	bool all_prepared;  /* every directory has been handed to the workers */
	bool keeps_entries; /* entries are needed again at the end */
	bool late_dirs;     /* directories get their attributes at the very end */
	bool deletes;
	bool deletes_stopped; /* because of an I/O error: said so */
	uint64_t delete_skipped;
	struct pool *pool;
	struct report *report;
	struct run_stats stats;
	uint64_t loaded_entries, prepared_entries;
	int32_t preloaded;                 /* node that was loaded to count the entries, -1: none */
	VEC(int32_t) order;                /* nodes as loaded, when loads_all */
	VEC(struct dest_dir *) open_stack; /* preparing: ancestors of the last prepared node */
	VEC(struct dest_dir *) done_stack; /* finishing: ancestors of the last finished node */
	VEC(struct dest_dir *) late;       /* to be finished at the end */
	VEC(char *) delayed;               /* paths to be deleted at the end */
	struct hashmap link_map; /* dev, ino -> group + 1 */
	VEC(struct link_group *) groups;
	VEC(struct link_group *) late_groups;
	VEC(struct task *) leading; /* members that lead because the batch has their content now */
	const char *snapshot_file; /* --attr-snapshot of the destination; NULL: none */
	struct timespec began;     /* this run, by the calendar */
};

/* Owned by run_receiver. */
struct run {
	struct receiver receiver;
	struct options *options;
	const struct receiver_snapshot *from; /* NULL: the operands, of the live tree */
	struct attr_source source;         /* from != NULL */
	const struct receiver_peer *peer;  /* NULL: sources are local */
	contents_maker *new_contents;
	struct flist_receiver *list_receiver;   /* peer != NULL */
	struct peer_stats peer_stats;
	bool has_names_text;
	struct strbuf names_text;          /* the --files-from list, once it has been read */
	struct args names;                 /* of a --files-from list that the peer has been sent */
	int stdin_copy;          /* -: both sides read the same rules */
	bool header_is_open;     /* "building file list ... " waits for its "done" */
	bool header_was_broken;
	sigset_t signals;        /* those that end it */
	pthread_t signal_thread;
	bool has_signal_thread;
	atomic_bool is_over;     /* signals are of no interest any more */
	int64_t started;         /* by lib/clock.h */
};

#endif
