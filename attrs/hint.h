/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What an attr file says, said once more by its access time, which means nothing for it otherwise. Whoever has the metadata
 * at hand then need not open and read the file: most of what an unchanged refresh would cost.
 *
 * The hint is an access time from the year 2242 on: 2^33 seconds plus the size in nanoseconds. No clock sets one, and reading
 * the file leaves it alone (relatime moves an access time forward only). What is not such a time (trees of other writers, -U,
 * file systems with smaller times, strictatime mounts) is no hint, and the content decides. A copy of an attr tree has either
 * both or no hint; whoever rewrites an attr file makes a new one or, in place, must set both times as anybody does who sets
 * one.
 */
#ifndef ATTRS_HINT_H
#define ATTRS_HINT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "fs/root.h"

#define ATTR_HINT_EPOCH (INT64_C(1) << 33)
#define ATTR_HINT_UNIT UINT64_C(1000000000)

static inline struct timespec attr_hint_time(uint64_t size)
{
	return (struct timespec){ (time_t)(ATTR_HINT_EPOCH + (int64_t)(size / ATTR_HINT_UNIT)), (long)(size % ATTR_HINT_UNIT) };
}

/* Does the access time say that the attr file holds a size, and if so, which? */
static inline bool attr_hint_read(const struct fs_stat *st, uint64_t *size)
{
	uint64_t units;

	if (st->atime < ATTR_HINT_EPOCH)
		return false;
	units = (uint64_t)(st->atime - ATTR_HINT_EPOCH);
	if (units > INT64_MAX / ATTR_HINT_UNIT)
		return false;
	*size = units * ATTR_HINT_UNIT + st->atime_nsec;
	return *size <= INT64_MAX;
}

#endif
