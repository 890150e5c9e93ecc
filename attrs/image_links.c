/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Hard links in a refresh: a name that came or went in one directory makes a file in another one, which has not changed, a hard
 * link or a plain file. What can be affected is found by keys and attributes, and then looked at.
 */
#include <stdlib.h>

#include "attrs/image_crew.h"
#include "lib/alloc.h"
#include "lib/hashmap.h"

struct links {
	struct image_crew *crew;
	struct hashmap balance; /* (dev, ino): names that have come less those that have gone */
	struct hashmap shapes;  /* (size, mtime) of files that have gained names: all names of a file have the same ones */
	bool *scanned;          /* of the image's directories */
	bool changed;
};

/* Call `each` for the hard-linked entries of a list. */
static void for_links(struct links *links, const struct entries *list,
		      void (*each)(struct links *links, const struct entry *entry, const struct entry_side *side))
{
	struct entry_side expanded;

	for (uint32_t i = 0; i < list->count; i++)
		if (list->items[i].flags & ENTRY_HARD_LINKED)
			each(links, &list->items[i], entry_any_side(list, &list->items[i], &expanded));
}

static void add_balance(struct links *links, const struct entry_side *side, uint64_t difference)
{
	bool inserted;

	*hashmap_put(&links->balance, side->dev, side->ino, 0, &inserted) += difference;
}

static void has_come(struct links *links, const struct entry *entry, const struct entry_side *side)
{
	(void)entry;
	add_balance(links, side, 1);
}

static void has_gone(struct links *links, const struct entry *entry, const struct entry_side *side)
{
	(void)entry;
	add_balance(links, side, UINT64_MAX);
}

static int64_t balance_of(const struct links *links, const struct entry_side *side)
{
	const uint64_t *balance = hashmap_get(&links->balance, side->dev, side->ino);

	return balance ? (int64_t)*balance : 0;
}

static void note_shape(struct links *links, const struct entry *entry, const struct entry_side *side)
{
	bool inserted;

	if (balance_of(links, side) > 0)
		hashmap_put(&links->shapes, entry->size, (uint64_t)entry->mtime, 1, &inserted);
}

static void for_scanned(struct links *links,
			void (*each)(struct links *links, const struct entry *entry, const struct entry_side *side))
{
	const struct image_crew *crew = links->crew;

	for (size_t i = 0; i < crew->scanned.count; i++)
		for_links(links, &crew->image->dirs.items[crew->scanned.items[i]]->entries, each);
}

static bool is_suspicious(const struct links *links, const struct entries *list, const struct entry *entry)
{
	struct entry_side expanded;

	if (entry->flags & ENTRY_HARD_LINKED)
		return balance_of(links, entry_any_side(list, entry, &expanded)) < 0;
	return links->shapes.count && !entry_is_dir(entry) && hashmap_get(&links->shapes, entry->size, (uint64_t)entry->mtime);
}

/* Say of entry `at` of a kept directory what is true now. */
static void look_again(struct links *links, struct image_dir *dir, uint32_t at, const char *path)
{
	struct image *image = links->crew->image;
	struct fs_stat st;

	if (fs_lstat(&links->crew->scan->source->attr_root, path, &st) < 0)
		return;
	bool linked = st.nlink > 1 && st.dev == dir->dev;

	if (linked == ((dir->entries.items[at].flags & ENTRY_HARD_LINKED) != 0))
		return;
	if (dir->entries.snapshot) {
		struct entries view = dir->entries;
		image_copy_view(image, &view, &dir->entries);
	}
	struct entry *entry = &dir->entries.items[at];

	entry->flags ^= ENTRY_HARD_LINKED;
	if (!linked && !image->digests)
		return;
	struct entry_side *side = entries_side(&dir->entries, entry);

	side->dev = st.dev;
	side->ino = st.ino;
	side->ctime = st.ctime;
	side->ctime_nsec = st.ctime_nsec;
}

static void look_through(struct links *links, uint32_t number)
{
	struct image *image = links->crew->image;
	struct image_dir *dir = image->dirs.items[number];
	struct strbuf path = STRBUF_INIT;

	for (uint32_t i = 0; i < dir->entries.count; i++) {
		if (!is_suspicious(links, &dir->entries, &dir->entries.items[i]))
			continue;
		image_dir_path(image, number, &path);
		strbuf_add_path(&path, entry_name(&dir->entries, &dir->entries.items[i]));
		look_again(links, dir, i, strbuf_text(&path));
	}
	strbuf_free(&path);
}

static void look_through_kept(struct links *links)
{
	const struct image_crew *crew = links->crew;

	links->scanned = xcalloc(crew->image->dirs.count, sizeof *links->scanned);
	for (size_t i = 0; i < crew->scanned.count; i++)
		links->scanned[crew->scanned.items[i]] = true;
	for (uint32_t i = 0; i < crew->image->dirs.count; i++)
		if (!links->scanned[i])
			look_through(links, i);
	free(links->scanned);
}

void image_refresh_links(struct image_crew *crew)
{
	struct links links = { .crew = crew, .balance = HASHMAP_INIT, .shapes = HASHMAP_INIT };
	uint32_t old_dirs = attr_snapshot_facts(crew->old)->dir_count;
	struct entries view;

	for (uint32_t i = 0; i < old_dirs; i++) {
		if (crew->kept[i])
			continue;
		attr_snapshot_view(crew->old, i, &view);
		for_links(&links, &view, has_gone);
	}
	for_scanned(&links, has_come);
	for (size_t i = 0; i < links.balance.capacity; i++)
		links.changed |= links.balance.slots[i].used && links.balance.slots[i].value;
	if (links.changed) {
		for_scanned(&links, note_shape);
		look_through_kept(&links);
	}
	hashmap_free(&links.balance);
	hashmap_free(&links.shapes);
}
