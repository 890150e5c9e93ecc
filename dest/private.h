/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the files of the local engine share.
 *
 * The main thread walks the file list, prepares the destination directories in its order, and hands each directory's files
 * as tasks to worker threads. Workers look at the destination, decide and carry out, and note what they did as events. The
 * main thread takes the finished tasks in list order and does all that has an order: messages, items, statistics, deletions,
 * hard links across directories, final attributes of directories. So results and output do not depend on the threads.
 *
 *   receiver.c          main, options, exit code          receiver/walk.c     the walk, the tasks, directories' end
 *   receiver/run.h    what surrounds the run: receiver/output.c, receiver/signals.c, receiver/rules.c, receiver/names.c
 *   dest/choose.c     which directory is written to     receiver/pool.c    worker threads and their queue
 *   dest/guard.c    refusals of attr trees            dest/file.c    one file, by a worker
 *   receiver/dir.c      destination directories           dest/write.c   contents and attributes of one file
 *   receiver/delete.c   deletions                         receiver/link.c    hard links
 *   receiver/report.c   what is printed                   receiver/list.c    listings
 *   dest/seen.c     what was seen of the destination  receiver/snapshot.c its attr snapshot
 *   dest/basis.c    what a delta refers to            dest/owner.c    mapped owners
 *   contents/serve.c    what a server tells its client    contents/replay.c   a batch as the peer
 *   dest/module.c   a daemon's module
 *   dest/backup.c   what is replaced or deleted, with --backup (dest/backup.h)
 *   dest/fuzzy.c    files that resemble one another (dest/fuzzy.h)
 *   receiver/prune.c    empty directories (-m)
 *   dest/alternate.c what alternate destinations have (dest/alternate.h)
 *   dest/install.c  from a temp file to its name      dest/partial.c temp, partial and delayed files
 *   receiver/debug.c    what --debug tells of the list, dest/debug.c of what is done
 *   receiver/order.c    the order of protocol 27 and 28
 *   dest/attributes.c ACLs and extended attributes    dest/fake.c     --fake-super
 */
#ifndef DEST_PRIVATE_H
#define DEST_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "attrs/source.h"
#include "delta/digest.h"
#include "delta/patch.h"
#include "dest/contents.h"
#include "dest/decide.h"
#include "flist.h"
#include "flist/acl.h"
#include "flist/xattr_list.h"
#include "fs/root.h"
#include "fs/temp.h"
#include "lib/hashmap.h"
#include "lib/log.h"
#include "lib/vec.h"
#include "options.h"
#include "ui/progress.h"
#include "ui/stats.h"

struct file_job;
struct image;
struct incoming;
struct receiver;
struct sum_head;

/* --- destination directories (main thread, except where a worker holds a task) --- */

enum { ACL_UNKNOWN, ACL_NONE, ACL_DEFAULT };

