/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Directories of the destination: opened by their path, read, held, and what their default ACLs leave to new objects. */
#include "dest/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest/dest.h"
#include "fs/acl.h"
#include "fs/dir.h"
#include "fs/file.h"

static bool deletes_behind_links(const struct dest *dest)
{
	return dest->options->keep_dirlinks || (dest->options->relative && !dest->options->implied_dirs);
}

bool dest_enters_links(const struct dest *dest)
{
	return deletes_behind_links(dest) || dest->options->ignore_existing;
}

static int open_without_links(struct dest *dest, const char *path)
{
	int fd = fs_opendir(&dest->top, ".");

	for (size_t length; fd >= 0 && *(path += strspn(path, "/")); path += length) {
		length = strcspn(path, "/");
		char *name = xstrndup(path, length);
		int next = fs_open_at(fd, name, (path[length] ? O_PATH : O_RDONLY) | O_DIRECTORY, 0), error = errno;

		free(name);
		close(fd);
		fd = next;
		errno = error;
	}
	return fd;
}

int dest_open_dir(struct dest *dest, const char *path, bool to_delete)
{
	bool follows = to_delete ? deletes_behind_links(dest) : dest_enters_links(dest);

	return follows ? fs_opendir(&dest->top, *path ? path : ".") : open_without_links(dest, path);
}

/* --- names of a directory --- */

static bool is_directory(int dir_fd, const struct fs_dirent *name)
{
	struct fs_stat st;

	if (name->type != DT_UNKNOWN)
		return name->type == DT_DIR;
	return fs_lstat_at(dir_fd, name->name, &st) == 0 && S_ISDIR(st.mode);
}

static void add_name(struct entries *names, const struct fs_dirent *name, bool is_dir)
{
	struct entry *entry = entries_add(names, name->name, name->name_length);

	entry->mode = is_dir ? S_IFDIR : name->type == DT_REG ? S_IFREG : S_IFLNK;
}

static bool is_listed(const struct entries *listed, const char *name)
{
	int32_t dir = entries_find(listed, name, true);

	return entries_find(listed, name, false) >= 0 || (dir >= 0 && !(listed->items[dir].flags & ENTRY_PRUNED));
}

int dest_read_names(int dir_fd, const struct entries *listed, struct entries *names)
{
	int fd = fs_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0), more;
	struct fs_dirent name;
	struct fs_dir dir;

	if (fd < 0)
		return -1;
	fs_dir_start(&dir, fd);
	while ((more = fs_dir_next(&dir, &name)) > 0)
		if (!listed || !is_listed(listed, name.name))
			add_name(names, &name, is_directory(dir_fd, &name));
	int error = errno;

	fs_dir_finish(&dir);
	entries_sort(names);
	errno = error;
	return more;
}

/* --- directories that are held --- */

void dest_dir_hold(struct dest_dir *dir)
{
	dir->references++;
}

void dest_dir_release(struct dest_dir *dir)
{
	while (dir && --dir->references == 0) {
		struct dest_dir *parent = dir->parent;

		if (dir->fd >= 0)
			close(dir->fd);
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

static void learn_default_acl(struct dest_dir *dir)
{
	mode_t mask;
	int state = ACL_NONE;

	if (find_acl_umask(dir->fd, &mask)) {
		atomic_store(&dir->acl_umask, mask);
		state = ACL_DEFAULT;
	}
	/* Two threads may both look; they see the same. */
	atomic_store(&dir->acl_state, state);
}

mode_t dest_unlisted_mode(const struct dest *dest, int parent_fd)
{
	mode_t mask;

	return 0777 & ~(find_acl_umask(parent_fd, &mask) ? mask : dest->rules.umask);
}

mode_t dest_dir_umask(struct dest *dest, struct dest_dir *dir)
{
	if (atomic_load(&dir->acl_state) == ACL_UNKNOWN)
		learn_default_acl(dir);
	return atomic_load(&dir->acl_state) == ACL_DEFAULT ? atomic_load(&dir->acl_umask) : dest->rules.umask;
}

bool dest_dir_has_default_acl(struct dest_dir *dir)
{
	if (atomic_load(&dir->acl_state) == ACL_UNKNOWN)
		learn_default_acl(dir);
	return atomic_load(&dir->acl_state) == ACL_DEFAULT;
}
