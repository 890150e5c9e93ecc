/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The engine with a peer that sends: its list comes from the wire, and so do contents. What a local run copies, a pull asks
 * for; the reading thread takes the reply and finishes the file (doc/protocol/03-transfer.md section 1).
 *
 *   main thread      prepares directories, finishes tasks in list order, says that lists and phases are done
 *   one worker       decides about files and writes requests          (contents/pull.c)
 *   reading thread   further lists, contents, messages, the goodbye   (contents/receive.c)
 *
 * Writers take turns under a lock; nobody but the reading thread reads.
 */
#ifndef CONTENTS_PULL_H
#define CONTENTS_PULL_H

#include "delta/patch.h"
#include "dest/job.h"
#include "receiver.h"
#include "receiver/run.h"
#include "wire/request.h"

/* Contents that a peer sends; or a batch, whose replies come unasked. */
struct contents *contents_of_peer(struct receiver *receiver, const struct receiver_peer *peer);

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

/* A batch in the place of a peer. */
struct replay {
	VEC(uint8_t) decided;  /* by index; under the pull's lock */
	bool second_phase;     /* reading thread: contents are those that had to be sent again */
	bool all_decided;      /* under the pull's lock: what the batch still has, nobody waits for */
	bool ended;
};

struct pull {
	struct contents contents;
	struct receiver *receiver;
	struct session *session;
	struct flist_receiver *list_receiver;
	struct charset *charset;        /* --iconv: of messages as well; NULL: none */
	pthread_t reader;

	pthread_mutex_t out_lock;       /* whoever writes; also the order of `asked` is that of the requests; recursive, because
	                                 * who ends the process needs it, too */
	pthread_mutex_t lock;           /* the rest */
	pthread_cond_t changed;
	struct requests asked;
	struct transfer *wrong;         /* to be asked for again */
	struct arrivals arrived;        /* to be reported to the sender, which may remove them */
	struct replay replay;           /* contents.is_replay (contents/replay.c) */
	int32_t awaited;                /* the reading thread of a replay waits for a decision on this index; -1: for none */
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
	bool last_done, goodbye_read;
	struct peer_stats peer;

	pthread_mutex_t keep_lock;      /* on cut_off and its temp file */
	struct file_job *cut_off;       /* what would be incomplete, if the process ended now; NULL: nothing */

	/* reading thread only */
	uint64_t item_start;            /* where in the stream the item begins that is being read */
	struct token_reader *tokens;
	struct file_digest *digest;
	struct patch_buffer buffer;
};

static inline struct pull *pull_of(struct contents *contents)
{
	return (struct pull *)contents;
}

#endif
