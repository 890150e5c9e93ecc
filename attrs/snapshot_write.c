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

#include "attrs/snapshot_layout.h"
#include "attrs/snapshot_output.h"
#include "attrs/snapshot_sum.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/temp.h"
#include "lib/alloc.h"
#include "lib/threads.h"

enum { THREADS = 2 };
#define SHARED_SIZE (1 << 20) /* a snapshot so large is worth a second thread */

_Static_assert(sizeof(struct image_digest) == 2 * SNAPSHOT_DIGEST, "digests have one length");

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

/* --- side records --- */

/* A symlink's target will stand behind the directory's names, and is counted from where they begin. */
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

/* --- all of them --- */

typedef void put_dir(const struct snapshot_layout *layout, uint32_t number, struct snapshot_output *out);

/* What the directories hold one after the other, by the kind of their entries; or the records of entries. */
static const struct chunk_writer {
	put_dir *view, *built;
	fill_record *fill;
} writers[CHUNK_IDS] = {
	[CHUNK_ENTRIES] = { .view = put_view_entries, .built = put_built_entries },
	[CHUNK_SIDES] = { .view = put_view_sides, .built = put_built_sides },
	[CHUNK_NAMES] = { .view = put_view_names, .built = put_built_names },
	[CHUNK_ATIMES] = { .fill = fill_atime },
	[CHUNK_ORIGINS] = { .fill = fill_origin },
	[CHUNK_XXH128] = { .fill = fill_xxh128 },
	[CHUNK_MD5] = { .fill = fill_md5 },
};

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

/* Records of which each entry has one, for the entries of a directory. */
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
			writers[id].fill(layout->image, &list->items[i], side, record);
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
	const struct chunk_writer *writer = &writers[id];
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
	}
	if (id == CHUNK_NAMES)
		output_put(out, ".", sizeof ".");
	if (writer->fill)
		output_zeros(out, snapshot_chunk_kinds[id].record);
	for (uint32_t i = 0; i < layout->dir_count; i++)
		if (writer->fill)
			put_records(layout, id, i, out);
		else
			(entries_of(layout, i)->snapshot ? writer->view : writer->built)(layout, i, out);
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
		snapshot_layout_count(writing->layout);
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
		int error = errno;
		close(fd);
		errno = error;
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
	struct snapshot_layout layout;
	struct fs_stat st;
	int dir_fd = fs_operator_target(path, name), result;

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
		result = snapshot_layout_make(&layout, image, generation, ids, why);
		if (!result)
			result = replace_unnamed(dir_fd, name, &layout, size, why);
		if (result < 0 && errno == EOPNOTSUPP) {
			strbuf_reset(why);
			result = replace_named(dir_fd, name, &layout, size, why);
		}
		if (!result)
			result = sync_dir(dir_fd, why);
		int error = errno;
		snapshot_layout_free(&layout);
		errno = error;
	}
	int error = errno;

	close(dir_fd);
	errno = error;
	return result;
}
