/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The outer frame of a run of the local engine (receiver.c), from the operands to the exit code: what it keeps beside struct
 * receiver, and the parts of it that have files of their own. All of this is for the main thread.
 */
#ifndef RECEIVER_RUN_H
#define RECEIVER_RUN_H

#include "dest/dest.h"
#include "dest/module.h"
#include "flist/receive.h"
#include "lib/log.h"
#include "receiver.h"

/* Owned by run_local. */
struct run {
	struct receiver receiver;
	struct options *options;
	const struct receiver_snapshot *from; /* NULL: the operands, of the live tree */
	struct attr_source source;         /* from != NULL */
	const struct receiver_peer *peer;  /* NULL: sources are local */
	contents_maker *new_contents;
	struct flist_receiver *list_receiver;   /* peer != NULL */
	struct peer_stats peer_stats;
	struct image *image;               /* of the peer's list, for its snapshot */
	bool has_names_text;
	struct strbuf names_text;          /* the --files-from list, once it has been read */
	struct args names;                 /* of a --files-from list that the peer has been sent */
	int stdin_copy;          /* -: both sides read the same rules */
	bool header_is_open;     /* "building file list ... " waits for its "done" */
	bool header_was_broken;
	pthread_t signal_thread;
	bool has_signal_thread;
	atomic_bool is_over;     /* signals are of no interest any more */
	struct timespec started;
};

/* --- receiver/output.c --- */

/* The sink of messages, and the exit hook that ends the log of a run that breaks off; both take a struct run. */
void run_emit(void *run, enum log_kind kind, const char *text, size_t length);
void run_log_broken_end(void *run, int code);
/* "building file list ... ", and its "done". */
void run_say_header(struct run *run);
void run_close_header(struct run *run);
/* FLIST2: the counter that people would see running, and its end. */
void run_say_list_count(struct run *run);
void run_fill_statistics(struct run *run);
/* The statistics that were asked for, and the last line of the log. */
void run_say_end(struct run *run, int code);

/* --- receiver/signals.c --- */

/* From here on a signal stops the run: receiver.stop. */
void run_handle_signals(struct run *run);
void run_stop_signals(struct run *run);

/* --- receiver/rules.c --- */

/* The filter rules of both sides; at most once. */
void run_read_rules(struct run *run);
/* Which extended attributes are read and kept, by those rules. */
void run_make_xattr_policies(struct run *run);

/* --- receiver/names.c --- */

/* Read the list of --files-from, at most once; ends the program if it cannot be. */
void run_load_names(struct run *run);
/* The sources of a list that is made here. */
void run_add_arguments(struct run *run);
/* A list of names that lies here and is wanted by the peer. */
void run_send_files_from(struct run *run);

#endif
