/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests of the generator and their block sums (doc/protocol/03-transfer.md sections 2 and 3). */
#include "wire/request.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/exit.h"
#include "lib/log.h"
#include "lib/strbuf.h"

enum {
	DELETE_STAT_MAX = 1 << 28,
	BLOCK_COST = 32,           /* memory for one block: its sums, and the matcher's index of them */
};

/* --- item attributes --- */

void request_read_attrs(struct session *session, struct item_attrs *item)
{
	struct wire *wire = session->wire;

	item->basis = BASIS_FILE;
	item->xname[0] = '\0';
	item->xname_length = 0;
	if (!session->caps.item_flags) {
		item->flags = ITEM_TRANSFER | ITEM_MISSING_DATA;
		return;
	}
	item->flags = wire_read_short(wire);
	if (item->flags & ITEM_BASIS_TYPE_FOLLOWS)
		item->basis = wire_read_byte(wire);
	if (!(item->flags & ITEM_XNAME_FOLLOWS))
		return;
	item->xname_length = wire_read_vstring(wire, item->xname, sizeof item->xname, "extra name");
	if (item->basis >= BASIS_FUZZY) {
		/* "../../a//b/" becomes "a/b/": a name that cannot climb. What is left of nothing is ".". */
		const char *slash = strrchr(item->xname, '/'), *last = slash ? slash + 1 : item->xname;
		bool is_directory = !*last || !strcmp(last, ".") || !strcmp(last, "..");
		struct strbuf clean = STRBUF_INIT;

		strbuf_add_clean(&clean, item->xname);
		strbuf_add_string(&clean, !clean.length ? "." : is_directory ? "/" : "");
		item->xname_length = clean.length;
		memcpy(item->xname, clean.data, clean.length + 1);
		strbuf_free(&clean);
	}
}

void request_write_attrs(struct session *session, int32_t ndx, const struct item_attrs *item)
{
	struct wire *wire = session->wire;

	wire_write_ndx(wire, ndx);
	if (!session->caps.item_flags)
		return;
	wire_write_short(wire, (uint16_t)(item->flags & 0xffff));
	if (item->flags & ITEM_BASIS_TYPE_FOLLOWS)
		wire_write_byte(wire, item->basis);
	if (item->flags & ITEM_XNAME_FOLLOWS)
		wire_write_vstring(wire, item->xname, item->xname_length);
}

/* --- checksum header and block sums --- */

static void require(bool good, const char *what, int32_t value)
{
	if (!good)
		die(EXIT_PROTOCOL, "Invalid %s %d [%s]", what, value, log_role());
}

void sum_head_read(struct session *session, struct sum_head *head, int longest)
{
	head->count = wire_read_int(session->wire);
	require(head->count >= 0, "checksum count", head->count);
	head->block_length = wire_read_int(session->wire);
	require(head->block_length >= 0 && head->block_length <= session->caps.block_length_max, "block length",
		head->block_length);
	if (head->count && !head->block_length)
		die(EXIT_PROTOCOL, "Invalid zero block length [%s]", log_role());
	head->strong_length = wire_read_int(session->wire);
	require(head->strong_length >= (head->count ? 1 : 0) && head->strong_length <= longest, "checksum length",
		head->strong_length);
	head->remainder = wire_read_int(session->wire);
	require(head->remainder >= 0 && head->remainder <= head->block_length, "remainder length", head->remainder);
}

void sum_head_write(struct session *session, const struct sum_head *head)
{
	wire_write_int(session->wire, head->count);
	wire_write_int(session->wire, head->block_length);
	wire_write_int(session->wire, head->strong_length);
	wire_write_int(session->wire, head->remainder);
}

size_t block_sums_memory(const struct sum_head *head)
{
	return (size_t)head->count * BLOCK_COST;
}

void block_sums_read(struct session *session, struct block_sums *sums)
{
	size_t ceiling = session->max_alloc ? session->max_alloc : MAX_ALLOC_DEFAULT;
	size_t count = (size_t)sums->head.count, length = (size_t)sums->head.strong_length;

	sums->weak = NULL;
	sums->strong = NULL;
	if (!count)
		return;
	/* The ceiling is for everything that the count makes us allocate. */
	if (count > ceiling / BLOCK_COST)
		die(EXIT_MALLOC, "[%s] exceeded --max-alloc=%zu setting", log_role(), ceiling);
	budget_take(session_budget(session), block_sums_memory(&sums->head), "block sums");
	sums->weak = peer_alloc(count, sizeof *sums->weak, ceiling);
	sums->strong = peer_alloc(count, length, ceiling);
	for (size_t i = 0; i < count; i++) {
		sums->weak[i] = (uint32_t)wire_read_int(session->wire);
		wire_read(session->wire, sums->strong + i * length, length);
	}
}

void block_sums_free(struct block_sums *sums)
{
	free(sums->weak);
	free(sums->strong);
	sums->weak = NULL;
	sums->strong = NULL;
}

/* --- statistics of deletions, doc/protocol/01-session.md section 10.4 --- */

void delete_stats_read(struct session *session)
{
	struct delete_stats *deleted = &session->deleted;

	deleted->files = wire_read_varint_range(session->wire, 0, DELETE_STAT_MAX, "deleted_files");
	deleted->dirs = wire_read_varint_range(session->wire, 0, DELETE_STAT_MAX, "deleted_dirs");
	deleted->symlinks = wire_read_varint_range(session->wire, 0, DELETE_STAT_MAX, "deleted_symlinks");
	deleted->devices = wire_read_varint_range(session->wire, 0, DELETE_STAT_MAX, "deleted_devices");
	deleted->specials = wire_read_varint_range(session->wire, 0, DELETE_STAT_MAX, "deleted_specials");
}

void delete_stats_write(struct session *session)
{
	const struct delete_stats *deleted = &session->deleted;

	wire_write_ndx(session->wire, NDX_DEL_STATS);
	wire_write_varint(session->wire, deleted->files);
	wire_write_varint(session->wire, deleted->dirs);
	wire_write_varint(session->wire, deleted->symlinks);
	wire_write_varint(session->wire, deleted->devices);
	wire_write_varint(session->wire, deleted->specials);
}
