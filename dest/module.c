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

#include "dest/private.h"
#include "fs/operator.h"
#include "lib/exit.h"

const struct local_module *local_module(const struct local *local)
{
	return local->service ? local->service->module : NULL;
}

void local_tell_received(const struct local *local)
{
	const struct local_module *module = local_module(local);

	if (module && module->received)
		module->received(module->context);
}

void local_show_path(const struct local *local, const char *path, struct strbuf *out)
{
	const struct local_module *module = local_module(local);
	bool slash = *local->top_path && *path;

	strbuf_addf(out, "\"%s%s%s%s\"", module ? "/" : "", local->top_path, slash ? "/" : "", path);
	if (module)
		strbuf_addf(out, " (in %s)", module->name);
}

/* --- places that are named --- */

char *local_named_in_module(const struct local *local, const char *path)
{
	struct strbuf full = STRBUF_INIT;
	char *clean;

	if (*path != '/')
		strbuf_addf(&full, "%s/", local->top_path);
	strbuf_add_string(&full, path);
	clean = xmalloc(full.length + 2);
	fs_clean_path(clean, strbuf_text(&full));
	strbuf_free(&full);
	return clean;
}

int local_open_named(const struct local *local, const char *path, int flags)
{
	const struct local_module *module = local_module(local);

	if (!module)
		return options_confine(local->options, fs_operator_open_at(local->top.fd, path,
									   flags | options_link_flag(local->options)));
	char *inside = local_named_in_module(local, path);
	int fd = fs_open_follow(module->root, inside, flags, 0), error = errno;

	free(inside);
	errno = error;
	return fd;
}

/* --- what is hidden --- */

bool local_is_hidden(struct local *local, const char *path, bool is_dir)
{
	const struct local_module *module = local_module(local);
	bool hidden;

	if (!module || !module->hidden)
		return false;
	char *inside = local_named_in_module(local, path);

	pthread_mutex_lock(&local->hidden_lock);
	hidden = strcmp(inside, ".") != 0 && filter_hides_path(module->hidden, inside, is_dir);
	pthread_mutex_unlock(&local->hidden_lock);
	free(inside);
	return hidden;
}

bool local_is_hidden_in(struct local *local, const char *place, const char *path, bool is_dir)
{
	struct strbuf full = STRBUF_INIT;
	bool hidden;

	if (!local_module(local))
		return false;
	strbuf_add_string(&full, place);
	strbuf_add_path(&full, path);
	hidden = local_is_hidden(local, strbuf_text(&full), is_dir);
	strbuf_free(&full);
	return hidden;
}

static bool is_hidden_dir(struct local *local, const char *named)
{
	return named && *named && local_is_hidden(local, named, true);
}

void local_refuse_hidden_dirs(struct local *local)
{
	const struct options *options = local->options;
	const struct local_module *module = local_module(local);
	const char *partial = options_partial_dir(options);
	bool hidden;

	if (!module)
		return;
	hidden = is_hidden_dir(local, options->backup_dir)
		 || (!module->has_own_temp_dir && is_hidden_dir(local, options->temp_dir))
		 || (partial && *partial == '/' && is_hidden_dir(local, partial));
	for (size_t i = 0; i < options->alt_dest_dirs.count && !hidden; i++)
		hidden = is_hidden_dir(local, options->alt_dest_dirs.items[i]);
	if (!hidden)
		return;
	log_set_role("Receiver");
	die(EXIT_SYNTAX, "Your options have been rejected by the server.");
}

void local_hide_entries(struct local *local, int32_t node)
{
	const struct local_module *module = local_module(local);
	struct entries *entries = flist_dir(local->list, node)->entries;
	struct strbuf path = STRBUF_INIT;

	/* The one name that is written has been looked at as the destination. */
	if (!module || !module->hidden || local->single_name)
		return;
	for (uint32_t i = 0; i < entries->count; i++) {
		struct entry *entry = &entries->items[i];

		if (entry_is_dir(entry) || entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN))
			continue;
		flist_entry_path(local->list, node, entry, &path);
		if (!local_is_hidden(local, strbuf_text(&path) + strspn(strbuf_text(&path), "/"), false))
			continue;
		log_msg(L_ERROR_XFER, "ERROR: daemon refused to receive file \"%s\"", strbuf_text(&path));
		entry->flags |= ENTRY_HIDDEN;
	}
	strbuf_free(&path);
}
