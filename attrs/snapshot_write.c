/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writing an attr snapshot in place of another: the new one is complete and on the disk before it has a name, so that no moment
 * and no failure shows anything but the old file or the new one.
 *
 * Directories that are views of an older snapshot are passed on in whole ranges of it: names, targets and side records count
 * from where the directory's begin, so that only the numbers of directories can differ.
 */
#include "attrs/snapshot_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attrs/snapshot_check.h"
#include "attrs/snapshot_output.h"
#include "attrs/snapshot_sum.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/temp.h"
#include "lib/alloc.h"
#include "lib/hashmap.h"
#include "lib/threads.h"

#ifndef HUAI_VERSION
#define HUAI_VERSION "dev"
#endif

#define COUNT_LIMIT (UINT32_MAX - 1) /* of entries and of side records: they are referred to with 32 bits */
#define DEVICE_LIMIT UINT16_MAX
#define TEXT_LIMIT UINT16_MAX

#define SHARED_DIRS 1000 /* so many directories are worth further threads */
enum { SHARES = 16, LAYOUT_THREADS = 4 };

enum { THREADS = 2 };
#define SHARED_SIZE (1 << 20) /* a snapshot so large is worth a second thread */

_Static_assert(sizeof(struct image_digest) == 2 * SNAPSHOT_DIGEST, "digests have one length");

/* --- counting and ordering: where everything will stand, before the first byte is written --- */

struct snapshot_layout {
	const struct image *image;
	struct fs_ids *ids;             /* NULL: owners have no names */
	const struct image_dir **order; /* the image's directories in the order of the file */
	struct snapshot_dir *dirs;      /* their records, complete */
	uint32_t dir_count;
	uint64_t entry_count;           /* "." included */
	uint64_t side_count, name_bytes;
	VEC(uint64_t) devices;
	struct strbuf facts, owners;    /* content of these chunks; complete after layout_count */
};

/* Those flags of an entry that the file keeps. */
static uint16_t snapshot_kept_flags(const struct entry *entry)
{
	return entry->flags & (entry_is_dir(entry) ? ENTRY_MOUNT : ENTRY_HARD_LINKED);
}

/* Does this entry have a side record in the file? */
static bool snapshot_has_side(const struct entry *entry)
{
	return entry_is_symlink(entry) || entry_is_device(entry) || snapshot_kept_flags(entry) & ENTRY_HARD_LINKED;
}

/* How many side records a view has in its snapshot. */
static uint64_t old_side_count(const struct entries *view)
{
	const struct attr_snapshot *old = view->snapshot;
	uint32_t next = view->snapshot_dir + 1;
	uint64_t end = next < old->facts.dir_count ? old->dirs[next].first_side : old->side_count;

	return end - old->dirs[view->snapshot_dir].first_side;
}

/* Number the directories depth first: those of one directory in order, each with everything below it before the next. */
static void order_dirs(struct snapshot_layout *layout)
{
	const struct image *image = layout->image;
	uint32_t *numbers = xcalloc(image->dirs.count, sizeof *numbers);
	VEC(uint32_t) stack = VEC_INIT;

	vec_push(&stack, 0);
	while (stack.count) {
		uint32_t at = stack.items[--stack.count], number = layout->dir_count++;
		const struct image_dir *dir = image->dirs.items[at];

		numbers[at] = number;
		layout->order[number] = dir;
		layout->dirs[number].parent = numbers[dir->parent];
		layout->dirs[number].parent_entry = dir->parent_entry;
		layout->dirs[number].subtree_end = number + 1;
		for (uint32_t i = dir->child_count; i--;)
			vec_push(&stack, dir->first_child + i);
	}
	vec_free(&stack);
	free(numbers);
	for (uint32_t i = layout->dir_count; i-- > 1;) {
		struct snapshot_dir *parent = &layout->dirs[layout->dirs[i].parent];

		if (layout->dirs[i].subtree_end > parent->subtree_end)
			parent->subtree_end = layout->dirs[i].subtree_end;
	}
}

