/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sender's --debug lines. */
#include "sender/debug.h"

#include "flist/paths.h"
#include "lib/log.h"
#include "lib/strbuf.h"

static int level_of(const struct sender *sender, enum debug_word word)
{
	return sender->options->levels.debug[word];
}

void sender_debug_start(const struct sender *sender)
{
	if (level_of(sender, DEBUG_SEND))
		log_info("send_files starting");
}

void sender_debug_phase(const struct sender *sender, int phase)
{
	if (!level_of(sender, DEBUG_SEND))
		return;
	if (phase)
		log_info("send_files phase=%d", phase);
	else
		log_info("send files finished");
}

void sender_debug_item(const struct sender *sender, int32_t ndx, const struct flist_pos *pos)
{
	struct strbuf path = STRBUF_INIT;

	if (!level_of(sender, DEBUG_SEND))
		return;
	flist_pos_operand_name(sender->list, pos, &path);
	log_info("send_files(%d, %s)", ndx, strbuf_text(&path));
	strbuf_free(&path);
}

static void say_sums(const struct block_sums *sums)
{
	const struct sum_head *head = &sums->head;

	log_info("count=%d n=%d rem=%d", head->count, head->block_length, head->remainder);
	for (int32_t i = 0; i < head->count && sums->weak; i++)
		log_info("chunk[%d] len=%d offset=%lld sum1=%08x", i,
			 i == head->count - 1 && head->remainder ? head->remainder : head->block_length,
			 (long long)i * head->block_length, sums->weak[i]);
}

static bool is_searched(const struct sender *sender, const struct block_sums *sums)
{
	return sums->head.count && sums->weak && level_of(sender, DEBUG_DELTASUM) > 1;
}

static void say_match(void *sender_void, uint64_t at, uint32_t block, uint32_t length)
{
	struct sender *sender = sender_void;

	log_info("match at %llu last_match=%llu j=%u len=%u n=%llu", (unsigned long long)at,
		 (unsigned long long)sender->matched_to, block, length, (unsigned long long)(at - sender->matched_to));
	sender->matched_to = at + length;
}

void (*sender_debug_match(const struct sender *sender))(void *context, uint64_t at, uint32_t block, uint32_t length)
{
	return level_of(sender, DEBUG_DELTASUM) > 1 ? say_match : NULL;
}

void sender_debug_content(struct sender *sender, const struct flist_pos *pos, uint64_t size, const struct block_sums *sums)
{
	struct strbuf path = STRBUF_INIT;

	if (level_of(sender, DEBUG_DELTASUM) < 2)
		return;
	if (level_of(sender, DEBUG_DELTASUM) > 2)
		say_sums(sums);
	sender->matched_to = 0;
	flist_pos_operand_name(sender->list, pos, &path);
	log_info("send_files mapped %s of size %llu", strbuf_text(&path), (unsigned long long)size);
	log_info("calling match_sums %s", strbuf_text(&path));
	if (is_searched(sender, sums) && size) {
		log_info("built hash table");
		log_info("hash search b=%d len=%llu", sums->head.block_length, (unsigned long long)size);
	}
	strbuf_free(&path);
}

void sender_debug_sent(const struct sender *sender, const struct flist_pos *pos, const struct match_stats *before,
		       const struct block_sums *sums)
{
	const struct match_stats *match = sender->match;
	struct strbuf path = STRBUF_INIT;

	if (level_of(sender, DEBUG_DELTASUM) > 1) {
		if (is_searched(sender, sums))
			log_info("done hash search");
		log_info("sending file_sum");
		log_info("false_alarms=%llu hash_hits=%llu matches=%llu",
			 (unsigned long long)(match->false_alarms - before->false_alarms),
			 (unsigned long long)(match->hash_hits - before->hash_hits),
			 (unsigned long long)(match->matches - before->matches));
	}
	if (level_of(sender, DEBUG_SEND)) {
		flist_pos_operand_name(sender->list, pos, &path);
		log_info("sender finished %s", strbuf_text(&path));
	}
	strbuf_free(&path);
}
