/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file list: nodes and the walk. */
#include "flist.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flist/private.h"
#include "fs/operator.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"

bool flist_recursive(const struct flist *list)
{
	return list->options->recursive > 0;
}

/* --- a new list --- */

/* The filter callback of a scan. */
static bool is_excluded(void *context, const char *path, bool is_dir)
{
	struct flist *list = context;

	if (list->hidden && filter_hides_entry(list->hidden, path, is_dir))
		return true;
	return list->user && filter_excludes(list->user, path, is_dir);
}

static void set_scan_options(struct flist *list)
{
	const struct options *options = list->options;
	struct scan_options *scan = &list->scan;

	scan->links = options->links;
	scan->devices = options->devices;
	scan->specials = options->specials;
	scan->hard_links = options->hard_links > 0;
	scan->atimes = options->atimes > 0;
	scan->copy_links = options->copy_links;
	scan->copy_devices = options->copy_devices;
	scan->copy_dirlinks = options->copy_dirlinks;
	scan->copy_unsafe_links = options->copy_unsafe_links;
	scan->one_file_system = options->one_file_system;
	scan->log_copied_unsafe = options->levels.info[INFO_SYMSAFE] > 0;
	scan->log_mounts = options->levels.info[INFO_MOUNT] > 0;
	scan->context = list;
}

/* Messages name it; where it has been removed, paths below it lead nowhere. */
static char *working_directory(void)
{
	char *path = getcwd(NULL, 0);

	return path ? path : xstrdup("(unreachable)");
}

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
	if (!module_source)
		list->cwd = working_directory();
	first.entries = xcalloc(1, sizeof *first.entries);
	entries_init(first.entries);
	vec_push(&list->dirs, first);
	if (module_source && options->only_send_attrs)
		module_source->only_attrs = true;
	set_scan_options(list);
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

/* --- memory --- */

/* In a vector that doubles. */
static size_t part_memory(const struct flist_part *part)
{
	return 2 * sizeof *part + (part->path ? BUDGET_OF_TEXT(strlen(part->path)) : 0);
}

void flist_parts_add(struct flist *list, struct flist_parts *parts, const struct flist_part *part)
{
	budget_take(session_budget(list->session), part_memory(part), "names of files");
	vec_push(&parts->parts, *part);
}

void flist_parts_free(struct flist *list, struct flist_parts *parts)
{
	for (size_t i = 0; i < parts->parts.count; i++) {
		budget_give_back(session_budget(list->session), part_memory(&parts->parts.items[i]));
		free(parts->parts.items[i].path);
	}
	vec_free(&parts->parts);
}

void flist_count_entries(struct flist *list, int32_t node)
{
	struct entries *entries = list->dirs.items[node].entries;

	if (!list->received)
		budget_adjust(session_budget(list->session), &entries->counted, entries_memory(entries), "a file list");
}

void flist_free(struct flist *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->dirs.count; i++) {
		flist_drop_entries(list, (int32_t)i);
		if (list->dirs.items[i].parts) {
			flist_parts_free(list, list->dirs.items[i].parts);
			free(list->dirs.items[i].parts);
		}
	}
	for (size_t i = 0; i < list->bases.count; i++) {
		struct flist_base *base = &list->bases.items[i];
		if (base->open)
			fs_root_close(&base->source.attr_root);
		free(base->path);
		free(base->shown);
	}
	vec_free(&list->bases);
	flist_received_free(list);
	vec_free(&list->dirs);
	vec_free(&list->load_order);
	vec_free(&list->permutation);
	strbuf_free(&list->names);
	free(list->cwd);
	free(list);
}

/* --- rules --- */

void flist_set_rule_base(struct flist *list, uint16_t base)
{
	list->scan_base = base;
	if (list->hidden)
		filter_set_base(list->hidden, list->bases.items[base].path);
	if (list->user)
		filter_set_base(list->user, list->module_source ? list->bases.items[base].path : list->bases.items[base].shown);
}

int flist_open_rule_file(void *flist_address, enum filter_place place, const char *path)
{
	struct flist *list = *(struct flist **)flist_address;
	struct strbuf below = STRBUF_INIT;
	int fd;

	if (!list->module_source && place != FILTER_AT_BASE)
		return options_confine(list->options, fs_operator_open(path, O_RDONLY | O_NONBLOCK
								       | options_link_flag(list->options), 0));
	if (place == FILTER_AT_OPERATOR) {
		errno = EACCES;
		return -1;
	}
	while (*path == '/')
		path++;
	const struct attr_source *source = list->module_source;

	if (place == FILTER_AT_BASE)
		source = flist_base_source(list, list->scan_base, path, &below);
	else
		strbuf_add_string(&below, path);
	fd = fs_open_follow(attr_source_real_root(source), strbuf_text(&below), O_RDONLY, 0);
	strbuf_free(&below);
	return fd;
}

/* --- filling and numbering one node --- */

