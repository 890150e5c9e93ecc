/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Filling an image from a tree, as a whole or where what is known of it does not do. */
#include "attrs/image_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/hashmap.h"
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

/*
 * --- the crew ---
 *
 * The threads that fill an image: each takes a directory from a stack, looks at it and puts what lies below on the stack. The
 * last one put there is the first one taken, so that what was just looked up is still warm.
 */

struct image_worker;

/* One directory to be done. */
struct image_task {
	uint32_t dir;            /* its number in the image */
	uint32_t old;            /* in the older snapshot; IMAGE_NO_OLD: read it and all below */
	bool has_state;
	struct fs_stat state;    /* has_state: as its parent's thread saw it */
	size_t first, last, at;  /* image_refresh_paths: the named paths below it, and how many bytes of each lead to it */
	bool keep;               /* while its parent is done, whose names still hold: nothing below it has to be looked at */
};

struct image_crew {
	struct image *image;
	const struct image_scan *scan;
	const struct image_known *known; /* image_scan_all; NULL: nothing is */
	_Atomic uint64_t read;   /* directories, by image_scan_all */
	const struct attr_snapshot *old;
	const char *const *paths; /* image_refresh_paths: sorted, clean; NULL: image_refresh_dirs */
	bool read_below;         /* below a directory that was read, everything is */
	void (*step)(struct image_worker *worker, const struct image_task *task);
	pthread_mutex_t lock;    /* guards all below, and the image's directories */
	pthread_cond_t work;     /* the stack has grown, or there will be no more */
	VEC(struct image_task) stack;
	VEC(uint32_t) scanned;   /* directories of the image that were read */
	uint8_t *kept;           /* of each directory of `old`: do its names still hold? */
	uint8_t *whole;          /* of each: is all below it, and itself, known to be as it was? NULL: of none */
	int busy;
	bool cancelled;
};

struct image_worker {
	struct image_crew *crew;
	int thread;
	struct scan_options *options;
	struct strbuf path;      /* of the task's directory */
	VEC(struct image_task) children; /* while its sub-directories are compared */
	int io_error;
};

/* With the lock held. */
static void push_task(struct image_crew *crew, const struct image_task *task)
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

/* Leaves errno alone. */
static void crew_free(struct image_crew *crew)
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

/* Look at the root, fill its "." entry, and do it and all that follows from it. 0, or -1 with errno. */
static int crew_run(struct image_crew *crew, struct image_task *root)
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

		options->links = options->hard_links = true;
		options->origins = image->digests != 0;
	}
	image_set_root(image, &root->state);
	if (scan->adjust)
		scan->adjust(scan->context, image->root.items);
	push_task(crew, root);
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

	fs_close(fd);
	if (fs_lstat(&source->attr_root, path, st) < 0)
		memset(st, 0, sizeof *st);
	return fs_fail(error);
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

/* With the lock held and what is known of a directory in place: without -x mount points are entered, but marked in their
 * parent's entries for those who will ask for it. */
static void mark_mount(struct image *image, const struct image_dir *dir)
{
	struct image_dir *parent = image->dirs.items[dir->parent];

	if (dir != parent && !parent->entries.snapshot && dir->dev && dir->dev != parent->dev)
		parent->entries.items[dir->parent_entry].flags |= ENTRY_MOUNT;
}

/* Its end: what is known of the directory goes into the image. */
static void put_dir(struct image_worker *worker, const struct image_task *task, const struct entries *list,
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
	mark_mount(crew->image, dir);
	vec_push(&crew->scanned, task->dir);
	follow_up(worker, task);
	pthread_mutex_unlock(&crew->lock);
}

/* Read the task's directory; worker->path is set, the lock is not held. `follow_up` is called with the lock held when its
 * entries and its children are in the image, and pushes tasks for these. */
static void read_dir(struct image_worker *worker, const struct image_task *task,
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
	put_dir(worker, task, &list, &st, error, follow_up);
}

/* Is this entry of a directory one that is not entered (-x)? */
static bool is_closed(const struct image_worker *worker, const struct entry *entry)
{
	return worker->options->one_file_system && entry->flags & ENTRY_MOUNT;
}

