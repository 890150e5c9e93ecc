/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entries of one directory: building, sorting into wire order, finding. */
#include "attrs/entry.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "fs/root.h"
#include "lib/alloc.h"
#include "lib/exit.h"

enum {
	SORT_RUN = 8,   /* sorted by insertion */
	SORT_FEW = 128, /* entries that are sorted without a thought of memory */
};

void entries_init(struct entries *list)
{
	memset(list, 0, sizeof *list);
}

void entries_free(struct entries *list)
{
	if (list->snapshot) {
		entries_init(list);
		return;
	}
	free(list->items);
	free(list->pool);
	free(list->sides);
	entries_init(list);
}

size_t entries_memory(const struct entries *list)
{
	return list->snapshot ? 0 : list->capacity * sizeof *list->items + list->pool_capacity
				    + list->side_capacity * sizeof *list->sides;
}

static uint32_t grown(uint32_t capacity, uint64_t needed, uint32_t first)
{
	uint64_t size = capacity ? capacity : first;

	while (size < needed)
		size += size / 2 + 1;
	if (size > UINT32_MAX)
		die(EXIT_MALLOC, "rsync: a directory has too many entries for the file list");
	return (uint32_t)size;
}

uint32_t entries_add_bytes(struct entries *list, const void *bytes, size_t length)
{
	uint64_t needed = (uint64_t)list->pool_used + length + 1;
	uint32_t at = list->pool_used;

	if (needed > list->pool_capacity) {
		list->pool_capacity = grown(list->pool_capacity, needed, 256);
		list->pool = xrealloc_array(list->pool, list->pool_capacity, 1);
	}
	memcpy(list->pool + at, bytes, length);
	list->pool[at + length] = '\0';
	list->pool_used = (uint32_t)needed;
	return at;
}

struct entry *entries_add(struct entries *list, const char *name, size_t name_length)
{
	if (list->count == list->capacity) {
		list->capacity = grown(list->capacity, (uint64_t)list->count + 1, 16);
		list->items = xrealloc_array(list->items, list->capacity, sizeof *list->items);
	}
	struct entry *entry = &list->items[list->count++];

	memset(entry, 0, sizeof *entry);
	entry->name = entries_add_bytes(list, name, name_length);
	entry->name_length = (uint16_t)name_length;
	return entry;
}

struct entry_side *entries_side(struct entries *list, struct entry *entry)
{
	if (!entry->side) {
		if (list->side_count == list->side_capacity) {
			list->side_capacity = grown(list->side_capacity, (uint64_t)list->side_count + 1, 4);
			list->sides = xrealloc_array(list->sides, list->side_capacity, sizeof *list->sides);
		}
		memset(&list->sides[list->side_count], 0, sizeof *list->sides);
		entry->side = ++list->side_count;
	}
	return &list->sides[entry->side - 1];
}

void entries_set_target(struct entries *list, struct entry *entry, const char *target, size_t length)
{
	struct entry_side *side = entries_side(list, entry);

	side->target = entries_add_bytes(list, target, length);
	side->target_length = (uint32_t)length;
}

void entry_set_stat(struct entry *entry, const struct fs_stat *st)
{
	entry->mode = (uint16_t)st->mode;
	entry->uid = st->uid;
	entry->gid = st->gid;
	entry->mtime = st->mtime;
	entry->mtime_nsec = st->mtime_nsec < 1000000000 ? st->mtime_nsec : 0;
	entry->size = entry_is_device(entry) || entry_is_special(entry) ? 0 : st->size;
}

void entries_remove_last(struct entries *list)
{
	list->count--;
}

/*
 * The sort key of doc/protocol/02-file-list.md section 5.1 for single-component names: "." first, then non-directories, then
 * directories with an implied "/". A name that starts with "/" has an empty directory component in front, so it counts as a
 * directory.
 */
static int class_of(const char *name, bool is_dir)
{
	if (is_dir && name[0] == '.' && name[1] == '\0')
		return 0;
	return is_dir || name[0] == '/' ? 2 : 1;
}

