/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --debug tells of the file list of a receiving side, and in a run without a peer as the sending half. */
#include <string.h>

#include "local_pull.h"
#include "ui/number.h"

/* --- DUP: names that the list has twice, under the indexes of those that lose --- */

static bool follows_its_like(const struct entries *entries, uint32_t index)
{
	const struct entry *entry = &entries->items[index], *before = entry - 1;

	return index && entry_is_dir(before) == entry_is_dir(entry) && before->name_length == entry->name_length
	       && !memcmp(entry_name(entries, before), entry_name(entries, entry), entry->name_length);
}

static void say_duplicate(struct local *local, int32_t node, const struct entry *entry, int32_t ndx)
{
	struct strbuf path = STRBUF_INIT;

	flist_entry_path(local->list, node, entry, &path);
	log_info("removing duplicate name %s from file list (%d)", strbuf_text(&path), ndx);
	strbuf_free(&path);
}

/* A file gives way to the directory at `index`. */
static void say_file_of_directory(struct local *local, int32_t node, uint32_t index)
{
	const struct flist_dir *dir = flist_dir(local->list, node);
	int32_t file = entries_find(dir->entries, entry_name(dir->entries, &dir->entries->items[index]), false);

	if (file >= 0)
		say_duplicate(local, node, &dir->entries->items[file], dir->first_ndx + file);
}

/* In one list a directory's index stands beside those of its contents. */
static void say_directory_duplicates(struct local *local, int32_t node)
{
	const struct flist_dir *dir = flist_dir(local->list, node);
	const struct entry *entry = &flist_dir(local->list, dir->parent)->entries->items[dir->parent_entry];

	say_file_of_directory(local, dir->parent, dir->parent_entry);
	for (int32_t i = 1; i < dir->group; i++)
		say_duplicate(local, dir->parent, entry, dir->own_ndx + i);
}

static void say_node_duplicates(struct local *local, int32_t node)
{
	const struct flist_dir *dir = flist_dir(local->list, node);
	bool in_turn = local->session.inc_recurse;
	uint32_t count = in_turn || !dir->child_count ? dir->count : flist_dir(local->list, dir->first_child)->parent_entry;

	if (node && !in_turn)
		say_directory_duplicates(local, node);
	for (uint32_t i = 0; i < count; i++) {
		const struct entry *entry = &dir->entries->items[i];

		if (entry->flags & ENTRY_DUPLICATE && follows_its_like(dir->entries, i))
			say_duplicate(local, node, entry, dir->first_ndx + (int32_t)i);
		else if (entry_is_dir(entry))
			say_file_of_directory(local, node, i);
	}
}

/* Old protocols number the whole list by path. */
static void say_all_duplicates(struct local *local)
{
	struct flist_pos pos;

	for (int32_t ndx = 0; flist_locate(local->list, ndx, &pos); ndx++)
		if (pos.entry && pos.entry->flags & ENTRY_DUPLICATE)
			say_duplicate(local, pos.dir, pos.entry, ndx);
}

static void say_duplicates(struct local *local, int32_t node)
{
	if (!local->options->levels.debug[DEBUG_DUP])
		return;
	if (local->session.protocol >= 29)
		say_node_duplicates(local, node);
	else if (!node)
		say_all_duplicates(local);
}

/* --- FLIST: what the list has --- */

/* Stock's numbers for what is known of an entry. */
enum {
	FLIST_TOP_DIR = 1, FLIST_CONTENT_DIR = 4, FLIST_HARD_LINKED = 0x20, FLIST_IMPLIED_DIR = 0x40,
	FLIST_NANOSECONDS = 0x1000,
};

static unsigned flags_of(const struct local *local, const struct entry *entry)
{
	unsigned flags = entry->mtime_nsec ? FLIST_NANOSECONDS : 0;
	bool is_top = entry->flags & ENTRY_TOP_DIR, has_content = !(entry->flags & ENTRY_NO_CONTENT);

	if (!entry_is_dir(entry))
		return flags | (local->pull && entry->flags & ENTRY_HARD_LINKED ? FLIST_HARD_LINKED : 0);
	if (!has_content)
		return flags | (is_top ? FLIST_IMPLIED_DIR : 0);
	return flags | FLIST_CONTENT_DIR | (is_top ? FLIST_TOP_DIR : 0);
}

