/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file list: reading a directory into its node, under the rules that hold there. */
#include "flist/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "flist/paths.h"
#include "flist/tree.h"
#include "fs/operator.h"
#include "lib/charset.h"
#include "lib/log.h"

/* --- rules --- */

/* The filter callback of a scan. */
static bool is_excluded(void *context, const char *path, bool is_dir)
{
	struct flist *list = context;

	if (list->hidden && filter_hides_entry(list->hidden, path, is_dir))
		return true;
	return list->user && filter_excludes(list->user, path, is_dir);
}

void flist_set_rule_base(struct flist *list, uint16_t base)
{
	list->scan_base = base;
	if (list->hidden)
		filter_set_base(list->hidden, list->bases.items[base].path);
	if (list->user)
		filter_set_base(list->user, list->module_source ? list->bases.items[base].path : list->bases.items[base].shown);
}

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

/* --- entries --- */

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
bool flist_view_directory(struct flist *list, int32_t node)
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
