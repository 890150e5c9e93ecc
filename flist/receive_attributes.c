/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ACLs and extended attributes of received entries. */
#include "flist/receive_attributes.h"

#include <stdlib.h>
#include <string.h>

#include "flist/attributes.h"
#include "flist/decode.h"
#include "flist/ids.h"
#include "lib/checked.h"
#include "lib/exit.h"

enum {
	ITEMS_MAX = 65536,
	NAME_LENGTH_MAX = 4096,
	VALUE_LENGTH_MAX = 128 << 20,
	LIST_LENGTH_MAX = 512 << 20,
	PIECE = 64 * 1024,
	LEAST_ITEMS = 4, /* of a list: there is room for so many */
};
/* Address space: more of them than a list has room for anyway. */
#define TABLE_LIMIT ((size_t)1 << 26)
/* What an item takes beside its name and value. */
#define ITEM_COST (2 * sizeof(struct xattr_item) + sizeof(struct xattr_value) + 4 * sizeof(void *))

/* The ACLs of an entry: indexes + 1 of the two tables, 0 for none. */
struct acl_pair {
	uint32_t number[2];
};

static void table_init(struct received_table *table, size_t size)
{
	reserved_init(&table->area, sizeof(void *) > 4 ? size * TABLE_LIMIT : 0);
	table->size = size;
	table->count = 0;
}

static void *table_item(const struct received_table *table, uint32_t index)
{
	return table->area.start + (size_t)index * table->size;
}

static void *table_add(struct received_table *table)
{
	reserved_grow(&table->area, ((size_t)table->count + 1) * table->size);
	return table_item(table, table->count++);
}

struct received_attributes *received_attributes_new(const struct options *options)
{
	struct received_attributes *attributes = xcalloc(1, sizeof *attributes);

	if (options->acls) {
		table_init(&attributes->acls[0], sizeof(struct fs_acl));
		table_init(&attributes->acls[1], sizeof(struct fs_acl));
		table_init(&attributes->pairs, sizeof(struct acl_pair));
	}
	if (options->xattrs)
		table_init(&attributes->xattrs, sizeof(struct received_xattrs));
	return attributes;
}

void received_attributes_free(struct received_attributes *attributes)
{
	if (!attributes)
		return;
	for (int kind = 0; kind < 2; kind++) {
		for (uint32_t i = 0; i < attributes->acls[kind].count; i++)
			fs_acl_free(table_item(&attributes->acls[kind], i));
		reserved_free(&attributes->acls[kind].area);
	}
	for (uint32_t i = 0; i < attributes->xattrs.count; i++) {
		struct received_xattrs *xattrs = table_item(&attributes->xattrs, i);

		xattr_list_free(&xattrs->list);
		free(xattrs->places);
	}
	reserved_free(&attributes->pairs.area);
	reserved_free(&attributes->xattrs.area);
	hashmap_free(&attributes->pair_numbers);
	free(attributes);
}

static void account(struct flist_receiver *receiver, size_t bytes)
{
	budget_take(session_budget(receiver->session), bytes, "attributes of files");
}

/* --- ACLs --- */

static uint8_t check_bits(uint32_t bits)
{
	if (bits > 7)
		die(EXIT_STREAMIO, "recv_acl_access: value out of range: %x", bits);
	return (uint8_t)bits;
}

static uint8_t read_bits(struct wire *wire, bool is_there)
{
	return is_there ? check_bits((uint32_t)wire_read_varint(wire)) : FS_ACL_ABSENT;
}

/* The number of the ACL that an entry has, from 1. */
static uint32_t read_acl(struct flist_receiver *receiver, bool is_default, uint32_t mode)
{
	struct received_attributes *attributes = receiver->list->received->attributes;
	struct received_table *table = &attributes->acls[is_default];
	struct wire *wire = receiver->session->wire;
	int32_t index = wire_read_varint(wire);

	if (index < 0 || (uint32_t)index > table->count)
		die(EXIT_STREAMIO, "recv_acl_index: ACL_TYPE_%s ACL index %d > %u", is_default ? "DEFAULT" : "ACCESS", index,
		    table->count);
	if (index)
		return (uint32_t)index;
	uint8_t flags = wire_read_byte(wire);

	if (flags & ~0x1f)
		die(EXIT_STREAMIO, "recv_acl_access: value out of range: %x", flags);
	account(receiver, sizeof(struct fs_acl));
	struct fs_acl *acl = table_add(table);

	acl->user_obj = read_bits(wire, flags & 1);
	acl->group_obj = read_bits(wire, flags & 2);
	acl->mask = read_bits(wire, flags & 4);
	acl->other = read_bits(wire, flags & 8);
	if (flags & 0x10) {
		size_t count = (size_t)wire_read_varint_range(wire, 0, ITEMS_MAX, "ACL count"), capacity = 0;

		while (acl->named_count < count) {
			uint32_t id = (uint32_t)wire_read_varint(wire), access = (uint32_t)wire_read_varint(wire);
			bool is_user = access & 2;

			if (access & 1)
				id_map_read_name(is_user ? &receiver->users : &receiver->groups, wire, id);
			if (acl->named_count == capacity) {
				account(receiver, (capacity + 4) * sizeof *acl->named);
				capacity = 2 * capacity + 4;
				acl->named = xrealloc_array(acl->named, capacity, sizeof *acl->named);
			}
			acl->named[acl->named_count++] = (struct fs_acl_entry){ id, check_bits(access >> 2), is_user };
		}
	}
	acl_complete(acl, is_default, mode);
	return table->count;
}

