/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file list: base directories, and the paths of nodes and entries. */
#include "flist/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flist/tree.h"
#include "fs/root.h"
#include "lib/exit.h"

#define MAX_OPEN_BASES 32

/* --- base directories --- */

uint16_t flist_add_base(struct flist *list, char *path)
{
	if (list->bases.count && !strcmp(list->bases.items[list->bases.count - 1].path, path)) {
		free(path);
		return (uint16_t)(list->bases.count - 1);
	}
	if (list->bases.count > UINT16_MAX)
		die(EXIT_SYNTAX, "rsync: too many source directories");
	struct flist_base base = { .path = path };

	budget_take(session_budget(list->session), 2 * (sizeof base + BUDGET_OF_TEXT(strlen(path))), "source directories");

	vec_push(&list->bases, base);
	return (uint16_t)(list->bases.count - 1);
}

/* Without the parts that say nothing: "./a//b/." adds "a/b". */
static void add_plain_path(struct strbuf *out, const char *path)
{
	if (*path == '/')
		strbuf_add_char(out, '/');
	strbuf_add_components(out, path);
}

/* What cannot be entered is shown as it was given. */
static void show_base(struct flist *list, struct flist_base *base, bool as_given)
{
	struct strbuf shown = STRBUF_INIT;

	if (base->path[0] != '/')
		strbuf_add_string(&shown, list->cwd);
	if (as_given)
		strbuf_add_path(&shown, base->path);
	else
		add_plain_path(&shown, base->path);
	free(base->shown);
	base->shown = strbuf_detach(&shown);
}

/*
 * A base that was closed in between is the same directory again, or ELOOP. Where the list of --files-from leads is no choice of
 * the operator (doc/protocol/09-since-3.5.0.md section 6.3).
 */
static int open_base(struct flist *list, struct flist_base *base, struct fs_root *root)
{
	const struct options *options = list->options;
	const char *start = base->path, *below = "";
	struct fs_stat st;

	if (list->from_base) {
		start = strcmp(list->from_base, ".") && strcmp(list->from_base, "./") ? list->from_base : "";
		/* The part of the base's path that came out of the list. */
		below = base->path + strlen(start) + strspn(base->path + strlen(start), "/");
	}
	if (fs_root_open(root, *start ? start : ".") < 0)
		return -1;
	/* Do the options follow every symlink, whoever owns it? */
	root->trusting = options->insecure_links || options->copy_links || options->copy_dirlinks || options->copy_unsafe_links;
	if (!list->from_base) {
		/* The operator's choice, however it is reached; below it the anchors know how arguments go on. */
		root->anchors = base->anchors;
	} else {
		root->owned = !root->trusting;
		if (*below) {
			struct fs_root outer = *root;
			int result = fs_root_open_below(root, &outer, below), error = errno;

			fs_root_close(&outer);
			errno = error;
			if (result < 0)
				return -1;
		}
		root->confine = options->confine_root;
	}
	if (fs_stat_at_fd(root->fd, &st) == 0 && (!base->is_known || (st.dev == base->dev && st.ino == base->ino))) {
		base->is_known = true;
		base->dev = st.dev;
		base->ino = st.ino;
		return 0;
	}
	fs_root_close(root);
	errno = ELOOP;
	return -1;
}

struct attr_source *flist_base_source(struct flist *list, uint16_t base_index, const char *transfer, struct strbuf *path)
{
	struct flist_base *base = &list->bases.items[base_index];

	strbuf_reset(path);
	transfer += strspn(transfer, "/");
	if (!strcmp(transfer, "."))
		transfer = "";
	if (list->module_source) {
		strbuf_add_string(path, base->path);
		if (*transfer)
			strbuf_add_path(path, transfer);
		list->module_source->quotes_bare = list->module_source->below_root && !*base->path;
		return list->module_source;
	}
	if (!base->open) {
		const struct options *options = list->options;

		while (list->open_bases >= MAX_OPEN_BASES) {
			struct flist_base *oldest = &list->bases.items[list->next_eviction];

			list->next_eviction = (int)((size_t)(list->next_eviction + 1) % list->bases.count);
			if (oldest->open) {
				fs_root_close(&oldest->source.attr_root);
				oldest->open = false;
				list->open_bases--;
			}
		}
		if (!base->shown)
			show_base(list, base, false);
		base->source.kind = ATTRS_LIVE;
		base->source.only_attrs = options->only_send_attrs;
		base->source.open_noatime = options->open_noatime;
		base->source.fake_super = options->super == SUPER_FAKE;
		base->source.copies_devices = options->copy_devices;
		if (open_base(list, base, &base->source.attr_root) < 0) {
			base->open_error = errno;
			base->source.attr_root = (struct fs_root){ .fd = -1, .error = base->open_error };
			show_base(list, base, true);
		}
		base->source.shown_prefix = base->shown;
		base->open = true;
		list->open_bases++;
	}
	strbuf_add_string(path, transfer);
	return &base->source;
}

