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
#include "fs/anchors.h"
#include "fs/operator.h"
#include "lib/charset.h"
#include "lib/exit.h"
#include "lib/log.h"

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
		fs_anchors_free(base->anchors);
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

void flist_note_directory(struct flist *list, uint16_t base_index, const char *transfer, bool follow)
{
	struct strbuf path = STRBUF_INIT;
	struct attr_source *source = flist_base_source(list, base_index, transfer, &path);
	struct flist_base *base = &list->bases.items[base_index];

	if (list->module_source || list->from_base || source->attr_root.trusting || !path.length || source->attr_root.fd < 0) {
		strbuf_free(&path);
		return;
	}
	if (!base->anchors)
		base->anchors = source->attr_root.anchors = fs_anchors_new();
	/* What is not there is reported by those who want it. */
	fs_anchors_add(base->anchors, &source->attr_root, strbuf_text(&path), follow);
	strbuf_free(&path);
}

bool flist_acl_follows(const struct flist *list, const struct entry *entry)
{
	const struct options *options = list->options;

	return options->copy_links || options->copy_unsafe_links
	       || (entry_is_dir(entry) && (options->copy_dirlinks || entry->flags & ENTRY_TOP_DIR));
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

/* --- the walk --- */

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
		flist_enter_view(list, node);
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
