/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Digests of contents for an image: those that an older snapshot has, and the rest by reading the files in several threads. */
#include "attrs/image_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attrs/image_scan.h"
#include "lib/alloc.h"
#include "lib/hashmap.h"
#include "lib/log.h"
#include "lib/threads.h"

enum { BUFFER_SIZE = 256 * 1024, ATTEMPTS = 2, ALGORITHMS = 2 };

static const enum attr_digest algorithms[ALGORITHMS] = { ATTR_DIGEST_XXH128, ATTR_DIGEST_MD5 };

/* A file to be read. Its digest goes to digest_list[first_slot + its number]. */
struct job {
	uint32_t dir, entry;
	uint32_t same_as;  /* number + 1 of the job of another name of the file, 0: read it */
	bool is_done;      /* its digest is there */
};

struct digests {
	struct image *image;
	const struct image_scan *scan;
	const struct attr_snapshot *old;
	VEC(struct job) jobs;
	struct hashmap groups; /* (dev, ino): number of the job */
	size_t first_slot;
	atomic_size_t next_job;
	uint64_t reused;
};

static uint8_t *digest_field(struct image_digest *digest, enum attr_digest which)
{
	return which == ATTR_DIGEST_MD5 ? digest->md5 : digest->xxh128;
}

/* --- what is known already --- */

/* All digests that the image wants of an entry of a view. */
static bool stored_digests(const struct image *image, const struct entries *view, const struct entry *entry,
			   struct image_digest *digest)
{
	memset(digest, 0, sizeof *digest);
	for (int i = 0; i < ALGORITHMS; i++) {
		if (!(image->digests & algorithms[i]))
			continue;
		const uint8_t *stored = attr_snapshot_digest(view, entry, algorithms[i]);

		if (!stored)
			return false;
		memcpy(digest_field(digest, algorithms[i]), stored, 16);
	}
	return true;
}

/* Nothing is missing in a view: then it can stay one. */
static bool is_complete(struct digests *digests, const struct entries *view)
{
	struct image_digest digest;
	uint64_t files = 0;

	for (uint32_t i = 0; i < view->count; i++) {
		if (!entry_is_regular(&view->items[i]))
			continue;
		if (!stored_digests(digests->image, view, &view->items[i], &digest))
			return false;
		files++;
	}
	digests->reused += files;
	return true;
}

static bool is_same_file(const struct entries *view, const struct entry *old, const struct entry *entry,
			 const struct entry_side *side)
{
	uint64_t ino;
	int64_t ctime;
	uint32_t ctime_nsec;

	return entry_is_regular(old) && old->size == entry->size && old->mtime == entry->mtime
	       && old->mtime_nsec == entry->mtime_nsec && attr_snapshot_origin(view, old, &ino, &ctime, &ctime_nsec)
	       && side->ino == ino && side->ctime == ctime && side->ctime_nsec == ctime_nsec;
}

static void add_job(struct digests *digests, uint32_t dir, uint32_t at, const struct entry *entry,
		    const struct entry_side *side)
{
	struct job job = { .dir = dir, .entry = at };
	bool inserted = true;

	if (entry->flags & ENTRY_HARD_LINKED) {
		uint64_t *first = hashmap_put(&digests->groups, side->dev, side->ino, digests->jobs.count, &inserted);
		if (!inserted)
			job.same_as = (uint32_t)*first + 1;
	}
	vec_push(&digests->jobs, job);
}

/* Both lists are sorted, so that one pass finds what `known` has of each file. */
static void collect_files(struct digests *digests, uint32_t number, const struct entries *known)
{
	struct image *image = digests->image;
	struct entries *list = &image->dirs.items[number]->entries;
	struct image_digest digest;
	uint32_t at = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		struct entry *entry = &list->items[i];

		if (!entry_is_regular(entry))
			continue;
		struct entry_side *side = entries_side(list, entry);

		while (at < known->count && entry_compare(known, &known->items[at], list, entry) < 0)
			at++;
		if (at < known->count && entry_compare(known, &known->items[at], list, entry) == 0
		    && is_same_file(known, &known->items[at], entry, side)
		    && stored_digests(image, known, &known->items[at], &digest)) {
			vec_push(&image->digest_list, digest);
			side->digest = (uint32_t)image->digest_list.count;
			digests->reused++;
		} else {
			add_job(digests, number, i, entry, side);
		}
	}
}

