/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file list on the wire: sub-lists, end markers, look-ahead (doc/protocol/02-file-list.md section 6); flist/encode.c writes
 * the entries.
 */
#include "flist/send.h"

#include <stdlib.h>

#include "delta/digest.h"
#include "flist/encode.h"
#include "flist/ids.h"
#include "flist/paths.h"
#include "flist/tree.h"
#include "flist/xattr.h"
#include "flist/xmit.h"
#include "lib/clock.h"
#include "lib/exit.h"

/*
 * Entries that are sent ahead of the list that the peer works on: at least so many (doc/protocol/02-file-list.md section 6.4),
 * and how many when it falls below that. What lies in a snapshot costs neither seeks nor memory: it goes out in long stretches,
 * with few wake-ups.
 */
enum { AHEAD_MIN = 1000, AHEAD_MIN_SNAPSHOT = 10000, AHEAD_FULL_SNAPSHOT = 40000 };

/* Entries from..to of a node, the first of which has index ndx. */
static void send_range(struct flist_sender *sender, int32_t node, uint32_t from, uint32_t to, int32_t ndx,
		       int32_t list_first_ndx)
{
	for (uint32_t i = from; i < to; i++) {
		struct entry *entry = &sender->list->dirs.items[node].entries->items[i];
		if (!(entry->flags & ENTRY_HIDDEN))
			flist_send_entry(sender, node, entry, ndx + (int32_t)(i - from), list_first_ndx);
	}
}

/* --- ends of lists --- */

static void write_end(struct flist_sender *sender)
{
	struct session *session = sender->session;
	int mask = sender->options->ignore_errors ? 0 : session->io_error;

	if (mask == sender->reported_io_error)
		mask = 0;
	else
		sender->reported_io_error = mask;
	if (session->varint_flags) {
		wire_write_varint(session->wire, 0);
		wire_write_varint(session->wire, session->safe_flist ? mask : 0);
	} else if (mask && session->safe_flist) {
		wire_write_short(session->wire, XMIT_IO_ERROR_ENDLIST | XMIT_EXTENDED_FLAGS);
		wire_write_varint(session->wire, mask);
	} else {
		wire_write_byte(session->wire, 0);
	}
	if (mask && session->caps.io_error_message && !session->safe_flist)
		wire_send_message_int(session->wire, MSG_IO_ERROR, mask);
}

/* Everything in one list: the walk's order is the order on the wire. */
static void send_whole_list(struct flist_sender *sender)
{
	struct flist *list = sender->list;
	struct session *session = sender->session;
	int32_t node = 0;

	do {
		flist_debug_node(list, node);

		const struct flist_dir *dir = &list->dirs.items[node];
		uint32_t leading = dir->child_count ? list->dirs.items[dir->first_child].parent_entry : dir->count;

		if (node)
			send_range(sender, dir->parent, dir->parent_entry, dir->parent_entry + dir->group, dir->own_ndx, 0);
		send_range(sender, node, 0, leading, list->dirs.items[node].first_ndx, 0);
		wire_keep_alive(session->wire);
	} while ((node = flist_load_next(list)) >= 0);
	write_end(sender);
	if (sender->options->owner || sender->options->acls)
		id_names_write_list(&sender->names, false);
	if (sender->options->group || sender->options->acls)
		id_names_write_list(&sender->names, true);
	if (!session->caps.io_error_message)
		wire_write_int(session->wire, sender->options->ignore_errors ? 0 : session->io_error);
}

/* Send the list of a node (-1: none is left); false (and NDX_FLIST_EOF sent) at the end. */
static bool send_list(struct flist_sender *sender, int32_t node)
{
	struct flist *list = sender->list;
	struct wire *wire = sender->session->wire;

	if (node >= 0) {
		const struct flist_dir *dir = &list->dirs.items[node];

		flist_debug_node(list, node);
		if (node)
			wire_write_ndx(wire, NDX_FLIST_OFFSET - dir->number);
		send_range(sender, node, 0, dir->count, dir->first_ndx, dir->first_ndx);
		write_end(sender);
		if (node)
			wire_keep_alive(wire);
	}
	sender->eof_sent = flist_is_complete(list);
	if (sender->eof_sent)
		wire_write_ndx(wire, NDX_FLIST_EOF);
	return !sender->eof_sent;
}

/* --- interface --- */