/* --- what each directory needs, found out by several threads --- */

/* For now a record says how many bytes and side records the directory has, not where they begin. Those of a view lie as they
 * will. */
static void measure_share(void *layout_void, int number)
{
	struct snapshot_layout *layout = layout_void;
	uint64_t dirs = layout->dir_count, share = (uint64_t)number;

	for (uint64_t i = dirs * share / SHARES; i < dirs * (share + 1) / SHARES; i++) {
		const struct entries *list = &layout->order[i]->entries;
		struct snapshot_dir *record = &layout->dirs[i];

		if (list->snapshot) {
			record->names = list->pool_used;
			record->first_side = (uint32_t)old_side_count(list);
			continue;
		}
		for (uint32_t j = 0; j < list->count; j++) {
			const struct entry *entry = &list->items[j];
			const struct entry_side *side = entry_side_of(list, entry);

			record->names += entry->name_length + 1U;
			record->first_side += snapshot_has_side(entry);
			if (entry_is_symlink(entry))
				record->names += (side ? side->target_length : 0) + 1U;
		}
	}
}

/* --- facts --- */

static uint16_t text_length(const char *text)
{
	size_t length = text ? strlen(text) : 0;

	return (uint16_t)(length < TEXT_LIMIT ? length : TEXT_LIMIT);
}

static void add_facts(struct snapshot_layout *layout, uint64_t generation)
{
	static const char version[] = "rsync-huai " HUAI_VERSION;
	const struct image *image = layout->image;
	struct snapshot_facts facts = {
		.generation = generation,
		.made = image->made.tv_sec,
		.made_nsec = (uint32_t)image->made.tv_nsec,
		.flags = image->followed_links ? SNAPSHOT_FOLLOWED_LINKS : 0,
		.root_dev = image->root_dev,
		.root_ino = image->root_ino,
		.entry_count = layout->entry_count,
		.dir_count = layout->dir_count,
		.io_error = (uint32_t)image->io_error,
		.root_length = text_length(image->root_path),
		.version_length = text_length(version),
		.options_length = text_length(image->options),
	};

	strbuf_add(&layout->facts, &facts, sizeof facts);
	strbuf_add(&layout->facts, image->root_path, facts.root_length);
	strbuf_add_char(&layout->facts, '\0');
	strbuf_add(&layout->facts, version, facts.version_length);
	strbuf_add_char(&layout->facts, '\0');
	strbuf_add(&layout->facts, image->options, facts.options_length);
	strbuf_add_char(&layout->facts, '\0');
}

/* 0; -1 with EFBIG if the format cannot hold it, `why` says what. The image must stay as it is. */
static int layout_make(struct snapshot_layout *layout, const struct image *image, uint64_t generation, struct fs_ids *ids,
		       struct strbuf *why)
{
	struct hashmap devices = HASHMAP_INIT;

