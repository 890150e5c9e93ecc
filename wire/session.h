/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What two peers have agreed on, and how they agree: version, compat flags, algorithm names, seed (protocol/01 section 7). */
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

/* Compat flags, protocol/01 section 7.3. */
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

/* "xxh64", also by alias ("xxhash"), case-insensitive. false if unknown. */
bool sum_algorithm_parse(const char *name, enum sum_algorithm *algorithm);
const char *sum_algorithm_name(enum sum_algorithm algorithm);
bool compress_algorithm_parse(const char *name, enum compress_algorithm *algorithm);
const char *compress_algorithm_name(enum compress_algorithm algorithm);

/* IO error bits, protocol/02 section 2.13. */
enum io_error { IOERR_GENERAL = 1, IOERR_VANISHED = 2, IOERR_DEL_LIMIT = 4 };

struct delete_stats { int32_t files, dirs, symlinks, devices, specials; };

#define MAX_ALLOC_DEFAULT ((size_t)1 << 30)

struct session {
	struct wire *wire;
	int protocol;
	int peer_version;            /* the highest that the peer has announced; 0: it has not been asked */
	bool is_server, is_daemon, is_sender;
	bool log_through_stream;     /* server: errors go as messages, not to stderr (protocol/01 9.4) */
	uint32_t compat;             /* CF_* in force */
	bool inc_recurse;
	bool varint_flags, safe_flist, id0_names, symlink_iconv, seed_first, avoid_xattr_optim, inplace_partial;
	char peer_letters[64];       /* server: the client's -e capability letters, without "." */
	enum sum_algorithm xfer_sum, file_sum; /* transfer sums; --checksum sums of the file list */
	enum compress_algorithm compress;
	int compress_level;
	int compress_threads;        /* 0: none beside the caller's */
	int32_t seed;                /* signed, see protocol/03 4.3 */
	int io_error;                /* IOERR_* bits gathered so far */
	struct delete_stats deleted; /* from the generator's NDX_DEL_STATS */
	size_t max_alloc;            /* --max-alloc in bytes, for what a peer makes us allocate; 0: MAX_ALLOC_DEFAULT */
};

/* What the peer may cost; NULL where there is none. */
static inline struct budget *session_budget(const struct session *session)
{
	return session->wire ? wire_budget(session->wire) : NULL;
}

/* Without a stricter limit, everything that the peer makes us remember may take 16 times what one allocation may. */
void session_limit_memory(struct session *session);

/* What set-up needs to know of the options. */
struct setup_request {
	int max_protocol;              /* --protocol, default PROTOCOL_MAX */
	const char *client_info;       /* server: value of -e, "" if none */
	bool recursive, allow_inc_recurse, use_qsort;
	bool numeric_ids;
	bool compress;                 /* compression asked for */
	const char *compress_choice;   /* NULL: negotiate or zlib */
	int compress_level;
	bool compress_level_set;
	int compress_threads;          /* any number: what is out of range is brought into it */
	const char *checksum_choice;   /* "A" or "A,B"; NULL or "auto": negotiate */
	bool always_checksum;          /* -c: "none" is then refused */
	int32_t checksum_seed;         /* 0: random */
	bool iconv;                    /* conversion in force on our side */
	bool inplace, append, fuzzy, prune_empty_dirs, acls, xattrs, crtimes, atimes;
	int alt_dests;                 /* number of compare/copy/link-dest */
	bool needs_whole_list;         /* as a receiving side: no incremental recursion */
	bool for_batch;                /* algorithms only that the reader of a batch expects */
	bool from_batch;               /* the peer is a batch, which does not negotiate */
};

/* Version integers over a remote shell: write ours, read theirs, set session->protocol (protocol/01 7.1). */
void setup_exchange_versions(struct session *session, const struct setup_request *request);

/* The peer's version is that of no rsync: say so and end. */
_Noreturn void setup_refuse_version(void);

/* Server's part of the set-up, from compat flags to seed, protocol/01 7.2 to 7.7: fills the session. Does not multiplex.
 * Ends with EXIT_PROTOCOL on an option that the protocol cannot carry, EXIT_UNSUPPORTED if nothing is in common. */
void setup_server(struct session *session, const struct setup_request *request);

/* The client's part of the same. Ends with the text of a server that refuses. */
void setup_client(struct session *session, const struct setup_request *request);

/* Start multiplexing as protocol/01 9.2 says for this session; `remove_source`: --remove-source-files is active.
 * A raw files-from window (protocol/01 9.7) is the caller's to hold open. */
void setup_start_mux(struct session *session, bool remove_source);

#endif
