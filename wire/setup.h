/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How two peers agree: the greeting of a daemon, version, compat flags, algorithm names, seed (doc/protocol/01-session.md
 * sections 3.1, 3.2 and 7).
 */
#ifndef WIRE_SETUP_H
#define WIRE_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/session.h"

struct greeting {
	int version, sub;      /* sub: -1 if omitted */
	const char *digests;   /* into the line; NULL if there is no list */
};

enum greeting_error { GREETING_OK, GREETING_MALFORMED, GREETING_NO_SUBPROTOCOL, GREETING_NO_DIGESTS };

/* The digests of logins, strongest first, blanks between them. */
const char *greeting_digests(void);
/* "@RSYNCD: 32.0 sha512 sha256 sha1 md5 md4\n" for our version. */
size_t greeting_format(char *buf, size_t size, int our_version);
/* `line` without its LF, CRs removed. */
enum greeting_error greeting_parse(struct greeting *greeting, const char *line);
/* The version both sides then use; 0 if the peer's is not in 20..40 or the result is below PROTOCOL_MIN. */
int greeting_negotiate(const struct greeting *theirs, int our_version);

/* Algorithms of a kind: enum sum_algorithm, enum compress_algorithm. */
enum choice { CHOICE_CHECKSUM, CHOICE_COMPRESS };
/* "xxh64", also by alias ("xxhash"), case-insensitive. -1 if unknown. */
int algorithm_find(enum choice choice, const char *text, size_t length);
const char *algorithm_name(enum choice choice, int algorithm);

/* What a version of the protocol has. */
struct session_caps session_caps_of(int protocol);

/* Make `protocol` that of the session and of its stream. */
void session_set_protocol(struct session *session, int protocol);

/* Without a stricter limit, everything that the peer makes us remember may take 16 times what one allocation may. */
void session_limit_memory(struct session *session);

/* What set-up needs to know of the options. */
struct setup_request {
	int max_protocol;              /* --protocol, default PROTOCOL_MAX */
	const char *client_info;       /* server: value of -e, "" if none */
	bool recursive, allow_inc_recurse, use_qsort;
	bool compress;                 /* compression asked for */
	const char *compress_choice;   /* NULL: negotiate or zlib */
	int compress_level;
	bool compress_level_set;
	int compress_threads;          /* any number: what is out of range is brought into it */
	const char *checksum_choice;   /* "A" or "A,B"; NULL or "auto": negotiate */
	bool always_checksum;          /* -c: "none" is then refused */
	int32_t checksum_seed;         /* 0: random */
	bool iconv;                    /* conversion in force on our side */
	bool inplace, append, fuzzy, prune_empty_dirs, acls, xattrs;
	int alt_dests;                 /* number of compare/copy/link-dest */
	bool needs_whole_list;         /* as a receiving side: no incremental recursion */
	bool for_batch;                /* algorithms only that the reader of a batch expects */
	bool from_batch;               /* the peer is a batch, which does not negotiate */
};

/* Version integers over a remote shell: write ours, read theirs, set session->protocol (doc/protocol/01-session.md
 * section 7.1). */
void setup_exchange_versions(struct session *session, const struct setup_request *request);

/* The peer's version is that of no rsync: say so and end. */
_Noreturn void setup_refuse_version(void);

/*
 * Server's part of the set-up, from compat flags to seed, doc/protocol/01-session.md sections 7.2 to 7.7: fills the session.
 * Does not multiplex. Ends with EXIT_PROTOCOL on an option that the protocol cannot carry, EXIT_UNSUPPORTED if nothing is in
 * common.
 */
void setup_server(struct session *session, const struct setup_request *request);

/* The client's part of the same. Ends with the text of a server that refuses. */
void setup_client(struct session *session, const struct setup_request *request);

/* Start multiplexing as doc/protocol/01-session.md section 9.2 says for this session; `remove_source`: --remove-source-files is
 * active. A raw files-from window (doc/protocol/01-session.md section 9.7) is the caller's to hold open. */
void setup_start_mux(struct session *session, bool remove_source);

#endif