/* A follow_up: read all below. */
static void read_below(struct image_worker *worker, const struct image_task *task)
{
	struct image_crew *crew = worker->crew;
	const struct image_dir *dir = crew->image->dirs.items[task->dir];
	uint32_t first = dir->entries.count - dir->child_count;

	for (uint32_t i = dir->child_count; i-- > 0;) {
		struct image_task below = { .dir = dir->first_child + i, .old = IMAGE_NO_OLD };

		if (!is_closed(worker, &dir->entries.items[first + i]))
			push_task(crew, &below);
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
		put_dir(worker, task, &list, &st, 0, read_below);
		return;
	}
	atomic_fetch_add(&crew->read, 1);
	read_dir(worker, task, read_below);
}

int image_scan_all(struct image *image, const struct image_scan *scan, const struct image_known *known, uint64_t *read)
{
	struct image_task root = { .dir = 0, .old = IMAGE_NO_OLD };
	struct image_crew crew = {
		.image = image, .scan = scan, .known = known, .step = scan_step, .lock = PTHREAD_MUTEX_INITIALIZER,
		.work = PTHREAD_COND_INITIALIZER,
	};
	int result = crew_run(&crew, &root);

	crew_free(&crew);
	*read = known ? atomic_load(&crew.read) : image->dirs.count;
	return result;
}

/*
 * --- refreshing: from an older snapshot, and from the tree only where that no longer holds ---
 *
 * In a refresh nearly all directories are as they were, and looking at them is nearly all that it does: so the threads share
 * nothing while they look, and meet again for what is left.
 */

static bool is_same_dir(const struct snapshot_dir_facts *facts, const struct fs_stat *st)
{
	return S_ISDIR(st->mode) && facts->dev == st->dev && facts->ino == st->ino;
}

/* Other names in it, or it is another one. */
static bool has_changed(const struct snapshot_dir_facts *facts, const struct entry *entry, const struct fs_stat *st)
{
	return facts->error || !is_same_dir(facts, st) || facts->ctime != st->ctime || facts->ctime_nsec != st->ctime_nsec
	       || entry->mtime != st->mtime || entry->mtime_nsec != st->mtime_nsec;
}

/* The entry that a scan would make of it now; `entry` is the old one. */
static struct entry fresh_entry(const struct image_scan *scan, const struct entry *entry, const struct fs_stat *st,
				uint64_t parent_dev)
{
	struct entry fresh = *entry;

	entry_set_stat(&fresh, st);
	fresh.flags = st->dev == parent_dev ? 0 : ENTRY_MOUNT;
	if (scan->adjust)
		scan->adjust(scan->context, &fresh);
	return fresh;
}

/* Would a scan make the same entry of it? */
static bool is_same_entry(const struct image_scan *scan, const struct entry *entry, const struct fs_stat *st,
			  uint64_t parent_dev)
{
	struct entry fresh = fresh_entry(scan, entry, st, parent_dev);

	return entry->mode == fresh.mode && entry->uid == fresh.uid && entry->gid == fresh.gid && entry->size == fresh.size
	       && entry->mtime == fresh.mtime && entry->mtime_nsec == fresh.mtime_nsec && entry->flags == fresh.flags;
}

/* --- all directories --- */

enum { JOB_DIRS = 256 };

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
static int go_to(struct way *way, const struct image_crew *crew, uint32_t dir)
{
	while (way->levels.count && way->levels.items[way->levels.count - 1].end <= dir)
		leave_last(way);
	if (way->levels.count && way->levels.items[way->levels.count - 1].dir == dir)
		return way->levels.items[way->levels.count - 1].fd;
	if (!dir)
		return crew->scan->source->attr_root.fd;
	struct snapshot_dir_facts facts = attr_snapshot_dir(crew->old, dir);
	struct level level = { .dir = dir, .end = facts.subtree_end, .fd = go_to(way, crew, facts.parent) };

	if (level.fd < 0)
		return -1;
	level.fd = fs_open_at(level.fd, attr_snapshot_dir_name(crew->old, dir), O_PATH | O_DIRECTORY, 0);
	if (level.fd >= 0)
		vec_push(&way->levels, level);
	return level.fd;
}

/* Compare the directories in some directories with what their names stand for. Mount points differ in any case. */
static void look_at_some(void *crew_void, int number)
{
	const struct image_crew *crew = crew_void;
	uint32_t first = (uint32_t)number * JOB_DIRS, left = attr_snapshot_facts(crew->old)->dir_count - first;
	struct way way = { VEC_INIT };
	struct fs_stat st;

	for (uint32_t dir = first; dir - first < left && dir - first < JOB_DIRS && !image_is_stopped(crew->scan); dir++) {
		struct snapshot_dir_facts facts = attr_snapshot_dir(crew->old, dir);
		struct entries view = attr_snapshot_view(crew->old, dir);
		int fd = facts.leading < view.count ? go_to(&way, crew, dir) : -1;

		for (uint32_t i = facts.leading; fd >= 0 && i < view.count; i++) {
			const struct entry *entry = &view.items[i];
			struct snapshot_dir_facts below = attr_snapshot_dir(crew->old, entry->dir);

			crew->whole[entry->dir] = fs_lstat_at(fd, entry_name(&view, entry), &st) == 0 && st.dev == facts.dev
						  && !has_changed(&below, entry, &st)
						  && is_same_entry(crew->scan, entry, &st, facts.dev);
		}
	}
	while (way.levels.count)
		leave_last(&way);
	vec_free(&way.levels);
}

