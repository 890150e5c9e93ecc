/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Digests of contents for an image: those that an older snapshot has, and the rest by reading the files in several threads. */
#include "snapshot/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "delta/digest.h"
#include "lib/alloc.h"
#include "lib/hashmap.h"
#include "lib/log.h"
#include "lib/threads.h"

enum { BUFFER_SIZE = 256 * 1024, ATTEMPTS = 2, ALGORITHMS = 2 };

static const struct { enum attr_digest which; enum sum_algorithm sum; } algorithms[ALGORITHMS] = {
	{ ATTR_DIGEST_XXH128, SUM_XXH128 }, { ATTR_DIGEST_MD5, SUM_MD5 },
};

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
		if (!(image->digests & algorithms[i].which))
			continue;
		const uint8_t *stored = attr_snapshot_digest(view, entry, algorithms[i].which);

		if (!stored)
			return false;
		memcpy(digest_field(digest, algorithms[i].which), stored, 16);
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

/* Both lists are sorted, so that one pass finds what `known` has of each file. */
static void collect_files(struct digests *digests, uint32_t number, const struct entries *known)
{
	struct image *image = digests->image;
	struct entries *list = &image->dirs.items[number]->entries;
	struct image_digest digest;
	struct entry_side expanded;
	uint32_t at = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		struct entry *entry = &list->items[i];
		struct job job = { .dir = number, .entry = i };

		if (!entry_is_regular(entry))
			continue;
		struct entry_side *side = entries_side(list, entry);

		while (at < known->count && entry_compare(known, &known->items[at], list, entry) < 0)
			at++;
		const struct entry *old = at < known->count ? &known->items[at] : NULL;
		bool matches = old && entry_compare(known, old, list, entry) == 0 && entry_is_regular(old)
			       && old->size == entry->size && old->mtime == entry->mtime && old->mtime_nsec == entry->mtime_nsec
			       && stored_digests(image, known, old, &digest);
		const struct entry_side *origin = matches ? entry_any_side(known, old, &expanded) : NULL;

		if (origin && side->ino == origin->ino && side->ctime == origin->ctime
		    && side->ctime_nsec == origin->ctime_nsec) {
			vec_push(&image->digest_list, digest);
			side->digest = (uint32_t)image->digest_list.count;
			digests->reused++;
			continue;
		}
		if (entry->flags & ENTRY_HARD_LINKED) {
			bool inserted;
			uint64_t *first = hashmap_put(&digests->groups, side->dev, side->ino, digests->jobs.count, &inserted);
			job.same_as = inserted ? 0 : (uint32_t)*first + 1;
		}
		vec_push(&digests->jobs, job);
	}
}

static void collect(struct digests *digests)
{
	struct image *image = digests->image;
	uint32_t *old_dirs = xcalloc(image->dirs.count, sizeof *old_dirs);

	/* Parents have smaller numbers than their children. */
	for (uint32_t i = 0; i < image->dirs.count; i++) {
		struct image_dir *dir = image->dirs.items[i];
		struct entries known, *list = &dir->entries;

		/* The older snapshot's directory of the same path. */
		old_dirs[i] = i || !digests->old ? IMAGE_NO_OLD : 0;
		if (i && old_dirs[dir->parent] != IMAGE_NO_OLD) {
			const struct entries *above = &image->dirs.items[dir->parent]->entries;

			known = attr_snapshot_view(digests->old, old_dirs[dir->parent]);
			int32_t at = entries_find(&known, entry_name(above, &above->items[dir->parent_entry]), true);

			old_dirs[i] = at < 0 ? IMAGE_NO_OLD : known.items[at].dir;
		}
		entries_init(&known);
		if (list->snapshot) {
			if (is_complete(digests, list))
				continue;
			known = *list;
			image_copy_view(image, &known, list);
		} else if (old_dirs[i] != IMAGE_NO_OLD) {
			known = attr_snapshot_view(digests->old, old_dirs[i]);
		}
		collect_files(digests, i, &known);
	}
	free(old_dirs);
}

/* --- reading --- */

struct reader {
	struct digests *digests;
	struct file_digest *running[ALGORITHMS];
	uint8_t *buffer;
	struct strbuf path;
};

enum outcome { DONE, CHANGED, FAILED, STOPPED };

/* One attempt on an open file: all of it through the running digests, as long as it is and stays what the list says. */
static enum outcome read_file(struct reader *reader, int fd, const struct entry *entry, struct entry_side *side,
			      struct image_digest *digest)
{
	const struct image_scan *scan = reader->digests->scan;
	bool live = scan->source->kind != ATTRS_ATTR_TREE;
	struct fs_stat before, after;
	struct timespec now;
	uint8_t bytes[DIGEST_MAX_LENGTH];
	uint64_t length = 0;
	ssize_t got;

