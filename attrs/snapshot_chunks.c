/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What each chunk of a snapshot holds. Directories that are views of an older snapshot are passed on in whole ranges of it:
 * names, targets and side records count from where the directory's begin, so that only the numbers of directories can differ.
 */
#include "attrs/snapshot_chunks.h"

#include <errno.h>
#include <string.h>

#include "attrs/snapshot_sum.h"
#include "lib/threads.h"

enum { THREADS = 2 };
#define SHARED_SIZE (1 << 20) /* a snapshot so large is worth a second thread */

_Static_assert(sizeof(struct image_digest) == 2 * SNAPSHOT_DIGEST, "digests have one length");

static const struct entries *entries_of(const struct snapshot_layout *layout, uint32_t number)
{
	return &layout->order[number]->entries;
}

/* --- entries --- */

static void put_built_entries(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *list = entries_of(layout, number);
	uint32_t name = 0, side = 0, child = number + 1;

	for (uint32_t i = 0; i < list->count; i++) {
		struct entry *entry = output_room(out, sizeof *entry);

		*entry = list->items[i];
		entry->flags = snapshot_kept_flags(entry);
		entry->root = 0;
		entry->name = name;
		name += entry->name_length + 1U;
		entry->side = snapshot_has_side(entry) ? ++side : 0;
		entry->dir = 0;
		if (entry_is_dir(entry)) {
			entry->dir = child;
			child = layout->dirs[child].subtree_end;
		}
	}
}

/* As long as the directories below keep their numbers the records are lent as they are. */
static void put_view_entries(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *list = entries_of(layout, number);
	uint32_t at = layout->dirs[number].leading, child = number + 1;

	for (; at < list->count && list->items[at].dir == child; at++)
		child = layout->dirs[child].subtree_end;
	output_lend(out, list->items, at * sizeof *list->items);
	for (; at < list->count; at++) {
		struct entry *entry = output_room(out, sizeof *entry);

		*entry = list->items[at];
		entry->dir = child;
		child = layout->dirs[child].subtree_end;
	}
}

/* Entry 0, ".", belongs to no directory. */
static void put_root_entry(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	struct entry *root = output_room(out, sizeof *root);

	*root = layout->image->root.items[0];
	root->flags = root->root = 0;
	root->name = root->side = root->dir = 0;
}

/* --- side records --- */

/* target: where a symlink's will stand, counted from the directory's names. */
static void fill_side(const struct entry *entry, const struct entry_side *known, uint32_t target, struct snapshot_side *side)
{
	if (entry_is_symlink(entry)) {
		side->a = target;
		side->b = known->target_length;
	} else if (entry_is_device(entry)) {
		side->a = known->rdev_major;
		side->b = known->rdev_minor;
	}
	if (entry->flags & ENTRY_HARD_LINKED)
		side->ino = known->ino;
}

static void put_built_sides(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	static const struct entry_side nothing;
	const struct entries *list = entries_of(layout, number);
	uint32_t target = 0;

	for (uint32_t i = 0; i < list->count; i++)
		target += list->items[i].name_length + 1U;
	for (uint32_t i = 0; i < list->count; i++) {
		const struct entry *entry = &list->items[i];
		const struct entry_side *known = entry_side_of(list, entry);

		if (!snapshot_has_side(entry))
			continue;
		struct snapshot_side *side = output_room(out, sizeof *side);

		memset(side, 0, sizeof *side);
		fill_side(entry, known ? known : &nothing, target, side);
		if (entry_is_symlink(entry))
			target += side->b + 1;
	}
}

static void put_view_sides(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	struct snapshot_old_sides old = snapshot_old_sides(entries_of(layout, number));

	output_lend(out, old.first, old.count * sizeof *old.first);
}

/* --- names --- */

static void put_built_names(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *list = entries_of(layout, number);

	for (uint32_t i = 0; i < list->count; i++)
		output_put(out, entry_name(list, &list->items[i]), list->items[i].name_length + 1U);
	for (uint32_t i = 0; i < list->count; i++) {
		const struct entry *entry = &list->items[i];
		const struct entry_side *side = entry_side_of(list, entry);

		if (entry_is_symlink(entry))
			output_put(out, side ? list->pool + side->target : "", side ? side->target_length + 1 : 1);
	}
}

static void put_view_names(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *view = entries_of(layout, number);

	output_lend(out, view->pool, view->pool_used);
}

static void put_root_name(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	(void)layout;
	output_put(out, ".", sizeof ".");
}

/* --- records of which each entry has one: a zeroed one is filled if the entry has a side record --- */

typedef void fill_record(const struct image *image, const struct entry *entry, const struct entry_side *side, void *record);

static void fill_atime(const struct image *image, const struct entry *entry, const struct entry_side *side, void *record)
{
	(void)image;
	if (!entry_is_dir(entry))
		memcpy(record, &side->atime, sizeof side->atime);
}

