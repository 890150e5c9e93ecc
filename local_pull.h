/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The engine with a peer that sends: its list comes from the wire, and so do contents. What a local run copies, a pull asks
 * for; the reading thread takes the reply and finishes the file (doc/protocol/03-transfer.md section 1).
 *
 *   main thread      prepares directories, finishes tasks in list order, says that lists and phases are done
 *   one worker       decides about files and writes requests          (local_pull.c)
 *   reading thread   further lists, contents, messages, the goodbye   (local_receive.c)
 *
 * Writers take turns under a lock; nobody but the reading thread reads.
 */
#ifndef LOCAL_PULL_H
#define LOCAL_PULL_H

#include "delta/patch.h"
#include "flist/receive.h"
#include "local.h"
#include "local_private.h"
#include "wire/request.h"

struct pull;

/* What the peer says at the end of a pull (doc/protocol/01-session.md section 10.5). */
struct peer_stats {
	int64_t read, written, total_size, build_ms, transfer_ms;
};

/* replays: the peer is a batch, whose replies come unasked. */
struct pull *pull_new(struct local *local, bool replays);
/* `receiver` has read the first list. Starts the reading thread. */
void pull_start(struct pull *pull, struct flist_receiver *receiver);
/* All files are done: the rest of the phases, statistics, goodbye. The reading thread has ended then. */
void pull_finish(struct pull *pull, struct peer_stats *stats);
void pull_free(struct pull *pull);

/* --- the engine's side (local_pull.c) --- */

/* Ask for the content of a regular file, or just for values of any one's attributes; the task stays busy until the fate of the
 * file is known. */
void pull_request(struct file_job *job);
/* Ask for values of attributes of the directory of the task, which are then set. */
void pull_request_directory(struct task *task);
/* --checksum: is the destination's content that of the list's digest? */
bool pull_same_content(struct file_job *job);
/* Contents come when they come: put the items of one task into the order of the list. */
void pull_order_items(struct events *events);
/* Everything has been asked for: without incremental recursion, the end of the first phase. */
void pull_phase_zero(struct pull *pull);
/* What is to become of this file, or of the task's directory, has been decided: if it was not asked for, it will not be. */
void pull_decided(struct pull *pull, const struct file_job *job);
void pull_decided_directory(const struct task *task);
/* The same of all files of a slice. */
void pull_slice_decided(const struct task *task);
/*
 * A replay's main thread waits, and no worker has anything to do: how often has it looked around like this while the reading
 * thread was waiting for a decision, and nothing has been decided? 0: that waits for nothing.
 */
int pull_stands_still(struct pull *pull);
/* The last time: the reading thread gives something up. Before, the main thread may decide what can be decided. */
enum { STILL_DECIDES = 2, STILL_GIVES_UP };
/* All files of a node's directory have a final outcome. The sender hears of that soon, when the buffer is flushed. */
void pull_node_done(struct pull *pull, int32_t node);
/* Tell of a file without asking for its content. Any thread. */
void pull_write_item(struct pull *pull, int32_t ndx, const struct item_attrs *item);
/* As flist_load_next. */
int32_t pull_next_list(struct pull *pull);
/* Now and then, by the main thread: let nothing lie in the buffer, keep the connection alive. */
void pull_tick(struct pull *pull);
void pull_flush(struct pull *pull);
void pull_flush_requests(struct pull *pull); /* if there are any: ends of lists may wait */
/* The sender is to remove what it has: it is in place here. `new`: since now; older words for the option ask for that. Any
 * thread; NULL pull: nothing. */
void pull_note_success(struct pull *pull, int32_t node, const struct entry *entry, bool is_new);
/* The same of a new file by its index in the list. */
void pull_note_arrival(struct pull *pull, int32_t ndx);
/* As the peer understands --append: 0, 1, or 2 for --append-verify. */
int pull_append_mode(const struct pull *pull);
/* Bits of the peer's and of the list's errors so far. */
int pull_io_error(struct pull *pull);

/* --- between the two files --- */

/* One file that has been asked for. */
struct transfer {
	struct transfer *next, *previous; /* in the order of the requests */
	struct transfer *same;      /* the next one with its index: that of a directory may be asked for twice */
	int32_t ndx;
	bool in_second_phase;       /* asked for after the first phase's end */
	bool is_directory;          /* the task's own: job has no more than what its attributes take */
	struct file_job job;
	struct decide_rules rules;
	struct sum_head head;       /* of the request */
	uint8_t basis;              /* its type, likewise */
};

/* Requests that wait for their replies, in their order and by their index. */
struct requests {
	struct transfer *first, *last;
	struct hashmap by_ndx;      /* (ndx, 0) -> the first struct transfer with it */
};

struct arrivals { VEC(int32_t) list; };

struct pull {
	struct local *local;
	struct session *session;
	struct flist_receiver *receiver;
	struct charset *charset;        /* --iconv: of messages as well; NULL: none */
	pthread_t reader;