uint32_t received_acls_read(struct flist_receiver *receiver, uint32_t mode)
{
	struct received_attributes *attributes = receiver->list->received->attributes;
	struct acl_pair pair = { { 0, 0 } };
	bool inserted;

	for (int kind = 0; kind <= S_ISDIR(mode); kind++) {
		uint32_t number = read_acl(receiver, kind, mode);

		/* Most entries have nothing but their mode, whichever number that has. */
		if (!fs_acl_is_empty(table_item(&attributes->acls[kind], number - 1)))
			pair.number[kind] = number;
	}
	if (!pair.number[0] && !pair.number[1])
		return 0;
	uint64_t *number =
		hashmap_put(&attributes->pair_numbers, pair.number[0], pair.number[1], attributes->pairs.count + 1, &inserted);

	if (inserted) {
		account(receiver, sizeof pair + 2 * sizeof(struct hashmap_slot));
		memcpy(table_add(&attributes->pairs), &pair, sizeof pair);
	}
	return (uint32_t)*number;
}

/* Ids that no file can have are nobody's; of two entries for one id, the first one stays. */
static void localize(struct flist_receiver *receiver, struct fs_acl *acl)
{
	size_t kept = 0;

	for (size_t i = 0; i < acl->named_count; i++) {
		struct fs_acl_entry entry = acl->named[i];

		if (entry.id == UINT32_MAX)
			continue;
		entry.id = id_map_local(entry.is_user ? &receiver->users : &receiver->groups, entry.id);
		acl->named[kept++] = entry;
	}
	acl->named_count = kept;
	fs_acl_sort(acl);
	kept = 0;
	for (size_t i = 0; i < acl->named_count; i++) {
		const struct fs_acl_entry *last = kept ? &acl->named[kept - 1] : NULL, *next = &acl->named[i];

		if (!last || last->id != next->id || last->is_user != next->is_user)
			acl->named[kept++] = *next;
	}
	acl->named_count = kept;
}

void received_acls_localize(struct flist_receiver *receiver)
{
	struct received_attributes *attributes = receiver->list->received->attributes;

	for (int kind = 0; kind < 2; kind++)
		for (; attributes->local[kind] < attributes->acls[kind].count; attributes->local[kind]++)
			localize(receiver, table_item(&attributes->acls[kind], attributes->local[kind]));
}

static uint32_t side_number(const struct flist *list, int32_t node, const struct entry *entry, bool of_acls)
{
	const struct entry_side *side = entry_side_of(list->dirs.items[node].entries, entry);

	return !side ? 0 : of_acls ? side->acls : side->xattrs;
}

void flist_received_acls(const struct flist *list, int32_t node, const struct entry *entry, const struct fs_acl **access,
			 const struct fs_acl **defaults)
{
	static const struct fs_acl nothing = FS_ACL_NOTHING;
	const struct received_attributes *attributes = list->received->attributes;
	uint32_t number = side_number(list, node, entry, true);
	const struct acl_pair *pair = number ? table_item(&attributes->pairs, number - 1) : NULL;

	*access = pair && pair->number[0] ? table_item(&attributes->acls[0], pair->number[0] - 1) : &nothing;
	*defaults = pair && pair->number[1] ? table_item(&attributes->acls[1], pair->number[1] - 1) : &nothing;
}

/* --- extended attributes --- */

/* As much of a value as anybody can use; the rest is read and thrown away. */
static struct xattr_value *read_value(struct flist_receiver *receiver, size_t length)
{
	struct wire *wire = receiver->session->wire;
	struct strbuf bytes = STRBUF_INIT;

	for (size_t got = 0; got < length;) {
		size_t piece = length - got < PIECE ? length - got : PIECE;

		if (length > XATTR_KEPT_MAX)
			strbuf_reset(&bytes);
		else
			account(receiver, piece);
		strbuf_reserve(&bytes, piece);
		wire_read(wire, bytes.data + bytes.length, piece);
		strbuf_truncate(&bytes, bytes.length + piece);
		got += piece;
	}
	struct xattr_value *value = xattr_value_new(strbuf_text(&bytes), length);

