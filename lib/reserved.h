/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory that grows and never moves: address space is set aside at once, memory as it is needed. One thread may grow it while
 * others read what was there before. */
#ifndef LIB_RESERVED_H
#define LIB_RESERVED_H

#include <stddef.h>

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
