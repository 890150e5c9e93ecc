/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A typed growing array: struct { T *items; size_t count, capacity; }. */
#ifndef LIB_VEC_H
#define LIB_VEC_H

#include "lib/alloc.h"

#define VEC(T) struct { T *items; size_t count, capacity; }
#define VEC_INIT { NULL, 0, 0 }

/* Append `item`; evaluates to nothing. */
#define vec_push(v, item) \
	do { \
		if ((v)->count == (v)->capacity) { \
			(v)->capacity = (v)->capacity ? (v)->capacity * 2 : 8; \
			(v)->items = xrealloc_array((v)->items, (v)->capacity, sizeof *(v)->items); \
		} \
		(v)->items[(v)->count++] = (item); \
	} while (0)

#define vec_free(v) \
	do { \
		free((v)->items); \
		(v)->items = NULL; \
		(v)->count = (v)->capacity = 0; \
	} while (0)

#endif
