/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Paths in the destination: as messages show them, as options name them, and hidden by a daemon's module, outside of which
 * nothing lies (doc/protocol/08-security.md sections 4.4, 4.5). Its directories: opened by their path, read, held, and what
 * their default ACLs leave to new objects.
 */
#include "dest/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/dest.h"
#include "flist/paths.h"
#include "fs/file.h"
#include "fs/operator.h"
#include "fs/xattr.h"
#include "lib/exit.h"
#include "lib/log.h"

struct strbuf dest_path_of(const char *dir_path, const char *name)
{
	struct strbuf path = STRBUF_INIT;

	strbuf_add_string(&path, dir_path);
	if (*name)
		strbuf_add_path(&path, name);
	return path;
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
				       fs_owner_open(dest->top.fd, path, flags | options_link_flag(dest->options), 0));
	char *inside = dest_named_in_module(dest, path);
	int fd = fs_open(module->root, inside, flags | FS_FOLLOW, 0), error = errno;

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

static bool deletes_behind_links(const struct dest *dest)
{
	return dest->options->keep_dirlinks || (dest->options->relative && !dest->options->implied_dirs);
}

bool dest_enters_links(const struct dest *dest)
{
	return deletes_behind_links(dest) || dest->options->ignore_existing;
}

int dest_open_dir(struct dest *dest, const char *path, bool to_delete)
{
	bool follows = to_delete ? deletes_behind_links(dest) : dest_enters_links(dest);
	int fd = fs_opendir(&dest->top, follows && *path ? path : ".");

	/* Otherwise name by name, without links. */
	path += strspn(path, "/");
	while (!follows && fd >= 0 && *path) {
		size_t length = strcspn(path, "/");
		char *name = xstrndup(path, length);
		int next = fs_open_at(fd, name, (path[length] ? O_PATH : O_RDONLY) | O_DIRECTORY, 0), error = errno;

		free(name);
		close(fd);
		fd = next;
		errno = error;
		path += length + strspn(path + length, "/");
	}
	return fd;
}

/* --- names of a directory --- */

int dest_read_names(int dir_fd, const struct entries *listed, struct entries *names)
{
	int fd = fs_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0), more, error;
	struct fs_dirent name;
	struct fs_dir dir;
	struct fs_stat st;

	if (fd < 0)
		return -1;
	fs_dir_start(&dir, fd);
	while ((more = fs_dir_next(&dir, &name)) > 0) {
		bool is_dir = name.type == DT_DIR;
		int32_t dir_index = listed ? entries_find(listed, name.name, true) : -1;

		if ((dir_index >= 0 && !(listed->items[dir_index].flags & ENTRY_PRUNED))
		    || (listed && entries_find(listed, name.name, false) >= 0))
			continue;
		if (name.type == DT_UNKNOWN)
			is_dir = fs_lstat_at(dir_fd, name.name, &st) == 0 && S_ISDIR(st.mode);
		struct entry *entry = entries_add(names, name.name, name.name_length);

		entry->mode = is_dir ? S_IFDIR : name.type == DT_REG ? S_IFREG : S_IFLNK;
	}
	error = errno;
	fs_dir_finish(&dir);
	entries_sort(names);
	errno = error;
	return more;
}

/* --- directories that are held --- */

void dest_dir_release(struct dest_dir *dir)
{
	while (dir && --dir->references == 0) {
		struct dest_dir *parent = dir->parent;

		fs_close(dir->fd);
		free(dir->path);
		free(dir);
		dir = parent;
	}
}

/* --- default ACLs --- */

/* The umask that a directory's default ACL amounts to; false: it has none. */
static bool find_acl_umask(int dir_fd, mode_t *mask)
{
	struct fs_root here = { .fd = dir_fd };
	struct fs_acl acl;
	bool is_there;
	unsigned group;

	if (dir_fd < 0 || fs_acl_read(&here, ".", 1, &acl) < 0)
		return false;
	is_there = acl.user_obj != FS_ACL_ABSENT;
	group = acl.mask != FS_ACL_ABSENT ? acl.mask : acl.group_obj;
	if (is_there)
		*mask = ~(mode_t)(acl.user_obj << 6 | group << 3 | acl.other) & 0777;
	fs_acl_free(&acl);
	return is_there;
}

mode_t dest_unlisted_mode(const struct dest *dest, int parent_fd)
{
	mode_t mask;

	return 0777 & ~(find_acl_umask(parent_fd, &mask) ? mask : dest->rules.umask);
}

bool dest_dir_has_default_acl(struct dest_dir *dir)
{
	mode_t mask;

	if (atomic_load(&dir->acl_state) == ACL_UNKNOWN) {
		bool has_one = find_acl_umask(dir->fd, &mask);

		if (has_one)
			atomic_store(&dir->acl_umask, mask);
		/* Two threads may both look; they see the same. */
		atomic_store(&dir->acl_state, has_one ? ACL_DEFAULT : ACL_NONE);
	}
	return atomic_load(&dir->acl_state) == ACL_DEFAULT;
}

mode_t dest_dir_umask(struct dest *dest, struct dest_dir *dir)
{
	return dest_dir_has_default_acl(dir) ? atomic_load(&dir->acl_umask) : dest->rules.umask;
}
