/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A whole tree in memory: its directories, and how they hang together. */
#include "attrs/image.h"

#include <stdlib.h>
#include <string.h>

#include "attrs/snapshot_output.h"
#include "lib/alloc.h"
#include "lib/exit.h"

enum { BLOCK = 256 }; /* so many directories lie one after the other in memory of one piece */

static struct image_dir *add_dir(struct image *image, uint32_t parent, uint32_t parent_entry)
{
	size_t count = image->dirs.count;
	struct image_dir *dir = count % BLOCK ? image->dirs.items[count - 1] + 1 : xcalloc(BLOCK, sizeof *dir);

	if (count == UINT32_MAX)
		die(EXIT_MALLOC, "rsync: too many directories for an attr snapshot");
	dir->parent = parent;
	dir->parent_entry = parent_entry;
	vec_push(&image->dirs, dir);
	return dir;
}

struct image *image_new(void)
{
	struct image *image = xcalloc(1, sizeof *image);

	entries_add(&image->root, ".", 1)->mode = S_IFDIR | 0755;
	add_dir(image, 0, 0);
	return image;
}

void image_free(struct image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->dirs.count; i++)
		entries_free(&image->dirs.items[i]->entries);
	for (size_t i = 0; i < image->dirs.count; i += BLOCK)
		free(image->dirs.items[i]);
	vec_free(&image->dirs);
	vec_free(&image->digest_list);
	entries_free(&image->root);
	snapshot_room_free(image->room);
	free(image->root_path);
	free(image->options);
	free(image);
}

void image_dir_stat(struct image_dir *dir, const struct fs_stat *st)
{
	dir->dev = st->dev;
	dir->ino = st->ino;
	dir->ctime = st->ctime;
	dir->ctime_nsec = st->ctime_nsec;
}

void image_set_root(struct image *image, const struct fs_stat *st)
{
	entry_set_stat(image->root.items, st);
	image->root_dev = st->dev;
	image->root_ino = st->ino;
	image_dir_stat(image->dirs.items[0], st);
}

void image_add_children(struct image *image, uint32_t dir_number)
{
	struct image_dir *dir = image->dirs.items[dir_number];
	struct entries *list = &dir->entries;

	/* Directories come last. A snapshot knows how many they are. */
	if (list->snapshot) {
		struct snapshot_dir_facts facts;

		facts = attr_snapshot_dir(list->snapshot, list->snapshot_dir);
		dir->child_count = list->count - facts.leading;
	} else {
		entries_sort(list);
		if (list->pool_used < list->pool_capacity)
			list->pool = xrealloc_array(list->pool, list->pool_used, 1);
		if (list->side_count < list->side_capacity)
			list->sides = xrealloc_array(list->sides, list->side_count, sizeof *list->sides);
		list->pool_capacity = list->pool_used;
		list->side_capacity = list->side_count;
		for (uint32_t i = 0; i < list->count; i++) {
			struct entry *entry = &list->items[i];
			const struct entry_side *side = entry_side_of(list, entry);

			if (entry->flags & ENTRY_HARD_LINKED && (!side || side->dev != dir->dev))
				entry->flags &= (uint16_t)~ENTRY_HARD_LINKED;
			dir->child_count += entry_is_dir(entry);
		}
	}
	dir->first_child = (uint32_t)image->dirs.count;
	for (uint32_t i = list->count - dir->child_count; i < list->count; i++)
		add_dir(image, dir_number, i);
}

static const struct entry *entry_of(const struct image *image, const struct image_dir *dir, const char **name)
{
	const struct entries *list = &image->dirs.items[dir->parent]->entries;
	const struct entry *entry = &list->items[dir->parent_entry];

	*name = entry_name(list, entry);
	return entry;
}

void image_dir_path(const struct image *image, uint32_t dir_number, struct strbuf *out)
{
	const char *name;
	size_t length = 0;

	strbuf_reset(out);
	for (uint32_t i = dir_number; i; i = image->dirs.items[i]->parent)
		length += entry_of(image, image->dirs.items[i], &name)->name_length + 1U;
	if (!length)
		return;
	strbuf_reserve(out, length);
	/* Filled from its end, where the walk upwards begins. */
	out->length = --length;
	out->data[length] = '\0';
	for (uint32_t i = dir_number; i; i = image->dirs.items[i]->parent) {
		const struct entry *entry = entry_of(image, image->dirs.items[i], &name);

		length -= entry->name_length;
		memcpy(out->data + length, name, entry->name_length);
		if (length)
			out->data[--length] = '/';
	}
}

uint64_t image_count(const struct image *image)
{
	uint64_t count = 1;

	for (size_t i = 0; i < image->dirs.count; i++)
		count += image->dirs.items[i]->entries.count;
	return count;
}

void image_copy_view(struct image *image, const struct entries *view, struct entries *out)
{
	struct entry_side expanded;

	entries_init(out);
	for (uint32_t i = 0; i < view->count; i++) {
		const struct entry *entry = &view->items[i];
		struct entry *copy = entries_add(out, entry_name(view, entry), entry->name_length);
		uint32_t name = copy->name;

		*copy = *entry;
		copy->name = name;
		copy->side = copy->dir = 0;
		const struct entry_side *from = entry_any_side(view, entry, &expanded);

		if (!from
		    || !(entry->flags & ENTRY_HARD_LINKED || entry_is_symlink(entry) || entry_is_device(entry)
			 || (image->digests && entry_is_regular(entry)) || (image->has_atimes && !entry_is_dir(entry))))
			continue;
		struct entry_side *side = entries_side(out, copy);

		*side = *from;
		side->digest = 0;
		if (entry_is_symlink(entry))
			entries_set_target(out, copy, view->pool + from->target, from->target_length);
	}
}
