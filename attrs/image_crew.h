/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The threads that fill an image: each takes a directory from a stack, looks at it and puts what lies below on the stack. The
 * last one put there is the first one taken, so that what was just looked up is still warm. Only image_*.c include this.
 */
#ifndef ATTRS_IMAGE_CREW_H
#define ATTRS_IMAGE_CREW_H

#include <pthread.h>

#include "attrs/image_scan.h"

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
	struct fs_stat state;
	bool keep;               /* nothing below it has to be looked at */
	struct image_task task;  /* else */
};

struct image_worker;

struct image_crew {
	struct image *image;
	const struct image_scan *scan;
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

/* Is the last change of an object so long ago that another one gives it another ctime? `now`: before it was looked at. */
bool image_is_settled(const struct image_scan *scan, const struct fs_stat *st, const struct timespec *now);

bool image_is_stopped(const struct image_scan *scan);
void image_count_done(const struct image_scan *scan, uint64_t count);

void image_crew_init(struct image_crew *crew, struct image *image, const struct image_scan *scan);
/* Look at the root, fill its "." entry, and do it and all that follows from it. 0, or -1 with errno. */
int image_crew_run(struct image_crew *crew, struct image_task *root);
void image_crew_free(struct image_crew *crew); /* leaves errno alone */

/* Read the task's directory; worker->path is set, the lock is not held. `follow_up` is called with the lock held when its
 * entries and its children are in the image, and pushes tasks for these. */
void image_read_dir(struct image_worker *worker, const struct image_task *task,
		    void (*follow_up)(struct image_worker *worker, const struct image_task *task));
/* Its end: what is known of the directory goes into the image. */
void image_put_dir(struct image_worker *worker, const struct image_task *task, const struct entries *list,
		   const struct fs_stat *st, int error,
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
