/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a run has seen of its destination, for the snapshot that it leaves behind (--attr-snapshot=FILE SRC DEST).
 *
 * A worker looks at each destination object to decide what is to be done; if that is nothing, what it saw is how the object
 * will be listed. Whatever else there is in a directory, made, changed, kept although surplus, or never looked at, is looked
 * at when the directory has got its last change. Directories report to their parents what they came to.
 *
 * Hard links make one change show under several names. The inodes that gained or lost a name, or were changed under one of
 * several, are remembered, and at the very end all names of theirs are looked at again.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "attrs/image.h"
#include "dest/dest.h"
#include "dest/job.h"
#include "dest/paths.h"
#include "dest/seen.h"
#include "dest/task.h"
#include "fs/file.h"
#include "lib/hashmap.h"

#define SETTLE_SECONDS 2

/* A member of a hard link group that was found in place by the main thread, while a worker may still hold its task. */
struct seen_link {
	int32_t node;
	uint32_t index;
	struct fs_stat st;
};

struct seen {
	bool atimes, origins;          /* what else the snapshot stores */
	VEC(struct seen_dir *) dirs;   /* by node; NULL: not entered */
	VEC(struct seen_link) links;   /* of the task whose events are being handled */
	pthread_mutex_t lock;
	struct hashmap changed;        /* dev, ino of linked files that are not what they were; under the lock */
};

struct seen *dest_seen_new(const struct options *options)
{
	struct seen *seen = xcalloc(1, sizeof *seen);

	seen->atimes = options->atimes > 0;
	seen->origins = options->attr_digests != 0;
	pthread_mutex_init(&seen->lock, NULL);
	return seen;
}

void dest_seen_free(struct seen *seen)
{
	if (!seen)
		return;
	for (size_t i = 0; i < seen->dirs.count; i++) {
		if (seen->dirs.items[i])
			entries_free(&seen->dirs.items[i]->entries);
		free(seen->dirs.items[i]);
	}
	vec_free(&seen->dirs);
	vec_free(&seen->links);
	hashmap_free(&seen->changed);
	pthread_mutex_destroy(&seen->lock);
	free(seen);
}

/* --- entries --- */

/* As a scan fills an entry (attrs/source.c); `tracked`: it may get a second name yet. A symlink keeps its target. */
static void fill(const struct seen *seen, struct entries *list, struct entry *entry, const struct fs_stat *st, bool tracked)
{
	bool linked = st->nlink > 1 && !S_ISDIR(st->mode);

	entry_set_stat(entry, st);
	entry->flags = linked ? ENTRY_HARD_LINKED : 0;
	if (linked || tracked || (seen->origins && S_ISREG(st->mode))) {
		struct entry_side *side = entries_side(list, entry);

		side->dev = st->dev;
		side->ino = st->ino;
		side->ctime = st->ctime;
		side->ctime_nsec = st->ctime_nsec;
	}
	if (seen->atimes && !S_ISDIR(st->mode))
		entries_side(list, entry)->atime = st->atime;
	if (entry_is_device(entry)) {
		struct entry_side *side = entries_side(list, entry);

		side->rdev_major = st->rdev_major;
		side->rdev_minor = st->rdev_minor;
	}
}

static void append(struct entries *to, const struct entries *from)
{
	for (uint32_t i = 0; i < from->count; i++) {
		const struct entry *old = &from->items[i];
		const struct entry_side *side = entry_side_of(from, old);
		struct entry *entry = entries_add(to, entry_name(from, old), old->name_length);
		uint32_t name = entry->name;

		*entry = *old;
		entry->name = name;
		entry->side = 0;
		if (side)
			*entries_side(to, entry) = *side;
		if (entry_is_symlink(entry))
			entries_set_target(to, entry, from->pool + side->target, side->target_length);
	}
}

/* --- workers --- */

void dest_seen_start(struct task *task)
{
	const struct entries *listed = task->entries;

	if (!task->dest->seen)
		return;
	for (uint32_t i = task->first; i < task->last; i++) {
		const struct entry *entry = &listed->items[i];
		const char *name = entry_name(listed, entry), *own = name + strspn(name, "/");
		struct entry *unknown = entries_add(&task->seen, own, strlen(own));

		if (entry->flags & (ENTRY_DUPLICATE | ENTRY_HIDDEN) || !strcmp(name, "."))
			unknown->flags = ENTRY_DUPLICATE;
	}
}