/* Which rules hold for the names of a directory? Rules may have been added since the list was made. */
static void enter_rules(struct flist *list, uint16_t base, const char *transfer)
{
	flist_set_rule_base(list, base);
	if (list->user && list->scan.excluded)
		filter_set_dir(list->user, transfer);
	if (list->hidden)
		filter_set_dir(list->hidden, transfer);
}

/* Without any rule, names are not even put together. */
static bool has_rules(const struct flist *list)
{
	return list->hidden || (list->user && !filter_is_empty(list->user));
}

void flist_scan_part(struct flist *list, int32_t node, uint16_t base)
{
	struct strbuf transfer = STRBUF_INIT, path = STRBUF_INIT;
	struct entries *entries = list->dirs.items[node].entries;
	uint32_t first = entries->count;

	flist_dir_path(list, node, &transfer);
	struct attr_source *source = flist_base_source(list, base, strbuf_text(&transfer), &path);

	list->scan.excluded = has_rules(list) ? is_excluded : NULL;
	enter_rules(list, base, strbuf_text(&transfer));
	attr_source_scan(source, &list->scan, strbuf_text(&path), strbuf_text(&transfer), entries, &list->session->io_error);
	for (uint32_t i = first; i < entries->count; i++) {
		entries->items[i].root = base;
		if (entry_is_dir(&entries->items[i]) && !flist_recursive(list))
			entries->items[i].flags |= ENTRY_NO_CONTENT;
	}
	strbuf_free(&transfer);
	strbuf_free(&path);
}

/*
 * A snapshot's directory as it stands: nothing about its entries may have to be changed. Its rules are then those of the scan;
 * where there are none, not even its path is needed.
 */
static bool view_directory(struct flist *list, int32_t node)
{
	struct flist_dir *dir = &list->dirs.items[node];
	struct strbuf transfer = STRBUF_INIT, path = STRBUF_INIT;
	struct attr_source *source = list->module_source;
	enum scan_result result;

	if (!list->can_view)
		return false;
	list->scan.excluded = has_rules(list) ? is_excluded : NULL;
	if (list->scan.excluded || dir->snapshot_dir == SNAPSHOT_DIR_UNKNOWN) {
		flist_dir_path(list, node, &transfer);
		flist_base_source(list, dir->base, strbuf_text(&transfer), &path);
		enter_rules(list, dir->base, strbuf_text(&transfer));
	}
	bool viewed = attr_source_view(source, &list->scan, dir->snapshot_dir, strbuf_text(&path), strbuf_text(&transfer),
				       dir->entries, &list->session->io_error, &result);

	dir->entries->root = dir->base;
	strbuf_free(&transfer);
	strbuf_free(&path);
	return viewed;
}

static void count_entry(struct flist_totals *totals, const struct entry *entry)
{
	if (entry->flags & ENTRY_HIDDEN)
		return;
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
		if (!child.parts)
			child.parts = xcalloc(1, sizeof *child.parts);
		flist_parts_add(list, child.parts, &part);
	}
	/* Of one that arrives, before (flist/receive.c). */
	if (!list->received)
		budget_take(session_budget(list->session), 2 * (sizeof child + child.name_length),
			    "directories of a file list");
	vec_push(&list->dirs, child);
}

/* The same where nothing is repeated: directories come last. */
static void make_children_of_view(struct flist *list, int32_t node)
{
	const struct entries *entries = list->dirs.items[node].entries;
	uint32_t first = entries->count;

	while (first && entry_is_dir(&entries->items[first - 1]))
		first--;
	for (uint32_t i = first; i < entries->count; i++) {
		make_child(list, node, i, 1);
		list->next_number++;
	}
}

/* Nodes for the directories of a sorted node; every directory entry takes a directory number (protocol/02 6.3). */
static void make_children(struct flist *list, int32_t node)
{
	struct entries *entries = list->dirs.items[node].entries;

	for (uint32_t i = 0; i < entries->count;) {
		uint32_t group = 1;

		if (!entry_is_dir(&entries->items[i])) {
			i++;
			continue;
		}
		while (i + group < entries->count && entry_is_dir(&entries->items[i + group])
		       && (entries->items[i + group].flags & ENTRY_DUPLICATE))
			group++;
		if (!entry_is_dot(entries, &entries->items[i]))
			make_child(list, node, i, group);
		list->next_number += (int32_t)group;
		i += group;
	}
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

		if (!child->parts) {
			child->parts = xcalloc(1, sizeof *child->parts);
			struct flist_part own = { .base = child->base };
			if (!(child->flags & ENTRY_NO_CONTENT))
				flist_parts_add(list, child->parts, &own);
		}
		flist_parts_add(list, child->parts, &below);
	}
}

