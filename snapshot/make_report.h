/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The run that makes a snapshot, and what is said of it. */
#ifndef SNAPSHOT_MAKE_REPORT_H
#define SNAPSHOT_MAKE_REPORT_H

#include <pthread.h>
#include <stdatomic.h>

#include "attrs/image_scan.h"
#include "lib/log.h"
#include "snapshot/make_rules.h"

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
	int64_t began;                  /* by lib/clock.h */

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

/* From here on signals end the process, and a progress line is shown if the options ask for one. */
void make_watch_start(struct maker *maker);
void make_watch_stop(struct maker *maker);
void make_report(struct maker *maker);

#endif