/* --- views --- */

/* With the lock held: directory `number` is what it was. */
static void put_view(struct image_crew *crew, uint32_t number, uint32_t old, const struct snapshot_dir_facts *facts)
{
	struct image_dir *dir = crew->image->dirs.items[number];

	dir->entries = attr_snapshot_view(crew->old, old);
	dir->error = facts->error;
	dir->dev = facts->dev;
	dir->ino = facts->ino;
	dir->ctime = facts->ctime;
	dir->ctime_nsec = facts->ctime_nsec;
	mark_mount(crew->image, dir);
	crew->kept[old] = 1;
	image_count_done(crew->scan, dir->entries.count);
}

/* With the lock held: so is everything below it. */
static void put_subtree(struct image_crew *crew, uint32_t number, uint32_t old)
{
	uint32_t count = attr_snapshot_dir(crew->old, old).subtree_end - old;
	uint32_t *numbers = xcalloc(count, sizeof *numbers); /* of the old directories from `old` on, in the image */

	for (uint32_t i = 0; i < count; i++) {
		struct snapshot_dir_facts facts = attr_snapshot_dir(crew->old, old + i);

		numbers[i] = number;
		if (i) {
			const struct image_dir *parent = crew->image->dirs.items[numbers[facts.parent - old]];
			uint32_t leading = parent->entries.count - parent->child_count;
			numbers[i] = parent->first_child + facts.parent_entry - leading;
		}
		put_view(crew, numbers[i], old + i, &facts);
		image_add_children(crew->image, numbers[i]);
	}
	free(numbers);
}

/* --- the named paths --- */

/* What is below a directory follows it directly: the end of a name sorts first, "/" before every other byte. */
static int rank(unsigned char c)
{
	return c == '/' ? 1 : c ? c + 1 : 0;
}

static int compare_paths(const void *a_void, const void *b_void)
{
	const char *a = *(const char *const *)a_void, *b = *(const char *const *)b_void;

	for (; *a && *a == *b; a++)
		b++;
	return rank((unsigned char)*a) - rank((unsigned char)*b);
}

/* Compare the component at `text` with a name. */
static int compare_component(const char *text, const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		int order = rank((unsigned char)text[i]) - rank((unsigned char)name[i]);
		if (order || !text[i])
			return order;
	}
	return text[length] && text[length] != '/' ? 1 : 0;
}

/* The task's paths that begin with sub-directory `name`: *below gets their range. false: there is none. */
static bool find_paths(const struct image_crew *crew, const struct image_task *task, const char *name, size_t length,
		       struct image_task *below)
{
	size_t low = task->first, high = task->last;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_component(crew->paths[middle] + task->at, name, length) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	below->first = below->last = low;
	below->at = task->at + length + 1;
	while (below->last < task->last && !compare_component(crew->paths[below->last] + task->at, name, length))
		below->last++;
	return below->first < below->last;
}

/* Is every named path that goes through this directory one that goes on through a sub-directory that is known? */
static bool leads_on(const struct image_crew *crew, const struct image_task *task, const struct entries *view)
{
	char name[NAME_MAX + 1];

	for (size_t i = task->first; i < task->last; i++) {
		const char *component = crew->paths[i] + task->at;
		size_t length = strcspn(component, "/");

		if (!component[length] || length > NAME_MAX)
			return false;
		memcpy(name, component, length);
		name[length] = '\0';
		if (entries_find(view, name, true) < 0)
			return false;
	}
	return true;
}

/* --- after a directory was read --- */

static bool is_whole(const struct image_crew *crew, uint32_t old)
{
	return crew->whole && crew->whole[old];
}