	*layout = (struct snapshot_layout){ .image = image, .ids = ids, .entry_count = 1, .name_bytes = sizeof "." };
	layout->order = xcalloc(image->dirs.count, sizeof *layout->order);
	layout->dirs = xcalloc(image->dirs.count, sizeof *layout->dirs);
	order_dirs(layout);
	threads_share(layout->dir_count < SHARED_DIRS ? 1 : threads_useful(LAYOUT_THREADS), SHARES, measure_share, layout);
	for (uint32_t i = 0; i < layout->dir_count; i++) {
		const struct image_dir *dir = layout->order[i];
		struct snapshot_dir *record = &layout->dirs[i];
		uint64_t names = record->names, sides = record->first_side;
		bool inserted;
		uint64_t *device = hashmap_put(&devices, dir->dev, 0, layout->devices.count, &inserted);

		if (inserted)
			vec_push(&layout->devices, dir->dev);
		record->first_entry = (uint32_t)layout->entry_count;
		record->names = layout->name_bytes;
		record->first_side = (uint32_t)layout->side_count;
		record->ino = dir->ino;
		/* A time that no clock of ours gives is one that nobody can rely upon. */
		if (dir->ctime >= 0 && dir->ctime < INT64_MAX / SNAPSHOT_TIME_UNIT)
			record->ctime = dir->ctime * SNAPSHOT_TIME_UNIT + dir->ctime_nsec;
		record->count = dir->entries.count;
		record->leading = dir->entries.count - dir->child_count;
		record->device = (uint16_t)*device;
		record->error = (uint16_t)dir->error;
		layout->entry_count += dir->entries.count;
		layout->name_bytes += names;
		layout->side_count += sides;
	}
	hashmap_free(&devices);
	add_facts(layout, generation);
	strbuf_reset(why);
	if (layout->entry_count > COUNT_LIMIT)
		strbuf_add_string(why, "too many files for one attr snapshot");
	else if (layout->side_count > COUNT_LIMIT)
		strbuf_add_string(why, "too many symlinks, devices and hard links for one attr snapshot");
	else if (layout->devices.count > DEVICE_LIMIT)
		strbuf_add_string(why, "too many mounted file systems for one attr snapshot");
	else
		return 0;
	errno = EFBIG;
	return -1;
}

/* --- what all entries have together --- */

/* Ids of users or of groups that entries have. Neighbours mostly have the same. */
struct id_set {
	struct hashmap map;
	VEC(uint32_t) ids;
	uint32_t last;
};

static int compare_ids(const void *a, const void *b)
{
	uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;

	return first < second ? -1 : first > second;
}

/* Add the names of the ids, which are freed. */
static void add_owners(struct snapshot_layout *layout, struct id_set *set, bool is_group)
{
	static const char zeros[4];

	qsort(set->ids.items, set->ids.count, sizeof *set->ids.items, compare_ids);
	for (size_t i = 0; layout->ids && i < set->ids.count; i++) {
		uint32_t id = set->ids.items[i];
		const char *name = fs_id_name(layout->ids, is_group, id);

		if (!name || !*name)
			continue;
		struct snapshot_owner owner = { .id = id, .is_group = is_group, .length = (uint16_t)strlen(name) };

		strbuf_add(&layout->owners, &owner, sizeof owner);
		strbuf_add(&layout->owners, name, owner.length);
		strbuf_add(&layout->owners, zeros, 4 - owner.length % 4U);
	}
	hashmap_free(&set->map);
	vec_free(&set->ids);
}

static void note_id(struct id_set *set, uint32_t id)
{
	bool inserted;

	if (set->ids.count && id == set->last)
		return;
	set->last = id;
	hashmap_put(&set->map, id, 0, 0, &inserted);
	if (inserted)
		vec_push(&set->ids, id);
}

/* Look at every entry for what the facts and the owners say of all together. */
static void layout_count(struct snapshot_layout *layout)
{
	struct id_set users = { .last = 0 }, groups = { .last = 0 };
	uint64_t content_bytes = 0;

	for (uint32_t i = 0; i <= layout->dir_count; i++) {
		const struct entries *list = i ? &layout->order[i - 1]->entries : &layout->image->root;

		for (uint32_t j = 0; j < list->count; j++) {
			const struct entry *entry = &list->items[j];

			note_id(&users, entry->uid);
			note_id(&groups, entry->gid);
			content_bytes += entry_is_regular(entry) ? entry->size : 0;
		}
	}
	memcpy(layout->facts.data + offsetof(struct snapshot_facts, content_bytes), &content_bytes, sizeof content_bytes);
	strbuf_reset(&layout->owners);
	add_owners(layout, &users, false);
	add_owners(layout, &groups, true);
}

/* What stands at the start of the file, once everything else is known. */
struct snapshot_front {
	struct snapshot_header header;
	struct snapshot_chunk chunks[CHUNK_IDS]; /* as many as the header says */
	enum snapshot_chunk_id ids[CHUNK_IDS];   /* of these; no part of the file */
};

