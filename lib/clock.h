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

/* The time of a clock in so many milliseconds, for calls that wait until then. */
static inline struct timespec clock_after(clockid_t clock, int milliseconds)
{
	struct timespec until;

	clock_gettime(clock, &until);
	until.tv_nsec += (milliseconds % 1000) * CLOCK_MILLISECOND;
	until.tv_sec += milliseconds / 1000 + until.tv_nsec / CLOCK_SECOND;
	until.tv_nsec %= CLOCK_SECOND;
	return until;
}

#endif
