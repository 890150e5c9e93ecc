/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The local engine: makes a destination tree equal to the sources with worker threads and no protocol. */
#ifndef LOCAL_H
#define LOCAL_H

#include "attrs/entry.h"
#include "attrs/snapshot.h"
#include "options.h"
#include "options/batch.h"
#include "ui/stats.h"
#include "wire/wire.h"

/* Operands: sources and, last, the destination (or one source: list it). Returns the exit code. */
int local_main(struct options *options);

/* The same with a destination, for a caller who wants to know what was done. */
int local_count_main(struct options *options, struct run_stats *stats);

/* What a snapshot says, in the place of a live tree. */
struct local_snapshot {
	const struct attr_snapshot *snapshot;
	const char *path;  /* below its root, as a source argument: "./" for all that is in it */
	const char *shown; /* what stands before paths in messages */
	const char *root;  /* the tree that it is of, not to be written into; NULL: not known */
};

/* List it (destination NULL), or write it as an attr tree: options->only_send_attrs, because it has no contents. */
int local_snapshot_main(struct options *options, const struct local_snapshot *from, const char *destination);

/* Sources that a peer sends: a session that has been set up, as receiver, up to the filter list. */
struct local_peer {
	const struct session *session;
	struct fs_ids *ids;
	struct charset *charset;    /* --iconv in force, or NULL */
	const struct args *asked;   /* the source arguments as they were given */
	bool trusted;               /* --trust-sender */
	bool clean_symlinks;        /* a module's: they do not lead out of the transfer */
	bool munge_symlinks;        /* targets are stored in a form that leads nowhere */
	bool is_ourselves;          /* the other end of a local run, of which people see the sender */
	struct batch *batch;        /* what comes is to be written down; NULL: it is not */
	bool is_batch;              /* there is no peer, only what one has once sent */
	const struct local_service *service; /* we are the server of the session; NULL: its client */
};

/* What belongs to the server of such a session: its client shows what is done here. */
struct local_service {
	wire_message_handler *message; /* what the client says of the session as such */
	void *context;
	struct run_stats *stats;       /* filled in at the end */
	struct filter_list *rules;     /* of this side's command line: the client's follow them; the engine frees them */
	const struct local_module *module; /* of a daemon; NULL: what the client names is named by the operator */
};

struct format_values;

/* What a daemon's module adds. Its client names nothing outside of it, wherever links lead. */
struct local_module {
	const char *name;
	const struct fs_root *root;
	struct filter_list *hidden;    /* what is neither received nor deleted nor read; NULL: nothing */
	/* A line in the log, by the main thread, never in a dry run: of a transfer, with logs_items of whatever is done (also a
	 * deletion); of a deletion in words. NULL: no logging. `values` lacks what only the daemon knows. */
	void (*log_item)(void *context, struct format_values *values);
	void (*log_deletion)(void *context, const char *path, bool is_dir);
	/* A file has been received, never in a dry run; called by any thread. NULL: nobody wants to know. */
	void (*received)(void *context);
	bool write_only;               /* its client gets no sums of what is there */
	bool has_own_temp_dir;         /* --temp-dir is the operator's, hidden or not */
	bool logs_items, logs_operations; /* deletions are items where one is true */
	void *context;
};

/* The same with such sources: a pull. destination NULL: list them. Reads and writes up to the goodbye. */
int local_pull_main(struct options *options, const struct local_peer *peer, const char *destination);

#endif
