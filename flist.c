/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file list: the walk over its directories, whether they are read here or come from a peer. */
#include "flist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "flist/paths.h"
#include "flist/receive_attributes.h"
#include "flist/scan.h"
#include "flist/tree.h"
#include "fs/root.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "ui/number.h"

/* --- a new list --- */

struct flist *flist_new(const struct options *options, struct session *session, struct attr_source *module_source,
			struct filter_list *user, struct filter_list *hidden)
{
	struct flist *list = xcalloc(1, sizeof *list);
	struct flist_dir first = { .parent = -1, .number = -1, .own_ndx = -1, .first_child = -1, .loaded = true,
				   .snapshot_dir = SNAPSHOT_DIR_UNKNOWN };

	list->options = options;
	list->session = session;
	list->module_source = module_source;
	list->user = user;
	list->hidden = hidden && !filter_is_empty(hidden) ? hidden : NULL;
	/* Messages name it; where it has been removed, paths below it lead nowhere. */
	if (!module_source && !(list->cwd = getcwd(NULL, 0)))
		list->cwd = xstrdup("(unreachable)");
	first.entries = xcalloc(1, sizeof *first.entries);
	entries_init(first.entries);
	vec_push(&list->dirs, first);
	if (module_source && options->only_send_attrs)
		module_source->only_attrs = true;
	list->scan = (struct scan_options){
		.links = options->links,
		.hard_links = options->hard_links > 0, .atimes = options->atimes > 0, .copy_links = options->copy_links,
		.copy_devices = options->copy_devices, .copy_dirlinks = options->copy_dirlinks,
		.copy_unsafe_links = options->copy_unsafe_links, .one_file_system = options->one_file_system,
		.log_copied_unsafe = options->levels.info[INFO_SYMSAFE] > 0,
		.log_mounts = options->levels.info[INFO_MOUNT] > 0, .context = list,
	};
	/* Views are not written to: no other flags, no attributes noted, no names left out. */
	list->can_view = module_source && module_source->snapshot && flist_recursive(list) && !options->xattrs;
	return list;
}

struct scan_options *flist_scan_options(struct flist *list)
{
	return &list->scan;
}

void flist_set_files_from(struct flist *list, const char *base)
{
	list->from_base = base;
}

void flist_set_charset(struct flist *list, struct charset *charset)
{
	list->charset = charset;
	list->can_view &= !charset;
}

uint32_t flist_dir_count(const struct flist *list)
{
	return (uint32_t)list->dirs.count;
}

struct flist_dir *flist_dir(struct flist *list, int32_t node)
{
	return &list->dirs.items[node];
}

bool flist_acl_follows(const struct flist *list, const struct entry *entry)
{
	const struct options *options = list->options;

	return options->copy_links || options->copy_unsafe_links
	       || (entry_is_dir(entry) && (options->copy_dirlinks || entry->flags & ENTRY_TOP_DIR));
}

static struct received_order *order_of(const struct flist_received *received, int32_t node)
{
	return (struct received_order *)received->orders.start + node;
}

/* --- memory --- */

void flist_free(struct flist *list)
{
	struct flist_received *received = list ? list->received : NULL;

	if (!list)
		return;
	for (size_t i = 0; i < list->dirs.count; i++) {
		flist_drop_entries(list, (int32_t)i);
		flist_parts_free(list, &list->dirs.items[i].parts);
	}
	for (size_t i = 0; i < list->bases.count; i++) {
		struct flist_base *base = &list->bases.items[i];
		if (base->open)
			fs_root_close(&base->source.attr_root);
		fs_anchors_free(base->anchors);
		free(base->path);
		free(base->shown);
	}
	vec_free(&list->bases);
	if (received) {
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
	}
	vec_free(&list->dirs);
	vec_free(&list->load_order);
	vec_free(&list->places);
	strbuf_free(&list->names);
	free(list->cwd);
	free(list);
}

/* --- the walk --- */

static bool has_next(const struct flist *list)
{
	return list->received->handed + 1 < list->load_order.count;
}

static int32_t next_received(struct flist *list)
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

int32_t flist_load_next(struct flist *list)
{
	if (list->received)
		return next_received(list);
	if (list->complete)
		return -1;
	int32_t node = flist_next_node(list);

	if (node < 0) {
		list->complete = true;
		if (list->session->caps.sorts_by_path && !list->options->iconv)
			flist_number(list);
		return -1;
	}
	list->walk = node;
	flist_scan_node(list, node);
	return node;
}