static void fill_origin(const struct image *image, const struct entry *entry, const struct entry_side *side, void *record)
{
	struct snapshot_origin origin = {
		.ino = side->ino, .ctime = side->ctime, .ctime_nsec = side->ctime_nsec,
		.digests = side->digest ? image->digests : 0,
	};

	if (entry_is_regular(entry))
		memcpy(record, &origin, sizeof origin);
}

static void fill_xxh128(const struct image *image, const struct entry *entry, const struct entry_side *side, void *record)
{
	if (entry_is_regular(entry) && side->digest)
		memcpy(record, image->digest_list.items[side->digest - 1].xxh128, SNAPSHOT_DIGEST);
}

static void fill_md5(const struct image *image, const struct entry *entry, const struct entry_side *side, void *record)
{
	if (entry_is_regular(entry) && side->digest)
		memcpy(record, image->digest_list.items[side->digest - 1].md5, SNAPSHOT_DIGEST);
}

static void put_built_records(const struct snapshot_layout *layout, uint32_t number, size_t size, fill_record *fill,
			      struct snapshot_output *out)
{
	const struct entries *list = entries_of(layout, number);

	for (uint32_t i = 0; i < list->count; i++) {
		const struct entry_side *side = entry_side_of(list, &list->items[i]);
		void *record = memset(output_room(out, size), 0, size);

		if (side)
			fill(layout->image, &list->items[i], side, record);
	}
}

/* Those of a view, from the same chunk of its snapshot, which may have none. */
static void put_view_records(const struct snapshot_layout *layout, uint32_t number, size_t size, const void *chunk,
			     struct snapshot_output *out)
{
	const struct entries *view = entries_of(layout, number);
	uint64_t first = view->snapshot->dirs[view->snapshot_dir].first_entry;

	if (chunk)
		output_lend(out, (const unsigned char *)chunk + first * size, view->count * size);
	else
		output_zeros(out, view->count * size);
}

/* Origins say which digests there are, so those of a larger set are not passed on as they are. */
static void put_fewer_origins(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *view = entries_of(layout, number);
	const struct attr_snapshot *old = view->snapshot;

	for (uint32_t i = 0; i < view->count; i++) {
		struct snapshot_origin *origin = output_room(out, sizeof *origin);

		*origin = old->origins[old->dirs[view->snapshot_dir].first_entry + i];
		origin->digests &= layout->image->digests;
	}
}

/* --- all of them --- */

typedef void put_dir(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out);

/* What the directories hold one after the other, by the kind of their entries; or the records of entries. */
static const struct chunk_writer {
	void (*root)(const struct snapshot_layout *layout, struct snapshot_output *out); /* before them; NULL: nothing */
	put_dir *view, *built;
	fill_record *fill;
} writers[CHUNK_IDS] = {
	[CHUNK_ENTRIES] = { .root = put_root_entry, .view = put_view_entries, .built = put_built_entries },
	[CHUNK_SIDES] = { .view = put_view_sides, .built = put_built_sides },
	[CHUNK_NAMES] = { .root = put_root_name, .view = put_view_names, .built = put_built_names },
	[CHUNK_ATIMES] = { .fill = fill_atime },
	[CHUNK_ORIGINS] = { .fill = fill_origin },
	[CHUNK_XXH128] = { .fill = fill_xxh128 },
	[CHUNK_MD5] = { .fill = fill_md5 },
};

/* What lies ready as a whole; NULL: the writers make it. */
static const void *ready_content(const struct snapshot_layout *layout, enum snapshot_chunk_id id)
{
	switch (id) {
	case CHUNK_FACTS:
		return layout->facts.data;
	case CHUNK_DIRS:
		return layout->dirs;
	case CHUNK_DEVICES:
		return layout->devices.items;
	case CHUNK_OWNERS:
		return layout->owners.data;
	default:
		return NULL;
	}
}

static uint64_t chunk_length(const struct snapshot_layout *layout, enum snapshot_chunk_id id)
{
	unsigned digests = layout->image->digests;
	const uint64_t counts[CHUNK_IDS] = {
		[CHUNK_FACTS] = layout->facts.length,
		[CHUNK_DIRS] = layout->dir_count,
		[CHUNK_ENTRIES] = layout->entry_count,
		[CHUNK_SIDES] = layout->side_count,
		[CHUNK_NAMES] = layout->name_bytes,
		[CHUNK_DEVICES] = layout->devices.count,
		[CHUNK_ATIMES] = layout->image->has_atimes ? layout->entry_count : 0,
		[CHUNK_ORIGINS] = digests ? layout->entry_count : 0,
		[CHUNK_XXH128] = digests & ATTR_DIGEST_XXH128 ? layout->entry_count : 0,
		[CHUNK_MD5] = digests & ATTR_DIGEST_MD5 ? layout->entry_count : 0,
		[CHUNK_OWNERS] = layout->owners.length,
	};

	return counts[id] * snapshot_chunk_kinds[id].record;
}

static void put_records(const struct snapshot_layout *layout, enum snapshot_chunk_id id, uint32_t number,
			struct snapshot_output *out)
{
	const struct attr_snapshot *old = layout->order[number]->entries.snapshot;
	size_t size = snapshot_chunk_kinds[id].record;