/* With the lock held: what is to be done about the sub-directories. */
static void refresh_below(struct image_worker *worker, const struct image_task *task)
{
	struct image_crew *crew = worker->crew;
	const struct image_dir *dir = crew->image->dirs.items[task->dir];
	struct entries view = attr_snapshot_view(crew->old, task->old);
	uint32_t leading = dir->entries.count - dir->child_count;

	for (uint32_t i = dir->child_count; i-- > 0;) {
		const struct entry *entry = &dir->entries.items[leading + i];
		const char *name = entry_name(&dir->entries, entry);
		int32_t at = entries_find(&view, name, true);
		struct image_task below = { .dir = dir->first_child + i, .old = at < 0 ? IMAGE_NO_OLD : view.items[at].dir };

		if (is_closed(worker, entry))
			continue;
		bool is_on_way = crew->paths && find_paths(crew, task, name, entry->name_length, &below);

		/* One of the paths ends at that name itself: that is the shortest and so the first. */
		if (is_on_way && !crew->paths[below.first][below.at - 1])
			below.old = IMAGE_NO_OLD;
		if (!is_on_way && below.old != IMAGE_NO_OLD && (crew->paths || is_whole(crew, below.old)))
			put_subtree(crew, below.dir, below.old);
		else
			push_task(crew, &below);
	}
}

/* --- a directory whose names still hold --- */

enum verdict { SAME, DIFFERENT, UNFIT };

/* Look at the sub-directories, into worker->children. */
static enum verdict look_at_children(struct image_worker *worker, const struct image_task *task, const struct entries *view,
				     uint32_t leading)
{
	const struct image_crew *crew = worker->crew;
	enum verdict verdict = SAME;
	struct fs_root dir;

	worker->children.count = 0;
	if (leading == view->count)
		return SAME;
	if (fs_root_open_below(&dir, &crew->scan->source->attr_root, strbuf_text(&worker->path)) < 0)
		return UNFIT;
	for (uint32_t i = leading; i < view->count; i++) {
		const struct entry *entry = &view->items[i];
		const char *name = entry_name(view, entry);
		struct image_task child = { .old = entry->dir };
		struct fs_stat *st = &child.state;

		child.keep = is_whole(crew, entry->dir)
			     || (crew->paths && !find_paths(crew, task, name, entry->name_length, &child));
		if (!child.keep) {
			if (fs_lstat_at(dir.fd, name, st) < 0 || !S_ISDIR(st->mode)
			    || (worker->options->one_file_system > 1 && st->dev != task->state.dev)) {
				verdict = UNFIT;
				break;
			}
			child.has_state = true;
			struct snapshot_dir_facts facts = attr_snapshot_dir(crew->old, entry->dir);

			/* Most directories have no others in them and are as they were: they are done. */
			child.keep = !crew->paths && attr_snapshot_view(crew->old, entry->dir).count == facts.leading
				     && !has_changed(&facts, entry, st);
			if (!is_same_entry(crew->scan, entry, st, task->state.dev))
				verdict = DIFFERENT;
		}
		vec_push(&worker->children, child);
	}
	fs_root_close(&dir);
	return verdict;
}

/* Take the names of a directory from the older snapshot. false: that turned out to be impossible, it has to be read. */
static bool keep_dir(struct image_worker *worker, const struct image_task *task)
{
	struct image_crew *crew = worker->crew;
	struct image_dir *dir;
	struct entries view = attr_snapshot_view(crew->old, task->old), copy;
	struct snapshot_dir_facts facts = attr_snapshot_dir(crew->old, task->old);

	if (crew->paths && !leads_on(crew, task, &view))
		return false;
	enum verdict verdict = look_at_children(worker, task, &view, facts.leading);

	if (verdict == UNFIT)
		return false;
	if (verdict == DIFFERENT) {
		/* With the sub-directories as they are now. */
		image_copy_view(crew->image, &view, &copy);
		for (uint32_t i = facts.leading; i < copy.count; i++) {
			const struct image_task *below = &worker->children.items[i - facts.leading];

			if (below->has_state)
				copy.items[i] = fresh_entry(crew->scan, &copy.items[i], &below->state, task->state.dev);
		}
	}
	pthread_mutex_lock(&crew->lock);
	put_view(crew, task->dir, task->old, &facts);
	dir = crew->image->dirs.items[task->dir];
	if (verdict == DIFFERENT)
		dir->entries = copy;
	image_add_children(crew->image, task->dir);
	for (uint32_t i = dir->child_count; i-- > 0;) {
		struct image_task *child = &worker->children.items[i];

		child->dir = dir->first_child + i;
		if (child->keep)
			put_subtree(crew, child->dir, child->old);
		else if (!is_closed(worker, &dir->entries.items[facts.leading + i]))
			push_task(crew, child);
	}
	pthread_mutex_unlock(&crew->lock);
	return true;
}

