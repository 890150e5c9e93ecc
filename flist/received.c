/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list that a peer sends: its numbers, and the hand-over from the reading thread to the working one. */
#include "flist/received.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "flist/paths.h"
#include "flist/decode.h"
#include "flist/receive_attributes.h"
#include "flist/tree.h"
#include "lib/clock.h"

/* Address space for nodes and their names: more of them than a list has room for anyway. */
#define DIRS_LIMIT (sizeof(struct flist_dir) << 26)
#define NAMES_LIMIT ((size_t)UINT32_MAX)
#define ORDERS_LIMIT (sizeof(struct received_order) << 26)

/* --- the list --- */

void flist_received_permute(struct flist_received *received)
{
	received->is_permuted = true;
	reserved_init(&received->orders, sizeof(void *) > 4 ? ORDERS_LIMIT : 0);
	reserved_grow(&received->orders, sizeof(struct received_order));
}

void flist_received_new(struct flist *list)
{
	struct flist_received *received = xcalloc(1, sizeof *received);

	pthread_mutex_init(&received->lock, NULL);
	pthread_cond_init(&received->arrived, NULL);
	reserved_init(&received->dirs, sizeof(void *) > 4 ? DIRS_LIMIT : 0);
	reserved_init(&received->names, sizeof(void *) > 4 ? NAMES_LIMIT : 0);
	if (list->options->iconv || list->session->caps.sorts_by_path)
		flist_received_permute(received);
	reserved_grow(&received->dirs, sizeof *list->dirs.items);
	memcpy(received->dirs.start, list->dirs.items, sizeof *list->dirs.items);
	entries_free(list->dirs.items[0].entries);
	free(list->dirs.items[0].entries);
	free(list->dirs.items);
	list->dirs.items = (struct flist_dir *)received->dirs.start;
	list->dirs.items[0].entries = NULL;
	reserved_grow(&received->names, 1);
	list->names.data = received->names.start;
	if (list->options->acls || list->options->xattrs)
		received->attributes = received_attributes_new(list->options);
	list->received = received;
	flist_add_base(list, xstrdup(""));
}

static struct received_order *order_of(const struct flist_received *received, int32_t node)
{
	return (struct received_order *)received->orders.start + node;
}

void flist_received_free(struct flist *list)
{
	struct flist_received *received = list->received;

	if (!received)
		return;
	list->dirs.items = NULL;
	list->names = (struct strbuf)STRBUF_INIT;
	reserved_free(&received->dirs);
	reserved_free(&received->names);
	reserved_free(&received->orders);
	vec_free(&received->arrived_dirs);
	vec_free(&received->node_by_number);
	received_attributes_free(received->attributes);
	pthread_mutex_destroy(&received->lock);
	pthread_cond_destroy(&received->arrived);
	free(received);
	list->received = NULL;
}

struct entries *flist_received_take(struct flist *list, int32_t node)
{
	struct flist_received *received = list->received;

	pthread_mutex_lock(&received->lock);
	struct entries *entries = list->dirs.items[node].entries;

	list->dirs.items[node].entries = NULL;
	if (entries)
		budget_give_back(session_budget(list->session), entries_memory(entries));
	if (entries && received->is_permuted) {
		struct received_order *order = order_of(received, node);

		free(order->ndx);
		free(order->place);
		*order = (struct received_order){ NULL, NULL };
	}
	pthread_mutex_unlock(&received->lock);
	return entries;
}

/* --- the working thread --- */

static bool has_next(const struct flist *list)
{
	return list->received->handed + 1 < list->load_order.count;
}

int32_t flist_received_next(struct flist *list)
{
	struct flist_received *received = list->received;
	int32_t node = -1;

	pthread_mutex_lock(&received->lock);
	while (!has_next(list) && !received->over)
		pthread_cond_wait(&received->arrived, &received->lock);
	if (has_next(list))
		node = list->load_order.items[++received->handed];
	list->session->io_error |= received->io_error;
	received->shown = list->totals;
	pthread_mutex_unlock(&received->lock);
	return node;
}

bool flist_await_next(struct flist *list, int ms)
{
	struct flist_received *received = list->received;
	const struct timespec until = clock_after(CLOCK_REALTIME, ms);
	int result = ms > 0 ? 0 : ETIMEDOUT;

	pthread_mutex_lock(&received->lock);
	while (!has_next(list) && !received->over && result != ETIMEDOUT)
		result = pthread_cond_timedwait(&received->arrived, &received->lock, &until);
	bool known = has_next(list) || received->over;

	pthread_mutex_unlock(&received->lock);
	return known;
}

