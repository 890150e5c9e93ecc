/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Filling an image from an older snapshot, and from the tree only where that no longer holds.
 *
 * In a refresh nearly all directories are as they were, and looking at them is nearly all that it does: so the threads share
 * nothing while they look, and meet again for what is left.
 */
#include "attrs/image_refresh.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attrs/image_scan.h"
#include "lib/alloc.h"
#include "lib/hashmap.h"
#include "lib/threads.h"

/* --- one directory --- */

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

/* Would a scan make the same entry of it? */
static bool is_same_entry(const struct image_scan *scan, const struct entry *entry, const struct fs_stat *st,
			  uint64_t parent_dev)
{
	struct entry fresh = fresh_entry(scan, entry, st, parent_dev);

	return entry->mode == fresh.mode && entry->uid == fresh.uid && entry->gid == fresh.gid && entry->size == fresh.size
	       && entry->mtime == fresh.mtime && entry->mtime_nsec == fresh.mtime_nsec && entry->flags == fresh.flags;
}

/* --- all of them --- */

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

/* Compare the directories in directory `dir` with what their names stand for. Mount points differ in any case. */
static void look_below(const struct image_crew *crew, uint32_t dir, struct way *way)
{
	struct snapshot_dir_facts facts = attr_snapshot_dir(crew->old, dir);
	struct entries view = attr_snapshot_view(crew->old, dir);
	int fd = facts.leading < view.count ? go_to(way, crew, dir) : -1;
	struct fs_stat st;

	for (uint32_t i = facts.leading; fd >= 0 && i < view.count; i++) {
		const struct entry *entry = &view.items[i];
		struct snapshot_dir_facts below = attr_snapshot_dir(crew->old, entry->dir);

		crew->whole[entry->dir] = fs_lstat_at(fd, entry_name(&view, entry), &st) == 0 && st.dev == facts.dev
					  && !has_changed(&below, entry, &st)
					  && is_same_entry(crew->scan, entry, &st, facts.dev);
	}
}

static void look_at_some(void *crew_void, int number)
{
	const struct image_crew *crew = crew_void;
	uint32_t first = (uint32_t)number * JOB_DIRS, left = attr_snapshot_facts(crew->old)->dir_count - first;
	struct way way = { VEC_INIT };

	for (uint32_t i = 0; i < left && i < JOB_DIRS && !image_is_stopped(crew->scan); i++)
		look_below(crew, first + i, &way);
	while (way.levels.count)
		leave_last(&way);
	vec_free(&way.levels);
}

/* Look at all of them at once, in several threads: of each whether it, its entry and all below are as they were. What is not,
 * mount points among it, has to be looked at in its own time. */
static void find_whole(struct image_crew *crew)
{
	uint32_t count = attr_snapshot_facts(crew->old)->dir_count;

	crew->whole = xcalloc(count, 1);
	threads_share(crew->scan->threads, (int)((count - 1) / JOB_DIRS + 1), look_at_some, crew);
	for (uint32_t i = count - 1; i > 0; i--)
		if (!crew->whole[i])
			crew->whole[attr_snapshot_dir(crew->old, i).parent] = 0;
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
	image_mark_mount(crew->image, dir);
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

		if (image_is_closed(worker, entry))
			continue;
		bool is_on_way = crew->paths && find_paths(crew, task, name, entry->name_length, &below);

		/* One of the paths ends at that name itself: that is the shortest and so the first. */
		if (is_on_way && !crew->paths[below.first][below.at - 1])
			below.old = IMAGE_NO_OLD;
		if (!is_on_way && below.old != IMAGE_NO_OLD && (crew->paths || is_whole(crew, below.old)))
			put_subtree(crew, below.dir, below.old);
		else
			image_crew_push(crew, &below);
	}
}

/* --- a directory whose names still hold --- */

enum verdict { SAME, DIFFERENT, UNFIT };

/* Look at one sub-directory; dir_fd is the directory's. */
static enum verdict look_at_child(const struct image_worker *worker, const struct image_task *task, int dir_fd,
				  const struct entries *view, const struct entry *entry, struct image_child *child)
{
	const struct image_crew *crew = worker->crew;
	struct fs_stat *st = &child->task.state;

	child->task.old = entry->dir;
	child->keep = is_whole(crew, entry->dir)
		      || (crew->paths && !find_paths(crew, task, entry_name(view, entry), entry->name_length, &child->task));
	if (child->keep)
		return SAME;
	if (fs_lstat_at(dir_fd, entry_name(view, entry), st) < 0 || !S_ISDIR(st->mode)
	    || (worker->options->one_file_system > 1 && st->dev != task->state.dev))
		return UNFIT;
	child->task.has_state = true;
	struct snapshot_dir_facts facts = attr_snapshot_dir(crew->old, entry->dir);

	/* Most directories have no others in them and are as they were: they are done. */
	child->keep = !crew->paths && attr_snapshot_view(crew->old, entry->dir).count == facts.leading
		      && !has_changed(&facts, entry, st);
	return is_same_entry(crew->scan, entry, st, task->state.dev) ? SAME : DIFFERENT;
}