static bool must_read(const struct image_crew *crew, struct image_task *task)
{
	struct snapshot_dir_facts facts = attr_snapshot_dir(crew->old, task->old);

	/* On the way to named paths it is read if it is another one than it was, with all below it then. */
	if (crew->paths) {
		if (!is_same_dir(&facts, &task->state))
			task->old = IMAGE_NO_OLD;
		return facts.error || task->old == IMAGE_NO_OLD;
	}
	struct entries list = task->old ? attr_snapshot_view(crew->old, facts.parent) : attr_snapshot_root(crew->old);

	if (!has_changed(&facts, &list.items[facts.parent_entry], &task->state))
		return false;
	if (crew->read_below)
		task->old = IMAGE_NO_OLD;
	return true;
}

static void refresh_step(struct image_worker *worker, const struct image_task *given)
{
	struct image_crew *crew = worker->crew;
	struct image_task task = *given;

	if (task.old != IMAGE_NO_OLD) {
		if (!task.has_state
		    && fs_lstat(&crew->scan->source->attr_root, strbuf_text(&worker->path), &task.state) < 0)
			memset(&task.state, 0, sizeof task.state);
		if (!must_read(crew, &task) && keep_dir(worker, &task))
			return;
	}
	read_dir(worker, &task, task.old == IMAGE_NO_OLD ? read_below : refresh_below);
}

/*
 * --- hard links ---
 *
 * A name that came or went in one directory makes a file in another one, which has not changed, a hard link or a plain file.
 * What can be affected is found by keys and attributes, and then looked at.
 */

struct links {
	struct image_crew *crew;
	struct hashmap balance; /* (dev, ino): names that have come less those that have gone */
	struct hashmap shapes;  /* (size, mtime) of files that have gained names: all names of a file have the same ones */
};

/* Count the names of hard links in a list. */
static void add_balance(struct links *links, const struct entries *list, uint64_t difference)
{
	struct entry_side expanded;
	bool inserted;

	for (uint32_t i = 0; i < list->count; i++) {
		if (!(list->items[i].flags & ENTRY_HARD_LINKED))
			continue;
		const struct entry_side *side = entry_any_side(list, &list->items[i], &expanded);

		*hashmap_put(&links->balance, side->dev, side->ino, 0, &inserted) += difference;
	}
}

/* Of a hard-linked entry. */
static int64_t balance_of(const struct links *links, const struct entries *list, const struct entry *entry)
{
	struct entry_side expanded;
	const struct entry_side *side = entry_any_side(list, entry, &expanded);
	const uint64_t *balance = hashmap_get(&links->balance, side->dev, side->ino);

	return balance ? (int64_t)*balance : 0;
}

/* Correct what a kept directory says of entries that are suspicious. */
static void look_through(struct links *links, uint32_t number)
{
	struct image *image = links->crew->image;
	struct image_dir *dir = image->dirs.items[number];
	struct strbuf path = STRBUF_INIT;
	struct fs_stat st;

	for (uint32_t i = 0; i < dir->entries.count; i++) {
		const struct entry *entry = &dir->entries.items[i];
		bool is_suspicious = entry->flags & ENTRY_HARD_LINKED
				     ? balance_of(links, &dir->entries, entry) < 0
				     : links->shapes.count && !entry_is_dir(entry)
				       && hashmap_get(&links->shapes, entry->size, (uint64_t)entry->mtime);

		if (!is_suspicious)
			continue;
		image_dir_path(image, number, &path);
		strbuf_add_path(&path, entry_name(&dir->entries, entry));
		if (fs_lstat(&links->crew->scan->source->attr_root, strbuf_text(&path), &st) < 0)
			continue;
		bool linked = st.nlink > 1 && st.dev == dir->dev;

		if (linked == ((entry->flags & ENTRY_HARD_LINKED) != 0))
			continue;
		if (dir->entries.snapshot) {
			struct entries view = dir->entries;
			image_copy_view(image, &view, &dir->entries);
		}
		dir->entries.items[i].flags ^= ENTRY_HARD_LINKED;
		if (!linked && !image->digests)
			continue;
		struct entry_side *side = entries_side(&dir->entries, &dir->entries.items[i]);

		side->dev = st.dev;
		side->ino = st.ino;
		side->ctime = st.ctime;
		side->ctime_nsec = st.ctime_nsec;
	}
	strbuf_free(&path);
}

