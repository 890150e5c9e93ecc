/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Allocation that succeeds or ends the process. */
#include "lib/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/checked.h"
#include "lib/exit.h"
#include "lib/log.h"

static void *checked_memory(void *memory, size_t size)
{
	if (!memory)
		die(EXIT_MALLOC, "[%s] out of memory: cannot allocate %zu bytes", log_role(), size);
	return memory;
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
	return checked_memory(malloc(product(size, 1)), size);
}

void *xcalloc(size_t count, size_t size)
{
	size_t bytes = product(count, size);

	return checked_memory(calloc(1, bytes), bytes);
}

void *xrealloc_array(void *old, size_t count, size_t size)
{
	size_t bytes = product(count, size);

	return checked_memory(realloc(old, bytes), bytes);
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

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	return checked_memory(text, 0);
}

void *peer_alloc(size_t count, size_t size, size_t ceiling)
{
	if (size && count > ceiling / size)
		die(EXIT_MALLOC, "[%s] exceeded --max-alloc=%zu setting", log_role(), ceiling);
	return xcalloc(count, size);
}
