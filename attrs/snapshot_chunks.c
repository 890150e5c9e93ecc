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

enum { DIGEST_LENGTH = 16, THREADS = 2 };
#define SHARED_SIZE (1 << 20) /* a snapshot so large is worth a second thread */

_Static_assert(sizeof(struct image_digest) == 2 * DIGEST_LENGTH, "digests have one length");

/* --- what lies ready --- */

static uint64_t facts_length(const struct snapshot_layout *layout)
{
	return layout->facts.length;
}

static void put_facts(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	output_put(out, layout->facts.data, layout->facts.length);
}

static uint64_t dirs_length(const struct snapshot_layout *layout)
{
	return layout->dir_count * sizeof *layout->dirs;
}

static void put_dirs(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	output_put(out, layout->dirs, dirs_length(layout));
}

static uint64_t devices_length(const struct snapshot_layout *layout)
{
	return layout->devices.count * sizeof *layout->devices.items;
}

static void put_devices(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	output_put(out, layout->devices.items, devices_length(layout));
}

static void put_owners(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	output_put(out, layout->owners.data, layout->owners.length);
}

/* --- what the directories hold one after the other --- */

typedef void put_dir(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out);

static void each_dir(const struct snapshot_layout *layout, put_dir *view, put_dir *built, struct snapshot_output *out)
{
	for (uint32_t i = 0; i < layout->dir_count; i++)
		if (layout->order[i]->entries.snapshot)
			view(layout, i, out);
		else
			built(layout, i, out);
}

static const struct entries *entries_of(const struct snapshot_layout *layout, uint32_t number)
{
	return &layout->order[number]->entries;
}

/* --- entries --- */

static uint64_t entries_length(const struct snapshot_layout *layout)
{
	return layout->entry_count * sizeof(struct entry);
}

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

static void put_entries(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	struct entry *root = output_room(out, sizeof *root);

	*root = layout->image->root.items[0];
	root->flags = root->root = 0;
	root->name = root->side = root->dir = 0;
	each_dir(layout, put_view_entries, put_built_entries, out);
}

/* --- side records --- */

static uint64_t sides_length(const struct snapshot_layout *layout)
{
	return layout->side_count * sizeof(struct snapshot_side);
}

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

static void put_sides(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	each_dir(layout, put_view_sides, put_built_sides, out);
}

/* --- names --- */

static uint64_t names_length(const struct snapshot_layout *layout)
{
	return layout->name_bytes;
}

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

static void put_names(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	output_put(out, ".", sizeof ".");
	each_dir(layout, put_view_names, put_built_names, out);
}

/* --- records of which each entry has one --- */

/* `fill` fills the zeroed record of an entry that has a side record. */
static void put_built_records(const struct snapshot_layout *layout, uint32_t number, size_t size, struct snapshot_output *out,
			      void (*fill)(const struct image *, const struct entry *, const struct entry_side *, void *record))
{
	const struct entries *list = entries_of(layout, number);

	for (uint32_t i = 0; i < list->count; i++) {
		const struct entry_side *side = entry_side_of(list, &list->items[i]);
		void *record = memset(output_room(out, size), 0, size);

		if (side)
			fill(layout->image, &list->items[i], side, record);
	}
}

/* Those of a view from the same chunk of its snapshot, which may have none. */
static void put_view_records(const struct entries *view, const void *chunk, size_t size, struct snapshot_output *out)
{
	uint64_t first = view->snapshot->dirs[view->snapshot_dir].first_entry;

	if (chunk)
		output_lend(out, (const unsigned char *)chunk + first * size, view->count * size);
	else
		output_zeros(out, view->count * size);
}

/* --- atimes --- */

static uint64_t atimes_length(const struct snapshot_layout *layout)
{
	return layout->image->has_atimes ? layout->entry_count * sizeof(int64_t) : 0;
}

static void fill_atime(const struct image *image, const struct entry *entry, const struct entry_side *side, void *record)
{
	(void)image;
	if (!entry_is_dir(entry))
		memcpy(record, &side->atime, sizeof side->atime);
}

static void put_built_atimes(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	put_built_records(layout, number, sizeof(int64_t), out, fill_atime);
}

static void put_view_atimes(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *view = entries_of(layout, number);

	put_view_records(view, view->snapshot->atimes, sizeof(int64_t), out);
}

