/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a difference is printed. */
#ifndef SNAPSHOT_REPORT_H
#define SNAPSHOT_REPORT_H

#include <stdint.h>

#include "options.h"
#include "snapshot/compare.h"

struct change_report {
	const struct options *options;
	const char *format;               /* of a line; NULL: paths for --files-from or rm, as they are */
	const struct compared_tree *tree; /* the newer one */
	const struct link_groups *groups;
	uint64_t unprintable;             /* paths that cannot stand on a line of their own */
};
void change_report(struct change_report *report, const struct snapshot_change *change);
/* A path as it is, made safe for a list that --files-from reads. */
void change_report_path(struct change_report *report, const char *path);

#endif
