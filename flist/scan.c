/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The entries of a list that is made here: what directories have, read under the rules that hold there, and what source
 * arguments and --files-from names stand for (doc/protocol/02-file-list.md section 7).
 */
#include "flist/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "flist/paths.h"
#include "flist/tree.h"
#include "fs/operator.h"
#include "fs/root.h"
#include "lib/charset.h"
#include "lib/exit.h"
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

/* The rules look at names below this base directory from now on. The base has been opened. */
static void set_rule_base(struct flist *list, uint16_t base)
{
	list->scan_base = base;
	if (list->hidden)
		filter_set_base(list->hidden, list->bases.items[base].path);
	if (list->user)
		filter_set_base(list->user, list->module_source ? list->bases.items[base].path : list->bases.items[base].shown);
}

/* Which rules hold for the names of a directory? */
static void enter_rules(struct flist *list, uint16_t base, const char *transfer)
{
	set_rule_base(list, base);
	if (list->user && list->scan.excluded)
		filter_set_dir(list->user, transfer);
	if (list->hidden)
		filter_set_dir(list->hidden, transfer);
}

/* Rules may have been added since the list was made. Without any, names are not even put together. */
static void select_rules(struct flist *list)
{
	list->scan.excluded = list->hidden || (list->user && !filter_is_empty(list->user)) ? is_excluded : NULL;
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
	fd = fs_open(attr_source_real_root(source), strbuf_text(&below), O_RDONLY | FS_FOLLOW, 0);
	strbuf_free(&below);
	return fd;
}

/* --- entries --- */

