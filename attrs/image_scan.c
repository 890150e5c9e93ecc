/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Filling an image from a tree, as a whole or where what is known of it does not do. */
#include "attrs/image_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/threads.h"

#define NSEC_PER_SEC 1000000000
#define SETTLE_NS (2 * (int64_t)NSEC_PER_SEC)

bool image_is_stopped(const struct image_scan *scan)
{
	return scan->stop && atomic_load(scan->stop);
}

void image_count_done(const struct image_scan *scan, uint64_t count)
{
	if (scan->done)
		atomic_fetch_add(scan->done, count);
}

/* --- the stack --- */

void image_crew_push(struct image_crew *crew, const struct image_task *task)
{
	vec_push(&crew->stack, *task);
	pthread_cond_signal(&crew->work);
}

static void work(void *crew_void, int thread)
{
	struct image_crew *crew = crew_void;
	struct image_worker worker = { .crew = crew, .thread = thread, .options = crew->scan->options[thread] };

	pthread_mutex_lock(&crew->lock);
	for (;;) {
		while (!crew->stack.count && crew->busy)
			pthread_cond_wait(&crew->work, &crew->lock);
		if (crew->stack.count && image_is_stopped(crew->scan)) {
			crew->cancelled = true;
			crew->stack.count = 0;
		}
		if (!crew->stack.count)
			break;
		struct image_task task = crew->stack.items[--crew->stack.count];

		crew->busy++;
		image_dir_path(crew->image, task.dir, &worker.path);
		pthread_mutex_unlock(&crew->lock);
		crew->step(&worker, &task);
		pthread_mutex_lock(&crew->lock);
		crew->busy--;
	}
	pthread_cond_broadcast(&crew->work);
	crew->image->io_error |= worker.io_error;
	pthread_mutex_unlock(&crew->lock);
	strbuf_free(&worker.path);
	vec_free(&worker.children);
}

void image_crew_init(struct image_crew *crew, struct image *image, const struct image_scan *scan)
{
	memset(crew, 0, sizeof *crew);
	crew->image = image;
	crew->scan = scan;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->work, NULL);
}

void image_crew_free(struct image_crew *crew)
{
	int error = errno;

	free(crew->kept);
	free(crew->whole);
	vec_free(&crew->stack);
	vec_free(&crew->scanned);
	pthread_cond_destroy(&crew->work);
	pthread_mutex_destroy(&crew->lock);
	errno = error;
}

int image_crew_run(struct image_crew *crew, struct image_task *root)
{
	struct image *image = crew->image;
	const struct image_scan *scan = crew->scan;

	clock_gettime(CLOCK_REALTIME, &image->made);
	if (fs_lstat(&scan->source->attr_root, "", &root->state) < 0)
		return -1;
	root->has_state = true;
	/* An image has to know this of each entry; the rest is the caller's choice. */
	for (int i = 0; i < scan->threads; i++) {
		struct scan_options *options = scan->options[i];

		options->links = options->devices = options->specials = options->hard_links = true;
		options->origins = image->digests != 0;
	}
	image_set_root(image, &root->state);
	image->root.items->size = root->state.size;
	if (scan->adjust)
		scan->adjust(scan->context, image->root.items);
	image_crew_push(crew, root);
	threads_run(scan->threads, work, crew);
	if (!crew->cancelled)
		return 0;
	errno = ECANCELED;
	return -1;
}

/* --- one directory --- */

/* Its state is taken before its names are: what changes after that is seen by the next refresh. */
static int open_dir(const struct attr_source *source, const char *path, struct fs_stat *st)
{
	int fd = fs_opendir(&source->attr_root, path);

	if (fd >= 0 && fs_stat_at_fd(fd, st) == 0)
		return fd;
	int error = errno;

	if (fd >= 0)
		close(fd);
	if (fs_lstat(&source->attr_root, path, st) < 0)
		memset(st, 0, sizeof *st);
	errno = error;
	return -1;
}

bool image_is_settled(const struct image_scan *scan, const struct fs_stat *st, const struct timespec *now)
{
	int64_t settle = scan->settle_ns ? scan->settle_ns : SETTLE_NS;

	if (st->ctime < now->tv_sec - settle / NSEC_PER_SEC - 1)
		return true;
	if (st->ctime > now->tv_sec)
		return false;
	return (now->tv_sec - st->ctime) * NSEC_PER_SEC + now->tv_nsec - st->ctime_nsec >= settle;
}

