/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The directories of a file list as nodes: their children, the parts they are named by, their numbers and their order. */
#include "flist/tree.h"

#include <stdlib.h>
#include <string.h>

#include "lib/exit.h"

bool flist_recursive(const struct flist *list)
{
	return list->options->recursive > 0;
}

/* In a vector that doubles. */
static size_t part_memory(const struct flist_part *part)
{
	return 2 * sizeof *part + (part->path ? BUDGET_OF_TEXT(strlen(part->path)) : 0);
}

void flist_parts_add(struct flist *list, struct flist_parts **parts, const struct flist_part *part)
{
	budget_take(session_budget(list->session), part_memory(part), "names of files");
	if (!*parts)
		*parts = xcalloc(1, sizeof **parts);
	vec_push(&(*parts)->parts, *part);
}

void flist_parts_free(struct flist *list, struct flist_parts **parts)
{
	for (size_t i = 0; *parts && i < (*parts)->parts.count; i++) {
		budget_give_back(session_budget(list->session), part_memory(&(*parts)->parts.items[i]));
		free((*parts)->parts.items[i].path);
	}
	if (*parts)
		vec_free(&(*parts)->parts);
	free(*parts);
	*parts = NULL;
}

/* A node for the directory entry at `index`, the first of `group` equal ones. */
static void make_child(struct flist *list, int32_t parent, uint32_t index, uint32_t group)
{
	struct entries *entries = list->dirs.items[parent].entries;
	struct entry *entry = &entries->items[index];
	struct flist_dir child = {
		.parent = parent, .parent_entry = index, .first_child = -1, .own_ndx = -1,
		.name_length = entry->name_length, .flags = entry->flags, .base = entry_root(entries, entry),
		.group = (uint16_t)(entry->flags & ENTRY_HIDDEN ? 0 : group > UINT16_MAX ? UINT16_MAX : group),
		.number = list->next_number, .snapshot_dir = SNAPSHOT_DIR_UNKNOWN,
	};

	if (entries->snapshot) {
		child.snapshot_dir = entry->dir;
	} else {
		child.name = (uint32_t)list->names.length;
		strbuf_add(&list->names, entry_name(entries, entry), (size_t)entry->name_length + 1);
		entry->dir = (uint32_t)list->dirs.count;
	}
	if (list->dirs.items[parent].first_child < 0)
		list->dirs.items[parent].first_child = (int32_t)list->dirs.count;
	list->dirs.items[parent].child_count++;
	/* Equal directories of several bases are scanned one after the other. */
	for (uint32_t i = 0; group > 1 && i < group && !list->received; i++) {
		struct flist_part part = { .base = entries->items[index + i].root };
		if (entries->items[index + i].flags & ENTRY_NO_CONTENT)
			continue;
		flist_parts_add(list, &child.parts, &part);
	}
	/* Of one that arrives, before (flist_received_publish). */
	if (!list->received)
		budget_take(session_budget(list->session), 2 * (sizeof child + child.name_length),
			    "directories of a file list");
	vec_push(&list->dirs, child);
}

/* Hand the named paths that lie below directories of this node to the children. */
static void distribute_parts(struct flist *list, int32_t node, struct flist_parts *deeper)
{
	const struct entries *entries = list->dirs.items[node].entries;

	for (size_t i = 0; i < deeper->parts.count; i++) {
		struct flist_part *part = &deeper->parts.items[i];
		char *slash = strchr(part->path + 1, '/');
		*slash = '\0';
		int32_t at = entries_find(entries, part->path, true);
		*slash = '/';
		if (at < 0 || !entries->items[at].dir)
			continue;
		struct flist_dir *child = &list->dirs.items[entries->items[at].dir];
		struct flist_part below = { .base = part->base, .content = part->content, .path = xstrdup(slash + 1) };
		struct flist_part own = { .base = child->base };

		if (!child->parts && !(child->flags & ENTRY_NO_CONTENT))
			flist_parts_add(list, &child->parts, &own);
		flist_parts_add(list, &child->parts, &below);
	}
}