bool flist_is_complete(const struct flist *list)
{
	struct flist_received *received = list->received;

	if (!received)
		return list->complete || flist_next_node(list) < 0;
	pthread_mutex_lock(&received->lock);
	bool complete = received->over && !has_next(list);

	pthread_mutex_unlock(&received->lock);
	return complete;
}

void flist_drop_entries(struct flist *list, int32_t node)
{
	struct flist_received *received = list->received;

	if (received)
		pthread_mutex_lock(&received->lock);
	struct entries *entries = list->dirs.items[node].entries;

	list->dirs.items[node].entries = NULL;
	if (entries && received && received->is_permuted) {
		struct received_order *order = order_of(received, node);

		free(order->ndx);
		free(order->place);
		*order = (struct received_order){ NULL, NULL };
	}
	if (received)
		pthread_mutex_unlock(&received->lock);
	if (!entries)
		return;
	budget_give_back(session_budget(list->session), received ? entries_memory(entries) : entries->counted);
	entries_free(entries);
	free(entries);
}

const struct flist_totals *flist_totals(const struct flist *list)
{
	return list->received ? &list->received->shown : &list->totals;
}

/* --- a list that arrives --- */

/* Address space for nodes and their names: more of them than a list has room for anyway. */
#define DIRS_LIMIT (sizeof(struct flist_dir) << 26)
#define NAMES_LIMIT ((size_t)UINT32_MAX)
#define ORDERS_LIMIT (sizeof(struct received_order) << 26)

void flist_received_permute(struct flist_received *received)
{
	received->is_permuted = true;
	reserved_init(&received->orders, sizeof(void *) > 4 ? ORDERS_LIMIT : 0);
	reserved_grow(&received->orders, sizeof(struct received_order));
}

struct flist *flist_new_received(const struct options *options, struct session *session)
{
	struct flist *list = flist_new(options, session, NULL, NULL, NULL);
	struct flist_received *received = xcalloc(1, sizeof *received);

	pthread_mutex_init(&received->lock, NULL);
	pthread_cond_init(&received->arrived, NULL);
	reserved_init(&received->dirs, sizeof(void *) > 4 ? DIRS_LIMIT : 0);
	reserved_init(&received->names, sizeof(void *) > 4 ? NAMES_LIMIT : 0);
	if (options->iconv || session->caps.sorts_by_path)
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
	if (options->acls || options->xattrs)
		received->attributes = received_attributes_new(options);
	list->received = received;
	flist_add_base(list, xstrdup(""));
	return list;
}

/* --- the working thread --- */

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

