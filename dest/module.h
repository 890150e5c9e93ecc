/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a destination is part of: a session with a client, and with a daemon its module. */
#ifndef DEST_MODULE_H
#define DEST_MODULE_H

#include <stdbool.h>

#include "filter/filter.h"
#include "fs/root.h"
#include "ui/stats.h"
#include "wire/wire.h"

struct format_values;
struct dest;
struct strbuf;

/* What belongs to the server of such a session: its client shows what is done here. */
struct receiver_service {
	wire_message_handler *message; /* what the client says of the session as such */
	void *context;
	struct run_stats *stats;       /* filled in at the end */
	struct filter_list *rules;     /* of this side's command line: the client's follow them; the engine frees them */
	const struct dest_module *module; /* of a daemon; NULL: what the client names is named by the operator */
};

/* What a daemon's module adds. Its client names nothing outside of it, wherever links lead. */
struct dest_module {
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

/* A file has been received: the module may want to count it. */
void dest_note_received(const struct dest *dest);
/* "PATH", a path in the transfer, as error lines show it. */
void dest_show_path(const struct dest *dest, const char *path, struct strbuf *out);
/* An error line about it: BEFORE "PATH" AFTER: reason; main thread. */
void dest_complain_path(struct dest *dest, const char *role, int error, const char *path, const char *before,
			const char *after);
/* What else the operator or a module's client has named, if relative by the destination: for fs_open_follow and the like. */
int dest_open_named(const struct dest *dest, const char *path, int flags);
/* The same as a path below the module's root; owned by the caller. */
char *dest_named_in_module(const struct dest *dest, const char *path);
/* Does the module hide a path of the transfer? The same path in an alternate destination, named like this? */
bool dest_is_hidden(struct dest *dest, const char *path, bool is_dir);
bool dest_is_hidden_in(struct dest *dest, const char *place, const char *path, bool is_dir);
/* End the process if an option names a directory that it hides, from where it will be used: the destination is known. */
void dest_refuse_hidden_dirs(struct dest *dest);
/* Refuse what it hides of a node's files. */
void dest_hide_entries(struct dest *dest, int32_t node);

#endif
