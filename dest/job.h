/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One file of a task while it is looked at and changed, and the content that comes for it. */
#ifndef DEST_JOB_H
#define DEST_JOB_H

#include "delta/digest.h"
#include "dest/attributes.h"
#include "dest/decide.h"
#include "ui/number.h"
#include "wire/request.h"

struct dest_dir;
struct fs_temp;
struct incoming;

/* How an entry comes to be processed: in its turn, as a hard link group's leader of last resort, after room was made for it. */
enum turn { TURN_FIRST, TURN_LEADS, TURN_HAS_ROOM };

/* An object that may be as its entry says: the job's name in this directory. */
struct looked_at {
	int dir_fd;
	const struct fs_stat *st;
};

struct file_job {
	struct task *task;
	struct dest *dest;
	struct dest_dir *dir;
	const struct entry *entry;
	uint32_t index;
	const char *name;
	struct decide_rules rules; /* with the directory's umask */
	struct decide_dest old;    /* the object that has its name now */
	struct decision decision;
	struct looked_at looked_at; /* for the probes of dest/decide.h */
	char *fuzzy;               /* a file that it resembles, or NULL; owned by the one who ends the job */
	int fuzzy_place;           /* where that is: 0 the destination directory, 1 + n that of an alternate destination */
	struct wanted wanted;
	bool is_known_to_peer;     /* the peer knows the item from a request */
	const char *made_name;     /* of a temp file that gets its attributes, for messages; NULL: its own */
	bool set_xattrs;           /* of an existing object, which only its item reports */
	uint64_t copied, matched;
	uint64_t moved, sums;      /* bytes of the reply, and of block sums in the request: to be displayed */
	uint8_t digest[DIGEST_MAX_LENGTH]; /* as received, to be displayed */
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

#endif