bool flist_locate(struct flist *list, int32_t ndx, struct flist_pos *pos)
{
	struct flist_received *received = list->received;
	bool found = false;

	if (!received)
		return flist_locate_numbered(list, ndx, pos);
	pthread_mutex_lock(&received->lock);
	if (list->load_order.count) {
		int32_t node = list->load_order.items[flist_order_of(list, ndx)];
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

/* --- what --debug shows --- */

/* Stock's numbers for what is known of an entry. */
enum {
	FLIST_TOP_DIR = 1, FLIST_CONTENT_DIR = 4, FLIST_HARD_LINKED = 0x20, FLIST_IMPLIED_DIR = 0x40,
	FLIST_NANOSECONDS = 0x1000,
};

static unsigned flags_of(const struct flist *list, const struct entry *entry)
{
	unsigned flags = entry->mtime_nsec ? FLIST_NANOSECONDS : 0;
	bool is_top = entry->flags & ENTRY_TOP_DIR, has_content = !(entry->flags & ENTRY_NO_CONTENT);

	if (!entry_is_dir(entry))
		return flags | (list->received && entry->flags & ENTRY_HARD_LINKED ? FLIST_HARD_LINKED : 0);
	if (!has_content)
		return flags | (is_top ? FLIST_IMPLIED_DIR : 0);
	return flags | FLIST_CONTENT_DIR | (is_top ? FLIST_TOP_DIR : 0);
}

static void say_entry(const struct flist *list, const char *role, int32_t node, const struct entry *entry, int32_t ndx)
{
	const struct options *options = list->options;
	struct strbuf path = STRBUF_INIT, shown = STRBUF_INIT, line = STRBUF_INIT;
	char size[64];

	flist_entry_path(list, node, entry, &path);

	const char *name = strbuf_text(&path) + strspn(strbuf_text(&path), "/");

	strbuf_addf(&line, "[%s] i=%d ", role, ndx);
	/* What stands before the names: how deep they lie for the one who gets them, where for the one who reads them. */
	if (list->received) {
		int depth = 1;

		for (const char *at = name; (at = strchr(at, '/')) != NULL; at++)
			depth++;
		strbuf_addf(&line, "%d ", !strcmp(name, ".") ? 0 : depth);
	} else {
		flist_shown_name(list, node, entry, &shown);
		if (shown.length > strlen(name))
			strbuf_addf(&line, "%.*s ", (int)(shown.length - strlen(name) - 1), strbuf_text(&shown));
	}
	strbuf_addf(&line, "%s%s mode=0%o len=%s", name, entry_is_dir(entry) ? "/" : "",
		    (unsigned)entry->mode, number_format(size, sizeof size, (int64_t)entry->size, options->human_readable));
	if (options->owner)
		strbuf_addf(&line, " uid=%u", entry->uid);
	if (options->group)
		strbuf_addf(&line, " gid=%u", entry->gid);
	log_info("%s flags=%x", strbuf_text(&line), flags_of(list, entry));
	strbuf_free(&path);
	strbuf_free(&shown);
	strbuf_free(&line);
}

static void say_names(const struct flist *list, int32_t node)
{
	const struct flist_dir *dir = &list->dirs.items[node];
	int32_t dot = node ? -1 : entries_find(dir->entries, ".", true);
	struct strbuf path = STRBUF_INIT;

	for (uint32_t i = 0; i < dir->count; i++) {
		flist_entry_path(list, node, &dir->entries->items[i], &path);
		const char *name = strbuf_text(&path) + strspn(strbuf_text(&path), "/");

		if (list->received)
			log_info("recv_file_name(%s)", name);
		else
			log_info("[sender] make_file(%s,*,%d)", name, node || (dot >= 0 && (int32_t)i != dot) ? 2 : 0);
	}
	strbuf_free(&path);
}

void flist_debug_node(struct flist *list, int32_t node)
{
	const struct flist_dir *dir = &list->dirs.items[node];
	int level = list->options->levels.debug[DEBUG_FLIST];
	bool in_turn = list->session->inc_recurse, is_end = flist_is_complete(list), comes = list->received != NULL;
	/* The half that reads is done with its first list, the half that gets it with each of them. */
	bool is_done = in_turn ? comes || !node : is_end;
	struct flist_pos pos;
	const char *role = !comes ? "sender" : node && in_turn ? "generator" : "Receiver";

	/* The first node is a directory only if an operand stands for its content. */
	if (!comes && list->options->levels.debug[DEBUG_FILTER] > 1
	    && (node ? !(dir->flags & ENTRY_NO_CONTENT) : entries_find(dir->entries, ".", true) >= 0)) {
		const char *shown = list->bases.items[dir->base].shown;
		const char *below = list->module_source ? "" : shown ? shown : list->cwd;
		struct strbuf path = STRBUF_INIT;

		flist_dir_path(list, node, &path);
		log_info("[sender] pushing local filters for %s/%s%s", strcmp(below, "/") != 0 ? below : "",
			 strbuf_text(&path) + strspn(strbuf_text(&path), "/"), path.length ? "/" : "");
		strbuf_free(&path);
	}
	if (level < 2)
		return;
	if (comes && node && in_turn)
		log_info("[generator] receiving flist for dir %d", dir->number);
	say_names(list, node);
	if (comes && is_done)
		log_info("received %d names", in_turn ? (int)dir->count : list->next_ndx);
	/* With indexes and attributes: those of the node, or all of a list that is only one. */
	if (level > 2 && in_turn) {
		log_info("[%s] flist start=%d, used=%u, low=0, high=%d", role, dir->first_ndx, dir->count, (int)dir->count - 1);
		for (uint32_t i = 0; i < dir->count; i++)
			say_entry(list, role, node, &dir->entries->items[i], dir->first_ndx + (int32_t)i);
	} else if (level > 2 && is_end) {
		int count = (int)list->next_ndx;

		log_info("[%s] flist start=0, used=%d, low=0, high=%d", role, count, count - 1);
		for (int32_t ndx = 0; flist_locate(list, ndx, &pos); ndx++)
			if (pos.entry)
				say_entry(list, role, pos.dir, pos.entry, ndx);
	}
	if (is_done)
		log_info("%s_file_list done", comes ? "recv" : "send");
	if (level > 2 && is_done && !comes)
		log_info("file list sent");
	if (level > 2 && is_end)
		log_info("[%s] flist_eof=1", role);
}
