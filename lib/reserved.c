/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growing memory in reserved address space. */
#include "lib/reserved.h"

#include <sys/mman.h>

#include "lib/exit.h"

#define LEAST_LIMIT ((size_t)1 << 24)
#define STEP ((size_t)1 << 16)

void reserved_init(struct reserved *area, size_t limit)
{
	void *start;

	limit = limit < LEAST_LIMIT ? LEAST_LIMIT : (limit + STEP - 1) / STEP * STEP;
	while ((start = mmap(NULL, limit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) == MAP_FAILED) {
		if (limit / 2 < LEAST_LIMIT)
			die(EXIT_MALLOC, "out of memory: no address space for the file list");
		limit = limit / 2 / STEP * STEP;
	}
	*area = (struct reserved){ .start = start, .limit = limit };
}

void reserved_grow(struct reserved *area, size_t needed)
{
	if (needed <= area->usable)
		return;
	if (needed > area->limit)
		die(EXIT_MALLOC, "out of memory: the file list has too many directories");
	size_t wanted = needed + needed / 4;
	size_t usable = wanted > area->limit ? area->limit : (wanted + STEP - 1) / STEP * STEP;

	if (mprotect(area->start, usable, PROT_READ | PROT_WRITE) < 0)
		die(EXIT_MALLOC, "out of memory for the directories of the file list");
	area->usable = usable;
}

void reserved_free(struct reserved *area)
{
	if (area->start)
		munmap(area->start, area->limit);
	*area = (struct reserved){ .start = NULL };
}
