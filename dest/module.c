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

const struct dest_module *dest_module(const struct receiver *receiver)
{
	return receiver->service ? receiver->service->module : NULL;
}

void dest_tell_received(const struct receiver *receiver)
{
	const struct dest_module *module = dest_module(receiver);

	if (module && module->received)
		module->received(module->context);
}

void dest_show_path(const struct receiver *receiver, const char *path, struct strbuf *out)
{
	const struct dest_module *module = dest_module(receiver);
	bool slash = *receiver->top_path && *path;

	strbuf_addf(out, "\"%s%s%s%s\"", module ? "/" : "", receiver->top_path, slash ? "/" : "", path);
	if (module)
		strbuf_addf(out, " (in %s)", module->name);
}

/* --- places that are named --- */

char *dest_named_in_module(const struct receiver *receiver, const char *path)
{
	struct strbuf full = STRBUF_INIT;
	char *clean;

	if (*path != '/')
		strbuf_addf(&full, "%s/", receiver->top_path);
	strbuf_add_string(&full, path);
	clean = xmalloc(full.length + 2);
	fs_clean_path(clean, strbuf_text(&full));
	strbuf_free(&full);
	return clean;
}

int dest_open_named(const struct receiver *receiver, const char *path, int flags)
{
	const struct dest_module *module = dest_module(receiver);

	if (!module)
		return options_confine(receiver->options, fs_operator_open_at(receiver->top.fd, path,
									      flags | options_link_flag(receiver->options)));
	char *inside = dest_named_in_module(receiver, path);
	int fd = fs_open_follow(module->root, inside, flags, 0), error = errno;

	free(inside);
	errno = error;
	return fd;
}

/* --- what is hidden --- */

bool dest_is_hidden(struct receiver *receiver, const char *path, bool is_dir)
{
	const struct dest_module *module = dest_module(receiver);
	bool hidden;

	if (!module || !module->hidden)
		return false;
	char *inside = dest_named_in_module(receiver, path);

	pthread_mutex_lock(&receiver->hidden_lock);
	hidden = strcmp(inside, ".") != 0 && filter_hides_path(module->hidden, inside, is_dir);
	pthread_mutex_unlock(&receiver->hidden_lock);
	free(inside);
	return hidden;
}

bool dest_is_hidden_in(struct receiver *receiver, const char *place, const char *path, bool is_dir)
{
	struct strbuf full = STRBUF_INIT;
	bool hidden;

	if (!dest_module(receiver))
		return false;
	strbuf_add_string(&full, place);
	strbuf_add_path(&full, path);
	hidden = dest_is_hidden(receiver, strbuf_text(&full), is_dir);
	strbuf_free(&full);
	return hidden;
}

static bool is_hidden_dir(struct receiver *receiver, const char *named)
{
	return named && *named && dest_is_hidden(receiver, named, true);
}

void dest_refuse_hidden_dirs(struct receiver *receiver)
{
	const struct options *options = receiver->options;
	const struct dest_module *module = dest_module(receiver);
	const char *partial = options_partial_dir(options);
	bool hidden;

	if (!module)
		return;
	hidden = is_hidden_dir(receiver, options->backup_dir)
		 || (!module->has_own_temp_dir && is_hidden_dir(receiver, options->temp_dir))
		 || (partial && *partial == '/' && is_hidden_dir(receiver, partial));
	for (size_t i = 0; i < options->alt_dest_dirs.count && !hidden; i++)
		hidden = is_hidden_dir(receiver, options->alt_dest_dirs.items[i]);
	if (!hidden)
		return;
	log_set_role("Receiver");
	die(EXIT_SYNTAX, "Your options have been rejected by the server.");
}

void dest_hide_entries(struct receiver *receiver, int32_t node)
{
	const struct dest_module *module = dest_module(receiver);
	struct entries *entries = flist_dir(receiver->list, node)->entries;
	struct strbuf path = STRBUF_INIT;

	/* The one name that is written has been looked at as the destination. */
	if (!module || !module->hidden || receiver->single_name)
		return;
	for (uint32_t i = 0; i < entries->count; i++) {
		struct entry *entry = &entries->items[i];

		if (entry_is_dir(entry) || entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN))
			continue;
		flist_entry_path(receiver->list, node, entry, &path);
		if (!dest_is_hidden(receiver, strbuf_text(&path) + strspn(strbuf_text(&path), "/"), false))
			continue;
		log_msg(L_ERROR_XFER, "ERROR: daemon refused to receive file \"%s\"", strbuf_text(&path));
		entry->flags |= ENTRY_HIDDEN;
	}
	strbuf_free(&path);
}
