/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files behind snapshot/make.h share: the run, the rules of its threads, what it tells. */
#ifndef SNAPSHOT_MAKE_PRIVATE_H
#define SNAPSHOT_MAKE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "attrs/image_scan.h"
#include "filter/filter.h"
#include "lib/log.h"
#include "options.h"

/* --- rules: snapshot/make_rules.c --- */

/* One list of filter rules for each thread, all of them the same. */
struct make_rules;
/*
 * Read the rules of the command line. base: the absolute name of the tree, for rules with absolute names. Files that are
 * named there (or are standard input) are read once. Errors end the process, as in a listing.
 */
struct make_rules *make_rules_new(const struct options *options, const struct fs_root *root, const char *base, int threads);
void make_rules_free(struct make_rules *rules);
/* The rules of a thread; NULL: there are none, for no thread. rules: NULL is allowed, here and below. */
struct filter_list *make_rules_list(struct make_rules *rules, int thread);
/*
 * What of the command line changes a list, for the snapshot's facts: two runs with equal texts make equal lists of equal trees,
 * as far as per-directory merge files are equal too. "" without any such option. For the caller to free.
 */
char *make_rules_options(const struct options *options, const struct make_rules *rules);
/* The same of a list that came from elsewhere, for people's eyes only: no refresh starts with it. */
char *make_list_options(const struct options *options);

/* --- the list of paths to look at again: snapshot/make_paths.c --- */

struct make_paths {
	VEC(char *) paths; /* below the root, without slashes at the ends; "" is the root itself */
};
/* Read --attr-refresh=LIST; exits like --files-from if that cannot be done. */
void make_paths_read(const struct options *options, struct make_paths *paths);
void make_paths_free(struct make_paths *paths);

/* --- the run --- */

struct maker {
	const struct options *options;
	const struct image_known *known; /* after a run; NULL: nothing */
	bool after_run;                 /* of a destination: as it lies there; no filters, no --chmod, no links followed */
	struct attr_source source;
	struct fs_stat root_stat;
	char *shown;                    /* the tree as the operator named it, absolute */
	struct make_rules *rules;       /* NULL: none */
	struct scan_options scan_options[IMAGE_THREADS_MAX];
	struct image_scan scan;
	struct image *image;
	struct attr_snapshot *old;      /* what stands at the file's name; NULL: nothing that can be read */
	uint64_t reread, reused_digests, computed_digests, generation, size;
	struct timespec began;          /* monotonic */

	/* Shared with the threads. */
	_Atomic uint64_t done;
	atomic_bool stop;
	atomic_bool over;               /* the run, for the thread that waits for signals */

	/* Output. */
	struct log_sink below;
	bool line_open;                 /* a progress line waits for its end; guarded by the log */
	pthread_t watch;
	bool watches;
};

/* --- what is told: snapshot/make_report.c --- */

/* From here on signals end the process, and a progress line is shown if the options ask for one. */
void make_watch_start(struct maker *maker);
void make_watch_stop(struct maker *maker);
void make_report(struct maker *maker);

#endif
