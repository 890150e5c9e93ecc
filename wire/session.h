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

#define MAX_ALLOC_DEFAULT ((size_t)1 << 30)

struct session {
	struct wire *wire;
	int protocol;
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
