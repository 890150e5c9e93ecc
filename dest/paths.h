/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a destination is part of: a session with a client, and with a daemon its module. Its directories by their paths in the
 * transfer, their names and their default ACLs (any thread).
 */
#ifndef DEST_PATHS_H
#define DEST_PATHS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attrs/entry.h"
#include "filter/filter.h"
#include "fs/root.h"
#include "lib/strbuf.h"
#include "ui/number.h"
#include "wire/wire.h"

struct dest;
struct format_values;

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

/* The path in the transfer of a name ("": none) in a directory with this path; owned by the caller. */
struct strbuf dest_path_of(const char *dir_path, const char *name);
/* "PATH", a path in the transfer, as error lines show it. */
void dest_show_path(const struct dest *dest, const char *path, struct strbuf *out);
/* An error line about it: BEFORE "PATH" AFTER: reason; main thread. */
void dest_complain_path(struct dest *dest, const char *role, int error, const char *path, const char *before,
			const char *after);
/* What else the operator or a module's client has named, if relative by the destination: for fs_open and the like. */
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

/* --- directories --- */

enum { ACL_UNKNOWN, ACL_NONE, ACL_DEFAULT };

struct dest_dir {
	struct dest_dir *parent;
	int references;          /* tasks and stacks that hold it; let go of by dest_dir_release */
	int fd;                  /* -1: not there (dry run, failed) */
	int32_t node;
	char *path;              /* in the transfer, "" for the top */
	bool fresh;              /* made by this run: nothing in it but what we put there */
	bool subject;            /* fresh: got an owner or a mode that mkdir(2) does not give */
	bool absent;             /* dry run: it would have been made; or there is an obstacle */
	bool skipped;            /* its contents are left alone */
	mode_t other_kind;       /* S_IFMT of what --ignore-existing leaves here; S_IFLNK: or above; 0: nothing */
	bool is_link;            /* -K, --no-implied-dirs, --ignore-existing: what the symlink of this name leads to */
	int obstacle;            /* errno of what is in it: what is no directory stays, here or above; 0 */
	_Atomic int acl_state;   /* ACL_*: looked at when the first object is made */
	_Atomic mode_t acl_umask;/* what a default ACL leaves out of the mode of new objects */
	atomic_bool touched;     /* something was made, replaced or removed in it */
	atomic_bool has_no_partial; /* no directory of partial files belongs to it */
	_Atomic int64_t new_gid; /* group of new objects, -1: not known yet */
	bool has_entry;          /* attributes are to be set at the end */
	struct entry entry;
	mode_t mode;             /* final permission bits */
	bool mode_pending;       /* they are not those of now */
	int64_t old_mtime;       /* before this run; fresh: of no interest */
	uint32_t old_mtime_nsec;
	bool time_agrees;        /* with the entry's, before this run */
	bool may_delete;         /* surplus names are deleted here */
	int alternate;           /* new: 1 + number of the alternate destination that has it as well; 0: none */
	uint32_t differs;        /* ITEM_REPORT_ACL, ITEM_REPORT_XATTR, as it was found */
};

/* May a symlink be one of our directories? */
bool dest_enters_links(const struct dest *dest);
/* Descriptor of a directory by its transfer path, to be closed by the caller. `to_delete`: not behind a symlink that only
 * --ignore-existing has left there, where nothing is surplus. */
int dest_open_dir(struct dest *dest, const char *path, bool to_delete);
/* All names of a directory, or those that `listed` has not, sorted. -1 with errno. */
int dest_read_names(int dir_fd, const struct entries *listed, struct entries *names);
void dest_dir_release(struct dest_dir *dir);
/* The permissions of a directory that the run makes in that one although no entry asks for it, and of those in it: what the
 * default ACL of the one above grants, or else what the umask leaves. */
mode_t dest_unlisted_mode(const struct dest *dest, int parent_fd);
/* The umask for new objects in the directory: the process's, or its default ACL's. */
mode_t dest_dir_umask(struct dest *dest, struct dest_dir *dir);
bool dest_dir_has_default_acl(struct dest_dir *dir);

#endif
