/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A snapshot in the place of the real tree, for source.c: what system calls would answer, and one directory being read. */
#ifndef ATTRS_SNAPSHOT_SOURCE_H
#define ATTRS_SNAPSHOT_SOURCE_H

#include "attrs/snapshot_lookup.h"
#include "attrs/source.h"
#include "lib/strbuf.h"

/* One directory being read, or one named object. */
struct scan {
	struct attr_source *source;
	const struct scan_options *options;
	int dir_fd;             /* live: the directory; -1 for a named object and with a snapshot */
	struct strbuf path;     /* directory below the root, then each name in turn */
	struct strbuf transfer; /* the same as the transfer names it */
	size_t path_length, transfer_length; /* of the directories alone */
	uint64_t parent_dev;
	struct entries *list;
	int *io_error;
	/* Of a snapshot: the entry whose turn it is, NULL for a named object, and where it lies. */
	struct snapshot_place place;
	bool is_searchable;     /* names may be looked at, not only listed */
};

/* attr_source_stat of a snapshot. */
int snapshot_source_stat(struct attr_source *source, const char *path, bool follow, struct fs_stat *st);
/* As opendir(3), to be followed by a look at the entries: the number of the directory. 0, or -1 with errno. */
int snapshot_source_opendir(struct attr_source *source, const char *path, uint32_t *dir);

/* Begin to read directory `dir`: its entries are scan->place.view, and place.entry is set to each in turn. */
void snapshot_scan_start(struct scan *scan, uint32_t dir);
/* As lstat(2), readlink(2) and access(2) of the current name. */
int snapshot_scan_lstat(const struct scan *scan, struct fs_stat *st);
ssize_t snapshot_scan_readlink(const struct scan *scan, char *target, size_t size);
bool snapshot_scan_is_readable(const struct scan *scan);

#endif
