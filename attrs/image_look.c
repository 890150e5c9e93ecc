/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which directories of an older snapshot are as they were. In a refresh that is nearly all of them, and looking is nearly all
 * that it does: so the threads share nothing while they look, and meet again for what is left.
 */
#include "attrs/image_look.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "attrs/image_crew.h"
#include "lib/alloc.h"
#include "lib/threads.h"

/* --- one directory --- */

static const struct entry *entry_of_dir(const struct attr_snapshot *old, uint32_t dir, struct entries *view)
{
	struct snapshot_dir_facts facts;

	attr_snapshot_dir(old, dir, &facts);
	if (dir == 0)
		attr_snapshot_root(old, view);
	else
		attr_snapshot_view(old, facts.parent, view);
	return &view->items[facts.parent_entry];
}

static bool is_same(const struct snapshot_dir_facts *facts, const struct fs_stat *st)
{
	return S_ISDIR(st->mode) && facts->dev == st->dev && facts->ino == st->ino;
}

bool image_is_same_dir(const struct attr_snapshot *old, uint32_t dir, const struct fs_stat *st)
{
	struct snapshot_dir_facts facts;

	attr_snapshot_dir(old, dir, &facts);
	return is_same(&facts, st);
}

static bool has_changed(const struct snapshot_dir_facts *facts, const struct entry *entry, const struct fs_stat *st)
{
	return facts->error || !is_same(facts, st) || facts->ctime != st->ctime || facts->ctime_nsec != st->ctime_nsec ||
	       entry->mtime != st->mtime || entry->mtime_nsec != st->mtime_nsec;
}

bool image_dir_has_changed(const struct attr_snapshot *old, uint32_t dir, const struct fs_stat *st)
{
	struct snapshot_dir_facts facts;
	struct entries view;
	const struct entry *entry = entry_of_dir(old, dir, &view);

	attr_snapshot_dir(old, dir, &facts);
	return has_changed(&facts, entry, st);
}

struct entry image_fresh_entry(const struct image_scan *scan, const struct entry *entry, const struct fs_stat *st,
			       uint64_t parent_dev)
{
	struct entry fresh = *entry;

	fresh.mode = (uint16_t)st->mode;
	fresh.uid = st->uid;
	fresh.gid = st->gid;
	fresh.size = st->size;
	fresh.mtime = st->mtime;
	fresh.mtime_nsec = st->mtime_nsec < 1000000000 ? st->mtime_nsec : 0;
	fresh.flags = st->dev == parent_dev ? 0 : ENTRY_MOUNT;
	if (scan->adjust)
		scan->adjust(scan->context, &fresh);
	return fresh;
}

bool image_is_same_entry(const struct entry *a, const struct entry *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid && a->size == b->size && a->mtime == b->mtime
	       && a->mtime_nsec == b->mtime_nsec && a->flags == b->flags;
}

/* --- all of them --- */

enum { JOB_DIRS = 256 };

struct looking {
	const struct image_scan *scan;
	const struct attr_snapshot *old;
	uint32_t dir_count;
	uint8_t *whole;
};

/* A directory held open, for the names in it; those above it are the ones before it. */
struct level {
	uint32_t dir, end;       /* end: of its subtree */
	int fd;
};

struct way { VEC(struct level) levels; };

static void leave_last(struct way *way)
{
	close(way->levels.items[--way->levels.count].fd);
}

/* Hold directory `dir`, which is not before the last one. Its descriptor, or -1. */
static int go_to(struct way *way, const struct looking *looking, uint32_t dir)
{
	struct snapshot_dir_facts facts;
	int above;

	while (way->levels.count && way->levels.items[way->levels.count - 1].end <= dir)
		leave_last(way);
	if (way->levels.count && way->levels.items[way->levels.count - 1].dir == dir)
		return way->levels.items[way->levels.count - 1].fd;
	if (!dir)
		return looking->scan->source->attr_root.fd;
	attr_snapshot_dir(looking->old, dir, &facts);
	above = go_to(way, looking, facts.parent);
	if (above < 0)
		return -1;
	struct level level = { .dir = dir, .end = facts.subtree_end };

	level.fd = fs_open_at(above, attr_snapshot_dir_name(looking->old, dir), O_PATH | O_DIRECTORY, 0);
	if (level.fd >= 0)
		vec_push(&way->levels, level);
	return level.fd;
}

/* Compare a directory with what its name in directory dir_fd stands for. Mount points differ in any case. */
static bool is_as_it_was(const struct looking *looking, int dir_fd, uint64_t dev, const char *name, const struct entry *entry)
{
	struct snapshot_dir_facts facts;
	struct fs_stat st;

	attr_snapshot_dir(looking->old, entry->dir, &facts);
	if (fs_lstat_at(dir_fd, name, &st) < 0 || st.dev != dev || has_changed(&facts, entry, &st))
		return false;
	struct entry fresh = image_fresh_entry(looking->scan, entry, &st, dev);

	return image_is_same_entry(entry, &fresh);
}

/* Compare the directories in directory `dir`. */
static void look_below(const struct looking *looking, uint32_t dir, struct way *way)
{
	struct snapshot_dir_facts facts;
	struct entries view;

	attr_snapshot_dir(looking->old, dir, &facts);
	attr_snapshot_view(looking->old, dir, &view);
	int fd = facts.leading < view.count ? go_to(way, looking, dir) : -1;

	for (uint32_t i = facts.leading; fd >= 0 && i < view.count; i++) {
		const struct entry *entry = &view.items[i];

		looking->whole[entry->dir] = is_as_it_was(looking, fd, facts.dev, entry_name(&view, entry), entry);
	}
}

static void look_at_some(void *looking_void, int number)
{
	const struct looking *looking = looking_void;
	uint32_t first = (uint32_t)number * JOB_DIRS, left = looking->dir_count - first;
	struct way way = { VEC_INIT };

	for (uint32_t i = 0; i < left && i < JOB_DIRS && !image_is_stopped(looking->scan); i++)
		look_below(looking, first + i, &way);
	while (way.levels.count)
		leave_last(&way);
	vec_free(&way.levels);
}

uint8_t *image_find_whole(const struct image_scan *scan, const struct attr_snapshot *old)
{
	uint32_t count = attr_snapshot_facts(old)->dir_count;
	struct looking looking = { .scan = scan, .old = old, .dir_count = count, .whole = xcalloc(count, 1) };
	struct snapshot_dir_facts facts;

	threads_share(scan->threads, (int)((count - 1) / JOB_DIRS + 1), look_at_some, &looking);
	for (uint32_t i = count - 1; i > 0; i--) {
		attr_snapshot_dir(old, i, &facts);
		if (!looking.whole[i])
			looking.whole[facts.parent] = 0;
	}
	return looking.whole;
}
