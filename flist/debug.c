/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --debug shows of a file list: its names, indexes and attributes, and which directories are read. */
#include "flist/debug.h"

#include <string.h>

#include "flist/paths.h"
#include "flist/tree.h"
#include "lib/log.h"
#include "ui/number.h"

/* --- entries --- */

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

/* Level 3: with indexes and attributes. */
static void say_entries(const struct flist *list, int32_t node, const char *role)
{
	const struct flist_dir *dir = &list->dirs.items[node];

	log_info("[%s] flist start=%d, used=%u, low=0, high=%d", role, dir->first_ndx, dir->count, (int)dir->count - 1);
	for (uint32_t i = 0; i < dir->count; i++)
		say_entry(list, role, node, &dir->entries->items[i], dir->first_ndx + (int32_t)i);
}

/* The same of a list that is only one. */
static void say_all_entries(struct flist *list, const char *role)
{
	int count = (int)list->next_ndx;
	struct flist_pos pos;

	log_info("[%s] flist start=0, used=%d, low=0, high=%d", role, count, count - 1);
	for (int32_t ndx = 0; flist_locate(list, ndx, &pos); ndx++)
		if (pos.entry)
			say_entry(list, role, pos.dir, pos.entry, ndx);
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

/* --- a node --- */

void flist_debug_node(struct flist *list, int32_t node)
{
	const struct flist_dir *dir = &list->dirs.items[node];
	int level = list->options->levels.debug[DEBUG_FLIST];
	bool in_turn = list->session->inc_recurse, is_end = flist_is_complete(list), comes = list->received != NULL;
	/* The half that reads is done with its first list, the half that gets it with each of them. */
	bool is_done = in_turn ? comes || !node : is_end;
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
	if (level > 2 && in_turn)
		say_entries(list, node, role);
	else if (level > 2 && is_end)
		say_all_entries(list, role);
	if (is_done)
		log_info("%s_file_list done", comes ? "recv" : "send");
	if (level > 2 && is_done && !comes)
		log_info("file list sent");
	if (level > 2 && is_end)
		log_info("[%s] flist_eof=1", role);
}