static void number_entries(struct flist *list, int32_t node)
{
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

void flist_set_charset(struct flist *list, struct charset *charset)
{
	list->charset = charset;
	list->can_view &= !charset;
}

static bool is_convertible(struct flist *list, const struct entries *entries, const struct entry *entry, struct strbuf *scratch)
{
	const struct entry_side *side = entry_is_symlink(entry) && list->options->links ? entry_side_of(entries, entry) : NULL;

	strbuf_reset(scratch);
	if (!charset_to_wire(list->charset, entry_name(entries, entry), entry->name_length, PATH_MAX - 1, scratch))
		return false;
	strbuf_reset(scratch);
	return !side || !list->session->symlink_iconv
	       || charset_to_wire(list->charset, entries->pool + side->target, side->target_length, PATH_MAX - 1, scratch);
}

/* Leave out what the wire's charset cannot say, before anything is numbered. */
static void drop_unconvertible(struct flist *list, int32_t node)
{
	struct entries *entries = list->dirs.items[node].entries;
	struct strbuf scratch = STRBUF_INIT;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < entries->count; i++) {
		if (is_convertible(list, entries, &entries->items[i], &scratch)) {
			entries->items[kept++] = entries->items[i];
			continue;
		}
		int error = errno;

		flist_entry_path(list, node, &entries->items[i], &scratch);
		log_msg(L_ERROR_XFER, "[sender] cannot convert filename: %s (%s)", strbuf_text(&scratch), strerror(error));
		list->session->io_error |= IOERR_GENERAL;
	}
	entries->count = kept;
	strbuf_free(&scratch);
}

/* Entries that are in order as they came. */
static void finish_view(struct flist *list, int32_t node)
{
	const struct entries *entries = list->dirs.items[node].entries;

	for (uint32_t i = 0; i < entries->count; i++)
		count_entry(&list->totals, &entries->items[i]);
	list->dirs.items[node].count = entries->count;
	list->dirs.items[node].loaded = true;
	make_children_of_view(list, node);
	number_entries(list, node);
}

void flist_finish_node(struct flist *list, int32_t node, struct flist_parts *deeper, bool may_repeat)
{
	struct entries *entries = list->dirs.items[node].entries;

	if (list->charset)
		drop_unconvertible(list, node);
	flist_count_entries(list, node);
	entries_sort(entries);
	if (may_repeat)
		entries_mark_duplicates(entries);
	flist_enter_node(list, node, deeper);
}

void flist_enter_node(struct flist *list, int32_t node, struct flist_parts *deeper)
{
	struct entries *entries = list->dirs.items[node].entries;

	for (uint32_t i = 0; i < entries->count; i++)
		count_entry(&list->totals, &entries->items[i]);
	list->dirs.items[node].count = entries->count;
	list->dirs.items[node].loaded = true;
	make_children(list, node);
	if (deeper)
		distribute_parts(list, node, deeper);
	number_entries(list, node);
}

/* --- the walk --- */

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

static void load_parts(struct flist *list, int32_t node, struct flist_parts *deeper)
{
	struct flist_parts *parts = list->dirs.items[node].parts;
	bool *scanned = xcalloc(list->bases.count, sizeof *scanned);

	for (size_t i = 0; i < parts->parts.count; i++) {
		const struct flist_part *part = &parts->parts.items[i];

		if (part->path)
			flist_add_named(list, node, part, deeper);
		else if (!scanned[part->base])
			flist_scan_part(list, node, part->base);
		if (!part->path)
			scanned[part->base] = true;
	}
	free(scanned);
	flist_parts_free(list, parts);
	free(parts);
	list->dirs.items[node].parts = NULL;
}

static void load(struct flist *list, int32_t node)
{
	struct flist_parts deeper = { VEC_INIT };
	struct flist_dir *dir = &list->dirs.items[node];
	bool merged = dir->parts != NULL;

	dir->entries = xcalloc(1, sizeof *dir->entries);
	entries_init(dir->entries);
	if (!merged && !(dir->flags & ENTRY_NO_CONTENT) && view_directory(list, node)) {
		finish_view(list, node);
		return;
	}
	if (merged)
		load_parts(list, node, &deeper);
	else if (!(dir->flags & ENTRY_NO_CONTENT))
		flist_scan_part(list, node, dir->base);
	flist_finish_node(list, node, merged ? &deeper : NULL, merged);
	flist_parts_free(list, &deeper);
}

int32_t flist_load_next(struct flist *list)
{
	if (list->received)
		return flist_received_next(list);
	if (list->complete)
		return -1;
	int32_t node = flist_next_node(list);

	if (node < 0) {
		list->complete = true;
		if (list->session->protocol && list->session->protocol < 29 && !list->options->iconv)
			flist_permute(list);
		return -1;
	}
	list->walk = node;
	load(list, node);
	return node;
}

bool flist_is_complete(const struct flist *list)
{
	if (list->received)
		return flist_received_is_complete(list);
	return list->complete || flist_next_node(list) < 0;
}

uint32_t flist_dir_count(const struct flist *list)
{
	return (uint32_t)list->dirs.count;
}

struct flist_dir *flist_dir(struct flist *list, int32_t node)
{
	return &list->dirs.items[node];
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
	return list->received ? flist_received_totals(list) : &list->totals;
}
