/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists that arrive: from entries in the order of arrival to the nodes of a list. */
#include "flist/receive_split.h"

#include <stdlib.h>
#include <string.h>

#include "flist/paths.h"
#include "flist/receive_private.h"
#include "flist/received.h"
#include "flist/tree.h"
#include "lib/exit.h"

enum { KEPT_COUNT = 4096 }; /* entries of a sub-list whose memory is kept for the next one */

static _Noreturn void die_misplaced(const struct flist_receiver *receiver, const char *path)
{
	die(receiver->session->inc_recurse ? EXIT_UNSUPPORTED : EXIT_PROTOCOL,
	    "ABORTING due to invalid path from sender: %s", path);
}

/* Length of the directory part; *leaf is where the last component begins. A leading slash belongs to the first one. */
static size_t split_path(const char *path, size_t length, size_t *leaf)
{
	const char *slash = length > 1 ? memrchr(path + 1, '/', length - 1) : NULL;

	*leaf = slash ? (size_t)(slash - path) + 1 : 0;
	return slash ? (size_t)(slash - path) : 0;
}

static bool has_path(const struct flist_receiver *receiver, uint32_t index, const char *path, size_t length)
{
	const struct staged_dir *staged = &receiver->staged.items[index];

	return staged->length == length && !memcmp(strbuf_text(&receiver->staged_paths) + staged->path, path, length);
}

static uint32_t new_staged(struct flist_receiver *receiver, const char *path, size_t length)
{
	struct staged_dir staged = {
		.entries = xcalloc(1, sizeof *staged.entries), .path = receiver->staged_paths.length, .length = length,
	};

	entries_init(staged.entries);
	strbuf_add(&receiver->staged_paths, path, length);
	strbuf_add_char(&receiver->staged_paths, '\0');
	vec_push(&receiver->staged, staged);
	flist_count_staged(receiver, 2 * (sizeof staged + length + sizeof(struct hashmap_slot)) + sizeof *staged.entries);
	return (uint32_t)receiver->staged.count - 1;
}

/* The directory of this path, made if there is none. */
static uint32_t find_staged(struct flist_receiver *receiver, const char *path, size_t length)
{
	uint64_t hash, attempt;
	const uint64_t *found;
	bool inserted;

	if (receiver->last_staged < receiver->staged.count && has_path(receiver, receiver->last_staged, path, length))
		return receiver->last_staged;
	hash = hashmap_hash(&receiver->staged_by_hash, path, length);
	for (attempt = 0; (found = hashmap_get(&receiver->staged_by_hash, hash, attempt)); attempt++)
		if (has_path(receiver, (uint32_t)*found, path, length))
			return (uint32_t)*found;
	uint32_t index = new_staged(receiver, path, length);

	hashmap_put(&receiver->staged_by_hash, hash, attempt, index, &inserted);
	return index;
}

static bool is_dir(const struct incoming *in)
{
	return S_ISDIR(in->mode);
}

uint32_t flist_stage(struct flist_receiver *receiver, const struct incoming *in, size_t *leaf)
{
	const char *path = strbuf_text(&in->name);

	if (in->is_child) {
		*leaf = receiver->node_path.length + 1;
		return 0;
	}
	size_t length = split_path(path, in->name.length, leaf);

	if (receiver->session->inc_recurse) {
		const struct strbuf *wanted = &receiver->node_path;

		if (length != wanted->length || memcmp(path, strbuf_text(wanted), length))
			die_misplaced(receiver, path);
		return 0;
	}
	if (is_dir(in) && strcmp(path + *leaf, ".") != 0) {
		uint32_t own = find_staged(receiver, path, in->name.length);

		receiver->staged.items[own].is_listed = true;
	}
	uint32_t index = find_staged(receiver, path, length);

	receiver->last_staged = index;
	receiver->staged.items[index].is_needed |= in->mode != 0;
	return index;
}

void flist_count_staged(struct flist_receiver *receiver, size_t bytes)
{
	receiver->staged_bytes += bytes;
	budget_take(session_budget(receiver->session), bytes, "a file list");
}

void flist_count_kept(struct flist_receiver *receiver, size_t bytes)
{
	budget_take(session_budget(receiver->session), bytes, "a file list");
}

void flist_unstage(struct flist_receiver *receiver)
{
	budget_give_back(session_budget(receiver->session), receiver->staged_bytes);
	receiver->staged_bytes = 0;
}

static void drop_staged(struct flist_receiver *receiver)
{
	for (size_t i = 0; i < receiver->staged.count; i++) {
		if (!receiver->staged.items[i].entries)
			continue;
		entries_free(receiver->staged.items[i].entries);
		free(receiver->staged.items[i].entries);
	}
	receiver->staged.count = 0;
	strbuf_reset(&receiver->staged_paths);
	hashmap_free(&receiver->staged_by_hash);
}

void flist_staged_clear(struct flist_receiver *receiver)
{
	bool is_kept = receiver->session->inc_recurse && receiver->staged.count;

	if (is_kept && receiver->staged.items[0].entries->capacity > KEPT_COUNT)
		entries_free(receiver->staged.items[0].entries);
	if (!is_kept)
		drop_staged(receiver);
	flist_unstage(receiver);
	/* The root of the transfer, or the directory of the sub-list. */
	if (!receiver->session->inc_recurse)
		receiver->last_staged = find_staged(receiver, "", 0);
	else if (!is_kept)
		receiver->last_staged = new_staged(receiver, "", 0);
	receiver->staged.items[0].is_listed = true;
}