/* Look at the sub-directories, into worker->children. */
static enum verdict look_at_children(struct image_worker *worker, const struct image_task *task, const struct entries *view,
				     uint32_t leading)
{
	enum verdict verdict = SAME;
	struct fs_root dir;

	worker->children.count = 0;
	if (leading == view->count)
		return SAME;
	if (fs_root_open_below(&dir, &worker->crew->scan->source->attr_root, strbuf_text(&worker->path)) < 0)
		return UNFIT;
	for (uint32_t i = leading; i < view->count && verdict != UNFIT; i++) {
		struct image_child child = { .keep = false };
		enum verdict one = look_at_child(worker, task, dir.fd, view, &view->items[i], &child);

		vec_push(&worker->children, child);
		verdict = one == SAME ? verdict : one;
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
			const struct image_task *below = &worker->children.items[i - facts.leading].task;

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
		struct image_child *child = &worker->children.items[i];

		child->task.dir = dir->first_child + i;
		if (child->keep)
			put_subtree(crew, child->task.dir, child->task.old);
		else if (!image_is_closed(worker, &dir->entries.items[facts.leading + i]))
			image_crew_push(crew, &child->task);
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
	image_read_dir(worker, &task, task.old == IMAGE_NO_OLD ? image_read_below : refresh_below);
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

static bool is_suspicious(const struct links *links, const struct entries *list, const struct entry *entry)
{
	if (entry->flags & ENTRY_HARD_LINKED)
		return balance_of(links, list, entry) < 0;
	return links->shapes.count && !entry_is_dir(entry) && hashmap_get(&links->shapes, entry->size, (uint64_t)entry->mtime);
}

/* Correct what a kept directory says of entries that are suspicious. */
static void look_through(struct links *links, uint32_t number)
{
	struct image *image = links->crew->image;
	struct image_dir *dir = image->dirs.items[number];
	struct strbuf path = STRBUF_INIT;
	struct fs_stat st;

	for (uint32_t i = 0; i < dir->entries.count; i++) {
		if (!is_suspicious(links, &dir->entries, &dir->entries.items[i]))
			continue;
		image_dir_path(image, number, &path);
		strbuf_add_path(&path, entry_name(&dir->entries, &dir->entries.items[i]));
		if (fs_lstat(&links->crew->scan->source->attr_root, strbuf_text(&path), &st) < 0)
			continue;
		bool linked = st.nlink > 1 && st.dev == dir->dev;

		if (linked == ((dir->entries.items[i].flags & ENTRY_HARD_LINKED) != 0))
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

static int run_refresh(struct image_crew *crew, struct image_task *root, uint64_t *reread)
{
	crew->step = refresh_step;
	crew->kept = xcalloc(attr_snapshot_facts(crew->old)->dir_count, 1);
	int result = image_crew_run(crew, root);

	*reread = crew->scanned.count;
	return result;
}

int image_refresh_dirs(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old, uint64_t *reread)
{
	const struct scan_options *options = scan->options[0];
	struct image_task root = { .dir = 0, .old = 0 };
	struct image_crew crew;

	image_crew_init(&crew, image, scan);
	crew.old = old;
	crew.read_below = scan->enter != NULL;
	/* What a symlink points to changes without its directory. */
	if (options->copy_links || options->copy_dirlinks || options->copy_unsafe_links)
		root.old = IMAGE_NO_OLD;
	else
		find_whole(&crew);
	if (scan->looked)
		scan->looked(scan->context);
	int result = run_refresh(&crew, &root, reread);

	if (result == 0)
		refresh_links(&crew);
	image_crew_free(&crew);
	return result;
}

static char **clean_paths(const char *const *paths, size_t count)
{
	char **clean = xcalloc(count ? count : 1, sizeof *clean);

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
	return clean;
}

int image_refresh_paths(struct image *image, const struct image_scan *scan, const struct attr_snapshot *old,
			const char *const *paths, size_t count, uint64_t *reread)
{
	struct image_task root = { .dir = 0, .old = 0, .first = 0, .last = count, .at = 0 };
	char **clean = clean_paths(paths, count);
	struct image_crew crew;

	if (count > 0 && !clean[0][0])
		root.old = IMAGE_NO_OLD;
	else
		image->io_error |= attr_snapshot_facts(old)->io_error;
	image_crew_init(&crew, image, scan);
	crew.old = old;
	crew.paths = (const char *const *)clean;
	int result = run_refresh(&crew, &root, reread);

	image_crew_free(&crew);
	for (size_t i = 0; i < count; i++)
		free(clean[i]);
	free(clean);
	return result;
}