static void refresh_links(struct image_crew *crew)
{
	struct links links = { .crew = crew, .balance = HASHMAP_INIT, .shapes = HASHMAP_INIT };
	const struct image *image = crew->image;
	bool *scanned = xcalloc(image->dirs.count, sizeof *scanned), changed = false;

	for (uint32_t i = 0; i < attr_snapshot_facts(crew->old)->dir_count; i++) {
		struct entries view = attr_snapshot_view(crew->old, i);

		if (!crew->kept[i])
			add_balance(&links, &view, UINT64_MAX);
	}
	for (size_t i = 0; i < crew->scanned.count; i++) {
		scanned[crew->scanned.items[i]] = true;
		add_balance(&links, &image->dirs.items[crew->scanned.items[i]]->entries, 1);
	}
	for (size_t i = 0; i < links.balance.capacity; i++)
		changed |= links.balance.slots[i].used && links.balance.slots[i].value;
	for (size_t i = 0; changed && i < crew->scanned.count; i++) {
		const struct entries *list = &image->dirs.items[crew->scanned.items[i]]->entries;
		bool inserted;

		for (uint32_t j = 0; j < list->count; j++) {
			const struct entry *entry = &list->items[j];

			if (entry->flags & ENTRY_HARD_LINKED && balance_of(&links, list, entry) > 0)
				hashmap_put(&links.shapes, entry->size, (uint64_t)entry->mtime, 1, &inserted);
		}
	}
	for (uint32_t i = 0; changed && i < image->dirs.count; i++)
		if (!scanned[i])
			look_through(&links, i);
	free(scanned);
	hashmap_free(&links.balance);
	hashmap_free(&links.shapes);
}

int image_refresh_dirs(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reread)
{
	const struct scan_options *options = scan->options[0];
	uint32_t count = attr_snapshot_facts(old)->dir_count;
	struct image_task root = { .dir = 0, .old = 0 };
	struct image_crew crew = {
		.image = image, .scan = scan, .old = old, .read_below = scan->enter != NULL, .step = refresh_step,
		.kept = xcalloc(count, 1), .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER,
	};

	/* What a symlink points to changes without its directory. */
	if (options->copy_links || options->copy_dirlinks || options->copy_unsafe_links) {
		root.old = IMAGE_NO_OLD;
	} else {
		/* Look at all directories at once, in several threads: of each whether it, its entry and all below are as they
		 * were. What is not, mount points among it, has to be looked at in its own time. */
		crew.whole = xcalloc(count, 1);
		threads_share(scan->threads, (int)((count - 1) / JOB_DIRS + 1), look_at_some, &crew);
		for (uint32_t i = count - 1; i > 0; i--)
			if (!crew.whole[i])
				crew.whole[attr_snapshot_dir(old, i).parent] = 0;
	}
	if (scan->looked)
		scan->looked(scan->context);
	int result = crew_run(&crew, &root);

	*reread = crew.scanned.count;
	if (result == 0)
		refresh_links(&crew);
	crew_free(&crew);
	return result;
}

int image_refresh_paths(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old,
			const char *const *paths, size_t count, uint64_t *reread)
{
	struct image_task root = { .dir = 0, .old = 0, .first = 0, .last = count, .at = 0 };
	char **clean = xcalloc(count ? count : 1, sizeof *clean);
	struct image_crew crew = {
		.image = image, .scan = scan, .old = old, .paths = (const char *const *)clean, .step = refresh_step,
		.kept = xcalloc(attr_snapshot_facts(old)->dir_count, 1), .lock = PTHREAD_MUTEX_INITIALIZER,
		.work = PTHREAD_COND_INITIALIZER,
	};

	for (size_t i = 0; i < count; i++) {
		clean[i] = xmalloc(strlen(paths[i]) + 2);
		fs_clean_path(clean[i], paths[i]);
		size_t length = strlen(clean[i]);

		if (length > 0 && clean[i][length - 1] == '/')
			clean[i][--length] = '\0';
		if (!strcmp(clean[i], "."))
			clean[i][0] = '\0';
	}
	qsort(clean, count, sizeof *clean, compare_paths);
	if (count > 0 && !clean[0][0])
		root.old = IMAGE_NO_OLD;
	else
		image->io_error |= attr_snapshot_facts(old)->io_error;
	int result = crew_run(&crew, &root);

	*reread = crew.scanned.count;
	crew_free(&crew);
	for (size_t i = 0; i < count; i++)
		free(clean[i]);
	free(clean);
	return result;
}