static inline size_t snapshot_front_length(const struct snapshot_front *front)
{
	return sizeof front->header + front->header.chunk_count * sizeof *front->chunks;
}

static const struct entries *entries_of(const struct snapshot_layout *layout, uint32_t number)
{
	return &layout->order[number]->entries;
}

/* --- what the directories hold one after the other --- */

static void put_entries(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *list = entries_of(layout, number);
	uint32_t at = 0, name = 0, side = 0, child = number + 1;

	/* As long as the directories below keep their numbers the records of a view are lent as they are. */
	if (list->snapshot) {
		for (at = layout->dirs[number].leading; at < list->count && list->items[at].dir == child; at++)
			child = layout->dirs[child].subtree_end;
		output_lend(out, list->items, at * sizeof *list->items);
	}
	for (; at < list->count; at++) {
		struct entry *entry = output_room(out, sizeof *entry);

		*entry = list->items[at];
		if (!list->snapshot) {
			entry->flags = snapshot_kept_flags(entry);
			entry->root = 0;
			entry->name = name;
			name += entry->name_length + 1U;
			entry->side = snapshot_has_side(entry) ? ++side : 0;
		}
		entry->dir = 0;
		if (entry_is_dir(entry)) {
			entry->dir = child;
			child = layout->dirs[child].subtree_end;
		}
	}
}

/* A symlink's target will stand behind the directory's names, and is counted from where they begin. */
static void put_sides(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	static const struct entry_side nothing;
	const struct entries *list = entries_of(layout, number);
	uint32_t target = 0;

	if (list->snapshot) {
		const struct attr_snapshot *old = list->snapshot;
		const struct snapshot_side *first = old->sides + old->dirs[list->snapshot_dir].first_side;

		output_lend(out, first, old_side_count(list) * sizeof *first);
		return;
	}
	for (uint32_t i = 0; i < list->count; i++)
		target += list->items[i].name_length + 1U;
	for (uint32_t i = 0; i < list->count; i++) {
		const struct entry *entry = &list->items[i];
		const struct entry_side *known = entry_side_of(list, entry);

		if (!snapshot_has_side(entry))
			continue;
		struct snapshot_side *side = memset(output_room(out, sizeof *side), 0, sizeof *side);

		known = known ? known : &nothing;
		if (entry_is_symlink(entry)) {
			side->a = target;
			side->b = known->target_length;
			target += side->b + 1;
		} else if (entry_is_device(entry)) {
			side->a = known->rdev_major;
			side->b = known->rdev_minor;
		}
		if (entry->flags & ENTRY_HARD_LINKED)
			side->ino = known->ino;
	}
}

static void put_names(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out)
{
	const struct entries *list = entries_of(layout, number);

	if (list->snapshot) {
		output_lend(out, list->pool, list->pool_used);
		return;
	}
	for (uint32_t i = 0; i < list->count; i++)
		output_put(out, entry_name(list, &list->items[i]), list->items[i].name_length + 1U);
	for (uint32_t i = 0; i < list->count; i++) {
		const struct entry *entry = &list->items[i];
		const struct entry_side *side = entry_side_of(list, entry);

		if (entry_is_symlink(entry))
			output_put(out, side ? list->pool + side->target : "", side ? side->target_length + 1 : 1);
	}
}

/* --- records of which each entry has one --- */

