/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counting and ordering an image for its snapshot. */
#include "attrs/snapshot_layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
enum { SHARES = 16, THREADS_MOST = 4 };

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

/* For now its record says how many bytes and side records it has, not where they begin. Those of a view lie as they will. */
static void measure_dir(struct snapshot_dir *record, const struct entries *list)
{
	if (list->snapshot) {
		record->names = list->pool_used;
		record->first_side = (uint32_t)snapshot_old_sides(list).count;
		return;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		const struct entry *entry = &list->items[i];
		const struct entry_side *side = entry_side_of(list, entry);

		record->names += entry->name_length + 1U;
		record->first_side += snapshot_has_side(entry);
		if (entry_is_symlink(entry))
			record->names += (side ? side->target_length : 0) + 1U;
	}
}

static void measure_share(void *layout_void, int number)
{
	struct snapshot_layout *layout = layout_void;
	uint64_t dirs = layout->dir_count, share = (uint64_t)number;

	for (uint64_t i = dirs * share / SHARES; i < dirs * (share + 1) / SHARES; i++)
		measure_dir(&layout->dirs[i], &layout->order[i]->entries);
}

static void place_dir(struct snapshot_layout *layout, uint32_t number, struct hashmap *devices)
{
	const struct image_dir *dir = layout->order[number];
	struct snapshot_dir *record = &layout->dirs[number];
	uint64_t names = record->names, sides = record->first_side;
	bool inserted;
	uint64_t *device = hashmap_put(devices, dir->dev, 0, layout->devices.count, &inserted);

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

int snapshot_layout_make(struct snapshot_layout *layout, const struct image *image, uint64_t generation, struct fs_ids *ids,
			 struct strbuf *why)
{
	struct hashmap devices = HASHMAP_INIT;

	*layout = (struct snapshot_layout){ .image = image, .ids = ids, .entry_count = 1, .name_bytes = sizeof "." };
	layout->order = xcalloc(image->dirs.count, sizeof *layout->order);
	layout->dirs = xcalloc(image->dirs.count, sizeof *layout->dirs);
	order_dirs(layout);
	threads_share(layout->dir_count < SHARED_DIRS ? 1 : threads_useful(THREADS_MOST), SHARES, measure_share, layout);
	for (uint32_t i = 0; i < layout->dir_count; i++)
		place_dir(layout, i, &devices);
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
		const char *name = is_group ? fs_group_name(layout->ids, id) : fs_user_name(layout->ids, id);

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

void snapshot_layout_count(struct snapshot_layout *layout)
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

void snapshot_layout_free(struct snapshot_layout *layout)
{
	free(layout->order);
	free(layout->dirs);
	vec_free(&layout->devices);
	strbuf_free(&layout->facts);
	strbuf_free(&layout->owners);
}
