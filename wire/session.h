/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What two peers have agreed on; how they agree is in wire/setup.h (doc/protocol/01-session.md section 7). */
#ifndef WIRE_SESSION_H
#define WIRE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/wire.h"

#define PROTOCOL_MIN 27
#define PROTOCOL_MAX 33
/* What a peer may announce at all; outside of it is no rsync. */
#define PEER_PROTOCOL_MIN 20
#define PEER_PROTOCOL_MAX 40

/* Compat flags, doc/protocol/01-session.md section 7.3. */
enum compat_flag {
	CF_INC_RECURSE = 0x001,
	CF_SYMLINK_TIMES = 0x002,
	CF_SYMLINK_ICONV = 0x004,
	CF_SAFE_FLIST = 0x008,
	CF_AVOID_XATTR_OPTIM = 0x010,
	CF_CHKSUM_SEED_FIX = 0x020,
	CF_INPLACE_PARTIAL_DIR = 0x040,
	CF_VARINT_FLIST_FLAGS = 0x080,
	CF_ID0_NAMES = 0x100,
};

enum sum_algorithm { SUM_NONE, SUM_MD4_OLD, SUM_MD4, SUM_MD5, SUM_SHA1, SUM_XXH64, SUM_XXH3, SUM_XXH128 };
enum compress_algorithm { COMPRESS_NONE, COMPRESS_ZLIB, COMPRESS_ZLIBX, COMPRESS_ZSTD, COMPRESS_LZ4 };

/* IO error bits, doc/protocol/02-file-list.md section 2.13. */
enum io_error { IOERR_GENERAL = 1, IOERR_VANISHED = 2, IOERR_DEL_LIMIT = 4 };

struct delete_stats { int32_t files, dirs, symlinks, devices, specials; };

/* Lengths of a block, doc/protocol/03-transfer.md section 3.2. */
enum { BLOCK_LENGTH_MAX = 1 << 17, OLD_BLOCK_LENGTH_MAX = 1 << 29 };

/*
 * What the versions of the protocol differ in: session_caps_of (wire/setup.h) knows which version has what, nobody else
 * compares numbers. Chapters are those of doc/protocol/. All are off in a list that is not for a peer.
 */