/* Add what the node's directory has below a base to the node's entries. */
static void scan_part(struct flist *list, int32_t node, uint16_t base)
{
	struct strbuf transfer = STRBUF_INIT, path = STRBUF_INIT;
	struct entries *entries = list->dirs.items[node].entries;
	uint32_t first = entries->count;

	flist_dir_path(list, node, &transfer);
	struct attr_source *source = flist_base_source(list, base, strbuf_text(&transfer), &path);

	select_rules(list);
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

	if (!list->can_view)
		return false;
	select_rules(list);
	if (list->scan.excluded || dir->snapshot_dir == SNAPSHOT_DIR_UNKNOWN) {
		flist_dir_path(list, node, &transfer);
		flist_base_source(list, dir->base, strbuf_text(&transfer), &path);
		enter_rules(list, dir->base, strbuf_text(&transfer));
	}
	bool viewed = attr_source_view(source, &list->scan, dir->snapshot_dir, strbuf_text(&path), strbuf_text(&transfer),
				       dir->entries);

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

/* Sort the entries of a freshly filled node, number them, make its child nodes with the parts in `deeper`. */
static void finish_node(struct flist *list, int32_t node, struct flist_parts *deeper, bool may_repeat)
{
	struct entries *entries = list->dirs.items[node].entries;

	if (list->charset) {
		/* Leave out what the wire's charset cannot say, before anything is numbered. */
		struct strbuf scratch = STRBUF_INIT;
		uint32_t kept = 0;

		for (uint32_t i = 0; i < entries->count; i++) {
			if (is_convertible(list, entries, &entries->items[i], &scratch)) {
				entries->items[kept++] = entries->items[i];
				continue;
			}
			int error = errno;

			flist_entry_path(list, node, &entries->items[i], &scratch);
			log_msg(L_ERROR_XFER, "[sender] cannot convert filename: %s (%s)", strbuf_text(&scratch),
				strerror(error));
			list->session->io_error |= IOERR_GENERAL;
		}
		entries->count = kept;
		strbuf_free(&scratch);
	}
	budget_adjust(session_budget(list->session), &entries->counted, entries_memory(entries), "a file list");
	entries_sort(entries);
	if (may_repeat)
		entries_mark_duplicates(entries);
	flist_enter_node(list, node, deeper);
}

/* --- arguments --- */

static bool ends_with(const char *text, size_t length, const char *end)
{
	size_t end_length = strlen(end);

	return length >= end_length && !memcmp(text + length - end_length, end, end_length);
}

/* With --relative (7.3): collapse "//" and "./" inside, cut a trailing "/" or "/.". */
static char *clean_relative(const char *path, bool *content)
{
	const char *whole = path;
	struct strbuf clean = STRBUF_INIT;

	*content = false;
	if (*path == '/')
		strbuf_add_char(&clean, '/');
	while (*path) {
		size_t length = strcspn(path, "/");
		if (length && !(length == 1 && *path == '.')) {
			if (clean.length && clean.data[clean.length - 1] != '/')
				strbuf_add_char(&clean, '/');
			if (length == 2 && path[0] == '.' && path[1] == '.')
				die(EXIT_SYNTAX, "found \"..\" dir in relative path: %s", whole);
			strbuf_add(&clean, path, length);
		}
		*content = path[length] == '/' || (length == 1 && *path == '.');
		path += length + (path[length] == '/');
	}
	if (!clean.length || !strcmp(clean.data, "/"))
		strbuf_add_char(&clean, '.');
	return strbuf_detach(&clean);
}

/* --- one named entry --- */

static void link_stat_failed(const struct attr_source *source, const char *path, int error)
{
	struct strbuf quoted = STRBUF_INIT;

	attr_source_quote(source, path, &quoted);
	log_errno(L_ERROR_XFER, error, "link_stat %s failed", strbuf_text(&quoted));
	strbuf_free(&quoted);
}

static void change_dir_failed(struct flist *list, const struct attr_source *source, const char *path, int error)
{
	struct attr_source above = *source;
	struct strbuf quoted = STRBUF_INIT;
	char *clean = xmalloc(strlen(path) + 2);

	/* The way begins in the module's root, wherever the list has got to. */
	above.quotes_bare = above.below_root;
	fs_clean_path(clean, path);
	attr_source_quote(&above, above.below_root ? clean : path, &quoted);
	log_errno(L_ERROR_XFER, error, "change_dir %s failed", strbuf_text(&quoted));
	list->session->io_error |= IOERR_GENERAL;
	strbuf_free(&quoted);
	free(clean);
}

/* The working directory of an argument is not there. */
static bool base_is_missing(struct flist *list, struct attr_source *source, uint16_t base)
{
	const char *path = list->bases.items[base].path;
	struct fs_stat st;
	int error;

	if (!list->module_source) {
		if (source->attr_root.fd >= 0)
			return false;
		error = list->bases.items[base].open_error;
	} else {
		bool hidden = list->hidden && *path && filter_hides_path(list->hidden, path, true);
		if (!*path || (!hidden && attr_source_stat(source, path, true, &st) == 0 && S_ISDIR(st.mode)))
			return false;
		error = hidden ? ENOENT : errno == ENOENT || errno == ELOOP ? errno : ENOTDIR;
	}
	change_dir_failed(list, source, list->module_source ? path : "", error);
	return true;
}

static struct entry *last_entry(struct entries *entries)
{
	return &entries->items[entries->count - 1];
}

/* What the module hides is reported as absent, whether or not something is there; the options about missing arguments do not
 * count, as their answers would show the difference. */
static void report_hidden(struct flist *list, uint16_t base, struct attr_source *source, const char *path)
{
	if (!base_is_missing(list, source, base))
		link_stat_failed(source, path, ENOENT);
}

/* An argument that cannot be looked at: say so as the options want. True if it is to be listed as missing. */
static bool report_absent(struct flist *list, uint16_t base, struct attr_source *source, const char *path, int error)
{
	const struct options *options = list->options;

	/* As whatever it might be. */
	if (list->hidden && (filter_hides_path(list->hidden, path, false) || filter_hides_path(list->hidden, path, true))) {
		report_hidden(list, base, source, path);
		return false;
	}
	if (base_is_missing(list, source, base))
		return false;
	if (error != ENOENT && error != ENOTDIR) {
		link_stat_failed(source, path, error);
		list->session->io_error |= IOERR_GENERAL;
		return false;
	}
	if (!options->delete_missing_args && !options->ignore_missing_args)
		link_stat_failed(source, path, error);
	return options->delete_missing_args;
}

/* Is the argument left out by rules? The daemon's own make it look absent. merged_for: the name whose parents' merge files are
 * in force, "" for none. */
static bool rules_exclude(struct flist *list, uint16_t base, struct attr_source *source, const char *path, const char *transfer,
			  bool is_dir, const char *merged_for)
{
	if (list->hidden && filter_hides_path(list->hidden, path, is_dir)) {
		report_hidden(list, base, source, path);
		return true;
	}
	if (!list->user)
		return false;
	set_rule_base(list, base);
	filter_set_argument(list->user, merged_for);
	return filter_excludes(list->user, transfer, is_dir);
}

/* Class of a directory that an argument names; false: it is not entered, hence skipped. */
static bool classify_directory(struct flist *list, struct entry *entry, const char *transfer, bool content)
{
	if (flist_recursive(list) || (list->options->dirs && content)) {
		entry->flags |= ENTRY_TOP_DIR;
		return true;
	}
	if (list->options->dirs) {
		entry->flags |= ENTRY_NO_CONTENT;
		return true;
	}
	log_info("skipping directory %s", transfer);
	return false;
}

/* Local: an argument leads to this directory below a base of the list, through whatever symlinks; follow: also a last one.
 * Everything below it is found from there from now on. */
static void note_directory(struct flist *list, uint16_t base_index, const char *transfer, bool follow)
{
	struct strbuf path = STRBUF_INIT;
	struct attr_source *source = flist_base_source(list, base_index, transfer, &path);
	struct flist_base *base = &list->bases.items[base_index];

	if (!list->module_source && !list->from_base && !source->attr_root.trusting && path.length
	    && source->attr_root.fd >= 0) {
		if (!base->anchors)
			base->anchors = source->attr_root.anchors = fs_anchors_new();
		/* What is not there is reported by those who want it. */
		fs_anchors_add(base->anchors, &source->attr_root, strbuf_text(&path), follow);
	}
	strbuf_free(&path);
}

/*
 * Add the object that a path names to `entries`; true if there and wanted, or if it is to be listed as missing. What is wrong
 * with it is reported. transfer: its transfer name; merged_for: see rules_exclude. NULL: it is a parent that --relative
 * implies, stat'ed through links and not subject to the rules.
 */
static bool add_object(struct flist *list, const struct flist_part *part, const char *transfer, struct entries *entries,
		       const char *merged_for)
{
	struct strbuf path = STRBUF_INIT;
	struct attr_source *source = flist_base_source(list, part->base, transfer, &path);
	const char *text = strbuf_text(&path);
	uint32_t before = entries->count;
	enum scan_result result = attr_source_entry(source, &list->scan, text, transfer, part->path, part->content, entries,
						    &list->session->io_error);
	int error = errno;

	/* Nothing below a parent can be listed without it; one that is gone was reported with what it was asked for. */
	if (result == SCAN_MISSING && (merged_for || error != ENOENT) && report_absent(list, part->base, source, text, error)
	    && merged_for) {
		entries_add(entries, part->path, strlen(part->path))->root = part->base;
	} else if (result == SCAN_OK && entries->count > before) {
		struct entry *entry = last_entry(entries);
		bool is_dir = entry_is_dir(entry);

		entry->root = part->base;
		if (!merged_for) {
			entry->flags |= ENTRY_TOP_DIR | ENTRY_NO_CONTENT;
			if (list->session->caps.omits_parents && !list->options->implied_dirs)
				entry->flags |= ENTRY_HIDDEN;
		} else if (rules_exclude(list, part->base, source, text, transfer, is_dir, merged_for)
			   || (is_dir && !classify_directory(list, entry, transfer, part->content))) {
			entries_remove_last(entries);
		}
	}
	strbuf_free(&path);
	return entries->count > before;
}

/* Add what a part names below the node (one component or more) to the node's entries; what lies deeper becomes a part of the
 * child, in `deeper`. */
static void add_named(struct flist *list, int32_t node, const struct flist_part *part, struct flist_parts **deeper)
{
	const char *slash = strchr(part->path + 1, '/');
	struct entries *entries = list->dirs.items[node].entries;
	const struct entry *last = entries->count ? last_entry(entries) : NULL;
	struct strbuf transfer = STRBUF_INIT;

	flist_dir_path(list, node, &transfer);
	if (slash) {
		char *first = xstrndup(part->path, (size_t)(slash - part->path));
		struct flist_part below = { .base = part->base, .content = part->content, .path = xstrdup(part->path) };
		struct flist_part parent = { .base = part->base, .content = true, .path = first };

		strbuf_add_path(&transfer, first);
		if (!last || last->root != part->base || !entry_is_implied(last)
		    || strcmp(entry_name(entries, last), first) != 0)
			add_object(list, &parent, strbuf_text(&transfer), entries, NULL);
		flist_parts_add(list, deeper, &below);
		free(first);
	} else {
		strbuf_add_path(&transfer, part->path);
		add_object(list, part, strbuf_text(&transfer), entries, strbuf_text(&transfer));
	}
	strbuf_free(&transfer);
}

/* "." and its contents at the top level of the transfer. */
static void add_dot(struct flist *list, uint16_t base, bool implied_only)
{
	struct entries *entries = list->dirs.items[0].entries;
	struct strbuf path = STRBUF_INIT;
	struct attr_source *source = flist_base_source(list, base, "", &path);
	const char *text = strbuf_text(&path);
	int error = 0;

	if (!list->module_source && source->attr_root.fd < 0) {
		error = list->bases.items[base].open_error;
	} else if (list->hidden && *text && filter_hides_path(list->hidden, text, true)) {
		error = ENOENT;
	} else if (attr_source_entry(source, &list->scan, text, ".", ".", true, entries, &list->session->io_error) != SCAN_OK) {
		error = errno;
	} else if (!entry_is_dir(last_entry(entries))) {
		entries_remove_last(entries);
		error = ENOTDIR;
	}
	if (error) {
		change_dir_failed(list, source, text, error);
	} else if (!implied_only && !classify_directory(list, last_entry(entries), ".", true)) {
		entries_remove_last(entries);
	} else {
		last_entry(entries)->root = base;
		if (implied_only)
			last_entry(entries)->flags |= ENTRY_TOP_DIR | ENTRY_NO_CONTENT;
		else
			scan_part(list, 0, base);
	}
	strbuf_free(&path);
}

/* Path: "." or components, with a leading "/" only under --relative. */
static void add_parsed(struct flist *list, const struct flist_part *part, bool leading_dot)
{
	if (!strcmp(part->path, ".") || !strcmp(part->path, "/.")) {
		add_dot(list, part->base, false);
		return;
	}
	if (leading_dot && !list->implied_dot_sent) {
		add_dot(list, part->base, true);
		list->implied_dot_sent = true;
	}
	/* The directories on the way of an argument that --relative lists, and the last one if it is one. */
	for (char *slash = strchr(part->path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		note_directory(list, part->base, part->path, true);
		*slash = '/';
	}
	note_directory(list, part->base, part->path, part->content);
	/*
	 * The implied parents of a path of several components are listed only if what it names is there and wanted. Of the
	 * rules only those count for that which are known before any of its directories is entered.
	 */
	struct entries found;

	entries_init(&found);
	if (!strchr(part->path + 1, '/') || add_object(list, part, part->path, &found, ""))
		add_named(list, 0, part, &list->dirs.items[0].parts);
	entries_free(&found);
}

/* A --files-from name: leading slashes go, ".." never climbs above the start, "." components keep their meaning. */
static char *sanitise_name(const char *name)
{
	struct strbuf clean = STRBUF_INIT;

	for (; *name; name += *name == '/') {
		size_t length = strcspn(name, "/");

		if (length == 2 && name[0] == '.' && name[1] == '.') {
			char *slash = clean.length > 1 ? memrchr(clean.data, '/', clean.length - 1) : NULL;

			strbuf_truncate(&clean, slash ? (size_t)(slash - clean.data) + 1 : 0);
		} else if (length) {
			strbuf_add(&clean, name, length + (name[length] == '/'));
		}
		name += length;
	}
	if (!clean.length)
		strbuf_add_char(&clean, '.');
	return strbuf_detach(&clean);
}

void flist_add_argument(struct flist *list, const char *text, bool from_file)
{
	struct entries *entries = list->dirs.items[0].entries;
	struct flist_part part = { .path = NULL };
	char *base, *clean = NULL;
	/* In a module that is the process's root a word keeps its leading slash, so "./x" was "/./x": a cut point. */
	bool was_absolute = list->module_source && !list->module_source->below_root && !from_file, has_dot = false;

	if (from_file)
		text = clean = sanitise_name(text);
	if (list->options->relative) {
		const char *cut = strstr(text, "/./"), *path = cut ? cut + 3 + strspn(cut + 3, "/") : text;

		if (cut && cut > text)
			base = xstrndup(text, (size_t)(cut - text));
		else
			base = xstrdup(*text == '/' ? "/" : "");
		part.path = clean_relative(*path ? path : ".", &part.content);
		has_dot = !was_absolute && !strncmp(path, "./", 2) && path[2];
	} else {
		struct strbuf full = STRBUF_INIT;

		strbuf_add_string(&full, *text ? text : ".");
		if (ends_with(full.data, full.length, "/"))
			strbuf_add_char(&full, '.');
		else if (!strcmp(full.data, "..") || ends_with(full.data, full.length, "/.."))
			strbuf_add_string(&full, "/.");
		const char *slash = strrchr(full.data, '/'), *name = slash ? slash + 1 : full.data;

		part.path = xstrdup(name);
		part.content = !strcmp(name, ".");
		base = slash == full.data ? xstrdup("/") : xstrndup(full.data, slash ? (size_t)(slash - full.data) : 0);
		strbuf_free(&full);
	}
	if (from_file) {
		const char *from = list->from_base ? list->from_base : "", *below = base + strspn(base, "/");
		struct strbuf joined = STRBUF_INIT;

		strbuf_add_string(&joined, strcmp(from, ".") && strcmp(from, "./") ? from : "");
		if (*below)
			strbuf_add_path(&joined, below);
		free(base);
		base = strbuf_detach(&joined);
	}
	part.base = flist_add_base(list, base);
	add_parsed(list, &part, has_dot);
	budget_adjust(session_budget(list->session), &entries->counted, entries_memory(entries), "a file list");
	free(part.path);
	free(clean);
}

void flist_finish_arguments(struct flist *list)
{
	struct flist_parts *deeper = list->dirs.items[0].parts;

	list->dirs.items[0].parts = NULL;
	finish_node(list, 0, deeper, true);
	flist_parts_free(list, &deeper);
}

/* --- a node of the walk --- */

void flist_scan_node(struct flist *list, int32_t node)
{
	struct flist_dir *dir = &list->dirs.items[node];
	struct flist_parts *parts = dir->parts, *deeper = NULL;
	bool is_merged = parts != NULL, has_content = !(dir->flags & ENTRY_NO_CONTENT);

	dir->entries = xcalloc(1, sizeof *dir->entries);
	entries_init(dir->entries);
	if (!is_merged && has_content && view_directory(list, node)) {
		flist_enter_node(list, node, NULL);
		return;
	}
	if (is_merged) {
		bool *scanned = xcalloc(list->bases.count, sizeof *scanned);

		for (size_t i = 0; i < parts->parts.count; i++) {
			const struct flist_part *part = &parts->parts.items[i];

			if (part->path)
				add_named(list, node, part, &deeper);
			else if (!scanned[part->base])
				scan_part(list, node, part->base);
			if (!part->path)
				scanned[part->base] = true;
		}
		free(scanned);
		flist_parts_free(list, &dir->parts);
	} else if (has_content) {
		scan_part(list, node, dir->base);
	}
	finish_node(list, node, deeper, is_merged);
	flist_parts_free(list, &deeper);
}