static int compare_names(const char *a, size_t a_length, bool a_dir, const char *b, size_t b_length, bool b_dir)
{
	int a_class = class_of(a, a_dir), b_class = class_of(b, b_dir);

	if (a_class == b_class && a[0] == '/' && b[0] == '/') {
		a_class = class_of(a + 1, a_dir);
		b_class = class_of(b + 1, b_dir);
	}
	if (a_class != b_class)
		return a_class - b_class;
	size_t common = a_length < b_length ? a_length : b_length;
	int order = memcmp(a, b, common);

	if (order || a_length == b_length)
		return order;
	unsigned char a_next = a_length > common ? (unsigned char)a[common] : a_dir ? '/' : 0;
	unsigned char b_next = b_length > common ? (unsigned char)b[common] : b_dir ? '/' : 0;

	if (a_next != b_next)
		return a_next < b_next ? -1 : 1;
	return a_length < b_length ? -1 : 1;
}

int entry_compare(const struct entries *a_list, const struct entry *a, const struct entries *b_list, const struct entry *b)
{
	return compare_names(entry_name(a_list, a), a->name_length, entry_is_dir(a), entry_name(b_list, b), b->name_length,
			     entry_is_dir(b));
}

/* What is moved around to sort: a prefix that decides most comparisons, and the arrival index that makes the sort stable. */
struct sort_key {
	uint64_t prefix;
	uint32_t index;
};

/* Class, then the first seven bytes of the name with the implied "/": orders like compare_names as far as it differs. */
static uint64_t prefix_of(const char *name, size_t length, bool is_dir)
{
	uint64_t prefix = (uint64_t)class_of(name, is_dir) << 56;

	if (name[0] == '/')
		return prefix | (uint64_t)'/' << 48;
	if (length >= 7) {
		uint64_t first;

		memcpy(&first, name, sizeof first);
		return prefix | be64toh(first) >> 8;
	}
	for (size_t i = 0; i < length; i++)
		prefix |= (uint64_t)(unsigned char)name[i] << (48 - 8 * i);
	if (is_dir)
		prefix |= (uint64_t)'/' << (48 - 8 * length);
	return prefix;
}

/* Must `b` stand before `a`, which stands before it now? */
static inline bool is_behind(const struct entries *list, const struct sort_key *a, const struct sort_key *b)
{
	if (a->prefix != b->prefix)
		return a->prefix > b->prefix;
	return entry_compare(list, &list->items[a->index], list, &list->items[b->index]) > 0;
}

/* The entries in order, in memory of their own. Without the calls that qsort makes, because a list consists of many short
 * directories. */
static struct entry *sorted_items(const struct entries *list)
{
	struct sort_key few[2 * SORT_FEW], *memory = few;
	struct entry *sorted = xrealloc_array(NULL, list->count, sizeof *sorted);
	size_t count = list->count;

	if (count > SORT_FEW)
		memory = xrealloc_array(NULL, 2 * count, sizeof *memory);
	struct sort_key *keys = memory, *spare = memory + count;

	for (uint32_t i = 0; i < count; i++) {
		const struct entry *entry = &list->items[i];
		keys[i].prefix = prefix_of(entry_name(list, entry), entry->name_length, entry_is_dir(entry));
		keys[i].index = i;
	}
	/* Short runs by insertion, then merged from one array into the other. */
	for (size_t i = 1; i < count; i++) {
		struct sort_key key = keys[i];
		size_t at = i;

		for (; at % SORT_RUN && is_behind(list, &keys[at - 1], &key); at--)
			keys[at] = keys[at - 1];
		keys[at] = key;
	}
	for (size_t width = SORT_RUN; width < count; width *= 2) {
		struct sort_key *merged = spare;

		for (size_t at = 0; at < count; at += 2 * width) {
			size_t end = count - at < 2 * width ? count : at + 2 * width;
			size_t middle = end - at < width ? end : at + width, left = at, right = middle;

			for (size_t i = at; i < end; i++) {
				bool takes_right =
					left == middle || (right < end && is_behind(list, &keys[left], &keys[right]));
				merged[i] = keys[takes_right ? right++ : left++];
			}
		}
		spare = keys;
		keys = merged;
	}
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = list->items[keys[i].index];
	if (memory != few)
		free(memory);
	return sorted;
}