/* The older snapshot's directory of the same path. */
static uint32_t old_dir_of(const struct digests *digests, const uint32_t *old_dirs, uint32_t number)
{
	const struct image_dir *dir = digests->image->dirs.items[number];
	struct entries view;

	if (number == 0)
		return digests->old ? 0 : IMAGE_NO_OLD;
	if (old_dirs[dir->parent] == IMAGE_NO_OLD)
		return IMAGE_NO_OLD;
	const struct entries *list = &digests->image->dirs.items[dir->parent]->entries;

	attr_snapshot_view(digests->old, old_dirs[dir->parent], &view);
	int32_t at = entries_find(&view, entry_name(list, &list->items[dir->parent_entry]), true);

	return at < 0 ? IMAGE_NO_OLD : view.items[at].dir;
}

static void collect(struct digests *digests)
{
	struct image *image = digests->image;
	uint32_t *old_dirs = xcalloc(image->dirs.count, sizeof *old_dirs);

	/* Parents have smaller numbers than their children. */
	for (uint32_t i = 0; i < image->dirs.count; i++) {
		struct entries known, *list = &image->dirs.items[i]->entries;

		old_dirs[i] = old_dir_of(digests, old_dirs, i);
		entries_init(&known);
		if (list->snapshot) {
			if (is_complete(digests, list))
				continue;
			known = *list;
			image_copy_view(image, &known, list);
		} else if (old_dirs[i] != IMAGE_NO_OLD) {
			attr_snapshot_view(digests->old, old_dirs[i], &known);
		}
		collect_files(digests, i, &known);
	}
	free(old_dirs);
}

/* --- reading --- */

struct reader {
	struct digests *digests;
	void *running[ALGORITHMS];
	uint8_t *buffer;
	struct strbuf path;
};

enum outcome { DONE, CHANGED, FAILED, STOPPED };

static int open_file(const struct digests *digests, const char *path)
{
	const struct fs_root *root = attr_source_real_root(digests->scan->source);
	int (*open_function)(const struct fs_root *, const char *, int, mode_t) =
		digests->image->followed_links ? fs_open_follow : fs_open;
	/* Reading a whole mirror is no use of its files, but only their owner may say so. */
	int fd = open_function(root, path, O_RDONLY | O_NOATIME, 0);

	return fd < 0 && errno == EPERM ? open_function(root, path, O_RDONLY, 0) : fd;
}

/* Is this what the list says, and what it was seen to be? */
static bool is_listed(const struct digests *digests, const struct fs_stat *st, const struct entry *entry,
		      const struct entry_side *side)
{
	bool live = digests->scan->source->kind != ATTRS_ATTR_TREE;

	return S_ISREG(st->mode) && st->size == entry->size && st->mtime == entry->mtime
	       && st->mtime_nsec == entry->mtime_nsec && (!live || !side->ino || side->ino == st->ino);
}

static enum outcome read_content(struct reader *reader, int fd, uint64_t *length)
{
	const struct image_digester *digester = reader->digests->scan->digester;
	ssize_t got;

	for (int i = 0; i < ALGORITHMS; i++)
		if (reader->running[i])
			digester->start(reader->running[i], algorithms[i]);
	for (*length = 0; (got = read(fd, reader->buffer, BUFFER_SIZE)) != 0; *length += (uint64_t)got) {
		if (image_is_stopped(reader->digests->scan))
			return STOPPED;
		if (got < 0)
			return FAILED;
		for (int i = 0; i < ALGORITHMS; i++)
			if (reader->running[i])
				digester->update(reader->running[i], reader->buffer, (size_t)got);
	}
	return DONE;
}

/* What will tell a later refresh that it is still this content. Of an attr tree that is the attr file, as the scan saw it. */
static void note_origin(const struct digests *digests, const struct fs_stat *st, const struct timespec *now,
			struct entry_side *side)
{
	if (digests->scan->source->kind == ATTRS_ATTR_TREE)
		return;
	bool settled = image_is_settled(digests->scan, st, now);

	side->dev = st->dev;
	side->ino = st->ino;
	side->ctime = settled ? st->ctime : 0;
	side->ctime_nsec = settled ? st->ctime_nsec : 0;
}

/* One attempt on an open file. */
static enum outcome read_file(struct reader *reader, int fd, const struct entry *entry, struct entry_side *side,
			      struct image_digest *digest)
{
	const struct image_digester *digester = reader->digests->scan->digester;
	struct fs_stat before, after;
	struct timespec now;
	uint64_t length;

	clock_gettime(CLOCK_REALTIME, &now);
	if (fs_stat_at_fd(fd, &before) < 0)
		return FAILED;
	if (!is_listed(reader->digests, &before, entry, side))
		return CHANGED;
	enum outcome outcome = read_content(reader, fd, &length);