void flist_staged_free(struct flist_receiver *receiver)
{
	drop_staged(receiver);
	vec_free(&receiver->staged);
	strbuf_free(&receiver->staged_paths);
}

/* --- a directory is complete --- */

static void localize_owners(struct flist_receiver *receiver, struct entries *entries)
{
	for (uint32_t i = 0; i < entries->count; i++) {
		if (receiver->users.heard)
			entries->items[i].uid = id_map_local(&receiver->users, entries->items[i].uid);
		if (receiver->groups.heard)
			entries->items[i].gid = id_map_local(&receiver->groups, entries->items[i].gid);
	}
}

/* Equal directories share the numbers of one node. */
static void check_repetitions(const struct entries *entries)
{
	uint32_t repeated = 0;

	for (uint32_t i = 0; i < entries->count; i++) {
		repeated = entries->items[i].flags & ENTRY_DUPLICATE && entry_is_dir(&entries->items[i]) ? repeated + 1 : 0;
		if (repeated >= UINT16_MAX)
			die(EXIT_MALLOC, "rsync: a directory is in the file list too often");
	}
}

void flist_publish(struct flist_receiver *receiver, int32_t node, struct entries *entries)
{
	localize_owners(receiver, entries);
	entries_mark_duplicates(entries);
	check_repetitions(entries);
	flist_received_publish(receiver->list, node, entries, receiver->list_first, receiver->io_error);
}

/* --- from paths to nodes --- */

/* Directories that only their contents speak of. More may be found on the way. */
static void list_missing_parents(struct flist_receiver *receiver)
{
	bool may_lack = receiver->options->relative && receiver->session->caps.omits_parents;
	struct strbuf path = STRBUF_INIT;

	for (size_t i = 0; i < receiver->staged.count; i++) {
		struct staged_dir staged = receiver->staged.items[i];
		size_t leaf;

		if (staged.is_listed)
			continue;
		strbuf_reset(&path);
		strbuf_add(&path, receiver->staged_paths.data + staged.path, staged.length);
		/* What is only to be deleted may lie where the sender has nothing (doc/protocol/02-file-list.md
		 * section 7.6). */
		if (staged.is_needed && !may_lack)
			die_misplaced(receiver, strbuf_text(&path));
		size_t length = split_path(path.data, path.length, &leaf);
		uint32_t parent = find_staged(receiver, path.data, length);
		struct entry *entry = entries_add(receiver->staged.items[parent].entries, path.data + leaf, path.length - leaf);

		entry->mode = S_IFDIR | 0755;
		entry->flags = ENTRY_HIDDEN | ENTRY_NO_CONTENT;
		receiver->staged.items[i].is_listed = true;
	}
	strbuf_free(&path);
}

static bool is_dot_of_directory(const struct entries *entries, const struct entry *entry)
{
	return entry_is_dir(entry) && entry->name_length == 1 && entry_name(entries, entry)[0] == '.';
}

/* "a/." of old releases speaks of "a": a hole, whose class counts for the directory itself. */
static void fold_dots(struct flist_receiver *receiver, struct entries *entries, int32_t node)
{
	for (uint32_t i = 0; node && i < entries->count; i++) {
		struct entry *entry = &entries->items[i];

		if (!is_dot_of_directory(entries, entry))
			continue;
		struct flist_dir *dir = &receiver->list->dirs.items[node];
		struct entry *own = &receiver->list->dirs.items[dir->parent].entries->items[dir->parent_entry];

		if (!(entry->flags & ENTRY_NO_CONTENT)) {
			own->flags = (uint16_t)(own->flags & ~ENTRY_NO_CONTENT);
			dir->flags = (uint16_t)(dir->flags & ~ENTRY_NO_CONTENT);
		}
		entry->flags |= ENTRY_DUPLICATE;
	}
}

static struct entries *take_staged(struct flist_receiver *receiver, int32_t node)
{
	struct strbuf path = STRBUF_INIT;

	flist_dir_path(receiver->list, node, &path);
	uint32_t index = find_staged(receiver, strbuf_text(&path), path.length);
	struct entries *entries = receiver->staged.items[index].entries;

	receiver->staged.items[index].entries = NULL;
	strbuf_free(&path);
	return entries;
}

/* Only --relative has files that come behind directories: "/x" behind "!". The walk numbers files first. */
static bool is_mixed(const struct flist_receiver *receiver)
{
	const struct entries *first = receiver->staged.items[0].entries;
	bool has_late_file = false, has_early_dir = false;

	for (uint32_t i = 0; i < first->count; i++) {
		const char *name = entry_name(first, &first->items[i]);

		has_late_file |= *name == '/' && !entry_is_dir(&first->items[i]);
		has_early_dir |= (unsigned char)*name < '/' && entry_is_dir(&first->items[i]);
	}
	return has_late_file && has_early_dir;
}

void flist_split(struct flist_receiver *receiver)
{
	struct flist *list = receiver->list;

	list_missing_parents(receiver);
	flist_unstage(receiver);
	if (!list->received->is_permuted && is_mixed(receiver))
		flist_received_permute(list->received);
	for (int32_t node = 0; node >= 0; node = flist_next_node(list)) {
		struct entries *entries = take_staged(receiver, node);

		list->walk = node;
		fold_dots(receiver, entries, node);
		entries_sort(entries);
		flist_publish(receiver, node, entries);
	}
}