void dest_seen_change(struct dest *dest, const struct fs_stat *st)
{
	struct seen *seen = dest->seen;
	bool inserted;

	if (!seen || st->nlink < 2 || S_ISDIR(st->mode))
		return;
	pthread_mutex_lock(&seen->lock);
	hashmap_put(&seen->changed, st->dev, st->ino, 1, &inserted);
	pthread_mutex_unlock(&seen->lock);
}

void dest_seen_file(const struct file_job *job)
{
	struct task *task = job->task;
	struct entries *list = &task->seen;
	struct entry *entry;

	if (!job->dest->seen || !job->old.exists)
		return;
	if (!job->untouched) {
		dest_seen_change(job->dest, &job->old.st);
		return;
	}
	/* The main thread does not write here: a worker may still hold the task. */
	if (job->turn != TURN_FIRST || job->index - task->first >= list->count)
		return;
	entry = &list->items[job->index - task->first];
	fill(job->dest->seen, list, entry, &job->old.st, job->entry->flags & ENTRY_HARD_LINKED);
	if (entry_is_symlink(entry)) {
		const char *target = entry_target(task->entries, job->entry);

		entries_set_target(list, entry, target, strlen(target));
	}
}

/* --- the main thread --- */

static struct seen_dir *dir_of(const struct seen *seen, int32_t node)
{
	return (size_t)node < seen->dirs.count ? seen->dirs.items[node] : NULL;
}

void dest_seen_enter(struct dest *dest, int32_t node, const struct fs_stat *before)
{
	struct seen *seen = dest->seen;
	struct seen_dir *dir;

	if (!seen)
		return;
	while (seen->dirs.count <= (size_t)node)
		vec_push(&seen->dirs, NULL);
	if (seen->dirs.items[node])
		return;
	dir = xcalloc(1, sizeof *dir);
	if (before)
		dir->st = *before;
	seen->dirs.items[node] = dir;
}

void dest_seen_link(struct dest *dest, int32_t node, uint32_t index, const struct fs_stat *st)
{
	struct seen *seen = dest->seen;
	struct seen_link link = { node, index, *st };
	struct seen_dir *dir = seen ? dir_of(seen, node) : NULL;

	/* A symlink's target is another member's, which nobody has read. */
	if (!dir || S_ISLNK(st->mode))
		return;
	if (index < dir->entries.count)
		fill(seen, &dir->entries, &dir->entries.items[index], st, true);
	else
		vec_push(&seen->links, link);
}

void dest_seen_take(struct dest *dest, struct task *task)
{
	struct seen *seen = dest->seen;
	struct seen_dir *dir = seen ? dir_of(seen, task->node) : NULL;

	if (!dir)
		return;
	if (task->is_first)
		dir->names_known = task->knows_names;
	if (!task->first) {
		dir->entries = task->seen;
		entries_init(&task->seen);
	} else if (dir->entries.count == task->first) {
		append(&dir->entries, &task->seen);
	} else {
		dir->names_known = false;
	}
	for (size_t i = 0; i < seen->links.count; i++) {
		const struct seen_link *link = &seen->links.items[i];

		if (link->node == task->node && link->index < dir->entries.count)
			fill(seen, &dir->entries, &dir->entries.items[link->index], &link->st, true);
	}
	seen->links.count = 0;
}

/* --- a directory has got its last change --- */

/* Keep the entries that have `flag` (or that have it not); names stay in the pool. */
static void keep_entries(struct entries *list, uint16_t flag, bool set)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->count; i++)
		if (((list->items[i].flags & flag) != 0) == set)
			list->items[kept++] = list->items[i];
	list->count = kept;
}

#define IS_THERE ENTRY_SENT /* a mark of reread_names, of no meaning to anybody else here */

/* Bring the list up to the names that the directory has. -1: it cannot be read. */
static int reread_names(struct entries *list, int dir_fd)
{
	int fd = fs_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0), more;
	struct entries missing;
	struct fs_dirent name;
	struct fs_dir dir;

	if (fd < 0)
		return -1;
	entries_init(&missing);
	entries_sort(list);
	fs_dir_start(&dir, fd);
	while ((more = fs_dir_next(&dir, &name)) > 0) {
		int32_t index = entries_find(list, name.name, false);

		if (index < 0)
			index = entries_find(list, name.name, true);
		if (index < 0)
			entries_add(&missing, name.name, name.name_length)->flags |= IS_THERE;
		else
			list->items[index].flags |= IS_THERE;
	}
	fs_dir_finish(&dir);
	keep_entries(list, IS_THERE, true);
	append(list, &missing);
	entries_free(&missing);
	for (uint32_t i = 0; i < list->count; i++)
		list->items[i].flags &= (uint16_t)~IS_THERE;
	return more;
}