void image_mark_mount(struct image *image, const struct image_dir *dir)
{
	struct image_dir *parent = image->dirs.items[dir->parent];

	if (dir != parent && !parent->entries.snapshot && dir->dev && dir->dev != parent->dev)
		parent->entries.items[dir->parent_entry].flags |= ENTRY_MOUNT;
}

/* Its end: what is known of the directory goes into the image. */
static void image_put_dir(struct image_worker *worker, const struct image_task *task, const struct entries *list,
			  const struct fs_stat *st, int error,
			  void (*follow_up)(struct image_worker *worker, const struct image_task *task))
{
	struct image_crew *crew = worker->crew;

	image_count_done(crew->scan, list->count);
	pthread_mutex_lock(&crew->lock);
	struct image_dir *dir = crew->image->dirs.items[task->dir];

	dir->entries = *list;
	dir->error = error;
	image_dir_stat(dir, st);
	image_add_children(crew->image, task->dir);
	image_mark_mount(crew->image, dir);
	vec_push(&crew->scanned, task->dir);
	follow_up(worker, task);
	pthread_mutex_unlock(&crew->lock);
}

void image_read_dir(struct image_worker *worker, const struct image_task *task,
		    void (*follow_up)(struct image_worker *worker, const struct image_task *task))
{
	const struct image_scan *scan = worker->crew->scan;
	const char *path = strbuf_text(&worker->path);
	struct entries list;
	struct fs_stat st;
	struct timespec now;
	int io_error = 0;

	if (scan->enter)
		scan->enter(scan->context, worker->thread, path);
	entries_init(&list);
	clock_gettime(CLOCK_REALTIME, &now);
	int fd = open_dir(scan->source, path, &st);
	enum scan_result result = attr_source_scan_at(scan->source, worker->options, fd, path, path, &list, &io_error);
	int error = result == SCAN_OK ? 0 : errno;

	if (io_error || !image_is_settled(scan, &st, &now))
		st.ctime = st.ctime_nsec = 0;
	worker->io_error |= io_error;
	for (uint32_t i = 0; i < list.count; i++) {
		/* Of a mount point under -x it is enough to know that it is one. */
		list.items[i].flags &= (uint16_t)~ENTRY_NO_CONTENT;
		if (scan->adjust)
			scan->adjust(scan->context, &list.items[i]);
	}
	entries_sort(&list);
	image_put_dir(worker, task, &list, &st, error, follow_up);
}

bool image_is_closed(const struct image_worker *worker, const struct entry *entry)
{
	return worker->options->one_file_system && entry->flags & ENTRY_MOUNT;
}

void image_read_below(struct image_worker *worker, const struct image_task *task)
{
	struct image_crew *crew = worker->crew;
	const struct image_dir *dir = crew->image->dirs.items[task->dir];
	uint32_t first = dir->entries.count - dir->child_count;

	for (uint32_t i = dir->child_count; i-- > 0;) {
		struct image_task below = { .dir = dir->first_child + i, .old = IMAGE_NO_OLD };

		if (!image_is_closed(worker, &dir->entries.items[first + i]))
			image_crew_push(crew, &below);
	}
}

static void scan_step(struct image_worker *worker, const struct image_task *task)
{
	struct image_crew *crew = worker->crew;
	const struct image_known *known = crew->known;
	uint32_t tag = known ? known->root_tag : 0;
	struct entries list;
	struct fs_stat st;

	/* The tag is for us: in the end the entry says which directory of the file it is. */
	if (known && task->dir) {
		pthread_mutex_lock(&crew->lock);
		const struct image_dir *dir = crew->image->dirs.items[task->dir];
		struct entry *entry = &crew->image->dirs.items[dir->parent]->entries.items[dir->parent_entry];

		tag = entry->dir;
		entry->dir = 0;
		pthread_mutex_unlock(&crew->lock);
	}
	entries_init(&list);
	if (tag && known->give(known->context, tag, strbuf_text(&worker->path), &list, &st)) {
		image_put_dir(worker, task, &list, &st, 0, image_read_below);
		return;
	}
	atomic_fetch_add(&crew->read, 1);
	image_read_dir(worker, task, image_read_below);
}

int image_scan_all(struct image *image, const struct image_scan *scan, const struct image_known *known, uint64_t *read)
{
	struct image_task root = { .dir = 0, .old = IMAGE_NO_OLD };
	struct image_crew crew;

	image_crew_init(&crew, image, scan);
	crew.known = known;
	crew.step = scan_step;
	int result = image_crew_run(&crew, &root);

	image_crew_free(&crew);
	*read = known ? atomic_load(&crew.read) : image->dirs.count;
	return result;
}