	strbuf_free(&bytes);
	return value;
}

static size_t read_value_length(struct wire *wire)
{
	int32_t length = wire_read_varint_range(wire, 0, INT32_MAX, "xattr datum_len");

	if (length > VALUE_LENGTH_MAX)
		die(EXIT_PROTOCOL, "xattr datum_len exceeds per-value limit");
	return (size_t)length;
}

uint32_t received_xattrs_read(struct flist_receiver *receiver)
{
	struct received_table *table = &receiver->list->received->attributes->xattrs;
	struct wire *wire = receiver->session->wire;
	int32_t index = wire_read_varint(wire);
	size_t capacity = 0, total = 0;

	if (index < 0 || (uint32_t)index > table->count)
		die(EXIT_STREAMIO, "receive_xattr: xa index %d out of range for %s", index,
		    strbuf_text(&receiver->incoming.name));
	if (!index) {
		int32_t count = wire_read_varint_range(wire, 0, ITEMS_MAX, "xattr count");

		account(receiver, sizeof(struct received_xattrs) + LEAST_ITEMS * sizeof(struct xattr_item));
		struct received_xattrs *xattrs = table_add(table);

		for (int32_t number = 1; number <= count; number++) {
			size_t name_length = (size_t)wire_read_varint_range(wire, 1, NAME_LENGTH_MAX, "xattr name_len");
			char name[NAME_LENGTH_MAX];
			struct xattr_item item = { .length = read_value_length(wire), .number = number };

			wire_read(wire, name, name_length);
			if (name[name_length - 1])
				die(EXIT_FILEIO, "Invalid xattr name received (missing trailing \\0).");
			if (strlen(name) != name_length - 1 || name_length == 1)
				die(EXIT_PROTOCOL, "Invalid xattr name received (%s).",
				    name_length == 1 ? "empty" : "NUL inside");
			if (item.length > XATTR_SHORT)
				wire_read(wire, item.digest, XATTR_DIGEST_LENGTH);
			else
				atomic_init(&item.value, read_value(receiver, item.length));
			item.name = xattr_name_to_keep(&receiver->xattr_policy, name);
			account(receiver, ITEM_COST + name_length);
			if (item.name)
				xattr_list_add(&xattrs->list, &capacity, &item);
			else
				free(atomic_load(&item.value));
			total += name_length + item.length;
			if (total > LIST_LENGTH_MAX)
				die(EXIT_PROTOCOL, "xattr list exceeds per-file limit");
		}
		xattr_list_sort(&xattrs->list);
		/* Where an item stands by its number, for the answers to come. */
		if (xattrs->list.count) {
			xattrs->sent_count = count;
			xattrs->places = xcalloc((size_t)count, sizeof *xattrs->places);
			for (size_t i = 0; i < xattrs->list.count; i++)
				xattrs->places[xattrs->list.items[i].number - 1] = (uint32_t)i + 1;
		}
		index = (int32_t)table->count;
	}
	const struct received_xattrs *found = table_item(table, (uint32_t)index - 1);

	return found->list.count ? (uint32_t)index : 0;
}

const struct xattr_list *flist_received_xattrs(const struct flist *list, int32_t node, const struct entry *entry)
{
	static const struct xattr_list nothing = { NULL, 0 };
	uint32_t number = side_number(list, node, entry, false);

	if (!number)
		return &nothing;
	return &((const struct received_xattrs *)table_item(&list->received->attributes->xattrs, number - 1))->list;
}

/* --- values that were asked for --- */

void flist_receive_xattr_answer(struct flist_receiver *receiver, int32_t node, const struct entry *entry)
{
	struct wire *wire = receiver->session->wire;
	uint32_t list = entry ? side_number(receiver->list, node, entry, false) : 0;
	const struct received_xattrs *xattrs =
		list ? table_item(&receiver->list->received->attributes->xattrs, list - 1) : NULL;
	int32_t number = 0, delta;

	while ((delta = wire_read_varint(wire)) != 0) {
		if (!checked_add(number, delta, &number))
			die(EXIT_PROTOCOL, "could not find xattr #%d [receiver]", delta);
		uint32_t place = xattrs && number >= 1 && number <= xattrs->sent_count ? xattrs->places[number - 1] : 0;
		struct xattr_item *item = place ? &xattrs->list.items[place - 1] : NULL;

		if (!item || (atomic_load(&item->value) && !receiver->setup.repeats_values))
			die(EXIT_PROTOCOL, "could not find xattr #%d [receiver]", number);
		size_t length = read_value_length(wire);
		struct xattr_value *value = read_value(receiver, length);

		if (atomic_load(&item->value)) {
			budget_give_back(session_budget(receiver->session), length > XATTR_KEPT_MAX ? 0 : length);
			free(value);
			continue;
		}
		atomic_store(&item->value, value);
	}
}
