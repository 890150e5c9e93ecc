/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The clock that durations and deadlines are measured by: it only goes forward, and has nothing to do with the time of day. */
#ifndef LIB_CLOCK_H
#define LIB_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_SECOND INT64_C(1000000000) /* in nanoseconds */
#define CLOCK_MILLISECOND INT64_C(1000000)

static inline int64_t clock_nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * CLOCK_SECOND + now.tv_nsec;
}

static inline int64_t clock_milliseconds(void)
{
	return clock_nanoseconds() / CLOCK_MILLISECOND;
}

#endif