/* Look at one object. 0; 1: it is not there; -1. */
static int look_at(const struct seen *seen, struct entries *list, struct entry *entry, int dir_fd)
{
	const char *name = entry_name(list, entry);
	char target[PATH_MAX];
	struct fs_stat st;
	ssize_t length;

	if (fs_lstat_at(dir_fd, name, &st) < 0)
		return errno == ENOENT ? 1 : -1;
	length = S_ISLNK(st.mode) ? fs_readlink_at(dir_fd, name, target, sizeof target) : 0;
	if (S_ISLNK(st.mode) && length <= 0)
		return -1;
	fill(seen, list, entry, &st, false);
	if (S_ISLNK(st.mode))
		entries_set_target(list, entry, target, (size_t)length);
	return 0;
}

static bool has_changed(struct seen *seen, const struct entries *list, const struct entry *entry)
{
	const struct entry_side *side = entry_side_of(list, entry);
	bool changed;

	if (!side || !side->ino)
		return false;
	pthread_mutex_lock(&seen->lock);
	changed = hashmap_get(&seen->changed, side->dev, side->ino) != NULL;
	pthread_mutex_unlock(&seen->lock);
	return changed;
}

/* The clock of ctimes is coarse: a second change soon after the last one may leave no trace. */
static bool is_settled(const struct fs_stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec - st->ctime > SETTLE_SECONDS;
}

void dest_seen_finish(struct dest *dest, const struct dest_dir *dir)
{
	struct seen *seen = dest->seen;
	struct seen_dir *seen_dir = seen ? dir_of(seen, dir->node) : NULL;
	struct entries *list;
	struct fs_stat st;

	if (!seen_dir || seen_dir->is_complete || fs_stat_at_fd(dir->fd, &st) < 0)
		return;
	/* A directory that this process cannot read any more is listed as one: by the scan, which says so. */
	if (dest->uid != 0 && (st.mode & 0500) != 0500)
		return;
	list = &seen_dir->entries;
	keep_entries(list, ENTRY_DUPLICATE, false);
	/* Has nothing been made or removed in it since it was entered? */
	bool is_as_before = seen_dir->st.ino == st.ino && seen_dir->st.ctime == st.ctime
			    && seen_dir->st.ctime_nsec == st.ctime_nsec && is_settled(&st);

	if ((!seen_dir->names_known || !is_as_before) && reread_names(list, dir->fd) < 0)
		return;
	/* The names that nobody has looked at, or whose inode has changed since. */
	for (uint32_t i = 0; i < list->count; i++) {
		struct entry *entry = &list->items[i];

		if (entry->mode && !has_changed(seen, list, entry))
			continue;
		int result = look_at(seen, list, entry, dir->fd);

		if (result < 0)
			return;
		if (result)
			entry->flags = ENTRY_DUPLICATE;
	}
	keep_entries(list, ENTRY_DUPLICATE, false);
	struct seen_dir *parent = dir->parent ? dir_of(seen, dir->parent->node) : NULL;
	uint32_t index = flist_dir(dest->list, dir->node)->parent_entry;

	/* The name of a directory may be that of a symlink. */
	if (parent && !parent->is_complete && !dest_enters_links(dest) && index < parent->entries.count
	    && !(parent->entries.items[index].flags & ENTRY_DUPLICATE)) {
		fill(seen, &parent->entries, &parent->entries.items[index], &st, false);
		parent->entries.items[index].dir = (uint32_t)dir->node + 1;
	}
	/* What a later look could not rely on is not offered to it. */
	if (!is_settled(&st))
		st.ctime = st.ctime_nsec = 0;
	seen_dir->st = st;
	seen_dir->is_complete = true;
}

/* --- the end --- */

struct seen_dir *dest_seen_dir(struct seen *seen, int32_t node, const struct fs_root *root, const char *path)
{
	struct seen_dir *dir = dir_of(seen, node);
	bool is_good = dir && dir->is_complete;
	int fd = -1;

	for (uint32_t i = 0; is_good && root && i < dir->entries.count; i++) {
		struct entry *entry = &dir->entries.items[i];

		if (!has_changed(seen, &dir->entries, entry))
			continue;
		if (fd < 0)
			fd = fs_opendir(root, path);
		is_good = fd >= 0 && look_at(seen, &dir->entries, entry, fd) == 0;
	}
	fs_close(fd);
	return is_good ? dir : NULL;
}
