/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file list: from an index to its entry, also in the order of protocols 27 and 28. */
#include "flist/private.h"

#include <stdlib.h>
#include <string.h>

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

int32_t flist_node_of(const struct flist *list, int32_t ndx)
{
	return list->load_order.items[flist_order_of(list, ndx)];
}

void flist_set_pos(struct flist *list, struct flist_pos *pos, int32_t node, uint32_t index)
{
	pos->dir = node;
	pos->entries = list->dirs.items[node].entries;
	pos->entry = pos->entries && index < pos->entries->count ? &pos->entries->items[index] : NULL;
	pos->gap = -1;
}

bool flist_locate(struct flist *list, int32_t ndx, struct flist_pos *pos)
{
	return list->received ? flist_received_locate(list, ndx, pos) : flist_locate_numbered(list, ndx, pos);
}

bool flist_locate_numbered(struct flist *list, int32_t ndx, struct flist_pos *pos)
{
	if (list->permutation.count) {
		if (ndx < 0 || (size_t)ndx >= list->permutation.count)
			return false;
		*pos = list->permutation.items[ndx];
		return true;
	}
	int32_t node = flist_node_of(list, ndx);
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

/* --- protocol 27 and 28: the whole list by full path (doc/protocol/02-file-list.md section 5.2) --- */

struct path_key {
	char *path;
	struct flist_pos pos;
	size_t arrival;
};

static int compare_paths(const void *a_void, const void *b_void)
{
	const struct path_key *a = a_void, *b = b_void;
	int order = strcmp(a->path, b->path);

	return order ? order : a->arrival < b->arrival ? -1 : 1;
}

void flist_permute(struct flist *list)
{
	VEC(struct path_key) keys = VEC_INIT;
	struct strbuf path = STRBUF_INIT;

	for (size_t n = 0; n < list->load_order.count; n++) {
		int32_t node = list->load_order.items[n];
		struct entries *entries = list->dirs.items[node].entries;

		for (uint32_t i = 0; i < entries->count; i++) {
			struct path_key key = { .pos = { .dir = node, .entries = entries, .entry = &entries->items[i],
					.gap = -1 } };
			if (entries->items[i].flags & ENTRY_HIDDEN)
				continue;
			flist_entry_path(list, node, &entries->items[i], &path);
			key.path = xstrdup(strbuf_text(&path));
			key.arrival = keys.count;
			vec_push(&keys, key);
		}
	}
	if (keys.count)
		qsort(keys.items, keys.count, sizeof *keys.items, compare_paths);
	for (size_t i = 0; i < keys.count; i++) {
		vec_push(&list->permutation, keys.items[i].pos);
		free(keys.items[i].path);
	}
	vec_free(&keys);
	strbuf_free(&path);
}