struct dest_dir {
	struct dest_dir *parent;
	int references;          /* tasks and stacks that hold it */
	int fd;                  /* -1: not there (dry run, failed) */
	int32_t node;
	char *path;              /* in the transfer, "" for the top */
	bool fresh;              /* made by this run: nothing in it but what we put there */
	bool dressed;            /* fresh: got an owner or a mode that mkdir(2) does not give */
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

/* --- what a worker has to say --- */

enum event_kind {
	EVENT_ITEM,            /* looked at or changed: flags, bytes */
	EVENT_DIR,             /* the directory itself */
	EVENT_TEXT,            /* message */
	EVENT_SOURCE_FAILED,   /* it could not be opened or read: error; bytes: what was done, enum source_step */
	EVENT_LINK,            /* hard link to another member of its group: main thread */
	EVENT_REDO,            /* a directory is in the way: main thread, unless receiver->asks_in_turn */
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
	uint32_t elapsed_ms;
	int error;
	bool touched;      /* EVENT_ITEM: attributes of an up-to-date file were set */
	bool is_bare;      /* EVENT_DIR: a new one, nothing of which has to be set */
	bool is_attempt;   /* EVENT_ITEM: it came to nothing, and may be asked for again */
	mode_t mode;       /* EVENT_ITEM: to be told, 0 for the listed one */
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

struct source_attributes;
/* What an object is to have besides what stat(2) shows. */
struct wanted {
	const struct fs_acl *access, *defaults; /* reduced (flist/acl.h); NULL: ACLs are left alone */
	const struct xattr_list *xattrs;        /* NULL: they are left alone */
	bool is_known;                          /* read already */
	bool lacks_values;                      /* there are values that neither the list nor the destination has (yet) */
	struct source_attributes *own;          /* read for this one; NULL: they are the list's */
};

/* Some or all files of one directory. */
struct task {
	struct task *next;
	struct receiver *receiver;
	int32_t node;
	struct entries *entries;
	uint32_t first, last;         /* [first, last) */
	uint32_t at;                  /* the first one that nobody has processed */
	bool started;
	uint32_t told;                /* up to here dest_debug_entry has spoken of entries */
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
	uint32_t dir_flags;           /* the directory's item, which a service's worker tells before those of the files */
	struct wanted dir_wanted;     /* attributes of the directory whose values a worker has to ask for: lacks_values */
	bool tells_dir;
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

/* --- hard link groups --- */

struct link_member { int32_t node; uint32_t index; bool left_out, skipped; };
struct link_group {
	VEC(struct link_member) members;  /* in list order; only when the whole list is loaded first */
	int64_t leader;                   /* index into members, -1: not decided; pipelined: 0 */
	bool done, failed;                /* leader's outcome */
	bool was_current;                 /* leader was up to date */
	char *path;                       /* leader's transfer path, once done */
	size_t visited;                   /* members prepared so far */
	uint32_t last_here;               /* the last member of the task that is being prepared */
};

/* --- the engine --- */

struct delayed_delete { char *path; bool is_dir; };

enum { STOP_NONE, STOP_SIGNAL, STOP_SIGNAL1, STOP_WRITE, STOP_REFUSED };

struct seen;

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

	const char *snapshot_file;          /* --attr-snapshot of the destination; NULL: none */
	struct seen *seen;                  /* for that; NULL: nobody wants to know */
	struct timespec began;              /* this run, by the calendar */