/* What stands before the names: where they lie for the one who reads them, how deep for the one who gets them. */
static void add_place(const struct local *local, int32_t node, const struct entry *entry, const char *path, struct strbuf *out)
{
	struct strbuf shown = STRBUF_INIT;
	size_t length = strlen(path);
	int depth = 1;

	if (local->pull) {
		for (const char *at = path; (at = strchr(at, '/')) != NULL; at++)
			depth++;
		strbuf_addf(out, "%d ", !strcmp(path, ".") ? 0 : depth);
		return;
	}
	flist_shown_name(local->list, node, entry, &shown);
	if (shown.length > length)
		strbuf_addf(out, "%.*s ", (int)(shown.length - length - 1), strbuf_text(&shown));
	strbuf_free(&shown);
}

static void say_entry(const struct local *local, const char *role, int32_t node, const struct entry *entry, int32_t ndx)
{
	const struct options *options = local->options;
	struct strbuf path = STRBUF_INIT, line = STRBUF_INIT;
	char size[64];

	flist_entry_path(local->list, node, entry, &path);

	const char *name = strbuf_text(&path) + strspn(strbuf_text(&path), "/");

	strbuf_addf(&line, "[%s] i=%d ", role, ndx);
	add_place(local, node, entry, name, &line);
	strbuf_addf(&line, "%s%s mode=0%o len=%s", name, entry_is_dir(entry) ? "/" : "",
		    (unsigned)entry->mode, number_format(size, sizeof size, (int64_t)entry->size, options->human_readable));
	if (options->owner)
		strbuf_addf(&line, " uid=%u", entry->uid);
	if (options->group)
		strbuf_addf(&line, " gid=%u", entry->gid);
	log_info("%s flags=%x", strbuf_text(&line), flags_of(local, entry));
	strbuf_free(&path);
	strbuf_free(&line);
}

/* Level 3: with indexes and attributes. */
static void say_entries(const struct local *local, int32_t node, const char *role)
{
	const struct flist_dir *dir = flist_dir(local->list, node);

	log_info("[%s] flist start=%d, used=%u, low=0, high=%d", role, dir->first_ndx, dir->count, (int)dir->count - 1);
	for (uint32_t i = 0; i < dir->count; i++)
		say_entry(local, role, node, &dir->entries->items[i], dir->first_ndx + (int32_t)i);
}

/* The same of a list that is only one. */
static void say_all_entries(const struct local *local, const char *role)
{
	int count = (int)local->loaded_entries;
	struct flist_pos pos;

	log_info("[%s] flist start=0, used=%d, low=0, high=%d", role, count, count - 1);
	for (int32_t ndx = 0; flist_locate(local->list, ndx, &pos); ndx++)
		if (pos.entry)
			say_entry(local, role, pos.dir, pos.entry, ndx);
}

/* A run without a peer reads it; a peer sends it. */
static void say_name(const struct local *local, int32_t node, const struct entry *entry, bool below_argument)
{
	struct strbuf path = STRBUF_INIT;

	flist_entry_path(local->list, node, entry, &path);

	const char *name = strbuf_text(&path) + strspn(strbuf_text(&path), "/");

	if (local->pull)
		log_info("recv_file_name(%s)", name);
	else
		log_info("[sender] make_file(%s,*,%d)", name, below_argument ? 2 : 0);
	strbuf_free(&path);
}

static void say_names(const struct local *local, int32_t node)
{
	const struct flist_dir *dir = flist_dir(local->list, node);
	int32_t dot = node ? -1 : entries_find(dir->entries, ".", true);

	for (uint32_t i = 0; i < dir->count; i++)
		say_name(local, node, &dir->entries->items[i], node || (dot >= 0 && (int32_t)i != dot));
}

static void say_list(const struct local *local, int32_t node)
{
	const struct flist_dir *dir = flist_dir(local->list, node);
	int level = local->options->levels.debug[DEBUG_FLIST];
	bool in_turn = local->session.inc_recurse, is_end = in_turn || flist_is_complete(local->list);
	const char *role = !local->pull ? "sender" : node && in_turn ? "generator" : "Receiver";

	if (level < 2)
		return;
	if (local->pull && node && in_turn)
		log_info("[generator] receiving flist for dir %d", dir->number);
	say_names(local, node);
	if (!is_end)
		return;
	uint64_t count = in_turn ? dir->count : local->loaded_entries;

	if (local->pull)
		log_info("received %llu names", (unsigned long long)count);
	if (level > 2 && in_turn)
		say_entries(local, node, role);
	else if (level > 2)
		say_all_entries(local, role);
	if (local->pull)
		log_info("recv_file_list done");
	else if (!node || !in_turn)
		log_info("send_file_list done");
	if (level > 2 && !local->pull && (!node || !in_turn))
		log_info("file list sent");
	if (level > 2 && flist_is_complete(local->list))
		log_info("[%s] flist_eof=1", role);
}

void local_debug_list(struct local *local, int32_t node)
{
	say_duplicates(local, node);
	say_list(local, node);
}