	if (!old)
		put_built_records(layout, number, size, writers[id].fill, out);
	else if (id == CHUNK_ORIGINS && old->origins && old->facts.digests & ~layout->image->digests)
		put_fewer_origins(layout, number, out);
	else
		put_view_records(layout, number, size, old->chunks[id], out);
}

static void put_chunk(const struct snapshot_layout *layout, enum snapshot_chunk_id id, struct snapshot_output *out)
{
	const struct chunk_writer *writer = &writers[id];
	const void *ready = ready_content(layout, id);

	if (ready) {
		output_put(out, ready, chunk_length(layout, id));
		return;
	}
	if (writer->root)
		writer->root(layout, out);
	else if (writer->fill)
		output_zeros(out, snapshot_chunk_kinds[id].record);
	for (uint32_t i = 0; i < layout->dir_count; i++)
		if (writer->fill)
			put_records(layout, id, i, out);
		else
			(layout->order[i]->entries.snapshot ? writer->view : writer->built)(layout, i, out);
}

static uint64_t aligned(uint64_t offset)
{
	return (offset + SNAPSHOT_ALIGNMENT - 1) / SNAPSHOT_ALIGNMENT * SNAPSHOT_ALIGNMENT;
}

/* Append a chunk to the table of contents; its place is behind what is planned. */
static void plan_chunk(struct snapshot_front *front, const struct snapshot_layout *layout, enum snapshot_chunk_id id)
{
	struct snapshot_header *header = &front->header;
	struct snapshot_chunk *chunk = &front->chunks[header->chunk_count];

	front->ids[header->chunk_count++] = id;
	memcpy(chunk->tag, snapshot_chunk_kinds[id].tag, sizeof chunk->tag);
	chunk->flags = snapshot_chunk_is_required(id) ? SNAPSHOT_REQUIRED : 0;
	chunk->offset = aligned(header->file_size);
	chunk->length = chunk_length(layout, id);
	header->file_size = chunk->offset + chunk->length;
}

void snapshot_front_plan(struct snapshot_front *front, const struct snapshot_layout *layout)
{
	struct snapshot_header *header = &front->header;
	bool wanted[CHUNK_OWNERS];
	uint32_t count = 1; /* the owners may be added */

	memset(front, 0, sizeof *front);
	memcpy(header->magic, SNAPSHOT_MAGIC, sizeof header->magic);
	header->version = SNAPSHOT_VERSION;
	for (unsigned id = 0; id < CHUNK_OWNERS; id++) {
		wanted[id] = snapshot_chunk_is_required(id) || chunk_length(layout, id);
		count += wanted[id];
	}
	header->file_size = sizeof *header + count * sizeof *front->chunks;
	for (unsigned id = 0; id < CHUNK_OWNERS; id++)
		if (wanted[id])
			plan_chunk(front, layout, id);
}

struct writing {
	struct snapshot_layout *layout;
	const struct snapshot_target *target;
	struct snapshot_front *front;
	int error;
};

static void write_chunk(struct writing *writing, uint32_t number)
{
	struct snapshot_output *out;

	if (writing->error)
		return;
	out = output_new(writing->target, writing->front->chunks[number].offset);
	put_chunk(writing->layout, writing->front->ids[number], out);
	writing->error = output_end(out);
	output_free(out);
}

static void sum_chunk(const struct writing *writing, uint32_t number)
{
	struct snapshot_output *out = output_new(NULL, 0);

	put_chunk(writing->layout, writing->front->ids[number], out);
	output_end(out);
	writing->front->chunks[number].sum = output_sum(out);
	output_free(out);
}

/*
 * One thread writes, because the kernel lets only one write to a file; what the chunks hold is cheap to say twice. The first
 * chunk, the facts, comes later: it needs what is counted here.
 */
static void write_or_sum(void *writing_void, int number)
{
	struct writing *writing = writing_void;

	if (number == 0)
		for (uint32_t i = 1; i < writing->front->header.chunk_count; i++)
			write_chunk(writing, i);
	else if (number == 1)
		snapshot_layout_count(writing->layout);
	else
		sum_chunk(writing, (uint32_t)number - 1);
}

static void finish_chunk(struct writing *writing, uint32_t number)
{
	write_chunk(writing, number);
	sum_chunk(writing, number);
}

int snapshot_chunks_write(struct snapshot_front *front, struct snapshot_layout *layout, const struct snapshot_target *target)
{
	struct writing writing = { .layout = layout, .target = target, .front = front };
	int threads = front->header.file_size < SHARED_SIZE ? 1 : THREADS;

	threads_share(threads, (int)front->header.chunk_count + 1, write_or_sum, &writing);
	finish_chunk(&writing, 0);
	if (layout->owners.length) {
		plan_chunk(front, layout, CHUNK_OWNERS);
		finish_chunk(&writing, front->header.chunk_count - 1);
	}
	front->header.sum = XXH3_64bits(front, snapshot_front_length(front));
	if (!writing.error)
		return 0;
	errno = writing.error;
	return -1;
}
