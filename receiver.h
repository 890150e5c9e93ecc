/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run that writes a destination, from its sources to the exit code: what it is made of.
 *
 * The main thread walks the file list, prepares the destination directories in its order, and hands each directory's files
 * as tasks to worker threads. Workers look at the destination, decide and carry out, and note what they did as events. The
 * main thread takes the finished tasks in list order and does all that has an order: messages, items, statistics, deletions,
 * hard links across directories, final attributes of directories. So results and output do not depend on the threads.
 */
#ifndef RECEIVER_H
#define RECEIVER_H

#include "dest/contents.h"
#include "options.h"
#include "ui/number.h"

struct receiver;
struct receiver_service;

/* What a snapshot says, in the place of a live tree. */
struct receiver_snapshot {
	const struct attr_snapshot *snapshot;
	const char *path;  /* below its root, as a source argument: "./" for all that is in it */
	const char *shown; /* what stands before paths in messages */
	const char *root;  /* the tree that it is of, not to be written into; NULL: not known */
};

/* Sources that a peer sends: a session that has been set up, as receiver, up to the filter list. */
struct receiver_peer {
	const struct session *session;
	struct fs_ids *ids;
	struct charset *charset;    /* --iconv in force, or NULL */
	const struct args *asked;   /* the source arguments as they were given */
	bool trusted;               /* --trust-sender */
	bool clean_symlinks;        /* a module's: they do not lead out of the transfer */
	bool munge_symlinks;        /* targets are stored in a form that leads nowhere */
	bool is_ourselves;          /* the other end of a local run, of which users see the sender */
	struct batch *batch;        /* what comes is to be written down; NULL: it is not */
	bool is_batch;              /* there is no peer, only what one has once sent */
	const struct receiver_service *service; /* we are the server of the session; NULL: its client */
};

/* Makes what a run takes its contents from; of no peer: NULL. */
typedef struct contents *contents_maker(struct receiver *receiver, const struct receiver_peer *peer);

/* A whole run: of what a snapshot says, of what a peer sends, or of the operands (both NULL). destination NULL: list them.
 * stats: filled in, unless NULL. Returns the exit code. */
int run_receiver(struct options *options, const struct receiver_snapshot *from, const struct receiver_peer *peer,
		 contents_maker *new_contents, const char *destination, struct run_stats *stats);

/* Returns the exit code that these IOERR_* bits, and the errors that have been logged, give a run that otherwise succeeded
 * (doc/protocol/01-session.md section 10.9). */
int run_exit_code(int io_error);

#endif