struct session_caps {
	/* from 28 on */
	bool extended_flags;    /* entries of the list have a second byte of flags (02 section 2.1) */
	bool split_rdev;        /* device numbers as major and minor (02 section 2.8) */
	bool marks_links;       /* a flag says which files have hard links, not a key of every file (02 section 2.10) */
	bool sums_only_files;   /* --checksum: digests of regular files only (02 section 2.11) */
	/* from 29 on */
	bool item_flags;        /* flags, basis and name follow an index; changes without contents travel (03 section 2.2) */
	bool third_phase;       /* one more DONE, for delayed updates (01 section 10.1) */
	bool modern_filters;    /* rules with modifiers and sides (04) */
	bool list_times;        /* statistics have the times of the list (01 section 10.5) */
	bool created_counts;    /* --stats counts what was created (06) */
	bool deleted_messages;  /* a receiving server reports deletions (01 section 9.3) */
	bool clean_names;       /* no name ends in "/." (02 section 13) */
	/* 29 only */
	bool raw_keep_alive;    /* an index past the list keeps the connection alive (01 section 9.8) */
	/* below 29 */
	bool sorts_by_path;     /* lists are sorted and numbered by whole path (02 section 5.2) */
	bool errors_in_stream;  /* a server reports through the stream unless it was asked not to (01 section 7.2) */
	/* from 30 on */
	bool compat_flags;      /* capability letters and compat flags (01 sections 6.3 and 7.3) */
	bool nul_args;          /* the words to a daemon end with NUL, not LF (01 section 5.1) */
	bool varints;           /* integers of variable length (01 section 8.3) */
	bool frames_requests;   /* what goes to a sending side, or to a server, is framed always (01 section 9.2) */
	bool no_send_message;   /* a sender reports what it cannot send (01 section 9.3) */
	bool io_error_message;  /* I/O errors by a message; before, as a number after the list (02 section 2.13) */
	bool content_flags;     /* directories say whether their contents are listed (02 section 3) */
	bool inline_names;      /* names of users and groups may follow their ids (02 section 4.2) */
	bool wide_mtime;        /* mtimes of 64 bits (02 section 2.6) */
	bool links_by_index;    /* a hard link names the index of the first of its group (02 section 2.10) */
	bool plain_digests;     /* digests of a whole file are not salted with the seed (03 section 4.4) */
	bool md5;               /* MD5 where nothing is negotiated: contents, lists, passwords (01 sections 4.1 and 7.5) */
	bool plain_append;      /* --append without verifying (03 section 3.4) */
	bool deletes_during;    /* --delete alone means during (03 section 10.1) */
	bool perishable_rules;  /* the modifier "p" (04) */
	bool symlink_times;     /* a receiver reports symlinks whose times it cannot set (03 section 9.1) */
	/* below 30 */
	bool omits_parents;     /* --no-implied-dirs: parents of arguments are not listed (02 section 13) */
	bool byte_minors;       /* small minor numbers as one byte (02 section 2.8) */
	/* from 31 on */
	bool mtime_nsec;        /* nanoseconds of mtimes (02 section 2.6) */
	bool framed_names;      /* --files-from travels in frames (01 section 9.7) */
	bool goodbye_reply;     /* the last DONE is answered (01 section 10.2) */
	bool delete_stats;      /* counts of what was deleted (01 section 10.4) */
	bool error_exit;        /* MSG_ERROR_EXIT (01 section 10.8) */
	bool io_timeout;        /* MSG_IO_TIMEOUT (01 section 9.3) */
	/* below 31 */
	bool special_rdev;      /* fifos and sockets have a device number (02 section 2.8) */
	bool zlib_repeats;      /* zlib takes each piece of a long block for its first (03 section 6.4) */
	/* from 33 on */
	bool block_stats;       /* MSG_BLOCK_STATS, and its line of --stats (09 section 2.2) */

	uint32_t batch_bits;      /* the options that a batch records (03 section 12.1) */
	int32_t block_length_max; /* smaller from 30 on (03 section 3.2) */
};

#define MAX_ALLOC_DEFAULT ((size_t)1 << 30)

struct session {
	struct wire *wire;
	int protocol;                /* set by session_set_protocol only, with: */
	struct session_caps caps;
	int peer_version;            /* the highest that the peer has announced; 0: it has not been asked */
	bool is_server, is_daemon, is_sender;
	bool log_through_stream;     /* server: errors go as messages, not to stderr (doc/protocol/01-session.md section 9.4) */
	uint32_t compat;             /* CF_* in force */
	bool inc_recurse;
	bool varint_flags, safe_flist, id0_names, symlink_iconv, seed_first, avoid_xattr_optim, inplace_partial;
	char peer_letters[64];       /* server: the client's -e capability letters, without "." */
	enum sum_algorithm xfer_sum, file_sum; /* transfer sums; --checksum sums of the file list */
	enum compress_algorithm compress;
	int compress_level;
	int compress_threads;        /* 0: none beside the caller's */
	int32_t seed;                /* signed, see doc/protocol/03-transfer.md section 4.3 */
	int io_error;                /* IOERR_* bits gathered so far */
	struct delete_stats deleted; /* from the generator's NDX_DEL_STATS */
	size_t max_alloc;            /* --max-alloc in bytes, for what a peer makes us allocate; 0: MAX_ALLOC_DEFAULT */
};

/* What the peer may cost; NULL where there is none. */
static inline struct budget *session_budget(const struct session *session)
{
	return session->wire ? wire_budget(session->wire) : NULL;
}

#endif