void flist_enter_node(struct flist *list, int32_t node, struct flist_parts *deeper)
{
	const struct entries *entries = list->dirs.items[node].entries;
	struct flist_totals *totals = &list->totals;

	for (uint32_t i = 0; i < entries->count; i++) {
		const struct entry *entry = &entries->items[i];

		if (entry->flags & ENTRY_HIDDEN)
			continue;
		if (entry_is_dir(entry))
			totals->dirs++;
		else if (entry_is_symlink(entry))
			totals->symlinks++;
		else if (entry_is_device(entry))
			totals->devices++;
		else if (entry_is_special(entry))
			totals->specials++;
		else
			totals->files++;
		if (entry_is_regular(entry) || entry_is_symlink(entry))
			totals->size += entry->size;
	}
	list->dirs.items[node].count = entries->count;
	list->dirs.items[node].loaded = true;
	/* Every directory entry takes a directory number (doc/protocol/02-file-list.md section 6.3). */
	for (uint32_t i = 0, group; i < entries->count; i += group) {
		group = 1;
		if (!entry_is_dir(&entries->items[i]))
			continue;
		while (i + group < entries->count && entry_is_dir(&entries->items[i + group])
		       && (entries->items[i + group].flags & ENTRY_DUPLICATE))
			group++;
		if (!entry_is_dot(entries, &entries->items[i]))
			make_child(list, node, i, group);
		list->next_number += (int32_t)group;
	}
	if (deeper)
		distribute_parts(list, node, deeper);
	struct flist_dir *dir = &list->dirs.items[node];
	uint32_t leading = dir->count;

	if (list->session->inc_recurse) {
		dir->own_ndx = list->next_ndx;
		dir->first_ndx = list->next_ndx + 1;
	} else {
		dir->own_ndx = node ? list->next_ndx : -1;
		dir->first_ndx = list->next_ndx + (node ? dir->group : 0);
		/* Directories are numbered when the walk reaches them, after the contents of those before. */
		if (dir->child_count)
			leading = list->dirs.items[dir->first_child].parent_entry;
	}
	int64_t next = (int64_t)dir->first_ndx + leading;

	if (next >= INT32_MAX)
		die(EXIT_MALLOC, "rsync: the file list has too many entries");
	list->next_ndx = (int32_t)next;
	vec_push(&list->load_order, node);
}

/* Depth first, pre-order: the first child, else the next sibling, else an ancestor's. */
int32_t flist_next_node(const struct flist *list)
{
	int32_t node = list->walk;
	const struct flist_dir *dirs = list->dirs.items;

	if (dirs[node].child_count)
		return dirs[node].first_child;
	while (node > 0) {
		const struct flist_dir *parent = &dirs[dirs[node].parent];
		if (node + 1 < parent->first_child + (int32_t)parent->child_count)
			return node + 1;
		node = dirs[node].parent;
	}
	return -1;
}

/* --- from an index to its entry --- */

size_t flist_order_of(const struct flist *list, int32_t ndx)
{
	size_t low = 0, high = list->load_order.count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (list->dirs.items[list->load_order.items[middle]].own_ndx <= ndx)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void flist_set_pos(struct flist *list, struct flist_pos *pos, int32_t node, uint32_t index)
{
	pos->dir = node;
	pos->entries = list->dirs.items[node].entries;
	pos->entry = pos->entries && index < pos->entries->count ? &pos->entries->items[index] : NULL;
	pos->gap = -1;
}

bool flist_locate_numbered(struct flist *list, int32_t ndx, struct flist_pos *pos)
{
	if (list->places.count) {
		if (ndx < 0 || (size_t)ndx >= list->places.count)
			return false;
		flist_set_pos(list, pos, list->places.items[ndx].node, list->places.items[ndx].index);
		return pos->entry != NULL;
	}
	int32_t node = list->load_order.items[flist_order_of(list, ndx)];
	const struct flist_dir *dir = &list->dirs.items[node];

	if (ndx >= dir->first_ndx) {
		flist_set_pos(list, pos, node, (uint32_t)(ndx - dir->first_ndx));
		return pos->entry != NULL;
	}
	if (ndx < dir->own_ndx)
		return false;
	if (node == 0) {
		/* The gap before the first list stands for ".", if the list starts with it (S-029). */
		flist_set_pos(list, pos, 0, 0);
		pos->gap = 0;
		return pos->entry && entry_is_dot(pos->entries, pos->entry);
	}
	flist_set_pos(list, pos, dir->parent, dir->parent_entry + (uint32_t)(ndx - dir->own_ndx));
	pos->gap = list->session->inc_recurse ? node : -1;
	return pos->entry != NULL || pos->gap >= 0;
}