static void put_atimes(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	output_zeros(out, sizeof(int64_t));
	each_dir(layout, put_view_atimes, put_built_atimes, out);
}

/* --- origins --- */

static uint64_t origins_length(const struct snapshot_layout *layout)
{
	return layout->image->digests ? layout->entry_count * sizeof(struct snapshot_origin) : 0;
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

static void put_built_origins(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	put_built_records(layout, number, sizeof(struct snapshot_origin), out, fill_origin);
}

/* They say which digests there are, so those of a larger set are not passed on as they are. */
static void put_view_origins(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *view = entries_of(layout, number);
	const struct attr_snapshot *old = view->snapshot;
	unsigned kept = layout->image->digests;

	if (!old->origins || !(old->facts.digests & ~kept)) {
		put_view_records(view, old->origins, sizeof *old->origins, out);
		return;
	}
	for (uint32_t i = 0; i < view->count; i++) {
		struct snapshot_origin *origin = output_room(out, sizeof *origin);

		*origin = old->origins[old->dirs[view->snapshot_dir].first_entry + i];
		origin->digests &= kept;
	}
}

static void put_origins(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	output_zeros(out, sizeof(struct snapshot_origin));
	each_dir(layout, put_view_origins, put_built_origins, out);
}

/* --- digests --- */

static uint64_t xxh128_length(const struct snapshot_layout *layout)
{
	return layout->image->digests & ATTR_DIGEST_XXH128 ? layout->entry_count * DIGEST_LENGTH : 0;
}

static void fill_xxh128(const struct image *image, const struct entry *entry, const struct entry_side *side, void *record)
{
	if (entry_is_regular(entry) && side->digest)
		memcpy(record, image->digest_list.items[side->digest - 1].xxh128, DIGEST_LENGTH);
}

static void put_built_xxh128(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	put_built_records(layout, number, DIGEST_LENGTH, out, fill_xxh128);
}

static void put_view_xxh128(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *view = entries_of(layout, number);

	put_view_records(view, view->snapshot->xxh128, DIGEST_LENGTH, out);
}

static void put_xxh128(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	output_zeros(out, DIGEST_LENGTH);
	each_dir(layout, put_view_xxh128, put_built_xxh128, out);
}

static uint64_t md5_length(const struct snapshot_layout *layout)
{
	return layout->image->digests & ATTR_DIGEST_MD5 ? layout->entry_count * DIGEST_LENGTH : 0;
}

static void fill_md5(const struct image *image, const struct entry *entry, const struct entry_side *side, void *record)
{
	if (entry_is_regular(entry) && side->digest)
		memcpy(record, image->digest_list.items[side->digest - 1].md5, DIGEST_LENGTH);
}

static void put_built_md5(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	put_built_records(layout, number, DIGEST_LENGTH, out, fill_md5);
}

static void put_view_md5(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *view = entries_of(layout, number);

	put_view_records(view, view->snapshot->md5, DIGEST_LENGTH, out);
}

static void put_md5(const struct snapshot_layout *layout, struct snapshot_output *out)
{
	output_zeros(out, DIGEST_LENGTH);
	each_dir(layout, put_view_md5, put_built_md5, out);
}

/* --- all of them --- */

/* In the order of the file, before the owners. Those that a reader can do without are left out when they are empty. */
static const struct chunk_kind {
	const char *tag;
	uint32_t flags;
	uint64_t (*length)(const struct snapshot_layout *layout);
	void (*put)(const struct snapshot_layout *layout, struct snapshot_output *out);
} kinds[SNAPSHOT_CHUNK_KINDS - 1] = {
	{ SNAPSHOT_TAG_FACTS, SNAPSHOT_REQUIRED, facts_length, put_facts },
	{ SNAPSHOT_TAG_DIRS, SNAPSHOT_REQUIRED, dirs_length, put_dirs },
	{ SNAPSHOT_TAG_ENTRIES, SNAPSHOT_REQUIRED, entries_length, put_entries },
	{ SNAPSHOT_TAG_SIDES, SNAPSHOT_REQUIRED, sides_length, put_sides },
	{ SNAPSHOT_TAG_NAMES, SNAPSHOT_REQUIRED, names_length, put_names },
	{ SNAPSHOT_TAG_DEVICES, SNAPSHOT_REQUIRED, devices_length, put_devices },
	{ SNAPSHOT_TAG_ATIMES, 0, atimes_length, put_atimes },
	{ SNAPSHOT_TAG_ORIGINS, 0, origins_length, put_origins },
	{ SNAPSHOT_TAG_XXH128, 0, xxh128_length, put_xxh128 },
	{ SNAPSHOT_TAG_MD5, 0, md5_length, put_md5 },
};

static bool is_wanted(const struct chunk_kind *kind, const struct snapshot_layout *layout)
{
	return kind->flags & SNAPSHOT_REQUIRED || kind->length(layout);
}

static uint64_t aligned(uint64_t offset)
{
	return (offset + SNAPSHOT_ALIGNMENT - 1) / SNAPSHOT_ALIGNMENT * SNAPSHOT_ALIGNMENT;
}

void snapshot_front_plan(struct snapshot_front *front, const struct snapshot_layout *layout)
{
	struct snapshot_header *header = &front->header;

	memset(front, 0, sizeof *front);
	memcpy(header->magic, SNAPSHOT_MAGIC, sizeof header->magic);
	header->version = SNAPSHOT_VERSION;
	for (int i = 0; i < SNAPSHOT_CHUNK_KINDS - 1; i++)
		header->chunk_count += is_wanted(&kinds[i], layout);
	/* The owners may be added. */
	header->file_size = snapshot_front_length(front) + sizeof *front->chunks;
	struct snapshot_chunk *chunk = front->chunks;

	for (int i = 0; i < SNAPSHOT_CHUNK_KINDS - 1; i++) {
		if (!is_wanted(&kinds[i], layout))
			continue;
		memcpy(chunk->tag, kinds[i].tag, strlen(kinds[i].tag));
		chunk->flags = kinds[i].flags;
		chunk->offset = aligned(header->file_size);
		chunk->length = kinds[i].length(layout);
		header->file_size = chunk->offset + chunk->length;
		chunk++;
	}
}

struct writing {
	struct snapshot_layout *layout;
	const struct snapshot_target *target;
	struct snapshot_front *front;
	/* What puts each of the front's chunks. */
	void (*put[SNAPSHOT_CHUNK_KINDS])(const struct snapshot_layout *layout, struct snapshot_output *out);
	int error;
};

static void write_chunk(struct writing *writing, uint32_t number)
{
	struct snapshot_output *out;

	if (writing->error)
		return;
	out = output_new(writing->target, writing->front->chunks[number].offset);
	writing->put[number](writing->layout, out);
	writing->error = output_end(out);
	output_free(out);
}

static void sum_chunk(const struct writing *writing, uint32_t number)
{
	struct snapshot_output *out = output_new(NULL, 0);

	writing->put[number](writing->layout, out);
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

static void add_owners(struct writing *writing)
{
	struct snapshot_header *header = &writing->front->header;
	struct snapshot_chunk *chunk = &writing->front->chunks[header->chunk_count];

	if (!writing->layout->owners.length)
		return;
	memcpy(chunk->tag, SNAPSHOT_TAG_OWNERS, strlen(SNAPSHOT_TAG_OWNERS));
	chunk->offset = aligned(header->file_size);
	chunk->length = writing->layout->owners.length;
	header->file_size = chunk->offset + chunk->length;
	writing->put[header->chunk_count] = put_owners;
	write_chunk(writing, header->chunk_count);
	sum_chunk(writing, header->chunk_count);
	header->chunk_count++;
}

int snapshot_chunks_write(struct snapshot_front *front, struct snapshot_layout *layout, const struct snapshot_target *target)
{
	struct writing writing = { .layout = layout, .target = target, .front = front };
	int count = 0, threads = front->header.file_size < SHARED_SIZE ? 1 : THREADS;

	for (int i = 0; i < SNAPSHOT_CHUNK_KINDS - 1; i++)
		if (is_wanted(&kinds[i], layout))
			writing.put[count++] = kinds[i].put;
	threads_share(threads, count + 1, write_or_sum, &writing);
	write_chunk(&writing, 0);
	sum_chunk(&writing, 0);
	add_owners(&writing);
	front->header.sum = XXH3_64bits(front, snapshot_front_length(front));
	if (!writing.error)
		return 0;
	errno = writing.error;
	return -1;
}