	atomic_int stop;                    /* STOP_*: no new work */
	pthread_rwlock_t gate;              /* held for reading while an object may exist under a temp name */
	atomic_bool no_unnamed;             /* the file system has no O_TMPFILE */
};

/* --- dest/file.c (any thread that holds the task) --- */

/* How an entry comes to be processed: in its turn, as a hard link group's leader of last resort, after room was made for it. */
enum turn { TURN_FIRST, TURN_LEADS, TURN_HAS_ROOM };
void dest_process_entry(struct task *task, uint32_t index, enum turn turn);
void job_show_live(struct file_job *job); /* a file begins whose progress may be watched */
void job_received(struct file_job *job);  /* its content has come: note the item */
void job_tried(struct file_job *job);     /* the same, but it is wrong */
void job_lost(struct file_job *job);      /* the same, but it could not be put here, said so */
void job_refused(struct file_job *job);   /* it has not, and will not */
void job_take_content(struct file_job *job); /* from a file that lies here, or that of an attr tree: now */
void job_change(struct file_job *job);    /* all but contents that come from a peer; notes the item */
/* How a hard link member would fare: no candidate to lead (or to be skipped), a candidate, or left out whoever leads. */
enum candidate { CANDIDATE_NOT, CANDIDATE_LEADS, CANDIDATE_LEFT_OUT, CANDIDATE_SKIPPED };
enum candidate dest_leader_candidate(struct task *task, uint32_t index);

/* --- dest/attributes.c (any thread, but for dest_want_attributes) --- */

/* Those values. */
struct lacking {
	VEC(struct xattr_item *) items;
};
/* An object whose attributes are set, in the directory of its task. */
struct dressed {
	struct task *task;
	const char *name;      /* in messages; ".": the directory itself */
	const char *old_name;  /* of what it is to replace, or of itself; NULL: it is new */
	int alternate;         /* 1 + number of the alternate destination that has the old one; 0: none */
	const char *role;      /* in messages of ACLs, static */
	bool is_link;
};

/* Hold an object to apply attributes to it; false with a message if it cannot be opened (fs_held.fd is then -1). */
bool dressed_hold(const struct dressed *dressed, int dir_fd, const char *name, struct fs_held *held);
/* The same of a descriptor that stays the caller's. */
bool dressed_hold_open(const struct dressed *dressed, int fd, struct fs_held *held);
/* Read the wishes for a file's entry (false: the source cannot be read, errno); for any entry (main thread). */
bool job_want_attributes(struct file_job *job);
/* What a file's attributes are compared with, as its item says: `*name` in the directory that is returned; NULL: nothing. By
 * the worker of its task. */
int job_compared_object(struct file_job *job, const char **name);
void dest_want_attributes(struct receiver *receiver, int32_t node, const struct entry *entry, struct wanted *wanted);
void wanted_free(struct wanted *wanted);
/* ITEM_REPORT_ACL and ITEM_REPORT_XATTR, if an object that is to have this mode differs; name NULL: nothing is there. */
uint32_t wanted_compare(const struct receiver *receiver, struct wanted *wanted, mode_t mode, int dir_fd, const char *name);
void wanted_find_lacking(const struct wanted *wanted, int dir_fd, const char *name, struct lacking *lacking);
/* Set what is not as it should be; true if anything was. ACLs change permission bits to those of the listed mode: *mode, which
 * is otherwise the one to be set, has to be set again then. */
bool dress_xattrs(const struct dressed *dressed, const struct wanted *wanted, const struct fs_held *held);
bool dress_acls(const struct dressed *dressed, const struct wanted *wanted, const struct fs_held *held, mode_t listed,
		mode_t *mode);

/* Give a new object the attributes of another one, as far as any are kept and can be set. */
void dest_copy_attributes(const struct receiver *receiver, const struct fs_held *from, const struct fs_held *to);

/* --- dest/fake.c (any thread) --- */

/* What the receiving half may do. */
enum super_level dest_receiving_level(const struct options *options, bool is_local_run);
/* Attributes of an object of the destination as they are, or as they are kept. */
int dest_lstat_at(const struct receiver *receiver, int dir_fd, const char *name, struct fs_stat *st);
int dest_lstat(const struct receiver *receiver, const struct fs_root *root, const char *path, struct fs_stat *st);
/* Keep owner and mode of a file or directory. 1: something was changed, 0: it was so already, -1: failed, said so. */
int job_fake_store(struct file_job *job, const struct dressed *dressed, const struct fs_held *held);
void dir_fake_store(struct receiver *receiver, const struct dest_dir *dir, const struct dressed *dressed,
		    const struct fs_held *held);
/* A file that stands for a symlink, device or special. */
int job_fake_make(struct file_job *job, struct fs_temp *temp);

/* --- dest/write.c --- */

/* An object that may be as its entry says: the job's name in this directory. */
struct looked_at {
	int dir_fd;
	const struct fs_stat *st;
};

struct file_job {
	struct task *task;
	struct receiver *receiver;
	struct dest_dir *dir;
	const struct entry *entry;
	uint32_t index;
	const char *name;
	struct decide_rules rules; /* with the directory's umask */
	struct decide_dest dest;
	struct decision decision;
	struct looked_at looked_at; /* for the probes of dest/decide.h */
	char *fuzzy;               /* a file that it resembles, or NULL; owned by the one who ends the job */
	int fuzzy_place;           /* where that is: 0 the destination directory, 1 + n that of an alternate destination */
	struct wanted wanted;
	bool is_told;              /* the peer knows the item from a request */
	const char *made_name;     /* of a temp file that gets its attributes, for messages; NULL: its own */
	bool set_xattrs;           /* of an existing object, which nobody is told of but by its item */
	uint64_t copied, matched;
	uint64_t moved, sums;      /* bytes of the reply, and of block sums in the request: for people's eyes */
	uint8_t digest[DIGEST_MAX_LENGTH]; /* as received, for people's eyes */
	int digest_length;
	struct run_stats *counts;  /* of the task, where this thread adds */
	struct incoming *incoming; /* the content comes from a peer, now; NULL: from a local file */
	enum turn turn;
	uint64_t event_place;      /* kept for what becomes of the request; 0: none */
	bool deferred;             /* the main thread will look at it again */
	bool untouched;            /* what was seen of the destination still holds */
	bool backed_up;
	bool source_failed;        /* to the sending half, so the receiving one has not heard of the file */
	char *temp_name;           /* what it was made under, if anybody wants to know; owned by the one who ends the job */
	bool is_redo;              /* it came wrong before */
	struct fs_temp *temp;      /* being filled, and might be kept; NULL: none */
};

/* The content of a requested file, as job_receive wants it (reading thread). */
struct incoming {
	/* The process may end while this temp file is filled, and may then keep it; NULL: not any more. */
	void (*set_temp)(struct incoming *incoming, struct file_job *job, struct fs_temp *temp);
	/* Tokens of the stream into `to` (-1: nowhere). false: the file is not good; a failure to write has been reported. */
	bool (*fill)(struct incoming *incoming, struct file_job *job, int to, bool in_place);
	struct sum_head head;
	int basis_fd;
	bool basis_is_gone;
	bool basis_is_file;      /* that is written to, if in place, or its copy */
	bool in_partial;         /* the partial file is the basis, and is completed where it lies */
	bool read;               /* the stream has been read to the end of the file */
	bool wrong_digest;
	bool is_kept;            /* as far as it came, although wrong */
};

bool job_copy(struct file_job *job);  /* regular content; false: failed, said so */
bool job_make(struct file_job *job);  /* symlink, device, special */
/* The backup of a file that will be written in place, before that or anything about it is asked. false: failed, said so. */
bool job_back_up_early(struct file_job *job);
void job_pretend_backup(struct file_job *job); /* what a dry run says of backups */
int job_open_source(struct file_job *job, uint64_t *size);
bool job_receive(struct file_job *job); /* regular content from job->incoming; as job_copy */

/* --- dest/basis.c (any thread that holds the task) --- */

/* What the blocks of a new content come from (doc/protocol/03-transfer.md sections 2.4 and 8). */
struct basis {
	int fd;          /* a regular file, open for reading; -1: none, the content comes whole */
	uint64_t size;
	uint8_t type;    /* enum basis_type, or the number of an alternate destination */
	char *xname;     /* BASIS_FUZZY: its path, as the peer is told; owned; NULL: there is nothing to tell */
};

void job_choose_basis(const struct file_job *job, struct basis *basis);
/* The one that a reply names: what was chosen, unless the peer lies. */
void job_find_basis(const struct file_job *job, uint8_t type, const char *xname, struct basis *basis);
void basis_close(struct basis *basis);

/* --- receiver/dir.c (main thread) --- */

/* The destination directory of a node (0: the top), made or opened; events of the directory itself go to `events`. */
struct dest_dir *receiver_dir_prepare(struct receiver *receiver, int32_t node, struct task *task);
/* The same directory again, when others below it have been prepared since. */
struct dest_dir *receiver_dir_return(struct receiver *receiver, int32_t node);
void receiver_dir_finish(struct receiver *receiver, struct dest_dir *dir); /* final attributes */
void receiver_dir_finish_late(struct receiver *receiver);

/* --- receiver/order.c (main thread) --- */

/* Files of one directory that stand together in the list, in one task. */
struct receiver_slice {
	int32_t node;
	bool is_first, is_last; /* of the node */
	uint32_t first, last;   /* [first, last) of its entries */
	uint64_t position;      /* of entry 0 in the list, if all of them stood together */
};

struct receiver_slices {
	VEC(struct receiver_slice) list;
};

/* Are contents asked for in the order of the list, though that is not the order of the walk? */
bool receiver_goes_by_path(const struct receiver *receiver);
void receiver_order_by_path(struct receiver *receiver, struct receiver_slices *slices);

/* --- receiver/debug.c (main thread) --- */

/* A list that has been loaded, node by node in the order of the walk: what dup and flist say of it. */
void receiver_debug_list(struct receiver *receiver, int32_t node);

/* --- dest/debug.c --- */

/* Are deltas looked for? For those who want to know. */
void dest_say_method(const struct receiver *receiver);
/* Is there to be an event for each entry? */
bool dest_debug_wants_items(const struct receiver *receiver);
/* Main thread. `entries`: what decides about the place of a single one. */
void dest_debug_destination(const struct receiver *receiver, uint64_t entries, const char *destination);
void dest_debug_start(const struct receiver *receiver);
void dest_debug_end(const struct receiver *receiver);
/* By whoever holds the task: an entry, the task's directory is looked at; a device or special will be made. */
void dest_debug_entry(struct task *task, uint32_t index);
void dest_debug_directory(struct task *task);
void dest_debug_node(struct file_job *job);
/* Owner and group of `name` ("": the directory itself) are about to be changed; -1: they are not. */
void dest_debug_owner(struct task *task, const char *name, uint32_t old_uid, uint32_t uid, uint32_t old_gid, uint32_t gid);
/* The permissions that the default ACL of the task's directory leaves to new files. */
void dest_debug_umask(struct task *task);
void dest_debug_touch(const struct receiver *receiver,
		      const struct dest_dir *dir); /* it gets its final attributes (main thread) */
/* A member of a group of hard links is about to be linked to `leader` (main thread). */
void dest_debug_link(struct receiver *receiver, const struct task *task, uint32_t index, const char *leader);
/* Deltas of a pull: block sums are sent, a basis is used (-1: there is none), the content has come. */
void dest_debug_sums(const struct file_job *job, int32_t ndx, const struct sum_head *head, uint64_t size);
void dest_debug_basis(const struct file_job *job, int basis_fd);
void dest_debug_patched(const struct file_job *job);
/* Before and after an item's line (main thread). */
void dest_debug_item(const struct receiver *receiver, int32_t node, const struct entry *entry, const struct event *event);
void dest_debug_item_done(const struct receiver *receiver, int32_t node, const struct entry *entry, const struct event *event);

/* --- receiver/delete.c (main thread, except surplus) --- */

/* What --debug=del says of what is to give way to the task's directory. */
void receiver_say_file_goes(struct task *task, const struct fs_stat *st);
void receiver_find_surplus(struct task *task); /* worker */
void receiver_delete_surplus(struct receiver *receiver, struct task *task);
void receiver_delete_delayed(struct receiver *receiver);
void receiver_delete_pass(struct receiver *receiver); /* --delete-before, --delete-after */
/* No I/O error, or told to ignore them? Else it is said, once; in the turn of `task`, unless that is NULL. */
bool receiver_may_delete(struct receiver *receiver, struct task *task);
/* Remove what stands in the way of entry `name`; false: it stays, said so. */
bool receiver_make_room(struct receiver *receiver, struct dest_dir *dir, const char *name, const struct entry *entry);
void receiver_delete_argument(struct receiver *receiver, struct task *task, uint32_t index);
void receiver_report_skipped_deletes(struct receiver *receiver);

/* --- receiver/link.c (main thread) --- */

void receiver_links_add(struct receiver *receiver, int32_t node); /* loads_all: collect groups */
/* Decide which members of the task are links; before it is submitted. */
void receiver_links_mark(struct receiver *receiver, struct task *task);
void receiver_links_order(struct receiver *receiver); /* members by index instead of by directory */
void receiver_links_free(struct receiver *receiver);
bool link_is_member(const struct entry *entry);
struct link_group *link_group_of(struct receiver *receiver, const struct entries *entries, const struct entry *entry);
/* Link a member whose directory still holds a task to the leader of its group. */
void link_in_task(struct receiver *receiver, struct task *task, uint32_t index, struct link_group *group, bool had_to_wait);

/* --- dest/seen.c (main thread, but for what workers say) --- */

/* What was seen of a directory of the destination. */
struct seen_dir {
	struct entries entries;  /* complete: as of a scan, dir: the node + 1; else of mode 0 where to be looked at */
	struct fs_stat st;       /* when it was entered (new: all 0); complete: now */
	bool names_known;        /* the entries had all of its names when it was entered */
	bool is_complete;
};

struct seen *dest_seen_new(const struct options *options);
void dest_seen_free(struct seen *seen); /* NULL is allowed */
/* A worker begins with a task, is done with a file (job->untouched is set), or anybody changes or unlinks one of these
 * attributes: another name of the same file may have been seen before. */
void dest_seen_start(struct task *task);
void dest_seen_file(const struct file_job *job);
void dest_seen_change(struct receiver *receiver, const struct fs_stat *st);
/* A directory is entered, as it was before this run touched it; NULL: it is new. */
void dest_seen_enter(struct receiver *receiver, int32_t node, const struct fs_stat *before);
/* A member of a hard link group is in place. */
void dest_seen_link(struct receiver *receiver, int32_t node, uint32_t index, const struct fs_stat *st);
void dest_seen_take(struct receiver *receiver, struct task *task);            /* the task is done */
void dest_seen_finish(struct receiver *receiver, const struct dest_dir *dir); /* it has got its last change; its fd is open */
/* After all: NULL if the directory has to be scanned. */
struct seen_dir *dest_seen_dir(const struct seen *seen, int32_t node);
/* Look again at names of inodes that have changed since. -1: the directory has to be scanned. */
int dest_seen_settle_links(struct seen *seen, struct entries *list, const struct fs_root *root, const char *path);

/* --- receiver/snapshot.c (main thread) --- */

/* Before anything is written: end the process if there can be no snapshot of such a destination; else begin to look. */
void receiver_snapshot_begin(struct receiver *receiver);
/* No destination: an image of the peer's whole list, as it comes in. NULL: it is not one of a directory, said so. */
struct image *receiver_snapshot_of_list(struct receiver *receiver);
/* After all: write the snapshot of the destination `given`. The exit code: 0, or 23 and 24 as of a scan; ends the process
 * with 11 if it cannot be written. */
int receiver_snapshot_write(struct receiver *receiver, const char *given);

/* --- receiver/walk.c (main thread) --- */

void receiver_load_everything(struct receiver *receiver); /* loads_all: before receiver_run */
void receiver_run(struct receiver *receiver);

/* --- receiver/report.c (main thread) --- */

/* Does anybody want to hear of an item that is not transferred? */
bool report_is_told(const struct options *options, uint32_t flags, const char *link);
struct report *report_new(struct receiver *receiver);
void report_free(struct report *report);
void report_item(struct report *report, int32_t node, const struct entry *entry, const struct event *event, const char *link,
		 uint64_t position);
void report_deletion(struct report *report, const char *path, bool is_dir);
void report_live(struct report *report, struct task *task);
void report_section_end(struct report *report, uint64_t position);
void report_drain(struct report *report);
void report_drain_if_old(struct report *report);
struct progress *report_progress(struct report *report);
bool report_wants_names(const struct receiver *receiver);
/* Are names of directories that were made shown? */
bool report_names_directories(const struct receiver *receiver);

/* --- dest/owner.c (main thread) --- */

/* NULL if the ids of a local run stay as they are; else `rules` maps them, until it is freed. Ends the process with EXIT_SYNTAX
 * on maps that are none. */
struct owner_maps;
struct owner_maps *dest_owner_maps_new(const struct options *options, struct decide_rules *rules);
void dest_owner_maps_free(struct owner_maps *maps);
/* --- dest/module.c: what belongs to a daemon's module (any thread) --- */

/* NULL: this is no service of a module. */
const struct dest_module *dest_module(const struct receiver *receiver);
/* A file has been received: the module may want to count it. */
void dest_tell_received(const struct receiver *receiver);
/* "PATH", a path in the transfer, as error lines show it. */
void dest_show_path(const struct receiver *receiver, const char *path, struct strbuf *out);
/* What else the operator or a module's client has named, if relative by the destination: for fs_open_follow and the like. */
int dest_open_named(const struct receiver *receiver, const char *path, int flags);
/* The same as a path below the module's root; owned by the caller. */
char *dest_named_in_module(const struct receiver *receiver, const char *path);
/* Does the module hide a path of the transfer? The same path in an alternate destination, named like this? */
bool dest_is_hidden(struct receiver *receiver, const char *path, bool is_dir);
bool dest_is_hidden_in(struct receiver *receiver, const char *place, const char *path, bool is_dir);
/* End the process if an option names a directory that it hides, from where it will be used: the destination is known. */
void dest_refuse_hidden_dirs(struct receiver *receiver);
/* Refuse what it hides of a node's files. */
void dest_hide_entries(struct receiver *receiver, int32_t node);

/* --- dest/choose.c, dest/guard.c, receiver/list.c --- */

/* Decide what the destination operand stands for, make it where that is due, and open it (doc/protocol/06-command-line.md
 * section 10.2). `entries`: how many the first lists have. */
void dest_choose_destination(struct receiver *receiver, const char *given, uint64_t entries);
/* A run that writes nothing goes by the directory it was started in, or the module's root. */
void dest_stay_here(struct receiver *receiver);
/* Before anything is written: would an attr tree replace its own source, or something that is no attr tree? */
void dest_guard(struct receiver *receiver);
/* The same before a directory is made in `parent`. */
void dest_guard_new(struct receiver *receiver, const char *parent);
void receiver_list_run(struct receiver *receiver);
/* --prune-empty-dirs, when everything has been loaded: directories without files leave the list and `order`. */
void receiver_prune(struct receiver *receiver);

#endif
