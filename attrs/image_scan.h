/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Filling an image from a tree with several threads, whole or where an older snapshot no longer holds, and digests of contents.
 * Each thread has scan options of its own, because filter rules keep a position in the tree.
 *
 * The state of a directory (image_dir) is that from before its names were read. Where a later look could not see whether
 * something has changed since, because the last change was too recent or something could not be read, its ctime is 0: the next
 * refresh reads it again.
 */
#ifndef ATTRS_IMAGE_SCAN_H
#define ATTRS_IMAGE_SCAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "attrs/image.h"
#include "attrs/source.h"

enum { IMAGE_THREADS_MAX = 64 };

/* What a scan needs of its caller. */
struct image_scan {
	struct attr_source *source;       /* live or attr tree; shared by the threads, not changed by scans */
	int threads;                      /* 1..IMAGE_THREADS_MAX, the calling thread among them */
	/* One for each thread. links, devices, specials, hard_links and origins are set by the scan. */
	struct scan_options *options[IMAGE_THREADS_MAX];
	/* Called in thread `thread` before it scans a directory: merge files are read. NULL: there are none. */
	void (*enter)(void *context, int thread, const char *transfer_dir);
	/* Called in any thread with every built entry (--chmod and the like). NULL: nothing to do. */
	void (*adjust)(void *context, struct entry *entry);
	/* Called in the calling thread when image_refresh_dirs has looked at all that may be unchanged, which is most of its
	 * work: what is left does not keep all processors busy. NULL: nothing to do. */
	void (*looked)(void *context);
	void *context;
	_Atomic uint64_t *done;           /* entries so far, for progress (digests: files read); NULL: nobody wants to know */
	atomic_bool *stop;                /* set: give up soon (ECANCELED); may be NULL */
	/* A directory that changed less than so many nanoseconds ago may change again without a new ctime; 0: two seconds. */
	int64_t settle_ns;
};

/*
 * Filling an image from a tree of which somebody has seen most already: a run that has just brought it up to date. Directories
 * that are known are taken from there, the others are scanned.
 */
struct image_known {
	/*
	 * Called in any thread, once for each directory whose entry has a tag (entry.dir, given with the entries of the
	 * directory above it; 0: none). `path` is below the root, "" for it. true: *list (empty before) has what a scan would
	 * make of it, in wire order, and *st is the directory's state from before its names were read. false: it is not known
	 * after all.
	 */
	bool (*give)(void *context, uint32_t tag, const char *path, struct entries *list, struct fs_stat *st);
	void *context;
	uint32_t root_tag;
};

/* Scan the whole tree below the source's root, but for what is known (NULL: nothing). *read: directories that were scanned. 0;
 * -1 with errno if the root cannot be looked at or the scan was stopped. Errors of single directories and names are logged, and
 * collected in image->io_error. */
int image_scan_all(struct image *image, const struct image_scan *scan, const struct image_known *known, uint64_t *read);

/* Is the last change of an object so long ago that another one gives it another ctime? `now`: before it was looked at. */
bool image_is_settled(const struct image_scan *scan, const struct fs_stat *st, const struct timespec *now);
bool image_is_stopped(const struct image_scan *scan);
void image_count_done(const struct image_scan *scan, uint64_t count);

/*
 * --- for image_*.c ---
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
};
#define IMAGE_NO_OLD UINT32_MAX

/* A sub-directory of a directory whose names still hold. */
struct image_child {
	bool keep;               /* nothing below it has to be looked at */
	struct image_task task;  /* else; has_state: it was looked at */
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
	VEC(struct image_child) children; /* while its sub-directories are compared */
	int io_error;
};

void image_crew_init(struct image_crew *crew, struct image *image, const struct image_scan *scan);
/* Look at the root, fill its "." entry, and do it and all that follows from it. 0, or -1 with errno. */
int image_crew_run(struct image_crew *crew, struct image_task *root);
void image_crew_free(struct image_crew *crew); /* leaves errno alone */

/* Read the task's directory; worker->path is set, the lock is not held. `follow_up` is called with the lock held when its
 * entries and its children are in the image, and pushes tasks for these. */
void image_read_dir(struct image_worker *worker, const struct image_task *task,
		    void (*follow_up)(struct image_worker *worker, const struct image_task *task));
/* With the lock held and what is known of a directory in place: without -x mount points are entered, but marked in their
 * parent's entries for those who will ask for it. */
void image_mark_mount(struct image *image, const struct image_dir *dir);
/* A follow_up: read all below. */
void image_read_below(struct image_worker *worker, const struct image_task *task);
/* With the lock held. */
void image_crew_push(struct image_crew *crew, const struct image_task *task);
/* Is entry `entry` of that directory one that is not entered (-x)? */
bool image_is_closed(const struct image_worker *worker, const struct entry *entry);

#endif
