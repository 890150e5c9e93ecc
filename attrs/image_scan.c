/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Filling an image from a tree, as a whole or where what is known of it does not do. */
#include "attrs/image_scan.h"

#include "attrs/image_crew.h"
#include "lib/alloc.h"

static void scan_step(struct image_worker *worker, const struct image_task *task)
{
	image_read_dir(worker, task, image_read_below);
}

int image_scan_all(struct image *image, const struct image_scan *scan)
{
	struct image_task root = { .dir = 0, .old = IMAGE_NO_OLD };
	struct image_crew crew;

	image_crew_init(&crew, image, scan);
	crew.step = scan_step;
	int result = image_crew_run(&crew, &root);

	image_crew_free(&crew);
	return result;
}

/* --- what is known need not be read --- */

/* The crew comes first: its members get at the rest through it. */
struct known_crew {
	struct image_crew crew;
	const struct image_known *known;
	_Atomic uint64_t read;
};

/* The tag is for us: in the end the entry says which directory of the file it is. */
static uint32_t take_tag(struct known_crew *crew, uint32_t number)
{
	struct image *image = crew->crew.image;
	uint32_t tag = crew->known->root_tag;

	if (!number)
		return tag;
	pthread_mutex_lock(&crew->crew.lock);
	const struct image_dir *dir = image->dirs.items[number];
	struct entry *entry = &image->dirs.items[dir->parent]->entries.items[dir->parent_entry];

	tag = entry->dir;
	entry->dir = 0;
	pthread_mutex_unlock(&crew->crew.lock);
	return tag;
}

static void known_step(struct image_worker *worker, const struct image_task *task)
{
	struct known_crew *crew = (struct known_crew *)worker->crew;
	const struct image_known *known = crew->known;
	uint32_t tag = take_tag(crew, task->dir);
	struct entries list;
	struct fs_stat st;

	entries_init(&list);
	if (tag && known->give(known->context, tag, strbuf_text(&worker->path), &list, &st)) {
		image_put_dir(worker, task, &list, &st, 0, image_read_below);
		return;
	}
	atomic_fetch_add(&crew->read, 1);
	image_read_dir(worker, task, image_read_below);
}

int image_scan_known(struct image *image, const struct image_scan *scan, const struct image_known *known, uint64_t *read)
{
	struct image_task root = { .dir = 0, .old = IMAGE_NO_OLD };
	struct known_crew crew = { .known = known };

	image_crew_init(&crew.crew, image, scan);
	crew.crew.step = known_step;
	int result = image_crew_run(&crew.crew, &root);

	image_crew_free(&crew.crew);
	*read = atomic_load(&crew.read);
	return result;
}