	pthread_mutex_t out_lock;       /* whoever writes; also the order of `asked` is that of the requests; recursive, because
	                                 * who ends the process needs it, too */
	pthread_mutex_t lock;           /* the rest */
	pthread_cond_t changed;
	struct requests asked;
	struct transfer *wrong;         /* to be asked for again */
	struct arrivals arrived;        /* the sender is to be told that it may remove them */
	struct replay *replay;          /* NULL: there is a peer (local_replay.c) */
	bool awaits_decision;           /* the reading thread of a replay does */
	int stood_still;                /* looks of the main thread since that time, or since something has been decided */
	bool reading;                   /* the reading thread has taken the connection over */
	int32_t lists;                  /* lists that have arrived, the first included */
	bool phase_zero_done;           /* main thread: said so */
	int64_t last_tick;              /* main thread */
	atomic_bool has_requests;       /* in the output buffer */
	uint32_t dones, done_entries;   /* ends of lists in the output buffer, and what they end; under out_lock */
	atomic_int said_done;           /* DONEs of ours so far; counted before they are sent */
	int32_t echoes;                 /* those of the sender, which answer them */
	bool lists_complete;
	uint64_t list_bytes;            /* of all lists */
	bool last_done, goodbye_read;
	struct peer_stats peer;
	atomic_int io_error;

	pthread_mutex_t keep_lock;      /* on cut_off and its temp file */
	struct file_job *cut_off;       /* what would be incomplete, if the process ended now; NULL: nothing */

	/* reading thread only */
	uint64_t item_start;            /* where in the stream the item begins that is being read */
	struct token_reader *tokens;
	struct file_digest *digest;
	struct patch_buffer buffer;
};

/* Under the lock: put a request at the end; the first one for an index, NULL if there is none; take it out. */
void requests_add(struct requests *requests, struct transfer *transfer);
struct transfer *requests_find(const struct requests *requests, int32_t ndx);
void requests_remove(struct requests *requests, struct transfer *transfer);

/* Nothing of a reply has come yet: does the sender owe one? (reading thread) */
void pull_note_owed(struct pull *pull);
/* Has it been asked for? */
bool pull_expects(struct pull *pull, int32_t ndx);
/* Do values of extended attributes follow an item with these flags (doc/protocol/05-xattrs-acls.md section 5.3.1)? */
bool pull_has_xattr_part(const struct pull *pull, uint32_t flags);
/* The oldest request that names ndx, taken out; requests before it have no reply: they failed. NULL: nobody asked. */
struct transfer *pull_take(struct pull *pull, int32_t ndx);
/* The same in a replay, when the batch has come to ndx: wait until it is known whether it is wanted. NULL: it is not. */
struct transfer *replay_take(struct pull *pull, int32_t ndx);
/* The batch has not what is wanted. */
void replay_missing(struct pull *pull, struct transfer *transfer);
/* Read over a reply that nobody wants. */
void replay_skip(struct pull *pull, int32_t ndx);
/* A request, from the main thread or a worker; and one that has failed its verification. */
void replay_request(struct pull *pull, struct transfer *transfer);
void replay_came_wrong(struct pull *pull, struct transfer *transfer);
void replay_decided(struct pull *pull, int32_t ndx);
void replay_node_done(struct pull *pull, int32_t node);
/* Nothing will be decided from now on: what the batch still has, nobody waits for. */
void replay_all_decided(struct pull *pull);
/* What comes now has been sent before, and had come out wrong. */
void replay_second_phase(struct pull *pull);
/* The batch has been read: there is nothing more to come. */
void replay_end(struct pull *pull);
struct replay *replay_new(void);
void replay_free(struct replay *replay);

/* The sender has said that there will be no reply. EXIT_PROTOCOL if nobody waits for one. */
void pull_refused(struct pull *pull, int32_t ndx);
/* Everything that is still open, of the first phase or at all, has no reply. */
void pull_all_refused(struct pull *pull, bool first_phase);
/* Ask once more, for the whole file; the main thread does it soon. */
void pull_came_wrong(struct pull *pull, struct transfer *transfer);
/* The file's fate is known. Frees the transfer. */
void pull_settle(struct pull *pull, struct transfer *transfer, bool good);
/* The same when everything has been said of it. */
void pull_forget(struct pull *pull, struct transfer *transfer);

void *pull_read(void *pull_void);
/* The handler of wire_set_message_handler; context: the struct pull. */
void pull_message(void *pull_void, enum message_code code, const uint8_t *payload, size_t length);

/* The content of a requested file, as job_receive wants it (reading thread). */
struct incoming {
	struct pull *pull;
	struct sum_head head;
	int basis_fd;
	bool basis_is_gone;
	bool basis_is_file;      /* that is written to, if in place, or its copy */
	bool in_partial;         /* the partial file is the basis, and is completed where it lies */
	bool read;               /* the stream has been read to the end of the file */
	bool wrong_digest;
	bool is_kept;            /* as far as it came, although wrong */
};
/* The process may end while this temp file is filled, and may then keep it; NULL: not any more. */
void incoming_set_temp(struct incoming *incoming, struct file_job *job, struct fs_temp *temp);
/* Tokens of the stream into `to` (-1: nowhere). false: the file is not good; what is wrong with writing has been said. */
bool incoming_fill(struct incoming *incoming, struct file_job *job, int to, bool in_place);

#endif
