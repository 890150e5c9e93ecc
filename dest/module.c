/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The engine in a daemon's module: nothing lies outside of it, and what it hides is not there (doc/protocol/08-security.md
 * sections 4.4, 4.5).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "dest/module.h"

#include "dest/dest.h"
#include "flist/paths.h"
#include "fs/operator.h"
#include "lib/exit.h"
#include "lib/log.h"

void dest_note_received(const struct dest *dest)
{
	const struct dest_module *module = dest->module;

	if (module && module->received)
		module->received(module->context);
}

void dest_show_path(const struct dest *dest, const char *path, struct strbuf *out)
{
	const struct dest_module *module = dest->module;
	bool slash = *dest->top_path && *path;

	strbuf_addf(out, "\"%s%s%s%s\"", module ? "/" : "", dest->top_path, slash ? "/" : "", path);
	if (module)
		strbuf_addf(out, " (in %s)", module->name);
}

void dest_complain_path(struct dest *dest, const char *role, int error, const char *path, const char *before, const char *after)
{
	const char *old_role = log_role();
	struct strbuf shown = STRBUF_INIT;

	dest_show_path(dest, path, &shown);
	if (!error) {
		log_msg(L_ERROR_XFER, "%s%s%s", before, strbuf_text(&shown), after);
	} else {
		log_set_role(role);
		log_errno(L_ERROR_XFER, error, "%s%s%s", before, strbuf_text(&shown), after);
		log_set_role(old_role);
	}
	strbuf_free(&shown);
}

/* --- places that are named --- */

char *dest_named_in_module(const struct dest *dest, const char *path)
{
	struct strbuf full = STRBUF_INIT;
	char *clean;

	if (*path != '/')
		strbuf_addf(&full, "%s/", dest->top_path);
	strbuf_add_string(&full, path);
	clean = xmalloc(full.length + 2);
	fs_clean_path(clean, strbuf_text(&full));
	strbuf_free(&full);
	return clean;
}

int dest_open_named(const struct dest *dest, const char *path, int flags)
{
	const struct dest_module *module = dest->module;

	if (!module)
		return options_confine(dest->options,
				       fs_operator_open_at(dest->top.fd, path, flags | options_link_flag(dest->options)));
	char *inside = dest_named_in_module(dest, path);
	int fd = fs_open_follow(module->root, inside, flags, 0), error = errno;

	free(inside);
	errno = error;
	return fd;
}

/* --- what is hidden --- */

bool dest_is_hidden(struct dest *dest, const char *path, bool is_dir)
{
	const struct dest_module *module = dest->module;
	bool hidden;

	if (!module || !module->hidden)
		return false;
	char *inside = dest_named_in_module(dest, path);

	pthread_mutex_lock(&dest->hidden_lock);
	hidden = strcmp(inside, ".") != 0 && filter_hides_path(module->hidden, inside, is_dir);
	pthread_mutex_unlock(&dest->hidden_lock);
	free(inside);
	return hidden;
}

bool dest_is_hidden_in(struct dest *dest, const char *place, const char *path, bool is_dir)
{
	struct strbuf full = STRBUF_INIT;
	bool hidden;

	if (!dest->module)
		return false;
	strbuf_add_string(&full, place);
	strbuf_add_path(&full, path);
	hidden = dest_is_hidden(dest, strbuf_text(&full), is_dir);
	strbuf_free(&full);
	return hidden;
}

static bool is_hidden_dir(struct dest *dest, const char *named)
{
	return named && *named && dest_is_hidden(dest, named, true);
}

void dest_refuse_hidden_dirs(struct dest *dest)
{
	const struct options *options = dest->options;
	const struct dest_module *module = dest->module;
	const char *partial = options_partial_dir(options);
	bool hidden;

	if (!module)
		return;
	hidden = is_hidden_dir(dest, options->backup_dir)
		 || (!module->has_own_temp_dir && is_hidden_dir(dest, options->temp_dir))
		 || (partial && *partial == '/' && is_hidden_dir(dest, partial));
	for (size_t i = 0; i < options->alt_dest_dirs.count && !hidden; i++)
		hidden = is_hidden_dir(dest, options->alt_dest_dirs.items[i]);
	if (!hidden)
		return;
	log_set_role("Receiver");
	die(EXIT_SYNTAX, "Your options have been rejected by the server.");
}

void dest_hide_entries(struct dest *dest, int32_t node)
{
	const struct dest_module *module = dest->module;
	struct entries *entries = flist_dir(dest->list, node)->entries;
	struct strbuf path = STRBUF_INIT;

	/* The one name that is written has been looked at as the destination. */
	if (!module || !module->hidden || dest->single_name)
		return;
	for (uint32_t i = 0; i < entries->count; i++) {
		struct entry *entry = &entries->items[i];

		if (entry_is_dir(entry) || entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN))
			continue;
		flist_entry_path(dest->list, node, entry, &path);
		if (!dest_is_hidden(dest, strbuf_text(&path) + strspn(strbuf_text(&path), "/"), false))
			continue;
		log_msg(L_ERROR_XFER, "ERROR: daemon refused to receive file \"%s\"", strbuf_text(&path));
		entry->flags |= ENTRY_HIDDEN;
	}
	strbuf_free(&path);
}
