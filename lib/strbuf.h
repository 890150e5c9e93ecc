/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A growing byte string: always NUL-terminated, may contain NULs, owned by its holder. */
#ifndef LIB_STRBUF_H
#define LIB_STRBUF_H

#include <stdarg.h>
#include <stddef.h>

struct strbuf {
	char *data; /* NULL until the first byte; else data[length] == 0. Readers use strbuf_text() */
	size_t length;
	size_t capacity;
};

#define STRBUF_INIT { NULL, 0, 0 }

static inline const char *strbuf_text(const struct strbuf *sb)
{
	return sb->data ? sb->data : "";
}

void strbuf_free(struct strbuf *sb);                    /* back to STRBUF_INIT */
void strbuf_reset(struct strbuf *sb);                   /* length 0, keeps the memory */
void strbuf_truncate(struct strbuf *sb, size_t length); /* length <= current */
void strbuf_reserve(struct strbuf *sb, size_t extra);
void strbuf_add(struct strbuf *sb, const void *bytes, size_t length);
void strbuf_add_char(struct strbuf *sb, char c);
void strbuf_add_string(struct strbuf *sb, const char *text);
void strbuf_addf(struct strbuf *sb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *sb, const char *fmt, va_list args) __attribute__((format(printf, 2, 0), nonnull(2)));
/* Add "/" (unless empty or already ending in one) and then `name`; "" and "." as current content count as empty. */
void strbuf_add_path(struct strbuf *sb, const char *name);
/* Add the components of a path but ".", with a "/" before each that does not follow one or stand at the beginning. */
void strbuf_add_components(struct strbuf *sb, const char *path);
/* The same of a full path without slashes at the ends, resolving "..", which does not climb above the root. */
void strbuf_add_clean(struct strbuf *full, const char *path);
/* Give the bytes away (malloc'ed, NUL-terminated) and reset to STRBUF_INIT. */
char *strbuf_detach(struct strbuf *sb);

#endif