bool flist_received_is_complete(const struct flist *list)
{
	struct flist_received *received = list->received;

	pthread_mutex_lock(&received->lock);
	bool complete = received->over && !has_next(list);

	pthread_mutex_unlock(&received->lock);
	return complete;
}

/* How many of the node's directories have their entries up to `place`: their entries lie in the order of their nodes. */
static uint32_t directories_up_to(const struct flist *list, const struct flist_dir *dir, uint32_t place)
{
	uint32_t low = 0, high = dir->child_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (list->dirs.items[dir->first_child + (int32_t)middle].parent_entry <= place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of entries in the order of the walk. */
static int32_t plain_ndx(const struct flist *list, const struct flist_dir *dir, const struct entry *entry)
{
	uint32_t place = (uint32_t)(entry - dir->entries->items);

	if (list->session->inc_recurse || !dir->child_count || place < list->dirs.items[dir->first_child].parent_entry)
		return dir->first_ndx + (int32_t)place;
	/* A directory, or one that has lost against it: numbered where its node is. */
	const struct flist_dir *first = &list->dirs.items[dir->first_child + (int32_t)directories_up_to(list, dir, place) - 1];

	return first->own_ndx + (int32_t)(place - first->parent_entry);
}

int32_t flist_ndx_of(struct flist *list, int32_t node, const struct entry *entry)
{
	const struct flist_dir *dir = &list->dirs.items[node];

	if (!entry && (list->session->inc_recurse || !node))
		return dir->own_ndx;
	if (!entry) {
		node = dir->parent;
		entry = &list->dirs.items[node].entries->items[dir->parent_entry];
		dir = &list->dirs.items[node];
	}
	if (list->received && list->received->is_permuted)
		return order_of(list->received, node)->ndx[entry - dir->entries->items];
	return plain_ndx(list, dir, entry);
}

const uint8_t *flist_received_digest(const struct flist *list, int32_t node, const struct entry *entry)
{
	if (!list->options->checksum || !entry_is_regular(entry))
		return NULL;
	return (const uint8_t *)entry_name(list->dirs.items[node].entries, entry) + entry->name_length + 1;
}

/* --- the reading thread: from an index to an entry --- */

bool flist_received_locate(struct flist *list, int32_t ndx, struct flist_pos *pos)
{
	struct flist_received *received = list->received;
	bool found = false;

	pthread_mutex_lock(&received->lock);
	if (list->load_order.count) {
		int32_t node = flist_node_of(list, ndx);
		const struct flist_dir *dir = &list->dirs.items[node];

		if (!received->is_permuted || !list->session->inc_recurse || ndx < dir->first_ndx) {
			found = flist_locate_numbered(list, ndx, pos);
		} else if (ndx - dir->first_ndx < (int32_t)dir->count && order_of(received, node)->place) {
			flist_set_pos(list, pos, node, order_of(received, node)->place[ndx - dir->first_ndx]);
			found = pos->entry != NULL;
		}
	}
	pthread_mutex_unlock(&received->lock);
	return found;
}

/* --- the reading thread: a directory is complete --- */

static void number_directory(struct flist_received *received, const struct entry *entry)
{
	vec_push(&received->node_by_number, entry->dir ? (int32_t)entry->dir : -1);
}

void flist_received_publish(struct flist *list, int32_t node, struct entries *entries, int32_t first, int io_error)
{
	struct flist_received *received = list->received;
	struct received_order *order = NULL;
	size_t dirs = 0, names = 0;

	for (uint32_t i = 0; i < entries->count; i++) {
		dirs += entry_is_dir(&entries->items[i]);
		names += entry_is_dir(&entries->items[i]) ? (size_t)entries->items[i].name_length + 1 : 0;
	}
	/* Nodes and names of the directories among the entries must find room where they are. */
	reserved_grow(&received->dirs, (list->dirs.count + dirs) * sizeof *list->dirs.items);
	list->dirs.capacity = received->dirs.usable / sizeof *list->dirs.items;
	reserved_grow(&received->names, list->names.length + names + 1);
	list->names.capacity = received->names.usable;
	/* With their numbers, their places in the walk, and what the engine keeps of them. */
	budget_take(session_budget(list->session), dirs * (sizeof *list->dirs.items + sizeof(struct received_order)
							   + 8 * sizeof(int32_t)) + names, "directories of a file list");
	if (received->is_permuted) {
		reserved_grow(&received->orders, (list->dirs.count + dirs) * sizeof(struct received_order));
		order = order_of(received, node);
		budget_take(session_budget(list->session),
			    (2 * sizeof *order->ndx + 2 * sizeof(struct flist_place)) * entries->count, "a file list");
		order->ndx = xcalloc((size_t)entries->count + 1, sizeof *order->ndx);
		if (list->session->inc_recurse)
			order->place = xcalloc((size_t)entries->count + 1, sizeof *order->place);
	}
	/* Until now `dir` was the place in the order of arrival. */
	for (uint32_t i = 0; i < entries->count; i++) {
		if (order)
			order->ndx[i] = first + (int32_t)entries->items[i].dir;
		if (order && order->place)
			order->place[entries->items[i].dir] = i;
		entries->items[i].dir = 0;
	}
	budget_take(session_budget(list->session), entries_memory(entries), "a file list");
	pthread_mutex_lock(&received->lock);
	list->dirs.items[node].entries = entries;
	flist_enter_node(list, node, NULL);
	received->io_error |= io_error;
	/* From here on the entries are the working thread's. */
	for (size_t i = 0; order && order->place && i < received->arrived_dirs.count; i++)
		number_directory(received, &entries->items[order->place[received->arrived_dirs.items[i]]]);
	for (uint32_t i = 0; !order && list->session->inc_recurse && i < entries->count; i++)
		if (entry_is_dir(&entries->items[i]))
			number_directory(received, &entries->items[i]);
	received->arrived_dirs.count = 0;
	pthread_cond_signal(&received->arrived);
	pthread_mutex_unlock(&received->lock);
}

void flist_received_end(struct flist *list)
{
	pthread_mutex_lock(&list->received->lock);
	list->received->over = true;
	pthread_cond_signal(&list->received->arrived);
	pthread_mutex_unlock(&list->received->lock);
}

/* --- one list, numbered otherwise than the walk goes --- */

/* What an index is given by: the path (protocol 27 and 28), the rank, the place in the directory. */
struct order_key {
	char *path;
	int64_t rank;
	struct flist_place place;
};

static int compare_order(const void *a_void, const void *b_void)
{
	const struct order_key *a = a_void, *b = b_void;
	int order = a->path ? strcmp(a->path, b->path) : 0;

	if (order)
		return order;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->place.index < b->place.index ? -1 : 1;
}

/* In the order of the walk. A file behind directories ("/x" behind "!") comes before the directory that is next. */
static int64_t walk_rank(const struct flist *list, int32_t node, uint32_t index)
{
	const struct flist_dir *dir = &list->dirs.items[node];
	const struct entry *items = dir->entries->items;

	if (entry_is_dir(&items[index]) || !dir->child_count || index < list->dirs.items[dir->first_child].parent_entry)
		return 2 * (int64_t)plain_ndx(list, dir, &items[index]) + 1;
	uint32_t passed = directories_up_to(list, dir, index);

	return 2 * (int64_t)(passed < dir->child_count ? list->dirs.items[dir->first_child + (int32_t)passed].own_ndx
						       : list->next_ndx);
}

void flist_number(struct flist *list)
{
	struct flist_received *received = list->received;
	bool by_arrival = list->options->iconv, by_path = !by_arrival && list->session->caps.sorts_by_path;
	VEC(struct order_key) keys = VEC_INIT;
	struct strbuf path = STRBUF_INIT;

	for (size_t n = 0; n < list->load_order.count; n++) {
		int32_t node = list->load_order.items[n];
		const struct entries *entries = list->dirs.items[node].entries;

		for (uint32_t i = 0; i < entries->count; i++) {
			struct order_key key = { .place = { node, i }, .rank = (int64_t)keys.count };

			if (entries->items[i].flags & ENTRY_HIDDEN)
				continue;
			if (received)
				key.rank = order_of(received, node)->ndx[i];
			flist_entry_path(list, node, &entries->items[i], &path);
			if (by_path)
				key.path = xstrdup(strbuf_text(&path));
			else if (!by_arrival)
				key.rank = walk_rank(list, node, i);
			vec_push(&keys, key);
		}
	}
	if (keys.count)
		qsort(keys.items, keys.count, sizeof *keys.items, compare_order);
	for (size_t i = 0; i < keys.count; i++) {
		const struct flist_place *place = &keys.items[i].place;

		if (received)
			order_of(received, place->node)->ndx[place->index] = (int32_t)i;
		vec_push(&list->places, *place);
		free(keys.items[i].path);
	}
	vec_free(&keys);
	strbuf_free(&path);
}
