/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory that is there or the process ends with EXIT_MALLOC; every count times size is checked by division. */
#ifndef LIB_ALLOC_H
#define LIB_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* All return zeroed (xcalloc) or uninitialised memory for the caller to free(); size 0 gives a valid pointer. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
/* Resize to count * size bytes; the added bytes are uninitialised. */
void *xrealloc_array(void *old, size_t count, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t length);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* For a process that many depend on: from now on (true) what cannot be allocated is said and tried again for 5 s before the
 * process ends. */
void alloc_set_patient(bool patient);

/*
 * Like xcalloc for sizes that come from a peer: a request over the ceiling (--max-alloc, default 1 GiB, which a peer cannot
 * raise) ends with EXIT_MALLOC and "exceeded --max-alloc=N setting" without allocating (doc/protocol/08-security.md
 * section 2.1).
 */
void *peer_alloc(size_t count, size_t size, size_t ceiling);

/* Memory that grows and never moves: address space is set aside at once, memory as it is needed. One thread may grow it while
 * others read what was there before. */
struct reserved {
	char *start;   /* zeroed as far as it is usable */
	size_t usable; /* bytes */
	size_t limit;
};

/* At most `limit` bytes, or what there is of address space; EXIT_MALLOC if that is next to nothing. */
void reserved_init(struct reserved *area, size_t limit);
/* Make at least `needed` bytes from the start usable; EXIT_MALLOC past the limit. */
void reserved_grow(struct reserved *area, size_t needed);
void reserved_free(struct reserved *area);

#endif
