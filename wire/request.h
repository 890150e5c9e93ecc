/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One request of the generator as the sender reads it and echoes it (doc/protocol/03-transfer.md section 2), with its block
 * sums.
 */
#ifndef WIRE_REQUEST_H
#define WIRE_REQUEST_H

#include <stdint.h>

#include "wire/session.h"

/* Item flags, doc/protocol/03-transfer.md section 2.3. */
enum item_flag {
	ITEM_REPORT_ATIME = 0x0001,
	ITEM_REPORT_CHANGE = 0x0002,
	ITEM_REPORT_SIZE = 0x0004, /* ITEM_REPORT_TIMEFAIL on symlinks */
	ITEM_REPORT_TIME = 0x0008,
	ITEM_REPORT_PERMS = 0x0010,
	ITEM_REPORT_OWNER = 0x0020,
	ITEM_REPORT_GROUP = 0x0040,
	ITEM_REPORT_ACL = 0x0080,
	ITEM_REPORT_XATTR = 0x0100,
	ITEM_REPORT_CRTIME = 0x0400,
	ITEM_BASIS_TYPE_FOLLOWS = 0x0800,
	ITEM_XNAME_FOLLOWS = 0x1000,
	ITEM_IS_NEW = 0x2000,
	ITEM_LOCAL_CHANGE = 0x4000,
	ITEM_TRANSFER = 0x8000,
	/* never on the wire */
	ITEM_MISSING_DATA = 0x10000,
	ITEM_DELETED = 0x20000,
	ITEM_MATCHED = 0x40000,
};

enum basis_type { BASIS_FILE = 0x80, BASIS_PARTIAL = 0x81, BASIS_BACKUP = 0x82, BASIS_FUZZY = 0x83 };

struct sum_head {
	/* Ranges: doc/protocol/03-transfer.md section 3.2, checked when read */
	int32_t count, block_length, strong_length, remainder;
};

/* The block sums of one basis file. weak[i] and strong + i * head.strong_length belong to block i. */
struct block_sums {
	struct sum_head head;
	uint32_t *weak;
	uint8_t *strong;
};

struct item_attrs {
	uint32_t flags; /* ITEM_*, the wire's 16 bits */
	uint8_t basis;  /* BASIS_*, BASIS_FILE if not sent */
	char xname[4096];
	size_t xname_length;
};

/* Fields 2 to 4 after an ndx. Below protocol 29 nothing is read: flags = ITEM_TRANSFER|ITEM_MISSING_DATA. A fuzzy basis name
 * (BASIS_FUZZY and above) is reduced to a path without leading "/" and "..". */
void request_read_attrs(struct session *session, struct item_attrs *item);
void request_write_attrs(struct session *session, int32_t ndx, const struct item_attrs *item);

/* Checksum header: each bound of doc/protocol/03-transfer.md section 3.2 with stock's message and EXIT_PROTOCOL; strong_length
 * 0 with count > 0 is refused too. longest: that of the session's transfer sum. */
void sum_head_read(struct session *session, struct sum_head *head, int longest);
void sum_head_write(struct session *session, const struct sum_head *head);
/* The count sums behind a header, allocated under the ceiling of peer_alloc. */
void block_sums_read(struct session *session, struct block_sums *sums);
/* Bytes that block_sums_read counts in the session's budget: of the sums, and of the matcher's index of them. To be given back
 * once they are free. */
size_t block_sums_memory(const struct sum_head *head);
void block_sums_free(struct block_sums *sums);

/* NDX_DEL_STATS and its five values (0..2^28 each), after the ndx was read; echo writes them with the ndx. */
void delete_stats_read(struct session *session);
void delete_stats_write(struct session *session);

#endif
