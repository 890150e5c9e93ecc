/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growing byte strings. */
#include "lib/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/checked.h"
#include "lib/exit.h"

enum { FIRST_CAPACITY = 64 };

void strbuf_free(struct strbuf *sb)
{
	free(sb->data);
	*sb = (struct strbuf)STRBUF_INIT;
}

void strbuf_reset(struct strbuf *sb)
{
	strbuf_truncate(sb, 0);
}

void strbuf_truncate(struct strbuf *sb, size_t length)
{
	if (!sb->data)
		return;
	sb->length = length;
	sb->data[length] = '\0';
}

void strbuf_reserve(struct strbuf *sb, size_t extra)
{
	size_t needed, capacity = sb->capacity ? sb->capacity : FIRST_CAPACITY;

	if (extra < sb->capacity - sb->length)
		return;
	if (!checked_add(sb->length, extra, &needed) || !checked_add(needed, 1, &needed))
		die(EXIT_MALLOC, "out of memory: a string of %zu + %zu bytes", sb->length, extra);
	while (capacity < needed)
		if (!checked_mul(capacity, 2, &capacity))
			capacity = needed;
	sb->data = xrealloc_array(sb->data, capacity, 1);
	sb->data[sb->length] = '\0';
	sb->capacity = capacity;
}

void strbuf_add(struct strbuf *sb, const void *bytes, size_t length)
{
	strbuf_reserve(sb, length);
	if (length)
		memcpy(sb->data + sb->length, bytes, length);
	strbuf_truncate(sb, sb->length + length);
}

void strbuf_add_char(struct strbuf *sb, char c)
{
	strbuf_add(sb, &c, 1);
}

void strbuf_add_string(struct strbuf *sb, const char *text)
{
	strbuf_add(sb, text, strlen(text));
}

void strbuf_addf(struct strbuf *sb, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(sb, fmt, args);
	va_end(args);
}

void strbuf_vaddf(struct strbuf *sb, const char *fmt, va_list args)
{
	va_list again;
	int length;

	va_copy(again, args);
	length = vsnprintf(NULL, 0, fmt, args);
	if (length < 0)
		die(EXIT_MESSAGEIO, "cannot format \"%s\"", fmt);
	strbuf_reserve(sb, (size_t)length);
	vsnprintf(sb->data + sb->length, (size_t)length + 1, fmt, again);
	sb->length += (size_t)length;
	va_end(again);
}

void strbuf_add_path(struct strbuf *sb, const char *name)
{
	if (sb->length == 1 && sb->data[0] == '.')
		strbuf_reset(sb);
	if (sb->length && sb->data[sb->length - 1] != '/')
		strbuf_add_char(sb, '/');
	strbuf_add_string(sb, name);
}

void strbuf_add_components(struct strbuf *sb, const char *path)
{
	for (size_t length; *path; path += length) {
		path += strspn(path, "/");
		length = strcspn(path, "/");
		if (!length || (length == 1 && *path == '.'))
			continue;
		if (sb->length && sb->data[sb->length - 1] != '/')
			strbuf_add_char(sb, '/');
		strbuf_add(sb, path, length);
	}
}

void strbuf_add_clean(struct strbuf *full, const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");
		bool is_up = length == 2 && path[0] == '.' && path[1] == '.';
		if (is_up && full->length) {
			const char *slash = memrchr(full->data, '/', full->length);
			strbuf_truncate(full, slash ? (size_t)(slash - full->data) : 0);
		} else if (length && !is_up && !(length == 1 && path[0] == '.')) {
			if (full->length)
				strbuf_add_char(full, '/');
			strbuf_add(full, path, length);
		}
		path += length;
		path += *path == '/';
	}
}

char *strbuf_detach(struct strbuf *sb)
{
	char *data;

	strbuf_reserve(sb, 0);
	data = sb->data;
	*sb = (struct strbuf)STRBUF_INIT;
	return data;
}