	if (outcome != DONE || fs_stat_at_fd(fd, &after) < 0)
		return outcome != DONE ? outcome : FAILED;
	if (length != after.size || after.size != before.size || after.mtime != before.mtime
	    || after.mtime_nsec != before.mtime_nsec || after.ctime != before.ctime || after.ctime_nsec != before.ctime_nsec)
		return CHANGED;
	for (int i = 0; i < ALGORITHMS; i++)
		if (reader->running[i])
			digester->finish(reader->running[i], digest_field(digest, algorithms[i]));
	note_origin(reader->digests, &after, &now, side);
	return DONE;
}

static void complain(const struct reader *reader, int error)
{
	struct strbuf quoted = STRBUF_INIT;

	attr_source_quote(reader->digests->scan->source, strbuf_text(&reader->path), &quoted);
	log_errno(L_ERROR_XFER, error, "cannot read %s for its digest", strbuf_text(&quoted));
	strbuf_free(&quoted);
}

/* A file that is gone is not worth a word: the next refresh will see that. */
static void do_job(struct reader *reader, struct job *job, struct image_digest *digest)
{
	struct digests *digests = reader->digests;
	struct entries *list = &digests->image->dirs.items[job->dir]->entries;
	const struct entry *entry = &list->items[job->entry];
	enum outcome outcome = CHANGED;

	image_dir_path(digests->image, job->dir, &reader->path);
	strbuf_add_path(&reader->path, entry_name(list, entry));
	for (int i = 0; i < ATTEMPTS && outcome == CHANGED; i++) {
		int fd = open_file(digests, strbuf_text(&reader->path));

		outcome = fd < 0 ? FAILED : read_file(reader, fd, entry, &list->sides[entry->side - 1], digest);
		int error = errno;

		if (fd >= 0)
			close(fd);
		if (outcome == FAILED && error != ENOENT)
			complain(reader, error);
	}
	job->is_done = outcome == DONE;
	image_count_done(digests->scan, 1);
}

static void read_files(void *digests_void, int thread)
{
	struct digests *digests = digests_void;
	const struct image_digester *digester = digests->scan->digester;
	struct reader reader = { .digests = digests, .buffer = xmalloc(BUFFER_SIZE) };
	size_t number;

	(void)thread;
	for (int i = 0; i < ALGORITHMS; i++)
		if (digests->image->digests & algorithms[i])
			reader.running[i] = digester->new();
	while (!image_is_stopped(digests->scan) && (number = atomic_fetch_add(&digests->next_job, 1)) < digests->jobs.count) {
		struct job *job = &digests->jobs.items[number];
		if (!job->same_as)
			do_job(&reader, job, &digests->image->digest_list.items[digests->first_slot + number]);
	}
	for (int i = 0; i < ALGORITHMS; i++)
		if (reader.running[i])
			digester->free(reader.running[i]);
	free(reader.buffer);
	strbuf_free(&reader.path);
}

/* --- the whole --- */

/* One slot for each job, so that the threads need no lock. */
static void make_slots(struct digests *digests)
{
	static const struct image_digest none;

	digests->first_slot = digests->image->digest_list.count;
	for (size_t i = 0; i < digests->jobs.count; i++)
		vec_push(&digests->image->digest_list, none);
}

/* Tell the entries where their digests are. Other names of a file get those of the one that was read. */
static uint64_t assign(struct digests *digests)
{
	uint64_t computed = 0;

	for (size_t i = 0; i < digests->jobs.count; i++) {
		const struct job *job = &digests->jobs.items[i];
		size_t number = job->same_as ? job->same_as - 1 : i;
		const struct job *read_job = &digests->jobs.items[number];
		struct entries *list = &digests->image->dirs.items[job->dir]->entries;
		const struct entries *read_list = &digests->image->dirs.items[read_job->dir]->entries;
		const struct entry *entry = &list->items[job->entry], *read_entry = &read_list->items[read_job->entry];

		if (!read_job->is_done || entry->size != read_entry->size || entry->mtime != read_entry->mtime
		    || entry->mtime_nsec != read_entry->mtime_nsec)
			continue;
		struct entry_side *side = &list->sides[entry->side - 1];
		const struct entry_side *read_side = &read_list->sides[read_entry->side - 1];

		side->ctime = read_side->ctime;
		side->ctime_nsec = read_side->ctime_nsec;
		side->digest = (uint32_t)(digests->first_slot + number + 1);
		computed++;
	}
	return computed;
}

int image_add_digests(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reused,
		      uint64_t *computed)
{
	struct digests digests = { .image = image, .scan = scan, .old = old, .groups = HASHMAP_INIT };
	bool stopped;

	collect(&digests);
	make_slots(&digests);
	threads_run(scan->threads, read_files, &digests);
	*reused = digests.reused;
	*computed = assign(&digests);
	stopped = image_is_stopped(scan);
	vec_free(&digests.jobs);
	hashmap_free(&digests.groups);
	errno = ECANCELED;
	return stopped ? -1 : 0;
}
