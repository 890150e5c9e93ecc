/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Allocation that succeeds or ends the process; memory that grows in its place. */
#include "lib/alloc.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "lib/checked.h"
#include "lib/exit.h"
#include "lib/log.h"

#define RETRIES 50
#define RETRY_MS 100

/* One flag for the process, as the log sink is: see doc/architecture.md. */
static atomic_bool is_patient, is_waiting;

void alloc_set_patient(bool patient)
{
	atomic_store(&is_patient, patient);
}

/* An allocation has failed: end the process, or wait until it may be tried again. The log needs memory as well. */
static void await_memory(size_t size, int attempt)
{
	const struct timespec pause = { 0, RETRY_MS * 1000000L };

	if (!atomic_load(&is_patient) || attempt == RETRIES)
		die(EXIT_MALLOC, "[%s] out of memory: cannot allocate %zu bytes", log_role(), size);
	if (!attempt && !atomic_exchange(&is_waiting, true)) {
		log_error("[%s] out of memory: cannot allocate %zu bytes, trying again", log_role(), size);
		atomic_store(&is_waiting, false);
	}
	nanosleep(&pause, NULL);
}

/* A size of 0 is raised to 1, so that NULL always means failure. */
static size_t product(size_t count, size_t size)
{
	size_t bytes;

	if (!checked_mul(count, size, &bytes))
		die(EXIT_MALLOC, "[%s] out of memory: %zu items of %zu bytes", log_role(), count, size);
	return bytes ? bytes : 1;
}

void *xmalloc(size_t size)
{
	return xrealloc_array(NULL, size, 1);
}

void *xcalloc(size_t count, size_t size)
{
	const size_t bytes = product(count, size);
	void *memory;

	for (int attempt = 0; !(memory = calloc(1, bytes)); attempt++)
		await_memory(bytes, attempt);
	return memory;
}

void *xrealloc_array(void *old, size_t count, size_t size)
{
	const size_t bytes = product(count, size);
	void *memory;

	for (int attempt = 0; !(memory = realloc(old, bytes)); attempt++)
		await_memory(bytes, attempt);
	return memory;
}

char *xstrdup(const char *text)
{
	return xstrndup(text, strlen(text));
}

char *xstrndup(const char *text, size_t length)
{
	size_t real = strnlen(text, length);
	char *copy = xmalloc(real + 1);

	memcpy(copy, text, real);
	copy[real] = '\0';
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	va_list args;
	char *text;
	int length;

	for (int attempt = 0;; attempt++) {
		va_start(args, fmt);
		length = vasprintf(&text, fmt, args);
		va_end(args);
		if (length >= 0)
			return text;
		await_memory(0, attempt);
	}
}

void *peer_alloc(size_t count, size_t size, size_t ceiling)
{
	if (size && count > ceiling / size)
		die(EXIT_MALLOC, "[%s] exceeded --max-alloc=%zu setting", log_role(), ceiling);
	return xcalloc(count, size);
}

/* --- memory in reserved address space --- */

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