/* Fill the zeroed record of an entry that has a side record. */
static void fill_record(const struct image *image, enum snapshot_chunk_id id, const struct entry *entry,
			const struct entry_side *side, void *record)
{
	const struct image_digest *digest = side->digest ? &image->digest_list.items[side->digest - 1] : NULL;
	struct snapshot_origin origin = {
		.ino = side->ino, .ctime = side->ctime, .ctime_nsec = side->ctime_nsec, .digests = digest ? image->digests : 0,
	};

	if (id == CHUNK_ATIMES) {
		if (!entry_is_dir(entry))
			memcpy(record, &side->atime, sizeof side->atime);
	} else if (!entry_is_regular(entry)) {
		return;
	} else if (id == CHUNK_ORIGINS) {
		memcpy(record, &origin, sizeof origin);
	} else if (digest) {
		memcpy(record, id == CHUNK_MD5 ? digest->md5 : digest->xxh128, SNAPSHOT_DIGEST);
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

/* For the entries of a directory. */
static void put_records(const struct snapshot_layout *layout, enum snapshot_chunk_id id, uint32_t number,
			struct snapshot_output *out)
{
	const struct entries *list = entries_of(layout, number);
	const struct attr_snapshot *old = list->snapshot;
	uint64_t first = old ? old->dirs[list->snapshot_dir].first_entry : 0;
	size_t size = snapshot_chunk_kinds[id].record;

	for (uint32_t i = 0; !old && i < list->count; i++) {
		const struct entry_side *side = entry_side_of(list, &list->items[i]);
		void *record = memset(output_room(out, size), 0, size);

		if (side)
			fill_record(layout->image, id, &list->items[i], side, record);
	}
	if (!old)
		return;
	/* Those of a view come from the same chunk of its snapshot, which may have none. */
	if (!old->chunks[id]) {
		output_zeros(out, list->count * size);
		return;
	}
	if (id != CHUNK_ORIGINS || !(old->facts.digests & ~layout->image->digests)) {
		output_lend(out, (const unsigned char *)old->chunks[id] + first * size, list->count * size);
		return;
	}
	/* Origins say which digests there are, so those of a larger set are not passed on as they are. */
	for (uint32_t i = 0; i < list->count; i++) {
		struct snapshot_origin *origin = output_room(out, sizeof *origin);

		*origin = old->origins[first + i];
		origin->digests &= layout->image->digests;
	}
}

static void put_chunk(const struct snapshot_layout *layout, enum snapshot_chunk_id id, struct snapshot_output *out)
{
	const void *const ready[CHUNK_IDS] = {
		[CHUNK_FACTS] = layout->facts.data, [CHUNK_DIRS] = layout->dirs,
		[CHUNK_DEVICES] = layout->devices.items, [CHUNK_OWNERS] = layout->owners.data,
	};

	if (ready[id]) {
		output_put(out, ready[id], chunk_length(layout, id));
		return;
	}
	/* Entry 0, ".", belongs to no directory. */
	if (id == CHUNK_ENTRIES) {
		struct entry *root = output_room(out, sizeof *root);

		*root = layout->image->root.items[0];
		root->flags = root->root = 0;
		root->name = root->side = root->dir = 0;
	} else if (id == CHUNK_NAMES) {
		output_put(out, ".", sizeof ".");
	} else if (id != CHUNK_SIDES) {
		output_zeros(out, snapshot_chunk_kinds[id].record);
	}
	for (uint32_t i = 0; i < layout->dir_count; i++)
		if (id == CHUNK_ENTRIES)
			put_entries(layout, i, out);
		else if (id == CHUNK_SIDES)
			put_sides(layout, i, out);
		else if (id == CHUNK_NAMES)
			put_names(layout, i, out);
		else
			put_records(layout, id, i, out);
}

/* Append a chunk to the table of contents; its place is behind what is planned. */
static void plan_chunk(struct snapshot_front *front, const struct snapshot_layout *layout, enum snapshot_chunk_id id)
{
	struct snapshot_header *header = &front->header;
	struct snapshot_chunk *chunk = &front->chunks[header->chunk_count];

	front->ids[header->chunk_count++] = id;
	memcpy(chunk->tag, snapshot_chunk_kinds[id].tag, sizeof chunk->tag);
	chunk->flags = snapshot_chunk_is_required(id) ? SNAPSHOT_REQUIRED : 0;
	chunk->offset = (header->file_size + SNAPSHOT_ALIGNMENT - 1) / SNAPSHOT_ALIGNMENT * SNAPSHOT_ALIGNMENT;
	chunk->length = chunk_length(layout, id);
	header->file_size = chunk->offset + chunk->length;
}

/* Places and sizes, as yet without sums and without the owners, which will come after all that is planned. */
static void plan_front(struct snapshot_front *front, const struct snapshot_layout *layout)
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
	int fd;
	struct snapshot_front *front;
	int error;
};

static void write_chunk(struct writing *writing, uint32_t number)
{
	if (writing->error)
		return;
	struct snapshot_output *out = output_new(writing->fd, writing->front->chunks[number].offset);

	put_chunk(writing->layout, writing->front->ids[number], out);
	writing->error = output_end(out);
	output_free(out);
}

static void sum_chunk(const struct writing *writing, uint32_t number)
{
	struct snapshot_output *out = output_new(-1, 0);

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
		layout_count(writing->layout);
	else
		sum_chunk(writing, (uint32_t)number - 1);
}

static void finish_chunk(struct writing *writing, uint32_t number)
{
	write_chunk(writing, number);
	sum_chunk(writing, number);
}

/* Write every chunk to its place; where that is worth it, another thread counts what the layout has not yet counted, and sums
 * up. Then the front is complete. What lies between the chunks is left as it is: zeros. 0, or -1 with errno. */
static int write_chunks(struct snapshot_front *front, struct snapshot_layout *layout, int fd)
{
	struct writing writing = { .layout = layout, .fd = fd, .front = front };
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

/* --- the next generation --- */

static bool read_at(int fd, void *out, size_t size, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, out, size, (off_t)offset) == (ssize_t)size;
}

/* Nothing but the facts is looked at, and no sum: with a damaged file the worst is a number that is not the next one. */
static uint64_t next_generation(int dir_fd, const char *name)
{
	struct snapshot_header header;
	struct snapshot_chunk chunks[SNAPSHOT_CHUNKS_MAX];
	struct snapshot_facts facts;
	uint64_t generation = 0;
	uint32_t i = 0;
	int fd = fs_open_at(dir_fd, name, O_RDONLY, 0);

	if (fd < 0)
		return 1;
	if (read_at(fd, &header, sizeof header, 0) && !memcmp(header.magic, SNAPSHOT_MAGIC, sizeof header.magic)
	    && header.version == SNAPSHOT_VERSION && header.chunk_count <= SNAPSHOT_CHUNKS_MAX
	    && read_at(fd, chunks, header.chunk_count * sizeof *chunks, sizeof header)) {
		while (i < header.chunk_count
		       && (memcmp(chunks[i].tag, snapshot_chunk_kinds[CHUNK_FACTS].tag, sizeof chunks[i].tag)
			   || chunks[i].length < sizeof facts))
			i++;
		if (i < header.chunk_count && read_at(fd, &facts, sizeof facts, chunks[i].offset))
			generation = facts.generation;
	}
	close(fd);
	return generation + 1 ? generation + 1 : 1;
}

/* --- the file --- */

static int fail(struct strbuf *why, int error, const char *what)
{
	strbuf_reset(why);
	strbuf_add_string(why, what);
	errno = error;
	return -1;
}

/* All of it into the open file, and onto the disk. */
static int fill(int fd, struct snapshot_layout *layout, uint64_t *size, struct strbuf *why)
{
	struct snapshot_front front;

	plan_front(&front, layout);
	if (front.header.file_size > INT64_MAX / 2)
		return fail(why, EFBIG, "cannot write it");
	if (write_chunks(&front, layout, fd) < 0 || ftruncate(fd, (off_t)front.header.file_size) < 0
	    || fs_write_all_at(fd, &front, snapshot_front_length(&front), 0) < 0)
		return fail(why, errno, "cannot write it");
	if (fchmod(fd, 0644 & ~fs_umask()) < 0)
		return fail(why, errno, "cannot set its mode");
	if (fsync(fd) < 0)
		return fail(why, errno, "cannot bring it to the disk");
	*size = front.header.file_size;
	return 0;
}

/* Not even a killed writer leaves anything behind. -1 with EOPNOTSUPP where that cannot be had. */
static int replace_unnamed(int dir_fd, const char *name, struct snapshot_layout *layout, uint64_t *size,
			   struct strbuf *why)
{
	struct fs_temp temp;
	int fd = snapshot_room_take(layout->image->room);

	if (fd < 0)
		fd = fs_unnamed_create(dir_fd, 0600);

	if (fd < 0)
		return fail(why, errno, "cannot make a temp file in its directory");
	int result = fill(fd, layout, size, why);

	/* Naming fails for reasons of its own (without /proc, on some file systems): then a file that has had a name may do. */
	if (!result && fs_temp_name(&temp, dir_fd, name, fd) < 0)
		result = fail(why, EOPNOTSUPP, "cannot give a name to the new file");
	if (result < 0) {
		fs_close(fd);
		return -1;
	}
	return fs_temp_commit(&temp, name) < 0 ? fail(why, errno, "cannot put the new file in its place") : 0;
}

static int replace_named(int dir_fd, const char *name, struct snapshot_layout *layout, uint64_t *size, struct strbuf *why)
{
	struct fs_temp temp;

	if (fs_temp_create(&temp, dir_fd, name) < 0)
		return fail(why, errno, "cannot make a temp file in its directory");
	if (fill(temp.fd, layout, size, why) < 0) {
		int error = errno;
		fs_temp_discard(&temp);
		errno = error;
		return -1;
	}
	return fs_temp_commit(&temp, name) < 0 ? fail(why, errno, "cannot put the new file in its place") : 0;
}

/* The rename, too, is to survive a crash. A directory that cannot be opened or synced (EINVAL) gives what it can. */
static int sync_dir(int dir_fd, struct strbuf *why)
{
	int fd = fs_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0), error = 0;

	if (fd < 0)
		return 0;
	if (fsync(fd) < 0 && errno != EINVAL)
		error = errno;
	close(fd);
	return error ? fail(why, error, "it is written, but its directory cannot be brought to the disk") : 0;
}