void entries_sort(struct entries *list)
{
	if (!list->count)
		return;
	struct entry *sorted = sorted_items(list);

	free(list->items);
	list->items = sorted;
	list->capacity = list->count;
}

static void *copy_of(const void *from, size_t count, size_t size)
{
	return count ? memcpy(xrealloc_array(NULL, count, size), from, count * size) : NULL;
}

void entries_sort_into(struct entries *list, struct entries *to)
{
	if (list->count)
		to->items = sorted_items(list);
	to->count = to->capacity = list->count;
	to->pool = copy_of(list->pool, list->pool_used, 1);
	to->pool_used = to->pool_capacity = list->pool_used;
	to->sides = copy_of(list->sides, list->side_count, sizeof *list->sides);
	to->side_count = to->side_capacity = list->side_count;
	list->count = list->pool_used = list->side_count = 0;
}

static bool same_name(const struct entries *list, const struct entry *a, const struct entry *b)
{
	return a->name_length == b->name_length && !memcmp(entry_name(list, a), entry_name(list, b), a->name_length);
}

void entries_mark_duplicates(struct entries *list)
{
	struct entry *kept = NULL;
	uint32_t count = 0;

	/* What is hidden takes no index, not even a hole's: of equal directories it goes, unless it is the first of such
	 * only. */
	for (uint32_t i = 0; i < list->count; i++) {
		struct entry *entry = &list->items[i], *last = count ? &list->items[count - 1] : NULL;
		bool repeats = last && entry_is_dir(last) && entry_is_dir(entry) && same_name(list, last, entry);

		if (repeats && entry->flags & ENTRY_HIDDEN)
			continue;
		if (repeats && last->flags & ENTRY_HIDDEN)
			count--;
		if (count != i)
			list->items[count] = *entry;
		count++;
	}
	list->count = count;
	for (uint32_t i = 0; i < list->count; i++) {
		struct entry *entry = &list->items[i];
		bool is_dir = entry_is_dir(entry);

		if (!kept || entry_is_dir(kept) != is_dir || !same_name(list, kept, entry)) {
			int32_t other = is_dir ? entries_find(list, entry_name(list, entry), false) : -1;

			if (other >= 0)
				list->items[other].flags |= ENTRY_DUPLICATE;
			kept = entry;
			continue;
		}
		entry->flags |= ENTRY_DUPLICATE;
		if (!is_dir)
			continue;
		/* doc/protocol/02-file-list.md section 3: top and content are OR-ed, implied stays if both were. */
		uint16_t no_content = kept->flags & entry->flags & ENTRY_NO_CONTENT;
		uint16_t top = (kept->flags | entry->flags) & ENTRY_TOP_DIR;
		bool listed = no_content && top && !(entry_is_implied(kept) && entry_is_implied(entry));

		kept->flags = (uint16_t)((kept->flags & ~(ENTRY_NO_CONTENT | ENTRY_TOP_DIR)) | no_content | top
					 | (listed ? ENTRY_ALSO_LISTED : 0));
	}
}

int32_t entries_find(const struct entries *list, const char *name, bool is_dir)
{
	size_t length = strlen(name);
	uint32_t low = 0, high = list->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct entry *entry = &list->items[middle];
		int order = compare_names(name, length, is_dir, entry_name(list, entry), entry->name_length,
				entry_is_dir(entry));

		if (order <= 0)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == list->count)
		return -1;
	const struct entry *found = &list->items[low];

	if (entry_is_dir(found) != is_dir || found->name_length != length || memcmp(entry_name(list, found), name, length))
		return -1;
	return (int32_t)low;
}
