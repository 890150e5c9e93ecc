/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file list: the walk over its directories, whether they are read here or come from a peer. */
#include "flist.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flist/paths.h"
#include "flist/received.h"
#include "flist/scan.h"
#include "flist/tree.h"
#include "fs/root.h"
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

struct flist *flist_new_received(const struct options *options, struct session *session)
{
	struct flist *list = flist_new(options, session, NULL, NULL, NULL);

	flist_received_new(list);
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

/* --- memory --- */

void flist_free(struct flist *list)
{
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
	flist_received_free(list);
	vec_free(&list->dirs);
	vec_free(&list->load_order);
	vec_free(&list->places);
	strbuf_free(&list->names);
	free(list->cwd);
	free(list);
}

/* --- the walk --- */

int32_t flist_load_next(struct flist *list)
{
	if (list->received)
		return flist_received_next(list);
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
	if (list->received)
		return flist_received_is_complete(list);
	return list->complete || flist_next_node(list) < 0;
}

void flist_drop_entries(struct flist *list, int32_t node)
{
	struct entries **place = &list->dirs.items[node].entries;
	struct entries *entries = list->received ? flist_received_take(list, node) : *place;

	if (!entries)
		return;
	budget_give_back(session_budget(list->session), entries->counted);
	entries_free(entries);
	free(entries);
	if (!list->received)
		*place = NULL;
}

const struct flist_totals *flist_totals(const struct flist *list)
{
	return list->received ? &list->received->shown : &list->totals;
}

bool flist_locate(struct flist *list, int32_t ndx, struct flist_pos *pos)
{
	return list->received ? flist_received_locate(list, ndx, pos) : flist_locate_numbered(list, ndx, pos);
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