/* --- paths --- */

static void add_dir_path(const struct flist *list, int32_t node, struct strbuf *out)
{
	const struct flist_dir *dir = &list->dirs.items[node];

	if (node <= 0)
		return;
	add_dir_path(list, dir->parent, out);
	if (out->length && out->data[out->length - 1] != '/')
		strbuf_add_char(out, '/');
	/* What came from a snapshot has its name there. */
	const char *name = dir->snapshot_dir == SNAPSHOT_DIR_UNKNOWN
				   ? list->names.data + dir->name
				   : attr_snapshot_dir_name(list->module_source->snapshot, dir->snapshot_dir);

	strbuf_add(out, name, dir->name_length);
}

void flist_dir_path(const struct flist *list, int32_t node, struct strbuf *out)
{
	strbuf_reset(out);
	add_dir_path(list, node, out);
}

void flist_entry_path(const struct flist *list, int32_t node, const struct entry *entry, struct strbuf *out)
{
	flist_dir_path(list, node, out);
	strbuf_add_path(out, entry_name(list->dirs.items[node].entries, entry));
}

void flist_quote(const struct flist *list, int32_t node, const struct entry *entry, struct strbuf *out)
{
	struct strbuf path = STRBUF_INIT;
	/* Opening a base does not change what the list says. */
	struct attr_source *source = flist_entry_source((struct flist *)list, node, entry, &path);

	attr_source_quote(source, strbuf_text(&path), out);
	strbuf_free(&path);
}

static void strip_slashes(struct strbuf *out, bool to_one)
{
	while (out->length > 1 && out->data[0] == '/' && (!to_one || out->data[1] == '/')) {
		memmove(out->data, out->data + 1, out->length);
		out->length--;
	}
}

static uint16_t base_of(const struct flist *list, const struct flist_pos *pos)
{
	return pos->gap > 0 ? list->dirs.items[pos->gap].base : entry_root(pos->entries, pos->entry);
}

void flist_pos_operand_name(const struct flist *list, const struct flist_pos *pos, struct strbuf *out)
{
	struct strbuf transfer = STRBUF_INIT;

	flist_pos_path(list, pos, &transfer);
	strbuf_reset(out);
	add_plain_path(out, list->bases.items[base_of(list, pos)].path);
	strbuf_add_path(out, strbuf_text(&transfer));
	strip_slashes(out, !list->module_source);
	strbuf_free(&transfer);
}

void flist_pos_shown_name(const struct flist *list, const struct flist_pos *pos, struct strbuf *out)
{
	flist_pos_operand_name(list, pos, out);
	strip_slashes(out, false);
}

static struct flist_pos pos_of(const struct flist *list, int32_t node, const struct entry *entry)
{
	return (struct flist_pos){
		.dir = node, .entries = list->dirs.items[node].entries, .entry = (struct entry *)entry, .gap = -1,
	};
}

void flist_shown_name(const struct flist *list, int32_t node, const struct entry *entry, struct strbuf *out)
{
	const struct flist_pos pos = pos_of(list, node, entry);

	flist_pos_shown_name(list, &pos, out);
}

struct attr_source *flist_entry_source(struct flist *list, int32_t node, const struct entry *entry, struct strbuf *path)
{
	const struct flist_pos pos = pos_of(list, node, entry);

	return flist_pos_source(list, &pos, path);
}

void flist_pos_path(const struct flist *list, const struct flist_pos *pos, struct strbuf *out)
{
	if (pos->gap > 0)
		flist_dir_path(list, pos->gap, out);
	else
		flist_entry_path(list, pos->dir, pos->entry, out);
}

struct attr_source *flist_pos_source(struct flist *list, const struct flist_pos *pos, struct strbuf *path)
{
	struct strbuf transfer = STRBUF_INIT;

	flist_pos_path(list, pos, &transfer);
	struct attr_source *source = flist_base_source(list, base_of(list, pos), strbuf_text(&transfer), path);

	strbuf_free(&transfer);
	return source;
}
