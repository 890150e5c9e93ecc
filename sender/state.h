/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of the sending role. */
#ifndef SENDER_STATE_H
#define SENDER_STATE_H

#include "delta/match.h"
#include "lib/vec.h"
#include "sender.h"

struct sender {
	struct sender_host *host;
	struct session *session;
	struct session aside;          /* client with a batch: the same session, whose stream is only written down */
	const struct options *options;
	struct flist *list;
	struct flist_sender *list_sender;
	struct token_writer *tokens;
	struct charset *charset;       /* --iconv, or NULL */
	struct match_stats *match;
	uint64_t matched_to;           /* --debug: where the last block that was found in the file at hand ends */
	int phase;
	int append;
	int io_error_sent;             /* what the list has told the peer already */
	int32_t current_ndx;           /* last index asked for, -1: none in the lists held */
	int content_fd;
	VEC(uint64_t) sent;            /* a bit for each index whose content has been sent */
	VEC(struct entry) directories; /* by node: what the host may still be told of, when its list has been dropped */
	bool xattr_items;              /* item messages may carry xattr parts (doc/protocol/05-xattrs-acls.md section 5.3.1) */
	bool xattr_shortcut;           /* ... but not for hard links (5.3.4) */
	uint8_t attr_bytes[ATTR_FILE_SIZE];
};

#endif