void attr_snapshot_reserve(struct image *image, const char *path, uint64_t bytes)
{
	if (!image->room)
		image->room = snapshot_room_new(path, bytes);
}

int attr_snapshot_write(const struct image *image, const char *path, uint64_t generation, struct fs_ids *ids, uint64_t *size,
			struct strbuf *why)
{
	char name[256];
	struct snapshot_layout layout = { .image = image };
	struct fs_stat st;
	int dir_fd = fs_operator_parent(path, FS_FOLLOW, name), result;

	if (dir_fd < 0)
		return fail(why, errno, "cannot find its directory");
	bool exists = fs_lstat_at(dir_fd, name, &st) == 0;

	if (!exists && errno != ENOENT) {
		result = fail(why, errno, "cannot look at it");
	} else if (exists && !S_ISREG(st.mode)) {
		result = fail(why, S_ISDIR(st.mode) ? EISDIR : EINVAL, "only a regular file is replaced");
	} else {
		if (!generation)
			generation = next_generation(dir_fd, name);
		result = layout_make(&layout, image, generation, ids, why);
		if (!result)
			result = replace_unnamed(dir_fd, name, &layout, size, why);
		if (result < 0 && errno == EOPNOTSUPP) {
			strbuf_reset(why);
			result = replace_named(dir_fd, name, &layout, size, why);
		}
		if (!result)
			result = sync_dir(dir_fd, why);
	}
	int error = errno;

	free(layout.order);
	free(layout.dirs);
	vec_free(&layout.devices);
	strbuf_free(&layout.facts);
	strbuf_free(&layout.owners);
	close(dir_fd);
	errno = error;
	return result;
}
