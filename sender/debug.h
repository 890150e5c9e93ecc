/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --debug=send and deltasum tell of a sending side. */
#ifndef SENDER_DEBUG_H
#define SENDER_DEBUG_H

#include "sender/state.h"

void sender_debug_start(const struct sender *sender);
/* A phase begins; 0: the last is over. */
void sender_debug_phase(const struct sender *sender, int phase);
/* An index has been named, and what it stands for is known. */
void sender_debug_item(const struct sender *sender, int32_t ndx, const struct flist_pos *pos);
/* Before and after the content of a file of this size. `before`: the counts as they were then. */
void sender_debug_content(struct sender *sender, const struct flist_pos *pos, uint64_t size, const struct block_sums *sums);
void sender_debug_sent(const struct sender *sender, const struct flist_pos *pos, const struct match_stats *before,
		       const struct block_sums *sums);
/* What is to be told of blocks that are found; NULL: nobody wants to know. */
void (*sender_debug_match(const struct sender *sender))(void *context, uint64_t at, uint32_t block, uint32_t length);

#endif