	clock_gettime(CLOCK_REALTIME, &now);
	if (fs_stat_at_fd(fd, &before) < 0)
		return FAILED;
	if (!S_ISREG(before.mode) || before.size != entry->size || before.mtime != entry->mtime
	    || before.mtime_nsec != entry->mtime_nsec || (live && side->ino && side->ino != before.ino))
		return CHANGED;
	for (int i = 0; i < ALGORITHMS; i++)
		if (reader->running[i])
			file_digest_start_plain(reader->running[i], algorithms[i].sum);
	for (; (got = read(fd, reader->buffer, BUFFER_SIZE)) != 0; length += (uint64_t)got) {
		if (image_is_stopped(scan))
			return STOPPED;
		if (got < 0)
			return FAILED;
		for (int i = 0; i < ALGORITHMS; i++)
			if (reader->running[i])
				file_digest_update(reader->running[i], reader->buffer, (size_t)got);
	}
	if (fs_stat_at_fd(fd, &after) < 0)
		return FAILED;
	if (length != after.size || after.size != before.size || after.mtime != before.mtime
	    || after.mtime_nsec != before.mtime_nsec || after.ctime != before.ctime || after.ctime_nsec != before.ctime_nsec)
		return CHANGED;
	for (int i = 0; i < ALGORITHMS; i++)
		if (reader->running[i]) {
			file_digest_finish(reader->running[i], bytes);
			memcpy(digest_field(digest, algorithms[i].which), bytes, 16);
		}
	/* By this a later refresh knows that it is still this content: of an attr tree by the attr file, as the scan saw it. */
	if (live) {
		bool settled = image_is_settled(scan, &after, &now);

		side->dev = after.dev;
		side->ino = after.ino;
		side->ctime = settled ? after.ctime : 0;
		side->ctime_nsec = settled ? after.ctime_nsec : 0;
	}
	return DONE;
}

static void read_files(void *digests_void, int thread)
{
	struct digests *digests = digests_void;
	const struct image *image = digests->image;
	struct attr_source *source = digests->scan->source;
	struct reader reader = { .digests = digests, .buffer = xmalloc(BUFFER_SIZE) };
	size_t number;

	(void)thread;
	for (int i = 0; i < ALGORITHMS; i++)
		if (image->digests & algorithms[i].which)
			reader.running[i] = file_digest_new();
	while (!image_is_stopped(digests->scan) && (number = atomic_fetch_add(&digests->next_job, 1)) < digests->jobs.count) {
		struct job *job = &digests->jobs.items[number];
		struct entries *list = &image->dirs.items[job->dir]->entries;
		const struct entry *entry = &list->items[job->entry];
		enum outcome outcome = CHANGED;

		if (job->same_as)
			continue;
		image_dir_path(image, job->dir, &reader.path);
		strbuf_add_path(&reader.path, entry_name(list, entry));
		for (int i = 0; i < ATTEMPTS && outcome == CHANGED; i++) {
			int fd = attr_source_open_any(source, strbuf_text(&reader.path), image->followed_links);

			outcome = fd < 0 ? FAILED : read_file(&reader, fd, entry, &list->sides[entry->side - 1],
							      &image->digest_list.items[digests->first_slot + number]);
			int error = errno;

			fs_close(fd);
			/* A file that is gone is not worth a word: the next refresh will see that. */
			if (outcome == FAILED && error != ENOENT) {
				struct strbuf quoted = STRBUF_INIT;

				attr_source_quote(source, strbuf_text(&reader.path), &quoted);
				log_errno(L_ERROR_XFER, error, "cannot read %s for its digest", strbuf_text(&quoted));
				strbuf_free(&quoted);
			}
		}
		job->is_done = outcome == DONE;
		image_count_done(digests->scan, 1);
	}
	for (int i = 0; i < ALGORITHMS; i++)
		file_digest_free(reader.running[i]);
	free(reader.buffer);
	strbuf_free(&reader.path);
}

/* --- the whole --- */

int image_add_digests(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reused,
		      uint64_t *computed)
{
	static const struct image_digest none;
	struct digests digests = { .image = image, .scan = scan, .old = old, .groups = HASHMAP_INIT };

	collect(&digests);
	/* One slot for each job, so that the threads need no lock. */
	digests.first_slot = image->digest_list.count;
	for (size_t i = 0; i < digests.jobs.count; i++)
		vec_push(&image->digest_list, none);
	threads_run(scan->threads, read_files, &digests);
	*reused = digests.reused;
	*computed = 0;
	/* Say in the entries where their digests are. Other names of a file get those of the one that was read. */
	for (size_t i = 0; i < digests.jobs.count; i++) {
		const struct job *job = &digests.jobs.items[i];
		size_t number = job->same_as ? job->same_as - 1 : i;
		const struct job *read_job = &digests.jobs.items[number];
		const struct entries *list = &image->dirs.items[job->dir]->entries;
		const struct entries *read_list = &image->dirs.items[read_job->dir]->entries;
		const struct entry *entry = &list->items[job->entry], *read_entry = &read_list->items[read_job->entry];
		const struct entry_side *read_side = &read_list->sides[read_entry->side - 1];
		struct entry_side *side = &list->sides[entry->side - 1];

		if (!read_job->is_done || entry->size != read_entry->size || entry->mtime != read_entry->mtime
		    || entry->mtime_nsec != read_entry->mtime_nsec)
			continue;
		side->ctime = read_side->ctime;
		side->ctime_nsec = read_side->ctime_nsec;
		side->digest = (uint32_t)(digests.first_slot + number + 1);
		++*computed;
	}
	bool stopped = image_is_stopped(scan);

	vec_free(&digests.jobs);
	hashmap_free(&digests.groups);
	errno = ECANCELED;
	return stopped ? -1 : 0;
}