struct flist_sender *flist_send_start(struct flist *list, struct session *session, const struct options *options,
				      const struct flist_send_setup *setup)
{
	struct flist_sender *sender = xcalloc(1, sizeof *sender);
	int64_t started = clock_nanoseconds();

	*sender = (struct flist_sender){
		.list = list, .session = session, .options = options, .setup = *setup, .state.node = -1,
		.names = {
			.session = session, .ids = setup->ids, .no_names = setup->no_names, .is_numeric = options->numeric_ids,
		},
		.attributes.policy = {
			.level = options_super_level(options), .verbatim = options->xattrs > 1, .rules = list->user,
		},
	};
	if (options->checksum || options->xattrs)
		sender->digest = file_digest_new();
	if (session->inc_recurse) {
		bool is_single = list->dirs.items[0].count == 1, more = send_list(sender, 0);

		/* A single item: the receiver waits for one more index before it decides what the destination is (6.6). */
		while (is_single && more) {
			int32_t node = flist_load_next(list);

			more = send_list(sender, node);
			is_single = node < 0 || !list->dirs.items[node].count;
		}
	} else {
		send_whole_list(sender);
	}
	sender->build_ms = (clock_nanoseconds() - started) / CLOCK_MILLISECOND;
	wire_flush(session->wire);
	return sender;
}

void flist_sender_free(struct flist_sender *sender)
{
	if (!sender)
		return;
	id_names_free(&sender->names);
	sent_attributes_free(&sender->attributes);
	hashmap_free(&sender->links);
	vec_free(&sender->firsts);
	file_digest_free(sender->digest);
	strbuf_free(&sender->state.name);
	strbuf_free(&sender->path);
	free(sender);
}

static int64_t entries_ahead(const struct flist_sender *sender, int32_t current_ndx)
{
	const struct flist *list = sender->list;
	size_t last = list->load_order.count - 1;
	size_t current = current_ndx >= 0 ? flist_order_of(list, current_ndx) : 0;

	if (current < sender->oldest)
		current = sender->oldest < last ? sender->oldest : last;
	const struct flist_dir *current_dir = &list->dirs.items[list->load_order.items[current]];
	const struct flist_dir *last_dir = &list->dirs.items[list->load_order.items[last]];
	int64_t last_end = (int64_t)last_dir->first_ndx + last_dir->count;
	int64_t current_end = (int64_t)current_dir->first_ndx + current_dir->count;

	/* Every list in between has a gap index. */
	return last_end - current_end - (int64_t)(last - current);
}

void flist_send_ahead(struct flist_sender *sender, int32_t current_ndx)
{
	bool cheap = sender->list->can_view;

	if (!sender->session->inc_recurse || sender->eof_sent
	    || entries_ahead(sender, current_ndx) >= (cheap ? AHEAD_MIN_SNAPSHOT : AHEAD_MIN))
		return;
	while (send_list(sender, flist_load_next(sender->list))
	       && entries_ahead(sender, current_ndx) < (cheap ? AHEAD_FULL_SNAPSHOT : AHEAD_MIN))
		;
}

void flist_send_drop_oldest(struct flist_sender *sender)
{
	if (sender->oldest < sender->list->load_order.count)
		flist_drop_entries(sender->list, sender->list->load_order.items[sender->oldest++]);
}

int32_t flist_send_oldest(const struct flist_sender *sender)
{
	return sender->oldest < sender->list->load_order.count ? sender->list->load_order.items[sender->oldest] : -1;
}

uint64_t flist_send_position(const struct flist_sender *sender, int32_t ndx)
{
	/* Each list has an index for its directory in front of its entries. */
	return (uint64_t)ndx - (sender->session->inc_recurse ? flist_order_of(sender->list, ndx) + 1 : 0);
}

int64_t flist_send_build_ms(const struct flist_sender *sender)
{
	return sender->build_ms > 0 ? sender->build_ms : 1;
}

void flist_find(struct flist_sender *sender, int32_t ndx, struct flist_pos *pos)
{
	struct flist *list = sender->list;
	size_t held = list->load_order.count - sender->oldest;
	const struct flist_dir *oldest = held ? &list->dirs.items[list->load_order.items[sender->oldest]] : NULL;
	int32_t low = !oldest ? 0 : sender->session->inc_recurse ? oldest->own_ndx : 0;

	if (!oldest || ndx < low || ndx >= list->next_ndx || !flist_locate(list, ndx, pos))
		die(EXIT_PROTOCOL, "rsync: File-list index %d not in %d - %d", ndx, low, list->next_ndx - 1);
	if (pos->entry && pos->gap < 0 && (pos->entry->flags & ENTRY_DUPLICATE))
		die(EXIT_PROTOCOL, "rsync: refusing transfer of cleared file index %d", ndx);
}
